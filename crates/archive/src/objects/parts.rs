//! The parts of a multipart object. Each is a body, whose row has the length; its checksum is in a
//! row of its own, which listings do not read. An object that was put whole is its own only part.
//!
//! Parts are numbered from 1 in object order, whatever numbers they had in their upload.

use fulgurite_catalog::ReadView;

use crate::model::object::ObjectPart;
use crate::rows::lookup::bodies;
use crate::rows::{self, ObjectRow};
use crate::{ArchiveError, Result};

/// Lists parts of an object after number `after`, at most `limit`; `true` when more follow.
pub(crate) fn list(
    view: &dyn ReadView,
    object: &ObjectRow,
    after: u32,
    limit: usize,
) -> Result<(Vec<ObjectPart>, bool)> {
    let lengths = bodies(view, object)?.into_iter().map(|body| body.bytes);
    let (mut parts, is_more) = page(lengths, after, limit);
    for part in &mut parts {
        part.checksum = match object.part_count {
            Some(_) => rows::part_checksum(view, object, part.number - 1)?,
            None => object.checksum.clone(),
        };
    }
    Ok((parts, is_more))
}

/// Returns one part of an object.
///
/// # Errors
/// `InvalidPartNumber`.
pub(crate) fn find(view: &dyn ReadView, object: &ObjectRow, number: u32) -> Result<ObjectPart> {
    let (parts, _) = list(view, object, number.saturating_sub(1), 1)?;
    expect_part(parts, number, object.body_count)
}

/// Returns the found part if it has this number.
pub(crate) fn expect_part(parts: Vec<ObjectPart>, number: u32, count: u32) -> Result<ObjectPart> {
    let found = parts.into_iter().next().filter(|part| part.number == number);
    found.ok_or(ArchiveError::InvalidPartNumber { number, count })
}

/// Returns parts of these lengths after number `after`, at most `limit`; `true` when more follow.
pub(crate) fn page(
    lengths: impl Iterator<Item = u64>,
    after: u32,
    limit: usize,
) -> (Vec<ObjectPart>, bool) {
    let mut first = 0;
    let mut parts = Vec::new();
    for (number, bytes) in (1..).zip(lengths) {
        if number > after {
            if parts.len() == limit {
                return (parts, true);
            }
            parts.push(ObjectPart { number, first, bytes, checksum: None });
        }
        first += bytes;
    }
    (parts, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(after: u32, limit: usize, expected: &[(u32, u64, u64)], is_more: bool) {
        let (parts, more) = page([5, 0, 7].into_iter(), after, limit);
        let found: Vec<_> =
            parts.iter().map(|part| (part.number, part.first, part.bytes)).collect();
        assert_eq!((found.as_slice(), more), (expected, is_more), "after {after}, at most {limit}");
    }

    #[test]
    fn part_pages_have_offsets_and_continuation() {
        check(0, 9, &[(1, 0, 5), (2, 5, 0), (3, 5, 7)], false);
        check(0, 3, &[(1, 0, 5), (2, 5, 0), (3, 5, 7)], false);
        check(0, 2, &[(1, 0, 5), (2, 5, 0)], true);
        check(2, 1, &[(3, 5, 7)], false);
        check(3, 1, &[], false);
        check(0, 0, &[], true);
    }

    #[test]
    fn missing_part_number_is_an_error() {
        let find = |number: u32| {
            let (parts, _) = page([5, 7].into_iter(), number.saturating_sub(1), 1);
            expect_part(parts, number, 2).map(|part| part.first)
        };
        assert_eq!((find(1).unwrap(), find(2).unwrap()), (0, 5));
        for number in [0, 3, u32::MAX] {
            let refused = find(number).unwrap_err();
            assert!(matches!(refused, ArchiveError::InvalidPartNumber { .. }), "{refused}");
        }
    }
}

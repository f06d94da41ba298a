//! Where the bytes of an object are: its pieces, each an object of the set of tomes.
//!
//! ```text
//! ID/0.0  ID/0.1  ...  ID/1.0  ...   parts of an upload, each cut into pieces of one size
//! ID/head                            the object's description, and the bytes after all parts
//! ```

use std::ops::Range;

use fulgurite_units::BlobId;
use serde::{Deserialize, Serialize};

/// The pieces of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pieces {
    /// Prefix of their names.
    pub(crate) id: BlobId,
    /// Bytes of every piece of a part except its last.
    pub(crate) piece_bytes: u64,
    /// Bytes of each part, in order.
    pub(crate) parts: Vec<u64>,
    /// Bytes after all parts, in the head.
    pub(crate) tail: u64,
    /// Bytes of the head in front of them.
    pub(crate) head: u32,
}

/// A piece, and which bytes of its object it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) name: String,
    /// Range in the object.
    pub(crate) bytes: Range<u64>,
    /// Bytes of the piece before them.
    pub(crate) skip: u64,
}

/// Returns the prefix of the names of an object's pieces.
pub(crate) fn prefix(id: BlobId) -> String {
    format!("{id}/")
}

pub(crate) fn head_name(id: BlobId) -> String {
    format!("{id}/head")
}

/// Returns the object whose head has this name.
pub(crate) fn id_of_head(name: &str) -> Option<BlobId> {
    name.strip_suffix("/head")?.parse().ok()
}

pub(crate) fn name(id: BlobId, part: usize, number: u64) -> String {
    format!("{id}/{part}.{number}")
}

impl Pieces {
    pub(crate) fn length(&self) -> u64 {
        self.parts.iter().sum::<u64>() + self.tail
    }

    /// Returns all pieces, in the order of their bytes; the head is the last.
    pub(crate) fn all(&self) -> impl Iterator<Item = Piece> {
        let mut from = 0;
        let parts = self.parts.iter().enumerate().flat_map(move |(part, bytes)| {
            let start = from;
            from += bytes;
            let (id, end) = (self.id, from);
            (0..bytes.div_ceil(self.piece_bytes)).map(move |number| {
                let at = start + number * self.piece_bytes;
                let bytes = at..(at + self.piece_bytes).min(end);
                Piece { name: name(id, part, number), bytes, skip: 0 }
            })
        });
        let length = self.length();
        let head = Piece {
            name: head_name(self.id),
            bytes: length - self.tail..length,
            skip: self.head.into(),
        };
        parts.chain([head])
    }

    /// Returns the pieces that hold some of these bytes, each with its share.
    pub(crate) fn in_range(&self, range: &Range<u64>) -> Vec<Piece> {
        let cut = |piece: Piece| {
            let bytes = piece.bytes.start.max(range.start)..piece.bytes.end.min(range.end);
            let skip = piece.skip + bytes.start.saturating_sub(piece.bytes.start);
            (!bytes.is_empty()).then_some(Piece { bytes, skip, ..piece })
        };
        self.all().filter_map(cut).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(parts: &[u64], tail: u64) -> Pieces {
        let id = BlobId::from_random([1; 16]);
        Pieces { id, piece_bytes: 10, parts: parts.to_vec(), tail, head: 7 }
    }

    #[test]
    fn pieces_cover_every_byte_exactly_once() {
        for (parts, tail) in
            [(&[][..], 0), (&[], 5), (&[10], 0), (&[1, 25, 10, 3], 4), (&[0, 5], 1)]
        {
            let pieces = pieces(parts, tail);
            let mut at = 0;
            let mut names = std::collections::BTreeSet::new();
            for piece in pieces.all() {
                assert_eq!(piece.bytes.start, at, "{parts:?} {tail}");
                at = piece.bytes.end;
                assert!(names.insert(piece.name));
            }
            assert_eq!(at, pieces.length());
        }
    }

    #[test]
    fn range_maps_to_the_pieces_that_hold_it() {
        let pieces = pieces(&[1, 25, 10, 3], 4);
        let length = pieces.length();
        for start in 0..=length {
            for end in start..=length {
                let found = pieces.in_range(&(start..end));
                let mut at = start;
                for piece in &found {
                    assert_eq!(piece.bytes.start, at);
                    let whole = pieces.all().find(|whole| whole.name == piece.name).unwrap();
                    assert_eq!(piece.skip - whole.skip, at - whole.bytes.start);
                    at = piece.bytes.end;
                }
                assert_eq!(at, end, "{start}..{end}");
            }
        }
    }
}

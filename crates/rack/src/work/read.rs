//! Reads a blob for a client, stripe by stripe: from all of its stacks, so that each is checked, or
//! from as many as are enough, so that the other disks may stay spun down.

use std::ops::{ControlFlow, Range};

use bytes::Bytes;
use fulgurite_disks::PlaceId;
use fulgurite_units::BlobId;

use super::on_disk::{Origin, StackSource};
use super::{DiskContext, Group, disk_name};
use crate::blob::{BlobReader, Expected, Located, ReadMode};
use crate::error::LostStack;
use crate::format::Trailer;
use crate::index::BlobRow;
use crate::stack::file_name;
use crate::{Fault, RackError, Result};

/// Reads the bytes `range` of a blob and passes them to `take`, stripe by stripe, until it breaks.
/// Returns the faulty stacks, which are to be repaired; stacks on disks that were not spun up are
/// not among them.
///
/// # Errors
/// [`RackError::TooFewStacks`] when too few can be used; bytes passed before that are correct.
pub fn read(
    ctx: &DiskContext,
    group: &Group,
    blob: BlobId,
    row: &BlobRow,
    range: Range<u64>,
    take: &mut dyn FnMut(Bytes) -> ControlFlow<()>,
) -> Result<Vec<LostStack>> {
    let mut reader = open(ctx, group, blob, row, (Origin::Memory, ctx.reads))?;
    let whole = reader.stripes().full_stripe_bytes();
    let end = range.end.min(row.length.get());
    let mut at = range.start;
    while at < end {
        let stripe = at / whole;
        let within = usize::try_from(at % whole).unwrap_or(usize::MAX);
        let all = reader.stripes().data_bytes(stripe);
        let until = usize::try_from(end - stripe * whole).unwrap_or(usize::MAX).min(all);
        let now = if until - within < all / 2 {
            // Copied, so that a small part does not keep a whole stripe in memory.
            Bytes::copy_from_slice(&reader.stripe(stripe)?[within..until])
        } else {
            reader.take_stripe(stripe)?.slice(within..until)
        };
        at += crate::format::bytes(now.len());
        if take(now).is_break() {
            break;
        }
    }
    let mut lost = reader.lost();
    lost.retain(|lost| lost.fault != Fault::Asleep);
    Ok(lost)
}

/// Opens as many of a blob's stacks as possible, where its row says.
pub(super) fn open(
    ctx: &DiskContext,
    group: &Group,
    blob: BlobId,
    row: &BlobRow,
    way: (Origin, ReadMode),
) -> Result<BlobReader<StackSource>> {
    open_named(ctx, group, blob, row, way, &|index| file_name(blob, index))
}

/// Like `open`, with other file names of the stacks.
pub(super) fn open_named(
    ctx: &DiskContext,
    group: &Group,
    blob: BlobId,
    row: &BlobRow,
    (origin, mode): (Origin, ReadMode),
    name: &dyn Fn(u8) -> String,
) -> Result<BlobReader<StackSource>> {
    let stacks = (0..).zip(&row.places).map(|(index, place)| {
        let Some(place) = place.map(PlaceId::new) else {
            return Located { disk: "no disk".to_owned(), source: Err(Fault::Missing) };
        };
        let disk = disk_name(place);
        // A disk that is not the right one is never opened.
        let source = match group.usable.contains(&place) {
            true => ctx.open(place, &name(index), origin),
            false if group.asleep.contains(&place) => Err(Fault::Asleep),
            false => {
                let reason = group.failures.get(&place).cloned();
                Err(Fault::OutOfReach { reason: reason.unwrap_or_else(|| "not usable".to_owned()) })
            }
        };
        Located { disk, source }
    });
    let expected = Expected { rack: ctx.rack, blob, coding: row.coding()? };
    let reader = BlobReader::open(expected, &group.name(), mode, stacks.collect())?;
    let Trailer { length, sequence, sum, .. } = *reader.trailer();
    if (length, sequence, sum) == (row.length, row.sequence, row.sum) {
        return Ok(reader);
    }
    // The stacks agree with each other but not with the index: this is another blob.
    let detail = format!("its stacks are of put {sequence}, and the index says {}", row.sequence);
    Err(RackError::Corrupt { blob, group: group.name(), detail })
}

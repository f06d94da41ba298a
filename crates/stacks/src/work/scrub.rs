//! One piece of a group's verification (scrub): reads some blobs from all of their stacks, rebuilds
//! lost stacks, garbage-collects, and records the cursor for the next piece.

use fulgurite_units::BlobId;

use super::{Group, Shop, mend, sweep};
use crate::index::BlobRow;
use crate::limits::REPAIR_BLOBS_MAX;
use crate::scrub::Piece;
use crate::{Result, StacksError};

/// Returns the blobs of a piece, from behind the cursor.
///
/// # Errors
/// Those of the index.
pub(crate) fn piece_of(
    shop: &Shop,
    group: fulgurite_disks::GroupId,
    after: Option<BlobId>,
) -> Result<Vec<(BlobId, BlobRow)>> {
    shop.index.blobs_up_to(group, after, REPAIR_BLOBS_MAX)
}

/// Verifies a piece. Damaged blobs are logged and counted; a later piece finds them again.
///
/// # Errors
/// Those of the index, and [`StacksError::Busy`] when the process is out of file handles or memory,
/// as stacks would be left unverified.
pub(crate) fn scrub(
    shop: &Shop,
    group: &Group,
    after: Option<BlobId>,
    now_ms: u64,
) -> Result<Piece> {
    let blobs = piece_of(shop, group.id, after)?;
    let mut problems = 0;
    for (blob, _) in &blobs {
        let problem = match mend(shop, group, *blob) {
            Ok(Some(mended)) if mended.still_lost() > 0 => {
                if mended.lost.iter().any(|lost| lost.fault.is_exhausted()) {
                    let what = crate::error::list(&mended.lost);
                    return Err(StacksError::Busy { what });
                }
                format!("it stays below its redundancy: {}", crate::error::list(&mended.lost))
            }
            Ok(_) => continue,
            Err(error @ (StacksError::Catalog(_) | StacksError::Index { .. })) => {
                return Err(error);
            }
            Err(error) if error.is_exhausted() => return Err(error),
            Err(error) => error.to_string(),
        };
        problems += 1;
        tracing::error!(group = %group.id, %blob, "a verification found a blob damaged: {problem}");
        shop.unmended.found(group.id, *blob, problem);
    }
    if let Err(error) = sweep(shop, group) {
        tracing::warn!(group = %group.id, "a sweep failed: {error}");
    }
    let last = blobs.last().map(|(blob, _)| *blob);
    let is_whole = blobs.len() < REPAIR_BLOBS_MAX;
    shop.index.scrubbed(group.id, last.filter(|_| !is_whole), problems, now_ms)?;
    shop.fail.pass("rack-scrubbed");
    Ok(match last {
        Some(last) if !is_whole => Piece::UpTo(last),
        Some(_) | None => Piece::Whole,
    })
}

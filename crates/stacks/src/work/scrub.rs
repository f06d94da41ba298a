//! A piece of a group's verification: some blobs read whole from all of their stacks, what is lost
//! of them made anew, what nobody wants swept; and where it ended, for the next piece.

use fulgurite_units::BlobId;

use super::{Group, Shop, mend, sweep};
use crate::index::BlobRow;
use crate::limits::REPAIR_BLOBS_MAX;
use crate::scrub::Piece;
use crate::{Result, StacksError};

/// The blobs of a piece, behind the one that the last ended at.
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

/// Verifies a piece. What is wrong with its blobs is logged and counted: a later one finds it
/// again.
///
/// # Errors
/// Those of the index, and [`StacksError::Busy`] when disks of the group are not there that may
/// come back: what lies on them would not be looked at.
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

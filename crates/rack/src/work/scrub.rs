//! One piece of a group's verification (scrub): reads some blobs from all of their stacks, rebuilds
//! lost stacks, garbage-collects, and records the cursor for the next piece.

use fulgurite_units::BlobId;

use super::{DiskContext, Group, gc, repair_blob};
use crate::index::BlobRow;
use crate::limits::REPAIR_BLOBS_MAX;
use crate::scrub::Piece;
use crate::{RackError, Result};

/// Returns the blobs of a piece, from behind the cursor.
///
/// # Errors
/// Those of the index.
pub(crate) fn piece_blobs(
    ctx: &DiskContext,
    group: fulgurite_disks::GroupId,
    after: Option<BlobId>,
) -> Result<Vec<(BlobId, BlobRow)>> {
    ctx.index.blobs_up_to(group, after, REPAIR_BLOBS_MAX)
}

/// Verifies a piece. Damaged blobs are logged and counted; a later piece finds them again.
///
/// # Errors
/// Those of the index, and [`RackError::Busy`] when the process is out of file handles or memory,
/// as stacks would be left unverified.
pub(crate) fn scrub(
    ctx: &DiskContext,
    group: &Group,
    after: Option<BlobId>,
    now_ms: u64,
) -> Result<Piece> {
    let blobs = piece_blobs(ctx, group.id, after)?;
    let mut problems = 0;
    for (blob, _) in &blobs {
        let problem = match repair_blob(ctx, group, *blob) {
            Ok(Some(repaired)) if repaired.still_lost() > 0 => {
                if repaired.lost.iter().any(|lost| lost.fault.is_exhausted()) {
                    let detail = crate::error::list(&repaired.lost);
                    return Err(RackError::Busy { detail });
                }
                format!("it still lacks redundancy: {}", crate::error::list(&repaired.lost))
            }
            Ok(_) => continue,
            Err(error @ (RackError::Catalog(_) | RackError::Index { .. })) => {
                return Err(error);
            }
            Err(error) if error.is_exhausted() => return Err(error),
            Err(error) => error.to_string(),
        };
        problems += 1;
        tracing::error!(group = %group.id, %blob, "a verification found a blob damaged: {problem}");
        ctx.unrepaired.record(group.id, *blob, problem);
    }
    if let Err(error) = gc(ctx, group) {
        tracing::warn!(group = %group.id, "garbage collection failed: {error}");
    }
    let last = blobs.last().map(|(blob, _)| *blob);
    let is_whole = blobs.len() < REPAIR_BLOBS_MAX;
    ctx.index.record_scrub(group.id, last.filter(|_| !is_whole), problems, now_ms)?;
    ctx.fail.pass("rack-scrubbed");
    Ok(match last {
        Some(last) if !is_whole => Piece::UpTo(last),
        Some(_) | None => Piece::Whole,
    })
}

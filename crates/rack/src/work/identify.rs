//! Identifies a disk that was just mounted, and initializes a new one.

use fulgurite_disks::PlaceId;
use fulgurite_units::error_chain;

use super::identity::{
    DISK_FILE, DiskIdentity, check_identity, read_identity, repair_identity, write_identity,
};
use super::on_disk::fault;
use super::starts::count_disk;
use super::{DiskContext, Group, disk_name};
use crate::Fault;
use crate::index::DiskRow;
use crate::{RackError, Result};

/// What a disk was identified as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identification {
    /// The one that belongs there.
    Known,
    /// The one that belongs there, but an older copy of it: later writes are missing.
    Older,
    /// One that belongs to no rack yet.
    New,
}

/// Identifies the disk of a place.
///
/// # Errors
/// What it is instead; nothing on it was changed.
pub fn identify(ctx: &DiskContext, place: PlaceId) -> Result<Identification, Fault> {
    ctx.injected.check_open(place)?;
    let lease = ctx.guard.acquire(place).map_err(|error| fault(&error))?;
    let group = ctx.places.group(place).ok_or(Fault::Missing)?;
    match ctx.places.disk(place) {
        Some(row) if row.is_given_up => Err(Fault::OutOfReach { reason: "given up".to_owned() }),
        Some(row) => {
            let expected = DiskIdentity::new(ctx.rack, row.disk, place, group);
            check_identity(&lease, &expected)?;
            match repair_identity(&lease, &expected) {
                Ok(false) => {}
                Ok(true) => tracing::warn!(%place, "{DISK_FILE} is rebuilt from its copy"),
                // The disk is the right one; the next arrival tries again.
                Err(fault) => {
                    tracing::warn!(%place, "cannot write the second copy of {DISK_FILE}: {fault}")
                }
            }
            // On failure only its space is unknown.
            let _ = ctx.query_space(place);
            Ok(count_disk(ctx, place, &lease))
        }
        None => match read_identity(&lease)? {
            Some(found) if !found.matches(ctx.rack, place) => {
                let detail = format!("the disk of place {} of rack {}", found.place, found.rack);
                Err(Fault::Mismatch { detail })
            }
            Some(_) | None => Ok(Identification::New),
        },
    }
}

/// Initializes the new disks of a group, each with an id of its own. Returns how many.
///
/// # Errors
/// [`RackError::WrongDisk`] for a disk that belongs to another rack, and those of the index.
pub fn initialize(ctx: &DiskContext, group: &Group, draw: &dyn Fn() -> [u8; 16]) -> Result<usize> {
    let mut refused = Vec::new();
    for &place in &group.new {
        match make(ctx, group, place, draw()) {
            Ok(disk) => {
                ctx.fail.pass("rack-disk-made");
                let row = DiskRow { disk, is_given_up: false };
                ctx.index.set_disk(place, row.clone())?;
                ctx.places.set_disk(place, Some(row));
                // On failure only its space is unknown.
                let _ = ctx.query_space(place);
                if let Ok(lease) = ctx.guard.acquire(place) {
                    count_disk(ctx, place, &lease);
                }
            }
            Err(fault) => refused.push(format!("{}: {fault}", disk_name(place))),
        }
    }
    match refused.is_empty() {
        true => Ok(group.new.len()),
        false => Err(RackError::WrongDisk { detail: refused.join("; ") }),
    }
}

/// Initializes a disk and returns its id. A disk that was initialized but not recorded keeps its
/// id.
fn make(
    ctx: &DiskContext,
    group: &Group,
    place: PlaceId,
    disk: [u8; 16],
) -> Result<[u8; 16], Fault> {
    let lease = ctx.guard.acquire(place).map_err(|error| fault(&error))?;
    lease.prepare().map_err(|error| fault(&error))?;
    let found = read_identity(&lease)?.filter(|found| found.matches(ctx.rack, place));
    let disk = match found {
        Some(found) => {
            found.id().map_err(|error| Fault::Damaged { detail: error_chain(&error) })?
        }
        None => disk,
    };
    let identity = DiskIdentity::new(ctx.rack, disk, place, group.id);
    write_identity(&lease, &identity, || ctx.fail.pass("rack-disk-named"))?;
    Ok(disk)
}

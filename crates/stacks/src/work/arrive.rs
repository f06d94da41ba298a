//! Identifies a disk that was just mounted, and initializes a new one.

use fulgurite_disks::PlaceId;
use fulgurite_units::error_chain;

use super::identity::{
    DISK_FILE, DiskIdentity, check_identity, mend_identity, read_identity, write_identity,
};
use super::on_disk::fault;
use super::starts::count_disk;
use super::{Group, Shop, disk_name};
use crate::Fault;
use crate::index::DiskRow;
use crate::{Result, StacksError};

/// What a disk was identified as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
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
pub fn arrive(shop: &Shop, place: PlaceId) -> Result<Arrival, Fault> {
    shop.injected.on_open(place)?;
    let lease = shop.guard.enter(place).map_err(|error| fault(&error))?;
    let group = shop.places.group(place).ok_or(Fault::Missing)?;
    match shop.places.disk(place) {
        Some(row) if row.is_given_up => Err(Fault::OutOfReach { why: "given up".to_owned() }),
        Some(row) => {
            let expected = DiskIdentity::new(shop.rack, row.disk, place, group);
            check_identity(&lease, &expected)?;
            match mend_identity(&lease, &expected) {
                Ok(false) => {}
                Ok(true) => tracing::warn!(%place, "{DISK_FILE} is made anew from its copy"),
                // The disk is the right one; the next arrival tries again.
                Err(fault) => tracing::warn!(%place, "{DISK_FILE} has no second copy: {fault}"),
            }
            // On failure only its space is unknown.
            let _ = shop.look_for_room(place);
            Ok(count_disk(shop, place, &lease))
        }
        None => match read_identity(&lease)? {
            Some(found) if !found.is_of(shop.rack, place) => {
                let what = format!("the disk of place {} of rack {}", found.place, found.rack);
                Err(Fault::Stranger { what })
            }
            Some(_) | None => Ok(Arrival::New),
        },
    }
}

/// Initializes the new disks of a group, each with an id of its own. Returns how many.
///
/// # Errors
/// [`StacksError::WrongDisk`] for a disk that belongs to another rack, and those of the index.
pub fn initialize(shop: &Shop, group: &Group, draw: &dyn Fn() -> [u8; 16]) -> Result<usize> {
    let mut refused = Vec::new();
    for &place in &group.new {
        match make(shop, group, place, draw()) {
            Ok(disk) => {
                shop.fail.pass("rack-disk-made");
                let row = DiskRow { disk, is_given_up: false };
                shop.index.set_disk(place, row.clone())?;
                shop.places.set_disk(place, Some(row));
                // On failure only its space is unknown.
                let _ = shop.look_for_room(place);
                if let Ok(lease) = shop.guard.enter(place) {
                    count_disk(shop, place, &lease);
                }
            }
            Err(fault) => refused.push(format!("{}: {fault}", disk_name(place))),
        }
    }
    match refused.is_empty() {
        true => Ok(group.new.len()),
        false => Err(StacksError::WrongDisk { what: refused.join("; ") }),
    }
}

/// Initializes a disk and returns its id. A disk that was initialized but not recorded keeps its
/// id.
fn make(shop: &Shop, group: &Group, place: PlaceId, disk: [u8; 16]) -> Result<[u8; 16], Fault> {
    let lease = shop.guard.enter(place).map_err(|error| fault(&error))?;
    lease.prepare().map_err(|error| fault(&error))?;
    let found = read_identity(&lease)?.filter(|found| found.is_of(shop.rack, place));
    let disk = match found {
        Some(found) => found.id().map_err(|error| Fault::Damaged { what: error_chain(&error) })?,
        None => disk,
    };
    let identity = DiskIdentity::new(shop.rack, disk, place, group.id);
    write_identity(&lease, &identity, || shop.fail.pass("rack-disk-named"))?;
    Ok(disk)
}

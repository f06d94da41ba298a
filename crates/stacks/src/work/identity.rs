//! Which disk it is: a file on each disk that says the rack, the disk and its place.
//!
//! It is read each time a disk was mounted, before anything else of it. A disk of another rack, or
//! one that was put into another's place, is named and not used; nothing on it is overwritten.

use fulgurite_disks::{GroupId, Lease, PlaceId};
use fulgurite_units::{RackId, error_chain};
use serde::{Deserialize, Serialize};

use super::STACKS;
use super::on_disk::fault;
use crate::Fault;

/// The file's name, in the root of a disk.
pub const DISK_FILE: &str = "fulgurite-disk.json";

/// What is written in front of it.
const FORMAT: &str = "fulgurite-disk-1";
/// Bytes of the file at most.
const DISK_FILE_BYTES_MAX: u64 = 4096;

/// What a disk says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskIdentity {
    format: String,
    /// The rack that it is of.
    pub rack: RackId,
    /// Its own id, 32 digits; another disk in the same place has another.
    pub disk: String,
    /// The place that it belongs to.
    pub place: PlaceId,
    /// The group of that place.
    pub group: GroupId,
}

impl DiskIdentity {
    /// What a new disk is to say.
    #[must_use]
    pub fn new(rack: RackId, disk: [u8; 16], place: PlaceId, group: GroupId) -> Self {
        let disk = u128::from_le_bytes(disk);
        Self { format: FORMAT.to_owned(), rack, disk: format!("{disk:032x}"), place, group }
    }

    /// Whether it says this rack and place.
    pub(super) fn is_of(&self, rack: RackId, place: PlaceId) -> bool {
        (self.rack, self.place) == (rack, place)
    }

    /// The disk's id.
    pub(super) fn id(&self) -> Result<[u8; 16], std::num::ParseIntError> {
        u128::from_str_radix(&self.disk, 16).map(u128::to_le_bytes)
    }
}

/// What the disk says of itself; nothing when it says nothing.
pub(crate) fn read_identity(lease: &Lease) -> Result<Option<DiskIdentity>, Fault> {
    let file = match lease.open(DISK_FILE) {
        Ok(file) => file,
        Err(error) if fault(&error) == Fault::Missing => return Ok(None),
        Err(error) => return Err(fault(&error)),
    };
    let damaged = |what: String| Fault::Damaged { what: format!("{DISK_FILE}: {what}") };
    let length = file.bytes().map_err(|error| fault(&error))?.get();
    if length > DISK_FILE_BYTES_MAX {
        return Err(damaged(format!("{length} bytes are too many")));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0).map_err(|error| fault(&error))?;
    let found: DiskIdentity =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error_chain(&error)))?;
    match found.format == FORMAT {
        true => Ok(Some(found)),
        false => Err(damaged(format!("its format is {:?} and not {FORMAT:?}", found.format))),
    }
}

/// Looks whether the disk is the one that belongs here.
///
/// # Errors
/// What it is instead.
pub(crate) fn check_identity(lease: &Lease, expected: &DiskIdentity) -> Result<(), Fault> {
    let stranger = |what: String| Err(Fault::Stranger { what });
    let Some(found) = read_identity(lease)? else {
        return stranger("a disk that says nothing of itself".to_owned());
    };
    if found.rack != expected.rack {
        return stranger(format!("a disk of rack {}", found.rack));
    }
    if found.place != expected.place {
        return stranger(format!("the disk of place {}", found.place));
    }
    if found.disk != expected.disk {
        return stranger(format!("disk {}, and disk {} belongs here", found.disk, expected.disk));
    }
    if found.group != expected.group {
        return stranger(format!("a disk of group {}", found.group));
    }
    Ok(())
}

/// Makes a disk one of this rack. One that says anything already is refused, but for the same.
///
/// # Errors
/// What it is instead, and those of the disk.
pub(crate) fn write_identity(lease: &Lease, identity: &DiskIdentity) -> Result<(), Fault> {
    let io = |error: fulgurite_disks::DisksError| fault(&error);
    lease.prepare().map_err(io)?;
    match read_identity(lease)? {
        Some(found) if found == *identity => return lease.create_folder(STACKS).map_err(io),
        Some(found) => {
            let what = format!("disk {} of rack {}", found.disk, found.rack);
            return Err(Fault::Stranger { what });
        }
        None => {}
    }
    if lease.exists(STACKS).map_err(io)? {
        let what = format!("a disk with a folder {STACKS:?} that says nothing of itself");
        return Err(Fault::Stranger { what });
    }
    let text = serde_json::to_vec_pretty(identity)
        .map_err(|error| Fault::Damaged { what: error_chain(&error) })?;
    let new = format!("{DISK_FILE}.new");
    lease.remove(&new).map_err(io)?;
    let file = lease.create_new(&new).map_err(io)?;
    file.write_all_at(&text, 0).map_err(io)?;
    file.sync().map_err(io)?;
    lease.rename_new(&new, DISK_FILE).map_err(io)?;
    // After its name: a folder without it would be somebody else's.
    lease.create_folder(STACKS).map_err(io)?;
    lease.sync_folder("").map_err(io)
}

//! Identity of a disk: a file on each disk that names the rack, the disk and its place.
//!
//! It is read after each mount, before anything else on the disk. A disk of another rack, or in
//! another disk's place, is reported and not used; nothing on it is overwritten.
//!
//! The file exists twice, so that losing a few hundred bytes does not mean losing the disk. A lost
//! or damaged one is rebuilt from the other, if that names the disk that belongs there.

use fulgurite_disks::{GroupId, Lease, PlaceId};
use fulgurite_units::{RackId, error_chain};
use serde::{Deserialize, Serialize};

use super::STACKS;
use super::on_disk::fault;
use crate::Fault;

/// The file's name, in the root of a disk.
pub const DISK_FILE: &str = "fulgurite-disk.json";

/// The name of its copy.
const DISK_FILE_COPY: &str = "fulgurite-disk.copy.json";

/// Value of the format field.
const FORMAT: &str = "fulgurite-disk-1";
/// Maximum bytes of the file.
const DISK_FILE_BYTES_MAX: u64 = 4096;

/// The identity of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskIdentity {
    format: String,
    /// The rack it belongs to.
    pub rack: RackId,
    /// Its own id, 32 hex digits; another disk in the same place has another.
    pub disk: String,
    /// The place it belongs to.
    pub place: PlaceId,
    /// The group of that place.
    pub group: GroupId,
}

impl DiskIdentity {
    /// Creates the identity of a new disk.
    #[must_use]
    pub fn new(rack: RackId, disk: [u8; 16], place: PlaceId, group: GroupId) -> Self {
        let disk = u128::from_le_bytes(disk);
        Self { format: FORMAT.to_owned(), rack, disk: format!("{disk:032x}"), place, group }
    }

    /// Whether it names this rack and place.
    pub(super) fn matches(&self, rack: RackId, place: PlaceId) -> bool {
        (self.rack, self.place) == (rack, place)
    }

    /// The disk's id.
    pub(super) fn id(&self) -> Result<[u8; 16], std::num::ParseIntError> {
        u128::from_str_radix(&self.disk, 16).map(u128::to_le_bytes)
    }
}

/// Reads the disk's identity; none if the disk has none.
pub(crate) fn read_identity(lease: &Lease) -> Result<Option<DiskIdentity>, Fault> {
    let other = || read_one(lease, DISK_FILE_COPY);
    match read_one(lease, DISK_FILE) {
        // A disk without the first file normally has no copy either.
        Ok(None) => other(),
        Err(damaged @ Fault::Damaged { .. }) => other()?.map(Some).ok_or(damaged),
        found => found,
    }
}

/// Rewrites whichever of the two files does not hold the identity. Returns whether one was
/// rewritten.
pub(super) fn repair_identity(lease: &Lease, identity: &DiskIdentity) -> Result<bool, Fault> {
    let mut is_repaired = false;
    for name in [DISK_FILE, DISK_FILE_COPY] {
        if read_one(lease, name).is_ok_and(|found| found.as_ref() == Some(identity)) {
            continue;
        }
        put_one(lease, identity, name)?;
        is_repaired = true;
    }
    Ok(is_repaired)
}

/// Writes one of the two files, replacing any file of that name.
fn put_one(lease: &Lease, identity: &DiskIdentity, name: &str) -> Result<(), Fault> {
    let text = serde_json::to_vec_pretty(identity)
        .map_err(|error| Fault::Damaged { detail: error_chain(&error) })?;
    put_file(lease, &text, name)
}

/// Writes a small file in the disk's root atomically.
pub(super) fn put_file(lease: &Lease, text: &[u8], name: &str) -> Result<(), Fault> {
    let io = |error: fulgurite_disks::DisksError| fault(&error);
    let new = format!("{name}.new");
    lease.remove(&new).map_err(io)?;
    let file = lease.create_new(&new).map_err(io)?;
    file.write_all_at(text, 0).map_err(io)?;
    file.sync().map_err(io)?;
    lease.replace(&new, name).map_err(io)?;
    lease.sync_folder("").map_err(io)
}

/// Reads a small file in the disk's root; none if it does not exist.
pub(super) fn read_file(lease: &Lease, name: &str) -> Result<Option<Vec<u8>>, Fault> {
    let file = match lease.open(name) {
        Ok(file) => file,
        Err(error) if fault(&error) == Fault::Missing => return Ok(None),
        Err(error) => return Err(fault(&error)),
    };
    let length = file.bytes().map_err(|error| fault(&error))?.get();
    if length > DISK_FILE_BYTES_MAX {
        let detail = format!("{name}: {length} bytes are too many");
        return Err(Fault::Damaged { detail });
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0).map_err(|error| fault(&error))?;
    Ok(Some(bytes))
}

fn read_one(lease: &Lease, name: &str) -> Result<Option<DiskIdentity>, Fault> {
    let Some(bytes) = read_file(lease, name)? else { return Ok(None) };
    let damaged = |detail: String| Fault::Damaged { detail: format!("{name}: {detail}") };
    let found: DiskIdentity =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error_chain(&error)))?;
    match found.format == FORMAT {
        true => Ok(Some(found)),
        false => Err(damaged(format!("its format is {:?} and not {FORMAT:?}", found.format))),
    }
}

/// Checks that the disk is the one that belongs here.
///
/// # Errors
/// What it is instead.
pub(crate) fn check_identity(lease: &Lease, expected: &DiskIdentity) -> Result<(), Fault> {
    let mismatch = |detail: String| Err(Fault::Mismatch { detail });
    // Another rack's disk has two files that say so. If one file is right, the other is damaged.
    if read_one(lease, DISK_FILE_COPY).is_ok_and(|copy| copy.as_ref() == Some(expected)) {
        return match read_one(lease, DISK_FILE) {
            Err(fault @ (Fault::Io { .. } | Fault::Exhausted { .. })) => Err(fault),
            Ok(_) | Err(_) => Ok(()),
        };
    }
    let Some(found) = read_identity(lease)? else {
        if !lease.exists("").map_err(|error| fault(&error))? {
            return Err(Fault::OutOfReach { reason: "its directory is not there".to_owned() });
        }
        return mismatch("a disk without an identity file".to_owned());
    };
    if found.rack != expected.rack {
        return mismatch(format!("a disk of rack {}", found.rack));
    }
    if found.place != expected.place {
        return mismatch(format!("the disk of place {}", found.place));
    }
    if found.disk != expected.disk {
        return mismatch(format!("disk {}, and disk {} belongs here", found.disk, expected.disk));
    }
    if found.group != expected.group {
        return mismatch(format!("a disk of group {}", found.group));
    }
    Ok(())
}

/// Initializes a disk for this rack. A disk with any other identity is refused. Calls `named` once
/// the identity is written but the disk is not complete yet.
///
/// # Errors
/// What it is instead, and those of the disk.
pub(crate) fn write_identity(
    lease: &Lease,
    identity: &DiskIdentity,
    named: impl Fn(),
) -> Result<(), Fault> {
    let io = |error: fulgurite_disks::DisksError| fault(&error);
    lease.prepare().map_err(io)?;
    match read_identity(lease)? {
        Some(found) if found == *identity => {
            lease.create_folder(STACKS).map_err(io)?;
            lease.sync_folder("").map_err(io)?;
            return repair_identity(lease, identity).map(|_| ());
        }
        Some(found) => {
            let detail = format!("disk {} of rack {}", found.disk, found.rack);
            return Err(Fault::Mismatch { detail });
        }
        None => {}
    }
    if lease.exists(STACKS).map_err(io)? {
        let detail = format!("a disk with a folder {STACKS:?} but no identity file");
        return Err(Fault::Mismatch { detail });
    }
    put_one(lease, identity, DISK_FILE)?;
    named();
    // After the identity: a folder without one would look like another rack's.
    lease.create_folder(STACKS).map_err(io)?;
    lease.sync_folder("").map_err(io)?;
    put_one(lease, identity, DISK_FILE_COPY)
}

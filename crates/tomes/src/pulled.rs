//! Offline reads of an unplugged tome, from its two directories: the disk and the metadata store.
//!
//! A tome that is unplugged from its set can be read by itself (Pergamum (FAST 2008), section 1).
//! The rest of a group recovers the blocks of a lost member, one by one. Nothing is written but the
//! lock file of the metadata store. Not here: which tomes there are, and names that were lost with
//! a metadata store.

use std::path::Path;

use fulgurite_disks::Lease;
use fulgurite_tome::alone::{self, Holding};
use fulgurite_tome::awake::Awake;
use fulgurite_tome::{GroupId, Offset};

use crate::Result;
use crate::awake_store::AwakeStore;
use crate::disk::Disk;
use crate::identity::TomeIdentity;

/// A tome without its set.
#[derive(Debug)]
pub struct Pulled {
    identity: TomeIdentity,
    awake: Awake,
    disk: Disk,
    _store: AwakeStore,
}

impl Pulled {
    /// Opens the tome with this metadata store, whose disk spins.
    ///
    /// # Errors
    /// When the store is missing, damaged or in use; [`crate::TomesError::WrongDisk`] when the disk
    /// does not belong to the store.
    pub fn open(awake: &Path, lease: Lease) -> Result<Self> {
        let (store, identity) = AwakeStore::open_any(awake)?;
        let awake = store.load(&identity)?;
        let disk = Disk::open(lease, &identity)?;
        Ok(Self { identity, awake, disk, _store: store })
    }

    /// Returns its set and number.
    #[must_use]
    pub const fn identity(&self) -> &TomeIdentity {
        &self.identity
    }

    /// Its state.
    #[must_use]
    pub const fn awake(&self) -> &Awake {
        &self.awake
    }

    /// Reads an object.
    ///
    /// # Errors
    /// As [`alone::object`].
    pub fn object(&mut self, name: &str) -> Result<Vec<u8>> {
        let Self { awake, disk, .. } = self;
        // An unreadable block is rebuilt from its segment, whatever the reason.
        let mut read = |spot| disk.read(spot).ok().flatten().map(|(_, block)| block);
        Ok(alone::object(awake, name, &mut read)?)
    }

    /// Returns what it knows of an offset of a group, to recover that of a lost member.
    ///
    /// # Errors
    /// As [`alone::holding`].
    pub fn holding(&mut self, group: GroupId, offset: Offset) -> Result<Holding> {
        let Self { awake, disk, .. } = self;
        let mut read = |spot| disk.read(spot).ok().flatten().map(|(_, block)| block);
        Ok(alone::holding(awake, group, offset, &mut read)?)
    }
}

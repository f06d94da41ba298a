//! A tome read alone, by its two directories: the disk and the awake store.
//!
//! A tome that is pulled out of its set can be read by itself (Pergamum (FAST 2008), section 1).
//! What is left of a group gives back what a lost member had, block by block. Nothing is written
//! but the lock of the awake store. Not here: which tomes there are, and names that were lost with
//! an awake store.

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
    /// The tome with this awake store, whose disk turns.
    ///
    /// # Errors
    /// When the store is none or damaged, or in use; [`crate::TomesError::WrongDisk`] when the disk
    /// is not that of the store.
    pub fn open(awake: &Path, lease: Lease) -> Result<Self> {
        let (store, identity) = AwakeStore::open_any(awake)?;
        let awake = store.load(&identity)?;
        let disk = Disk::open(lease, &identity)?;
        Ok(Self { identity, awake, disk, _store: store })
    }

    /// Which tome of which set it is.
    #[must_use]
    pub const fn identity(&self) -> &TomeIdentity {
        &self.identity
    }

    /// What it knows.
    #[must_use]
    pub const fn awake(&self) -> &Awake {
        &self.awake
    }

    /// The bytes of an object.
    ///
    /// # Errors
    /// As [`alone::object`].
    pub fn object(&mut self, name: &str) -> Result<Vec<u8>> {
        let Self { awake, disk, .. } = self;
        // A block that cannot be read is made out of its segment, for whatever reason it cannot.
        let mut read = |spot| disk.read(spot).ok().flatten().map(|(_, block)| block);
        Ok(alone::object(awake, name, &mut read)?)
    }

    /// What it has of an offset of a group, to recover a lost member's with.
    ///
    /// # Errors
    /// As [`alone::holding`].
    pub fn holding(&mut self, group: GroupId, offset: Offset) -> Result<Holding> {
        let Self { awake, disk, .. } = self;
        let mut read = |spot| disk.read(spot).ok().flatten().map(|(_, block)| block);
        Ok(alone::holding(awake, group, offset, &mut read)?)
    }
}

//! Offline reads of an unplugged tome, from its two directories: the disk and the metadata store.
//!
//! A tome that is unplugged from its set can be read by itself (Pergamum (FAST 2008), section 1).
//! The rest of a group recovers the blocks of a lost member, one by one. Nothing is written but the
//! lock file of the metadata store. Not here: which tomes there are, and names that were lost with
//! a metadata store.

use std::path::Path;

use fulgurite_disks::Lease;
use fulgurite_tome_core::metadata::TomeMetadata;
use fulgurite_tome_core::offline_read::{self, Holding};
use fulgurite_tome_core::{GroupId, Offset};

use crate::Result;
use crate::disk::Disk;
use crate::identity::TomeIdentity;
use crate::metadata_store::MetadataStore;

/// A tome without its set.
#[derive(Debug)]
pub struct UnpluggedTome {
    identity: TomeIdentity,
    metadata: TomeMetadata,
    disk: Disk,
    _store: MetadataStore,
}

impl UnpluggedTome {
    /// Opens the tome with this metadata store, whose disk spins.
    ///
    /// # Errors
    /// When the store is missing, damaged or in use; [`crate::TomesError::WrongDisk`] when the disk
    /// does not belong to the store.
    pub fn open(metadata: &Path, lease: Lease) -> Result<Self> {
        let (store, identity) = MetadataStore::open_any(metadata)?;
        let metadata = store.load(&identity)?;
        let disk = Disk::open(lease, &identity)?;
        Ok(Self { identity, metadata, disk, _store: store })
    }

    /// Returns its set and number.
    #[must_use]
    pub const fn identity(&self) -> &TomeIdentity {
        &self.identity
    }

    /// Its state.
    #[must_use]
    pub const fn metadata(&self) -> &TomeMetadata {
        &self.metadata
    }

    /// Reads an object.
    ///
    /// # Errors
    /// As [`offline_read::object`].
    pub fn object(&mut self, name: &str) -> Result<Vec<u8>> {
        let Self { metadata, disk, .. } = self;
        // An unreadable block is rebuilt from its segment, whatever the reason.
        let mut read = |block| disk.read(block).ok().flatten().map(|(_, block)| block);
        Ok(offline_read::object(metadata, name, &mut read)?)
    }

    /// Returns what it knows of an offset of a group, to recover that of a lost member.
    ///
    /// # Errors
    /// As [`offline_read::holding`].
    pub fn holding(&mut self, group: GroupId, offset: Offset) -> Result<Holding> {
        let Self { metadata, disk, .. } = self;
        let mut read = |block| disk.read(block).ok().flatten().map(|(_, block)| block);
        Ok(offline_read::holding(metadata, group, offset, &mut read)?)
    }
}

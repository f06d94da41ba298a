//! The blocks of a tome on its disk, at fixed places, each with a label that identifies it.
//!
//! ```text
//! physical block p  ->  file blocks-(p / n), slot p % n        n: the blocks of a region
//! file        header | slot | slot | ...
//! slot        label: set, tome, physical block, region, offset, version, signature | block
//! ```
//!
//! docs/formats/tome.md has it byte by byte. A block whose label does not match its place counts as
//! unreadable: then it is rebuilt from its segment. Not here: which block is in which physical
//! block, which the metadata store knows.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_codes::{Signature, crc32c, signature};
use fulgurite_disks::{DiskFile, DisksError, Lease};
use fulgurite_tome_core::object_assembler::{ExpectedObject, ObjectAssembler, VerifiedObject};
use fulgurite_tome_core::{Layout, Offset, PhysicalBlock, RegionIndex, Version};
use fulgurite_units::ErrorKind;

use crate::FailPoints;
use crate::identity::{self, BLOCKS_PREFIX, TomeIdentity};
use crate::limits::{HEADER_BYTES, LABEL_BYTES};
use crate::{Result, TomesError};

const HEADER_MAGIC: &[u8; 8] = b"FULGTOMF";
const LABEL_MAGIC: &[u8; 8] = b"FULGTOMB";
const VERSION: u32 = 1;
/// A file written to test whether the disk works.
const PROBE: &str = "fulgurite-tome.probe";

/// Identifies the block in a physical block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its region.
    pub region: RegionIndex,
    /// The block.
    pub offset: Offset,
    /// The write that produced it.
    pub version: Version,
}

impl Label {
    /// Label of a block that no row named yet when it was written.
    pub const UNKNOWN: Self = Self {
        region: RegionIndex::new(u32::MAX),
        offset: Offset::new(u32::MAX),
        version: Version::NONE,
    };
}

/// The blocks of a spinning disk.
#[derive(Debug)]
pub struct Disk {
    lease: Lease,
    identity: TomeIdentity,
    files: BTreeMap<u32, DiskFile>,
    /// Files with unsynced writes.
    unsynced: BTreeSet<u32>,
}

impl Disk {
    /// Opens the blocks of a disk, if it is the expected one.
    ///
    /// # Errors
    /// [`TomesError::WrongDisk`] with what it is instead.
    pub fn open(lease: Lease, identity: &TomeIdentity) -> Result<Self> {
        identity::check(&lease, identity)?;
        let (identity, files, unsynced) = (identity.clone(), BTreeMap::new(), BTreeSet::new());
        Ok(Self { lease, identity, files, unsynced })
    }

    /// Reads a physical block with its label; `None` when it is unreadable or holds another block.
    ///
    /// # Errors
    /// When that is not the disk's fault: it stands still, or no more files can be opened.
    pub fn read(&mut self, physical_block: PhysicalBlock) -> Result<Option<(Label, Vec<u8>)>> {
        let (number, position) = self.place(physical_block);
        let mut label = vec![0; LABEL_BYTES];
        let mut block = vec![0; slot_bytes(&self.identity.layout) - LABEL_BYTES];
        let file = match self.file(number) {
            Ok(Some(file)) => file,
            Ok(None) | Err(TomesError::Damaged { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        match file.read_parts_at([&mut label, &mut block], position) {
            Ok(()) => {}
            Err(error) if is_unreadable(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let label = self.parse(physical_block, &label, &signature(&block).0);
        Ok(label.map(|label| (label, block)))
    }

    /// Reads the object in these physical blocks, in order; `None` unless all of it matches. Each
    /// block is appended to the others and read together with the label of the next; it is checked
    /// against its label and the expected signature while it is in the processor's cache.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_object(
        &mut self,
        physical_blocks: &[PhysicalBlock],
        expected: ExpectedObject,
    ) -> Result<Option<VerifiedObject>> {
        let slot = slot_bytes(&self.identity.layout) as u64;
        let mut assembler = ObjectAssembler::new(expected);
        let (mut label, mut next) = ([0; LABEL_BYTES], [0; LABEL_BYTES]);
        let mut has_label = false;
        for (index, physical_block) in physical_blocks.iter().enumerate() {
            let (number, position) = self.place(*physical_block);
            let after =
                physical_blocks.get(index + 1).map(|physical_block| self.place(*physical_block));
            let is_followed = after == Some((number, position + slot));
            let file = match self.file(number) {
                Ok(Some(file)) => file,
                Ok(None) | Err(TomesError::Damaged { .. }) => return Ok(None),
                Err(error) => return Err(error),
            };
            // Reads the label before the block, unless it was read already, and the next label
            // after it.
            let (from, own) = if has_label { (LABEL_BYTES as u64, 0) } else { (0, LABEL_BYTES) };
            let more = if is_followed { LABEL_BYTES } else { 0 };
            let read = assembler.next(|block| {
                file.read_parts_at([&mut label[..own], block, &mut next[..more]], position + from)
            });
            let found = match read {
                Ok(found) => found,
                Err(error) if is_unreadable(&error) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let label_fits =
                |found: Signature| self.parse(*physical_block, &label, &found.0).is_some();
            if !found.is_some_and(label_fits) {
                return Ok(None);
            }
            (label, has_label) = (next, is_followed);
        }
        Ok(assembler.finish())
    }

    /// Writes a block to a physical block; it is durable after [`Self::sync`].
    ///
    /// # Errors
    /// When it cannot be written. Then the content of the physical block is undefined.
    pub fn write(
        &mut self,
        physical_block: PhysicalBlock,
        label: Label,
        block: &[u8],
        fail: &FailPoints,
    ) -> Result<()> {
        assert_eq!(block.len() as u64, self.identity.layout.block_bytes(), "a whole block");
        let (number, position) = self.place(physical_block);
        let slot = self.label(physical_block, label, &signature(block).0);
        if self.file(number)?.is_none() {
            self.create(number, fail)?;
        }
        self.unsynced.insert(number);
        let Some(file) = self.files.get(&number) else { return self.not_open(number) };
        file.write_all_at(&slot, position)?;
        fail.pass("tomes-label-written");
        file.write_all_at(block, position + slot.len() as u64)?;
        fail.pass("tomes-block-written");
        Ok(())
    }

    /// Whether there are unsynced writes.
    #[must_use]
    pub fn is_unsynced(&self) -> bool {
        !self.unsynced.is_empty()
    }

    /// Syncs everything that was written (fsync).
    ///
    /// # Errors
    /// When the sync fails. It is not retried: a second one proves nothing.
    pub fn sync(&mut self) -> Result<()> {
        for number in std::mem::take(&mut self.unsynced) {
            match self.files.get(&number) {
                Some(file) => file.sync_data()?,
                None => return self.not_open(number),
            }
        }
        Ok(())
    }

    /// Writes a file as large as a block with its label, syncs it, reads it back and removes it.
    ///
    /// # Errors
    /// When the disk fails one of these, or returns different bytes.
    pub(crate) fn probe(&self) -> Result<()> {
        let (lease, tome) = (&self.lease, self.identity.tome);
        lease.remove(PROBE)?;
        // A file system may store zeros without allocating space.
        let written = vec![0x5a; slot_bytes(&self.identity.layout)];
        let file = lease.create_new(PROBE)?;
        file.write_all_at(&written, 0)?;
        file.sync()?;
        drop(file);
        let mut read = vec![0; written.len()];
        lease.open(PROBE)?.read_exact_at(&mut read, 0)?;
        lease.remove(PROBE)?;
        lease.sync_folder("")?;
        if read == written {
            return Ok(());
        }
        let what = format!("\"{PROBE}\" reads back differently from what was written");
        Err(TomesError::Damaged { tome, what })
    }

    fn not_open<T>(&self, number: u32) -> Result<T> {
        let what = format!("{} has unsynced writes but is not open", file_name(number));
        Err(TomesError::Damaged { tome: self.identity.tome, what })
    }

    /// Returns the file of a physical block, and the position there.
    fn place(&self, physical_block: PhysicalBlock) -> (u32, u64) {
        let layout = &self.identity.layout;
        assert!(
            u64::from(physical_block.get()) < layout.physical_blocks(),
            "a physical block of this layout"
        );
        let (number, slot) = (
            physical_block.get() / layout.region_blocks(),
            physical_block.get() % layout.region_blocks(),
        );
        let slots = u64::from(slot) * slot_bytes(layout) as u64;
        (number, HEADER_BYTES as u64 + slots)
    }

    /// Returns the file, opened if needed; `None` when there is none.
    fn file(&mut self, number: u32) -> Result<Option<&DiskFile>> {
        if !self.files.contains_key(&number) {
            let name = file_name(number);
            let file = match self.lease.open_to_write(&name) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let mut found = vec![0; HEADER_BYTES];
            let read = file.read_exact_at(&mut found, 0);
            match read {
                Err(error) if error.is_exhausted() => return Err(error.into()),
                Ok(()) if found == self.header(number) => {}
                Ok(()) | Err(_) => {
                    let what = format!("{name} has a header that is not of this tome");
                    return Err(TomesError::Damaged { tome: self.identity.tome, what });
                }
            }
            self.files.insert(number, file);
        }
        Ok(self.files.get(&number))
    }

    /// Creates a file with its header; it is renamed to its name when complete.
    fn create(&mut self, number: u32, fail: &FailPoints) -> Result<()> {
        let name = file_name(number);
        let new = format!("{name}.new");
        self.lease.remove(&new)?;
        let file = self.lease.create_new(&new)?;
        file.write_all_at(&self.header(number), 0)?;
        file.sync()?;
        fail.pass("tomes-file-begun");
        drop(file);
        self.lease.rename_new(&new, &name)?;
        self.lease.sync_folder("")?;
        fail.pass("tomes-file-made");
        self.file(number)?;
        Ok(())
    }

    fn header(&self, number: u32) -> Vec<u8> {
        let TomeIdentity { set, tome, layout, .. } = &self.identity;
        let parts = layout.parts();
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(HEADER_MAGIC);
        bytes.extend([VERSION, number].map(u32::to_le_bytes).as_flattened());
        bytes.extend(set.to_bytes());
        bytes.extend([tome.get(), layout.region_blocks()].map(u32::to_le_bytes).as_flattened());
        bytes.extend(layout.block_bytes().to_le_bytes());
        let (data, parity) = (parts.segment.data(), parts.segment.parity());
        let numbers = [data, parity, parts.segments, parts.regions, parts.spares];
        bytes.extend(numbers.map(u32::to_le_bytes).as_flattened());
        with_checksum(bytes, HEADER_BYTES)
    }

    fn label(&self, physical_block: PhysicalBlock, label: Label, signature: &[u8; 8]) -> Vec<u8> {
        let TomeIdentity { set, tome, layout, .. } = &self.identity;
        let mut bytes = Vec::with_capacity(LABEL_BYTES);
        bytes.extend(LABEL_MAGIC);
        bytes.extend(set.to_bytes());
        let Label { region, offset, version } = label;
        let numbers =
            [tome.get(), physical_block.get(), region.get(), offset.get(), version.get(), 0];
        bytes.extend(numbers.map(u32::to_le_bytes).as_flattened());
        bytes.extend(layout.block_bytes().to_le_bytes());
        bytes.extend(signature);
        with_checksum(bytes, LABEL_BYTES)
    }

    /// Returns the label in these bytes, if it belongs to this physical block and a block with this
    /// signature.
    fn parse(
        &self,
        physical_block: PhysicalBlock,
        bytes: &[u8],
        signature: &[u8; 8],
    ) -> Option<Label> {
        let number = |at: usize| {
            let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        let label = Label {
            region: RegionIndex::new(number(32)?),
            offset: Offset::new(number(36)?),
            version: Version::new(number(40)?),
        };
        let expected = self.label(physical_block, label, signature);
        (expected == bytes).then_some(label)
    }
}

/// Whether an error is the disk's fault.
fn is_unreadable(error: &DisksError) -> bool {
    matches!(error, DisksError::Io { .. }) && !error.is_exhausted()
}

/// Returns the name of a file with blocks.
fn file_name(number: u32) -> String {
    format!("{BLOCKS_PREFIX}{number:05}")
}

fn slot_bytes(layout: &Layout) -> usize {
    LABEL_BYTES + usize::try_from(layout.block_bytes()).unwrap_or(usize::MAX - LABEL_BYTES)
}

/// Pads with zeros to the length, with the checksum of all before in the last four bytes.
fn with_checksum(mut bytes: Vec<u8>, length: usize) -> Vec<u8> {
    bytes.resize(length - 4, 0);
    let sum = crc32c(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

//! The inventory of a disk that is read completely: which block is in which physical block, by the
//! labels.
//!
//! ```text
//! space            key             row
//! inventory        "inventory"     InventoryRow: its tome, blocks read, whether that is all
//! physical_blocks  physical block  PhysicalBlockRow: the block there, if its bytes match
//! ```
//!
//! It covers the disk of a tome whose metadata store is lost, in batches, so that a start continues
//! where the previous one ended; nothing writes to the disk meanwhile, for its tome is lost. It is
//! discarded before that tome is opened. Not here: what is made of it
//! ([`crate::rebuild_metadata`]).

use std::path::{Path, PathBuf};

use fulgurite_catalog::keys::{KeyReader, KeyWriter};
use fulgurite_catalog::row::{self, Row, rows_in};
use fulgurite_catalog::{Batch, CatalogError, FjallStore, KeyRange, KeyValue as _, Space};
use fulgurite_codes::{SIGNATURE_BYTES, Signature};
use fulgurite_tome_core::{Layout, Offset, PhysicalBlock, RegionIndex, TomeId, Version};
use fulgurite_units::TomeSetId;
use serde::{Deserialize, Serialize};

use crate::disk::Label;
use crate::identity::TomeIdentity;
use crate::limits::LOAD_PAGE_MAX;
use crate::metadata_store::config;
use crate::{Result, TomesError};

const INVENTORY: Space = Space::new("inventory");
const PHYSICAL_BLOCKS: Space = Space::new("physical_blocks");
const INVENTORY_KEY: &[u8] = b"inventory";
/// Folder of the store, beside the metadata store.
const STORE: &str = "inventory";

/// Progress of an inventory, and its tome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct InventoryRow {
    set: TomeSetId,
    tome: TomeId,
    layout: Layout,
    /// Physical blocks before this one were read.
    next: u64,
}

/// The block in a physical block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PhysicalBlockRow {
    region: RegionIndex,
    offset: Offset,
    version: Version,
    signature: [u8; SIGNATURE_BYTES],
}

impl Row for InventoryRow {
    const VERSION: u8 = 1;
}

impl Row for PhysicalBlockRow {
    const VERSION: u8 = 1;
}

/// A block that was found on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) physical_block: PhysicalBlock,
    pub(crate) label: Label,
    pub(crate) signature: Signature,
}

/// The inventory of a disk so far.
#[derive(Debug)]
pub(crate) struct Inventory {
    store: FjallStore,
    row: InventoryRow,
}

impl Inventory {
    /// Opens the inventory of a tome in its folder, or begins one.
    ///
    /// # Errors
    /// [`TomesError::WrongStore`] when it belongs to another tome, and when it cannot be written.
    pub(crate) fn begin(folder: &Path, identity: &TomeIdentity) -> Result<Self> {
        let TomeIdentity { set, tome, layout, .. } = identity.clone();
        let new_row = InventoryRow { set, tome, layout, next: 0 };
        let store =
            match FjallStore::open(&store_path(folder), &[INVENTORY, PHYSICAL_BLOCKS], &config()) {
                Err(CatalogError::Locked { path }) => return Err(TomesError::InUse { path }),
                opened => opened?,
            };
        let row = match row::get::<InventoryRow>(&store, INVENTORY, INVENTORY_KEY)? {
            Some(row) if (InventoryRow { next: 0, ..row }) == new_row => row,
            Some(row) => {
                let what = format!("it is an inventory of tome {} of set {}", row.tome, row.set);
                return Err(TomesError::WrongStore { path: store_path(folder), what });
            }
            None => new_row,
        };
        Ok(Self { store, row })
    }

    /// Opens an existing inventory.
    ///
    /// # Errors
    /// Those of [`Self::begin`].
    pub(crate) fn open(folder: &Path, identity: &TomeIdentity) -> Result<Option<Self>> {
        if !store_path(folder).is_dir() {
            return Ok(None);
        }
        Self::begin(folder, identity).map(Some)
    }

    /// Whether there is an inventory.
    pub(crate) fn is_begun(folder: &Path) -> bool {
        store_path(folder).is_dir()
    }

    /// Discards the inventory of a tome.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(crate) fn remove(folder: &Path) -> Result<()> {
        match std::fs::remove_dir_all(store_path(folder)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(TomesError::io("remove", &store_path(folder))(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the first physical block that was not read.
    pub(crate) const fn next(&self) -> u64 {
        self.row.next
    }

    /// Whether the whole disk was read.
    pub(crate) const fn is_whole(&self) -> bool {
        self.row.next >= self.row.layout.physical_blocks()
    }

    /// Records what was found up to a physical block; durable when it returns.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn record(&mut self, found: &[Found], next: u64) -> Result<()> {
        let row = InventoryRow { next, ..self.row };
        let mut batch = Batch::new();
        for Found { physical_block, label, signature } in found {
            let Label { region, offset, version } = *label;
            let row = PhysicalBlockRow { region, offset, version, signature: signature.0 };
            batch.put(PHYSICAL_BLOCKS, physical_block_key(*physical_block), row::encode(&row)?)?;
        }
        batch.put(INVENTORY, INVENTORY_KEY, row::encode(&row)?)?;
        self.store.apply(batch)?;
        self.row = row;
        Ok(())
    }

    /// Calls back with each block that was found.
    ///
    /// # Errors
    /// When rows are damaged.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(Found)) -> Result<()> {
        let mut range = KeyRange::all();
        loop {
            let rows =
                rows_in::<PhysicalBlockRow>(&self.store, PHYSICAL_BLOCKS, &range, LOAD_PAGE_MAX)?;
            let Some((last, _)) = rows.last() else { return Ok(()) };
            range = KeyRange::all().after(last);
            for (key, PhysicalBlockRow { region, offset, version, signature }) in rows {
                let physical_block = PhysicalBlock::new(KeyReader::new(&key).u32()?);
                let label = Label { region, offset, version };
                visit(Found { physical_block, label, signature: Signature(signature) });
            }
        }
    }
}

fn store_path(folder: &Path) -> PathBuf {
    folder.join(STORE)
}

fn physical_block_key(physical_block: PhysicalBlock) -> Vec<u8> {
    KeyWriter::new().u32(physical_block.get()).finish()
}

//! Rebuilds a lost metadata store: beside the old one, and put in its place when it is complete.
//!
//! ```text
//! awake.made     rows, some thousands per commit; its owner comes last
//! awake    -->   awake.lost-1, -2, ...   the previous store is kept
//! awake.made --> awake
//! ```
//!
//! If interrupted, it starts over. Not here: where its content comes from
//! ([`crate::rebuild_metadata`]).

use std::fs::File;
use std::path::{Path, PathBuf};

use fulgurite_catalog::keys::KeyWriter;
use fulgurite_catalog::row::{self, Row};
use fulgurite_catalog::{Batch, FjallStore, KeyValue as _, Space};
use fulgurite_tome_core::RegionIndex;

use super::{MetadataStore, STORE, config, lock};
use crate::FailPoints;
use crate::identity::TomeIdentity;
use crate::limits::LOAD_PAGE_MAX;
use crate::rebuild_metadata::{RebuiltMetadata, RebuiltRegion};
use crate::rows::{
    BLOCKS, DELTAS, DeltaRow, FLOORS, FloorRow, MEMBER_SLOTS, MEMBERSHIPS, MemberSlotRow,
    MembershipRow, OBJECTS, ObjectRow, PENDING, PendingRow, SPACES, START_KEY, TOME, TOME_KEY,
    TomeRow, block_key, delta_key, member_key, object_key, pending_key, region_key,
};
use crate::start_counts::StartRow;
use crate::{Result, TomesError};

/// The store while it is being made.
const NEW_STORE: &str = "awake.made";
/// The previous store, with a number.
const OLD_STORE: &str = "awake.lost";

impl MetadataStore {
    /// Rebuilds the store of a tome in its folder, with the number of a start. The previous store
    /// is set aside and kept.
    ///
    /// # Errors
    /// [`TomesError::InUse`] when another process has it, and when it cannot be made.
    pub(crate) fn rebuild_metadata(
        folder: &Path,
        identity: &TomeIdentity,
        rebuilt: &RebuiltMetadata,
        start: StartRow,
        fail: &FailPoints,
    ) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(TomesError::io("create", folder))?;
        let _lock = lock(folder)?;
        let (made, place) = (folder.join(NEW_STORE), folder.join(STORE));
        if made.exists() {
            std::fs::remove_dir_all(&made).map_err(TomesError::io("remove", &made))?;
        }
        write_rows(&made, identity, rebuilt, start)?;
        fail.pass("tomes-metadata-rebuilt");
        if place.exists() {
            let aside = unused_name(folder);
            std::fs::rename(&place, &aside).map_err(TomesError::io("rename", &place))?;
            sync(folder)?;
            let aside = aside.display();
            tracing::warn!(tome = %identity.tome, "the old store was set aside as \"{aside}\"");
        }
        std::fs::rename(&made, &place).map_err(TomesError::io("rename", &made))?;
        sync(folder)?;
        fail.pass("tomes-metadata-recorded");
        drop(_lock);
        Self::open(folder, identity)
    }
}

fn unused_name(folder: &Path) -> PathBuf {
    let names = (1u32..).map(|number| folder.join(format!("{OLD_STORE}-{number}")));
    let mut free = names.filter(|path| !path.exists());
    free.next().unwrap_or_else(|| folder.join(OLD_STORE))
}

fn sync(folder: &Path) -> Result<()> {
    let synced = open(folder).and_then(|file| file.sync_all());
    synced.map_err(TomesError::io("sync", folder))
}

fn open(folder: &Path) -> std::io::Result<File> {
    File::options().read(true).open(folder)
}

/// Writes rows in batches of some thousands.
struct BulkWriter {
    store: FjallStore,
    batch: Batch,
    rows: usize,
}

impl BulkWriter {
    fn put<T: Row>(&mut self, space: Space, key: Vec<u8>, row: &T) -> Result<()> {
        self.batch.put(space, key, row::encode(row)?)?;
        self.rows += 1;
        if self.rows == LOAD_PAGE_MAX { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.rows = 0;
        Ok(self.store.apply(std::mem::take(&mut self.batch))?)
    }
}

fn write_rows(
    path: &Path,
    identity: &TomeIdentity,
    rebuilt: &RebuiltMetadata,
    start: StartRow,
) -> Result<()> {
    let store = FjallStore::open(path, &SPACES, &config())?;
    let mut writer = BulkWriter { store, batch: Batch::new(), rows: 0 };
    for RebuiltRegion { index, membership, blocks, pending, applied, floors } in &rebuilt.regions {
        let key = |region: RegionIndex| KeyWriter::finish(region_key(region));
        writer.put(MEMBER_SLOTS, key(*index), &MemberSlotRow(membership.group.clone()))?;
        writer.put(MEMBERSHIPS, key(*index), &MembershipRow::new(membership))?;
        for (offset, row) in blocks {
            writer.put(BLOCKS, block_key(*index, *offset), row)?;
        }
        for (version, pending) in pending {
            writer.put(PENDING, pending_key(*index, *version), &PendingRow(*pending))?;
        }
        for (member, floor) in floors {
            writer.put(FLOORS, member_key(*index, *member).finish(), &FloorRow(*floor))?;
        }
        for (member, change) in applied {
            // The bytes were lost: other parities that have them can supply them.
            let row = DeltaRow { change: *change, is_folded: true, slot: None };
            writer.put(DELTAS, delta_key(*index, *member, change.version), &row)?;
        }
    }
    for (name, object) in &rebuilt.objects {
        writer.put(OBJECTS, object_key(name), &ObjectRow(object.clone()))?;
    }
    writer.flush()?;
    writer.put(TOME, START_KEY.to_vec(), &start)?;
    let TomeIdentity { set, tome, layout, .. } = identity.clone();
    writer.put(TOME, TOME_KEY.to_vec(), &TomeRow { set, tome, layout })?;
    writer.flush()
}

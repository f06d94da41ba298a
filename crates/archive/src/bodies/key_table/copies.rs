//! One file of the key table. The table is kept in several copies, at paths that the operator
//! chooses.

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::slot::{EMPTY, SLOT_BYTES, Slot};
use crate::directory::sync_dir;
use crate::sync::{GroupSync, SyncTarget};
use crate::{ArchiveError, Result};

/// Size of a retry after a failed read: a page of memory, and of most disks.
const PAGE_BYTES: usize = 4096;
/// Slots per read when the table is scanned.
const SCAN_SLOTS: u32 = 8192;
/// Fills slots that cannot be read: not a key, and not empty.
const UNREADABLE: u8 = 0xFF;

/// An open file of the key table.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) target: SyncTarget,
    pub(super) sync: GroupSync,
    /// Slots in the file when it was opened, counting a partial one.
    pub(super) slots_found: u64,
}

impl Copy {
    /// Opens the file at `path`, creating it if it does not exist.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(ArchiveError::io("open", path))?;
        let bytes = file.metadata().map_err(ArchiveError::io("read", path))?.len();
        // After a failed fsync the page cache may differ from the disk, and only the disk counts.
        // This is advice; its own failure has no other cost.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        path.parent().map_or(Ok(()), sync_dir)?;
        let target = SyncTarget::new(0, file, path.to_owned());
        let sync = GroupSync::start("keys")?;
        Ok(Self { target, sync, slots_found: bytes.div_ceil(SLOT_BYTES as u64) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.target.path
    }

    /// Fills `slots` from slot `first`: with zeros beyond the end of the file, with [`UNREADABLE`]
    /// where the read fails.
    pub(super) fn read(&self, first: u32, slots: &mut [Slot]) {
        let bytes = slots.as_flattened_mut();
        bytes.fill(0);
        let offset = u64::from(first) * SLOT_BYTES as u64;
        if read_up_to(&self.target.file, bytes, offset).is_ok() {
            return;
        }
        for (number, page) in bytes.chunks_mut(PAGE_BYTES).enumerate() {
            page.fill(0);
            let at = offset + (number * PAGE_BYTES) as u64;
            if let Err(error) = read_up_to(&self.target.file, page, at) {
                let path = self.path().display();
                tracing::error!(%path, at, %error, "a page of the key table is unreadable");
                page.fill(UNREADABLE);
            }
        }
    }

    /// Reads one slot.
    ///
    /// # Errors
    /// When the disk cannot read it, which says nothing about its content.
    pub(super) fn slot(&self, index: u32) -> Result<Slot> {
        let mut slot = EMPTY;
        read_up_to(&self.target.file, &mut slot, u64::from(index) * SLOT_BYTES as u64)
            .map_err(ArchiveError::io("read", self.path()))?;
        Ok(slot)
    }

    /// Reads the probe's slot; filled with `UNREADABLE` if the read fails.
    pub(super) fn probe(&self) -> Slot {
        let mut slot = [EMPTY];
        self.read(0, &mut slot);
        slot[0]
    }

    pub(super) fn write(&self, index: u32, slot: &Slot) -> Result<()> {
        self.target
            .file
            .write_all_at(slot, u64::from(index) * SLOT_BYTES as u64)
            .map_err(ArchiveError::io("write", self.path()))
    }

    pub(super) fn sync_blocking(&self) -> Result<()> {
        self.sync.sync_blocking(vec![self.target.clone()])
    }
}

/// Calls `visit` for every slot with its content in each of `copies`, until it breaks.
pub(super) fn for_each_slot(
    copies: &[Copy],
    count: u32,
    mut visit: impl FnMut(u32, &[Slot]) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut buffers = vec![vec![EMPTY; count.min(SCAN_SLOTS) as usize]; copies.len()];
    let mut found = vec![EMPTY; copies.len()];
    let mut first = 0;
    while first < count {
        let slots = (count - first).min(SCAN_SLOTS);
        for (copy, buffer) in copies.iter().zip(&mut buffers) {
            copy.read(first, &mut buffer[..slots as usize]);
        }
        for number in 0..slots {
            for (slot, buffer) in found.iter_mut().zip(&buffers) {
                *slot = buffer[number as usize];
            }
            if visit(first + number, &found)?.is_break() {
                return Ok(());
            }
        }
        first += slots;
    }
    Ok(())
}

/// Fills `buffer` from `offset`, up to the end of the file.
fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

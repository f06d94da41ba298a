//! One file of the key table. The table is kept in several, on paths of the operator's choice.

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::slot::{EMPTY, SLOT_BYTES, Slot};
use crate::directory::sync_dir;
use crate::sync::{GroupSync, SyncTarget};
use crate::{ArchiveError, Result};

/// What is read at a time where a disk cannot give back more: a page of memory, and of most disks.
const PAGE_BYTES: usize = 4096;
/// Slots read at one time when the table is scanned.
const SCAN_SLOTS: u32 = 8192;
/// What slots are filled with that the disk does not give back: no key, and not empty.
const UNREADABLE: u8 = 0xFF;

/// An open file of the key table.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) target: SyncTarget,
    pub(super) sync: GroupSync,
    /// Slots that the file had when it was opened, whole or not.
    pub(super) slots_found: u64,
}

impl Copy {
    /// Opens the file at `path`, and makes it if it is not there.
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
        // After a sync that failed, memory may hold pages that the disk does not: what counts is
        // what the disk gives back. Advice only, so that failing here costs nothing but that.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        path.parent().map_or(Ok(()), sync_dir)?;
        let target = SyncTarget::new(0, file, path.to_owned());
        let sync = GroupSync::start("keys")?;
        Ok(Self { target, sync, slots_found: bytes.div_ceil(SLOT_BYTES as u64) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.target.path
    }

    /// Fills `slots` from slot `first`: with zeros beyond the end of the file, with
    /// [`UNREADABLE`] where the disk fails.
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

    /// One slot.
    ///
    /// # Errors
    /// When the disk does not give it back, which says nothing of what is in it.
    pub(super) fn slot(&self, index: u32) -> Result<Slot> {
        let mut slot = EMPTY;
        read_up_to(&self.target.file, &mut slot, u64::from(index) * SLOT_BYTES as u64)
            .map_err(ArchiveError::io("read", self.path()))?;
        Ok(slot)
    }

    /// The slot of the probe; one of no key where the disk does not give it back.
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

/// Shows `visit` every slot, as each of `copies` has it, until it breaks off.
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

/// Fills `buffer` from `offset` as far as the file reaches.
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

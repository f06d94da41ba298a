//! The key table: one 128-byte slot a body, written and destroyed in place.
//!
//! ```text
//! slot   0        8        24                 36                      84       92      124   128
//!        | magic  | body id | nonce (12)      | wrapped key (32 + 16) | run    | blake3 |  0  |
//! ```
//!
//! The data key is wrapped with AES-256-GCM under the master key, the body id as associated data.
//! Slots never move and there is no log, so a slot overwritten with zeros and synced leaves no copy
//! of the key in any file of the key store. What the table cannot promise is what the disk below
//! does: a copy-on-write file system or a flash translation layer may keep the old block until it
//! is reused; there the wrapped key is as safe as the master key. Slot 0 holds a probe that only
//! the right master key opens. `run` numbers the server run that made the key: a key of the last
//! run that no row names belongs to an upload a crash cut short, and is destroyed at the next
//! start; a key of any other run that no row names is left alone, for the catalog may be the one
//! that is behind. A catalog whose own last run is older than a key's was brought back from a
//! backup: the runs after it are not numbered again, so their keys are never swept.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fulgurite_units::{ArchiveId, ObjectId};

use crate::body::{SecretKey, open_entry, seal_entry};
use crate::log::sync_dir;
use crate::sync::{GroupSync, SyncTarget};
use crate::{ArchiveError, Result};

const SLOT_BYTES: usize = 128;
/// Length of a table with nothing in it but the probe.
pub(crate) const EMPTY_TABLE_BYTES: u64 = SLOT_BYTES as u64;
const MAGIC: &[u8; 8] = b"FGKEY\x01\0\0";
const SEALED: std::ops::Range<usize> = 24..84;
const RUN: std::ops::Range<usize> = 84..92;
const CHECKSUM: std::ops::Range<usize> = 92..124;
/// Slots read at one time when the table is scanned.
const SCAN_SLOTS: usize = 8192;

/// The open key table.
#[derive(Debug)]
pub(crate) struct KeyTable {
    target: SyncTarget,
    sync: GroupSync,
    master: SecretKey,
    run: AtomicU64,
    slots: Mutex<Slots>,
}

/// A used slot, as a scan finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UsedSlot {
    pub(crate) index: u32,
    pub(crate) body: ObjectId,
    pub(crate) run: u64,
}

#[derive(Debug, Default)]
struct Slots {
    /// Slots that hold no key, highest first, so that low ones are used first.
    free: Vec<u32>,
    /// Slots in the file, used or not.
    count: u32,
    /// Latest run that a key of the file names.
    run_max: u64,
}

fn encode(
    master: &SecretKey,
    body: ObjectId,
    key: &SecretKey,
    run: u64,
) -> Result<[u8; SLOT_BYTES]> {
    let mut slot = [0; SLOT_BYTES];
    slot[..8].copy_from_slice(MAGIC);
    slot[8..24].copy_from_slice(&body.to_bytes());
    slot[SEALED].copy_from_slice(&seal_entry(master, body, key.expose())?);
    slot[RUN].copy_from_slice(&run.to_le_bytes());
    let checksum = blake3::hash(&slot[..CHECKSUM.start]);
    slot[CHECKSUM].copy_from_slice(checksum.as_bytes());
    Ok(slot)
}

/// The body id of a used slot: `None` for an empty or torn one.
fn body_of(slot: &[u8]) -> Option<ObjectId> {
    let checksum = blake3::hash(&slot[..CHECKSUM.start]);
    let is_whole = slot[..8] == *MAGIC && slot[CHECKSUM] == *checksum.as_bytes();
    is_whole.then(|| ObjectId::from_bytes(std::array::from_fn(|i| slot[8 + i])))
}

fn run_of(slot: &[u8]) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| slot[RUN.start + i]))
}

fn decode(master: &SecretKey, slot: &[u8]) -> Option<(ObjectId, SecretKey)> {
    let body = body_of(slot)?;
    let key: [u8; 32] = open_entry(master, body, &slot[SEALED])?.try_into().ok()?;
    Some((body, SecretKey::from_bytes(key)))
}

fn probe_id(archive: ArchiveId) -> ObjectId {
    ObjectId::from_bytes(archive.to_bytes())
}

impl KeyTable {
    /// Opens the table at `path`, or makes it with its probe when it does not exist.
    pub(crate) fn open(path: &Path, master: SecretKey, archive: ArchiveId) -> Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(ArchiveError::io("open", path))?;
        let bytes = file.metadata().map_err(ArchiveError::io("read", path))?.len();
        let target =
            SyncTarget { number: 0, file: Arc::new(file), path: Arc::new(PathBuf::from(path)) };
        let sync = GroupSync::start("keys")?;
        let table = Self { target, sync, master, run: AtomicU64::new(0), slots: Mutex::default() };
        if bytes == 0 {
            let probe = encode(&table.master, probe_id(archive), &SecretKey::random()?, 0)?;
            table.write(0, &probe)?;
            table.sync.sync_blocking(vec![table.target.clone()])?;
            path.parent().map_or(Ok(()), sync_dir)?;
            table.lock().count = 1;
            return Ok(table);
        }
        let mut first = [0; SLOT_BYTES];
        table.target.file.read_exact_at(&mut first, 0).map_err(ArchiveError::io("read", path))?;
        match decode(&table.master, &first) {
            Some((id, _)) if id == probe_id(archive) => {}
            Some(_) => {
                let what = format!("\"{}\" belongs to another archive", path.display());
                return Err(ArchiveError::Unusable {
                    path: path.display().to_string(),
                    reason: what,
                });
            }
            None => {
                return Err(ArchiveError::WrongMasterKey {
                    what: format!("the key table \"{}\"", path.display()),
                });
            }
        }
        table.find_free(bytes)?;
        Ok(table)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn find_free(&self, bytes: u64) -> Result<()> {
        let count = u32::try_from(bytes.div_ceil(SLOT_BYTES as u64)).map_err(|_| {
            ArchiveError::Unusable {
                path: self.target.path.display().to_string(),
                reason: "the key table has more than 2^32 slots".to_owned(),
            }
        })?;
        let (mut free, mut run_max) = (Vec::new(), 0);
        self.scan_raw(|index, slot| {
            // A slot with the magic but a wrong checksum is kept as it is: it may have been a key.
            if slot[..8] != *MAGIC {
                free.push(index);
            } else if index > 0 && body_of(slot).is_some() {
                run_max = run_max.max(run_of(slot));
            }
        })?;
        free.reverse();
        *self.lock() = Slots { free, count, run_max };
        Ok(())
    }

    fn scan_raw(&self, mut visit: impl FnMut(u32, &[u8])) -> Result<()> {
        let mut buffer = vec![0; SCAN_SLOTS * SLOT_BYTES];
        let mut index = 0u32;
        loop {
            let offset = u64::from(index) * SLOT_BYTES as u64;
            let read = read_up_to(&self.target.file, &mut buffer, offset)
                .map_err(ArchiveError::io("read", &self.target.path))?;
            if read == 0 {
                return Ok(());
            }
            buffer[read..].fill(0);
            for slot in buffer[..read.next_multiple_of(SLOT_BYTES)].chunks_exact(SLOT_BYTES) {
                visit(index, slot);
                index += 1;
            }
        }
    }

    /// The latest run that made a key which is still there.
    pub(crate) fn run_max(&self) -> u64 {
        self.lock().run_max
    }

    /// Names the server run that makes keys from now on.
    pub(crate) fn set_run(&self, run: u64) {
        self.run.store(run, Ordering::Relaxed);
    }

    /// All slots that hold a key.
    pub(crate) fn scan(&self) -> Result<Vec<UsedSlot>> {
        let mut found = Vec::new();
        self.scan_raw(|index, slot| {
            if index > 0
                && let Some(body) = body_of(slot)
            {
                found.push(UsedSlot { index, body, run: run_of(slot) });
            }
        })?;
        Ok(found)
    }

    fn write(&self, index: u32, slot: &[u8; SLOT_BYTES]) -> Result<()> {
        self.target
            .file
            .write_all_at(slot, u64::from(index) * SLOT_BYTES as u64)
            .map_err(ArchiveError::io("write", &self.target.path))
    }

    /// Writes a new key for `body` and returns it with its slot. Durable only after [`Self::sync`].
    pub(crate) fn create(&self, body: ObjectId) -> Result<(SecretKey, u32)> {
        let key = SecretKey::random()?;
        let slot = encode(&self.master, body, &key, self.run.load(Ordering::Relaxed))?;
        let index = {
            let mut slots = self.lock();
            slots.free.pop().unwrap_or_else(|| {
                slots.count += 1;
                slots.count - 1
            })
        };
        match self.write(index, &slot) {
            Ok(()) => Ok((key, index)),
            Err(error) => {
                self.lock().free.push(index);
                Err(error)
            }
        }
    }

    /// Returns when every key created before the call is on stable storage.
    pub(crate) async fn sync(&self) -> Result<()> {
        self.sync.sync(vec![self.target.clone()]).await
    }

    /// The same, from a thread that may block.
    pub(crate) fn sync_blocking(&self) -> Result<()> {
        self.sync.sync_blocking(vec![self.target.clone()])
    }

    /// The key of `body` in slot `index`.
    ///
    /// # Errors
    /// `Corrupt` when the slot holds another key or none.
    pub(crate) fn load(&self, index: u32, body: ObjectId) -> Result<SecretKey> {
        let mut slot = [0; SLOT_BYTES];
        self.target
            .file
            .read_exact_at(&mut slot, u64::from(index) * SLOT_BYTES as u64)
            .map_err(ArchiveError::io("read", &self.target.path))?;
        match decode(&self.master, &slot) {
            Some((found, key)) if found == body => Ok(key),
            _ => Err(ArchiveError::Corrupt {
                what: format!("slot {index} of the key table does not hold the key of body {body}"),
            }),
        }
    }

    /// Destroys the keys in these slots, provided they still are those of these bodies, and
    /// returns when zeros are on stable storage. The slots can then be used again.
    pub(crate) async fn destroy(&self, keys: &[(u32, ObjectId)]) -> Result<()> {
        let cleared = self.clear(keys)?;
        self.sync().await?;
        self.lock().free.extend(cleared);
        Ok(())
    }

    /// The same, from a thread that may block.
    pub(crate) fn destroy_blocking(&self, keys: &[(u32, ObjectId)]) -> Result<()> {
        let cleared = self.clear(keys)?;
        self.sync_blocking()?;
        self.lock().free.extend(cleared);
        Ok(())
    }

    /// Forgets a key that no row ever named. Not synced: a crash leaves it to the next start.
    pub(crate) fn discard(&self, index: u32, body: ObjectId) {
        match self.clear(&[(index, body)]) {
            Ok(cleared) => self.lock().free.extend(cleared),
            Err(error) => tracing::warn!(%error, index, "the key of a dropped upload stays"),
        }
    }

    fn clear(&self, keys: &[(u32, ObjectId)]) -> Result<Vec<u32>> {
        let mut cleared = Vec::with_capacity(keys.len());
        for &(index, body) in keys {
            // Look and write as one step: of two that destroy one key only the first clears the
            // slot, so it is free once, and no late zeros fall on the key that follows.
            let _slots = self.lock();
            // After a crash the slot may already be zero, or hold the key of a newer body.
            if self.load(index, body).is_ok() {
                self.write(index, &[0; SLOT_BYTES])?;
                cleared.push(index);
            }
        }
        Ok(cleared)
    }
}

/// Fills `buffer` from `offset` as far as the file reaches and returns how far that was.
pub(crate) fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests;

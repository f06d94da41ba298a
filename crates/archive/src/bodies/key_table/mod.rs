//! The key table: one 128-byte slot a body, written and destroyed in place, in several files at
//! once.
//!
//! ```text
//! DIR/keys/table        | probe | slot 1 | slot 2 | ...      every file holds the same;
//! DIR/keys/table.copy   | probe | slot 1 | slot 2 | ...      each is rebuilt from the others
//! ```
//!
//! The data key is wrapped with AES-256-GCM under the master key, the body id as associated data.
//! Slots never move and there is no log, so a slot overwritten with zeros and synced leaves no copy
//! of the key in any file of the key store. What the table cannot promise is what the disk below
//! does: a copy-on-write file system or a flash translation layer may keep the old block until it
//! is reused; there the wrapped key is as safe as the master key.
//!
//! Slot 0 holds a probe that only the right master key opens; its body id is the archive's, and its
//! run is the last that opened the table, by which an older copy is known. The run of any other
//! slot is the server run that made the key: a key of the last run that no row names belongs to an
//! upload a crash cut short, and is destroyed at the next start; a key of any other run that no row
//! names is left alone, for the catalog may be the one that is behind. A catalog whose own last run
//! is older than a key's was brought back from a backup: the runs after it are not numbered again,
//! so their keys are never swept.
//!
//! A key is there when every file has it on stable storage, and gone when every file has zeros
//! there. A sync that fails is the end: nobody knows then what the disk holds, so every later call
//! fails, and the process is told to end ([`KeyTable::failed`]).

mod copies;
mod reader;
mod reconcile;
pub(crate) mod slot;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use fulgurite_units::{ArchiveId, ObjectId};
use tokio::sync::Notify;

use self::copies::{Copy, for_each_slot};
pub(crate) use self::reader::KeyReader;
use self::reconcile::{Reconciled, reconcile};
use self::slot::{Content, EMPTY, Slot};
use crate::bodies::cipher::SecretKey;
use crate::{ArchiveError, Result};

/// Length of a table with nothing in it but the probe.
pub(crate) const EMPTY_TABLE_BYTES: u64 = slot::SLOT_BYTES as u64;

/// The open key table.
#[derive(Debug)]
pub(crate) struct KeyTable {
    copies: Vec<Copy>,
    master: SecretKey,
    archive: ArchiveId,
    run: AtomicU64,
    /// The run of the probe when the table was opened; 0 if none was ever written.
    probe_run: u64,
    slots: Mutex<Slots>,
    failed: Failed,
}

/// Why the table can be used no more, and who waits for that.
#[derive(Debug, Default)]
struct Failed {
    why: OnceLock<String>,
    bell: Notify,
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
    /// Slots in the files, used or not.
    count: u32,
    /// Latest run that a key of the files names.
    run_max: u64,
    /// Slots that hold something, and no key that opens.
    lost: Vec<u32>,
}

/// What the probes of all copies say.
#[derive(Debug)]
struct Probes {
    /// By copy; `None` where the probe is damaged or the copy is new.
    runs: Vec<Option<u64>>,
}

fn probe_id(archive: ArchiveId) -> ObjectId {
    ObjectId::from_bytes(archive.to_bytes())
}

fn unusable(path: &Path, reason: impl Into<String>) -> ArchiveError {
    ArchiveError::Unusable { path: path.display().to_string(), reason: reason.into() }
}

fn names(copies: &[Copy]) -> String {
    let quoted = |copy: &Copy| format!("\"{}\"", copy.path().display());
    copies.iter().map(quoted).collect::<Vec<_>>().join(" and ")
}

impl KeyTable {
    /// Opens the table that lies at each of `paths`, and makes all copies alike. A new table is
    /// begun when none of them has anything and `may_begin`.
    ///
    /// # Errors
    /// `WrongMasterKey`; `Unusable` when the files are another archive's, or are gone.
    pub(crate) fn open(
        paths: &[PathBuf],
        master: SecretKey,
        archive: ArchiveId,
        may_begin: bool,
    ) -> Result<Self> {
        assert!(!paths.is_empty(), "a key table has a place");
        let copies = paths.iter().map(|path| Copy::open(path)).collect::<Result<Vec<_>>>()?;
        let count = copies.iter().map(|copy| copy.slots_found).max().unwrap_or(0);
        let count = u32::try_from(count)
            .map_err(|_| unusable(&paths[0], "the key table has more than 2^32 slots"))?;
        let mut table = Self {
            copies,
            master,
            archive,
            run: AtomicU64::new(0),
            probe_run: 0,
            slots: Mutex::default(),
            failed: Failed::default(),
        };
        if count == 0 {
            if !may_begin {
                return Err(unusable(
                    &paths[0],
                    format!(
                        "the key table is missing or empty, and the archive has keys in it: bring \
                         {} back from a backup (any one of them is enough)",
                        names(&table.copies)
                    ),
                ));
            }
            table.write_probe(0)?;
            table.lock().count = 1;
            return Ok(table);
        }
        let probes = table.probes(count)?;
        table.probe_run = probes.runs.iter().flatten().copied().max().unwrap_or(0);
        let is_current = table.current(&probes);
        let found = reconcile(&table.copies, &is_current, &table.master, count)?;
        table.report(&found, &is_current);
        let Reconciled { mut free, count, run_max, lost, .. } = found;
        // The probe is written at the start of the run; it is never a free slot.
        free.retain(|&index| index > 0);
        free.reverse();
        *table.lock() = Slots { free, count, run_max, lost };
        Ok(table)
    }

    /// The archive whose keys lie at `paths`, as the first probe that can be read says; for a
    /// directory that lost its identity.
    pub(crate) fn archive_of(paths: &[PathBuf]) -> Option<ArchiveId> {
        let probe = |path: &PathBuf| {
            let copy = path.exists().then(|| Copy::open(path).ok()).flatten()?;
            match slot::content(&copy.probe()) {
                Content::Whole { body, .. } => Some(ArchiveId::from_bytes(body.to_bytes())),
                Content::Empty | Content::Damaged => None,
            }
        };
        paths.iter().find_map(probe)
    }

    /// Looks at the probe of each copy: is this the master key, and this archive's table?
    fn probes(&self, count: u32) -> Result<Probes> {
        let mut runs = Vec::with_capacity(self.copies.len());
        for copy in &self.copies {
            let found = copy.probe();
            let is_damaged = slot::content(&found) == Content::Damaged;
            let probe = if is_damaged { slot::mend(&self.master, &found) } else { Some(found) };
            let run = match probe.map(|probe| (slot::content(&probe), probe)) {
                Some((Content::Whole { body, run }, probe)) => {
                    if slot::decode(&self.master, &probe).is_none() {
                        return Err(self.wrong_master(copy));
                    }
                    if body != probe_id(self.archive) {
                        return Err(unusable(copy.path(), "it belongs to another archive"));
                    }
                    Some(run)
                }
                Some((Content::Empty | Content::Damaged, _)) | None => None,
            };
            runs.push(run);
        }
        if runs.iter().all(Option::is_none) {
            self.check_master_by_keys(count)?;
        }
        Ok(Probes { runs })
    }

    fn wrong_master(&self, copy: &Copy) -> ArchiveError {
        ArchiveError::WrongMasterKey {
            what: format!("the key table \"{}\"", copy.path().display()),
        }
    }

    /// Without any probe the first key that is whole says whether the master key is the right one.
    fn check_master_by_keys(&self, count: u32) -> Result<()> {
        let mut is_right = None;
        for_each_slot(&self.copies, count, |_, found| {
            let whole = |slot: &&Slot| matches!(slot::content(slot), Content::Whole { .. });
            is_right = found.iter().find(whole).map(|s| slot::decode(&self.master, s).is_some());
            Ok(if is_right.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        match is_right {
            Some(true) => return Ok(()),
            Some(false) => return Err(self.wrong_master(&self.copies[0])),
            None => {}
        }
        let reason = format!(
            "no slot of the key table can be read: bring {} back from a backup (any one of them \
             is enough)",
            names(&self.copies)
        );
        Err(unusable(self.copies[0].path(), reason))
    }

    /// Which copies took part in the latest run that any names. One whose probe is damaged did, as
    /// far as anybody knows; one that was made just now did not.
    fn current(&self, probes: &Probes) -> Vec<bool> {
        let is_current = |(copy, run): (&Copy, &Option<u64>)| {
            copy.slots_found > 0 && run.is_none_or(|run| run == self.probe_run)
        };
        self.copies.iter().zip(&probes.runs).map(is_current).collect()
    }

    fn report(&self, found: &Reconciled, is_current: &[bool]) {
        for (copy, _) in self.copies.iter().zip(is_current).filter(|(_, current)| !**current) {
            let path = copy.path().display();
            tracing::warn!(%path, "a copy of the key table was new or older, and was rebuilt");
        }
        if found.mended > 0 {
            let slots = found.mended;
            tracing::warn!(
                slots,
                "slots of the key table differed or were damaged, and were mended"
            );
        }
        if !found.lost.is_empty() {
            let (slots, first) = (found.lost.len(), &found.lost[..found.lost.len().min(16)]);
            tracing::error!(
                slots,
                ?first,
                "slots of the key table hold no key that opens, in any copy; what they were the \
                 keys of cannot be read until a backup of the table is brought back"
            );
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Begins a server run: numbers it after the last that the catalog counted and after every run
    /// that the table knows, and writes the number to every copy. Keys name it from now on.
    ///
    /// # Errors
    /// `Unusable` when the catalog counted runs that every copy of the table has missed.
    pub(crate) fn begin_run(&self, catalog_run: u64) -> Result<u64> {
        if self.probe_run > 0 && self.probe_run < catalog_run {
            return Err(unusable(
                self.copies[0].path(),
                format!(
                    "the key table is of run {}, and the catalog of run {catalog_run}: it is an \
                     older copy, without the keys of what came since. Bring a newer one of {} \
                     back; if there is none, move the catalog away and run recover: it keeps \
                     what these keys open",
                    self.probe_run,
                    names(&self.copies)
                ),
            ));
        }
        let newest = self.lock().run_max.max(self.probe_run);
        // A catalog behind the keys came from a backup: a number is left out, so that no run of
        // before counts as the one before this.
        let run = if newest > catalog_run { newest + 2 } else { catalog_run + 1 };
        self.number_run(run)
    }

    /// Begins a run of no catalog: its number leaves one out after every run that the table knows,
    /// and is above `seen`, the last that anything else names.
    pub(crate) fn begin_recovery(&self, seen: u64) -> Result<u64> {
        let newest = self.lock().run_max.max(self.probe_run).max(seen);
        self.number_run(if newest > 0 { newest + 2 } else { 1 })
    }

    fn number_run(&self, run: u64) -> Result<u64> {
        self.write_probe(run)?;
        self.run.store(run, Ordering::Relaxed);
        Ok(run)
    }

    fn write_probe(&self, run: u64) -> Result<()> {
        let key = SecretKey::random()?;
        let probe = slot::encode(&self.master, probe_id(self.archive), &key, run)?;
        self.copies.iter().try_for_each(|copy| copy.write(0, &probe))?;
        self.sync_blocking()
    }

    /// The latest run that a key named when the table was opened.
    pub(crate) fn newest_key_run(&self) -> u64 {
        self.lock().run_max
    }

    /// Slots there are, used or not: no row names a slot from here on.
    pub(crate) fn count(&self) -> u32 {
        self.lock().count
    }

    /// The files, for a message.
    pub(crate) fn files(&self) -> String {
        names(&self.copies)
    }

    /// Slots that hold no key that opens, in any copy.
    pub(crate) fn lost(&self) -> u64 {
        self.lock().lost.len() as u64
    }

    /// All slots that hold a key.
    pub(crate) fn scan(&self) -> Result<Vec<UsedSlot>> {
        let mut used = Vec::new();
        for_each_slot(&self.copies, self.count(), |index, found| {
            // Copies differ only where two keys are in doubt; then both are there.
            let mut known = None;
            for (at, slot) in found.iter().enumerate().filter(|_| index > 0) {
                if found[..at].contains(slot) {
                    continue;
                }
                let Content::Whole { body, run } = slot::content(slot) else { continue };
                if known != Some(body) {
                    used.push(UsedSlot { index, body, run });
                }
                known = Some(body);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(used)
    }

    fn check_usable(&self) -> Result<()> {
        self.failed
            .why
            .get()
            .map_or(Ok(()), |why| Err(ArchiveError::KeysFailed { what: why.clone() }))
    }

    /// Notes that the table cannot be used any more.
    fn fail(&self, error: &ArchiveError) -> ArchiveError {
        let what = error.to_string();
        if self.failed.why.set(what.clone()).is_ok() {
            tracing::error!(
                error = what,
                "the key table failed: nothing more is taken or destroyed"
            );
        }
        self.failed.bell.notify_waiters();
        ArchiveError::KeysFailed { what }
    }

    /// Returns when the table can be used no more: with why.
    pub(crate) async fn failed(&self) -> String {
        let mut bell = std::pin::pin!(self.failed.bell.notified());
        // Registered before the look, so that no failure falls in between.
        bell.as_mut().enable();
        if let Some(why) = self.failed.why.get() {
            return why.clone();
        }
        bell.await;
        self.failed.why.get().cloned().unwrap_or_default()
    }

    /// Writes a new key for `body` and returns it with its slot. Durable only after [`Self::sync`].
    pub(crate) fn create(&self, body: ObjectId) -> Result<(SecretKey, u32)> {
        self.check_usable()?;
        let key = SecretKey::random()?;
        let slot = slot::encode(&self.master, body, &key, self.run.load(Ordering::Relaxed))?;
        let index = {
            let mut slots = self.lock();
            slots.free.pop().unwrap_or_else(|| {
                slots.count += 1;
                slots.count - 1
            })
        };
        let written = self.copies.iter().try_for_each(|copy| copy.write(index, &slot));
        match written {
            Ok(()) => Ok((key, index)),
            Err(error) => {
                // Some copy may have it. Only a slot that is empty in all may be used again.
                let cleared = self.copies.iter().try_for_each(|copy| copy.write(index, &EMPTY));
                if cleared.is_ok() {
                    self.lock().free.push(index);
                }
                Err(error)
            }
        }
    }

    /// Returns when every key created before the call is on stable storage, in every copy.
    pub(crate) async fn sync(&self) -> Result<()> {
        self.check_usable()?;
        let syncs = self.copies.iter().map(|copy| copy.sync.sync(vec![copy.target.clone()]));
        let synced = futures::future::try_join_all(syncs).await;
        self.synced(synced.map(drop))
    }

    /// The same, from a thread that may block.
    pub(crate) fn sync_blocking(&self) -> Result<()> {
        self.check_usable()?;
        self.synced(self.copies.iter().try_for_each(Copy::sync_blocking))
    }

    fn synced(&self, outcome: Result<()>) -> Result<()> {
        match outcome {
            Ok(()) => Ok(()),
            Err(ArchiveError::Stopping) => Err(ArchiveError::Stopping),
            Err(error) => Err(self.fail(&error)),
        }
    }

    /// The key of `body` in slot `index`.
    ///
    /// # Errors
    /// `Corrupt` when the slot holds another key or none; `Io` when no copy of it with this key can
    /// be read.
    pub(crate) fn load(&self, index: u32, body: ObjectId) -> Result<SecretKey> {
        let key_in = |slot: &Slot| {
            slot::decode(&self.master, slot).filter(|(found, _)| *found == body).map(|(_, key)| key)
        };
        let (mut passed, mut unread) = (Vec::new(), None);
        for copy in &self.copies {
            match copy.slot(index) {
                Ok(slot) => match key_in(&slot) {
                    Some(key) => {
                        if !passed.is_empty() || unread.is_some() {
                            self.heal(index, &slot);
                        }
                        return Ok(key);
                    }
                    None => passed.push(slot),
                },
                Err(error) => unread = Some(error),
            }
        }
        let mended = passed.iter().filter_map(|slot| slot::mend(&self.master, slot));
        mended.map(|slot| key_in(&slot)).find_map(|key| key).ok_or_else(|| {
            let what =
                format!("slot {index} of the key table does not hold the key of body {body}");
            unread.unwrap_or(ArchiveError::Corrupt { what })
        })
    }

    /// Writes a whole slot over copies of it that are damaged. Failing costs nothing: the next
    /// start tries again.
    fn heal(&self, index: u32, whole: &Slot) {
        let _slots = self.lock();
        // Looked at again under the lock: a key may be destroyed at this moment.
        let is_whole = |copy: &Copy| copy.slot(index).is_ok_and(|slot| slot == *whole);
        if !self.copies.iter().any(is_whole) {
            return;
        }
        for copy in &self.copies {
            // A block that cannot be read may be whole again when it is written.
            let found = copy.slot(index);
            if found.map_or(true, |slot| slot::content(&slot) == Content::Damaged) {
                let path = copy.path().display();
                tracing::warn!(%path, index, "a damaged slot of the key table was mended");
                if let Err(error) = copy.write(index, whole) {
                    tracing::warn!(%path, index, %error, "it stays damaged");
                }
            }
        }
    }

    /// Destroys the keys in these slots, provided they still are those of these bodies, and
    /// returns when zeros are on stable storage in every copy. The slots can then be used again.
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

    /// Writes zeros over these keys in every copy and returns the slots that are empty for it.
    fn clear(&self, keys: &[(u32, ObjectId)]) -> Result<Vec<u32>> {
        self.check_usable()?;
        let mut cleared = Vec::with_capacity(keys.len());
        for &(index, body) in keys {
            // Look and write as one step: of two that destroy one key only the first clears the
            // slot, so it is free once, and no late zeros fall on the key that follows.
            let _slots = self.lock();
            let mut was_there = false;
            let mut is_empty = true;
            let found: Vec<_> = self.copies.iter().map(|copy| copy.slot(index)).collect();
            let is_known = found.iter().flatten().any(|slot| self.is_of(slot, body));
            for (copy, found) in self.copies.iter().zip(found) {
                match found {
                    // After a crash the slot may already be zero, or hold the key of a newer body.
                    Ok(found) if !self.is_of(&found, body) => is_empty &= found == EMPTY,
                    // What one copy has is in one that cannot be read as well.
                    Err(error) if !is_known => return Err(error),
                    Ok(_) | Err(_) => {
                        copy.write(index, &EMPTY)?;
                        was_there = true;
                    }
                }
            }
            if was_there && is_empty {
                cleared.push(index);
            }
        }
        Ok(cleared)
    }

    /// Whether a slot holds the key of `body`, whole or damaged.
    fn is_of(&self, slot: &Slot, body: ObjectId) -> bool {
        match slot::content(slot) {
            Content::Empty => false,
            Content::Whole { body: found, .. } => found == body,
            Content::Damaged => {
                slot::body_id(slot) == body
                    || slot::mend(&self.master, slot).is_some_and(|s| slot::body_id(&s) == body)
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! The key table: one 128-byte slot per body, written and destroyed in place, in several files at
//! once.
//!
//! ```text
//! DIR/keys/table        | probe | slot 1 | slot 2 | ...      every file holds the same;
//! DIR/keys/table.copy   | probe | slot 1 | slot 2 | ...      each is rebuilt from the others
//! ```
//!
//! The data key is wrapped with AES-256-GCM under the master key, with the body id as associated
//! data. Slots never move and there is no log, so a slot that is overwritten with zeros and synced
//! leaves no copy of the key in any file of the key store. The layers below are out of its control:
//! a copy-on-write file system or a flash translation layer may keep the old block until it is
//! reused. There the wrapped key is as safe as the master key.
//!
//! Slot 0 holds a probe that only the right master key opens. Its body id is the archive's, and its
//! run is the last that opened the table, which identifies older copies. The run of any other slot
//! is the server run that made the key. A key of the last run that no row names belongs to an
//! upload that a crash interrupted, and is destroyed at the next start. A key of any other run that
//! no row names is left alone, because the catalog may be the one that is behind. A catalog whose
//! last run is older than a key's was restored from a backup; the later runs are not numbered
//! again, so their keys are never destroyed.
//!
//! A key exists when it is durable in every file, and is destroyed when zeros are durable in every
//! file. After a failed fsync the content of the disk is unknown, so every later call fails, and
//! the process must exit ([`KeyTable::failed`]).

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

/// Length of a table that holds only the probe.
pub(crate) const EMPTY_TABLE_BYTES: u64 = slot::SLOT_BYTES as u64;

/// The open key table.
#[derive(Debug)]
pub(crate) struct KeyTable {
    copies: Vec<Copy>,
    master: SecretKey,
    archive: ArchiveId,
    run: AtomicU64,
    /// The probe's run when the table was opened; 0 if none was ever written.
    probe_run: u64,
    slots: Mutex<Slots>,
    failed: Failed,
}

/// Why the table failed, and the tasks that wait for a failure.
#[derive(Debug, Default)]
struct Failed {
    reason: OnceLock<String>,
    notify: Notify,
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
    /// Slots without a key, highest first, so that low ones are used first.
    free: Vec<u32>,
    /// Slots in the files, used or free.
    count: u32,
    /// Latest run of any key in the files.
    run_max: u64,
    /// Slots that are not empty but hold no key that opens.
    lost: Vec<u32>,
}

/// The runs in the probes of all copies.
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
    /// Opens the table with a copy at each of `paths`, and makes all copies equal. Creates a new
    /// table if all of them are empty and `may_begin`.
    ///
    /// # Errors
    /// `WrongMasterKey`; `Unusable` when the files are another archive's, or are gone.
    pub(crate) fn open(
        paths: &[PathBuf],
        master: SecretKey,
        archive: ArchiveId,
        may_begin: bool,
    ) -> Result<Self> {
        assert!(!paths.is_empty(), "the key table needs at least one file");
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
                        "the key table is missing or empty, but the archive has keys: restore \
                         {} from a backup (any one of them is enough)",
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
        // Slot 0 is the probe, written when the run begins; it is never free.
        free.retain(|&index| index > 0);
        free.reverse();
        *table.lock() = Slots { free, count, run_max, lost };
        Ok(table)
    }

    /// Returns the archive id in the first readable probe of `paths`, for a directory that lost its
    /// identity.
    pub(crate) fn archive_of(paths: &[PathBuf]) -> Option<ArchiveId> {
        let probe = |path: &PathBuf| {
            let copy = path.exists().then(|| Copy::open(path).ok()).flatten()?;
            match slot::content(&copy.probe()) {
                Content::Valid { body, .. } => Some(ArchiveId::from_bytes(body.to_bytes())),
                Content::Empty | Content::Damaged => None,
            }
        };
        paths.iter().find_map(probe)
    }

    /// Checks the probe of each copy for the right master key and the right archive.
    fn probes(&self, count: u32) -> Result<Probes> {
        let mut runs = Vec::with_capacity(self.copies.len());
        for copy in &self.copies {
            let found = copy.probe();
            if let Some(version) = slot::newer_version(&found) {
                let reason = format!(
                    "it has version {version}, which a newer program wrote; this program reads \
                     version 1"
                );
                return Err(unusable(copy.path(), reason));
            }
            let is_damaged = slot::content(&found) == Content::Damaged;
            let probe = if is_damaged { slot::repair(&self.master, &found) } else { Some(found) };
            let run = match probe.map(|probe| (slot::content(&probe), probe)) {
                Some((Content::Valid { body, run }, probe)) => {
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

    /// Without any probe, checks the master key against the first intact key.
    fn check_master_by_keys(&self, count: u32) -> Result<()> {
        let mut is_right = None;
        for_each_slot(&self.copies, count, |_, found| {
            let valid = |slot: &&Slot| matches!(slot::content(slot), Content::Valid { .. });
            is_right = found.iter().find(valid).map(|s| slot::decode(&self.master, s).is_some());
            Ok(if is_right.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        match is_right {
            Some(true) => return Ok(()),
            Some(false) => return Err(self.wrong_master(&self.copies[0])),
            None => {}
        }
        let reason = format!(
            "no slot of the key table can be read: restore {} from a backup (any one of them \
             is enough)",
            names(&self.copies)
        );
        Err(unusable(self.copies[0].path(), reason))
    }

    /// Returns which copies took part in the latest known run. A copy with a damaged probe is
    /// assumed to have; one that was just created did not.
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
        if found.repaired > 0 {
            let slots = found.repaired;
            tracing::warn!(
                slots,
                "slots of the key table differed or were damaged, and were repaired"
            );
        }
        if !found.lost.is_empty() {
            let (slots, first) = (found.lost.len(), &found.lost[..found.lost.len().min(16)]);
            tracing::error!(
                slots,
                ?first,
                "slots of the key table hold no valid key in any copy; their bodies cannot be read \
                 until the table is restored from a backup"
            );
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Begins a server run. Its number is above the last run in the catalog and every run in the
    /// table; it is written to every copy, and keys carry it from now on.
    ///
    /// # Errors
    /// `Unusable` when the catalog recorded runs that every copy of the table has missed.
    pub(crate) fn begin_run(&self, catalog_run: u64) -> Result<u64> {
        if self.probe_run > 0 && self.probe_run < catalog_run {
            return Err(unusable(
                self.copies[0].path(),
                format!(
                    "the key table is of run {}, and the catalog of run {catalog_run}: it is an \
                     older copy, without the keys created since. Bring a newer one of {} \
                     back; if there is none, move the catalog away and run recover: it keeps \
                     the objects of these keys",
                    self.probe_run,
                    names(&self.copies)
                ),
            ));
        }
        let newest = self.lock().run_max.max(self.probe_run);
        // A catalog older than the keys came from a backup. One number is skipped, so that no
        // earlier run counts as the previous one.
        let run = if newest > catalog_run { newest + 2 } else { catalog_run + 1 };
        self.number_run(run)
    }

    /// Begins a run without a catalog. Its number is above `seen`, the last run named elsewhere,
    /// and one is skipped after every run in the table.
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

    /// Returns the latest run of any key when the table was opened.
    pub(crate) fn newest_key_run(&self) -> u64 {
        self.lock().run_max
    }

    /// Returns the number of slots, used or free; no row names a slot beyond it.
    pub(crate) fn count(&self) -> u32 {
        self.lock().count
    }

    /// Returns the names of the files, for a message.
    pub(crate) fn files(&self) -> String {
        names(&self.copies)
    }

    /// Returns the number of slots that hold no key that opens, in any copy.
    pub(crate) fn lost(&self) -> u64 {
        self.lock().lost.len() as u64
    }

    /// Returns all slots that hold a key.
    pub(crate) fn scan(&self) -> Result<Vec<UsedSlot>> {
        let mut used = Vec::new();
        for_each_slot(&self.copies, self.count(), |index, found| {
            // Copies differ only if two keys claim the slot; both are returned then.
            let mut known = None;
            for (at, slot) in found.iter().enumerate().filter(|_| index > 0) {
                if found[..at].contains(slot) {
                    continue;
                }
                let Content::Valid { body, run } = slot::content(slot) else { continue };
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
            .reason
            .get()
            .map_or(Ok(()), |reason| Err(ArchiveError::KeysFailed { what: reason.clone() }))
    }

    /// Marks the table as failed: it cannot be used any more.
    fn fail(&self, error: &ArchiveError) -> ArchiveError {
        let what = error.to_string();
        if self.failed.reason.set(what.clone()).is_ok() {
            tracing::error!(
                error = what,
                "the key table failed: no key can be created or destroyed before a restart"
            );
        }
        self.failed.notify.notify_waiters();
        ArchiveError::KeysFailed { what }
    }

    /// Waits until the table fails, and returns the reason.
    pub(crate) async fn failed(&self) -> String {
        let mut notify = std::pin::pin!(self.failed.notify.notified());
        // Registered before the check, so that no failure is missed in between.
        notify.as_mut().enable();
        if let Some(reason) = self.failed.reason.get() {
            return reason.clone();
        }
        notify.await;
        self.failed.reason.get().cloned().unwrap_or_default()
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
                // Some copy may have it. Only a slot that is empty in all of them may be reused.
                let cleared = self.copies.iter().try_for_each(|copy| copy.write(index, &EMPTY));
                if cleared.is_ok() {
                    self.lock().free.push(index);
                }
                Err(error)
            }
        }
    }

    /// Waits until every key created before the call is durable in every copy.
    pub(crate) async fn sync(&self) -> Result<()> {
        self.check_usable()?;
        let syncs = self.copies.iter().map(|copy| copy.sync.sync(vec![copy.target.clone()]));
        let synced = futures::future::try_join_all(syncs).await;
        self.synced(synced.map(drop))
    }

    /// The same, blocking.
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

    /// Returns the key of `body` from slot `index`.
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
        let repaired = passed.iter().filter_map(|slot| slot::repair(&self.master, slot));
        repaired.map(|slot| key_in(&slot)).find_map(|key| key).ok_or_else(|| {
            let what =
                format!("slot {index} of the key table does not hold the key of body {body}");
            unread.unwrap_or(ArchiveError::Corrupt { what })
        })
    }

    /// Overwrites damaged copies of a slot with an intact one. A failure costs nothing: the next
    /// start tries again.
    fn heal(&self, index: u32, valid: &Slot) {
        let _slots = self.lock();
        // Checked again under the lock: the key may be being destroyed.
        let is_valid = |copy: &Copy| copy.slot(index).is_ok_and(|slot| slot == *valid);
        if !self.copies.iter().any(is_valid) {
            return;
        }
        for copy in &self.copies {
            // A block that cannot be read may become readable when it is rewritten.
            let found = copy.slot(index);
            if found.map_or(true, |slot| slot::content(&slot) == Content::Damaged) {
                let path = copy.path().display();
                tracing::warn!(%path, index, "a damaged slot of the key table was repaired");
                if let Err(error) = copy.write(index, valid) {
                    tracing::warn!(%path, index, %error, "cannot repair a slot of the key table");
                }
            }
        }
    }

    /// Destroys the keys in these slots, if they still belong to these bodies, and returns when the
    /// zeros are durable in every copy. The slots can then be reused.
    pub(crate) async fn destroy(&self, keys: &[(u32, ObjectId)]) -> Result<()> {
        let cleared = self.clear(keys)?;
        self.sync().await?;
        self.lock().free.extend(cleared);
        Ok(())
    }

    /// The same, blocking.
    pub(crate) fn destroy_blocking(&self, keys: &[(u32, ObjectId)]) -> Result<()> {
        let cleared = self.clear(keys)?;
        self.sync_blocking()?;
        self.lock().free.extend(cleared);
        Ok(())
    }

    /// Destroys a key that no row ever named. Not synced: after a crash the next start does it.
    pub(crate) fn discard(&self, index: u32, body: ObjectId) {
        match self.clear(&[(index, body)]) {
            Ok(cleared) => self.lock().free.extend(cleared),
            Err(error) => {
                tracing::warn!(%error, index, "the key of a dropped upload is not destroyed yet");
            }
        }
    }

    /// Overwrites these keys with zeros in every copy and returns the slots that became empty.
    fn clear(&self, keys: &[(u32, ObjectId)]) -> Result<Vec<u32>> {
        self.check_usable()?;
        let mut cleared = Vec::with_capacity(keys.len());
        for &(index, body) in keys {
            // Check and write are one step. If two tasks destroy one key, only the first clears the
            // slot: it is freed once, and no late zeros overwrite the next key.
            let _slots = self.lock();
            let mut was_there = false;
            let mut is_empty = true;
            let found: Vec<_> = self.copies.iter().map(|copy| copy.slot(index)).collect();
            let is_known = found.iter().flatten().any(|slot| self.is_of(slot, body));
            for (copy, found) in self.copies.iter().zip(found) {
                match found {
                    // After a crash the slot may already be zero, or hold the key of a newer body.
                    Ok(found) if !self.is_of(&found, body) => is_empty &= found == EMPTY,
                    // A copy that cannot be read holds the same key as one that can.
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
            Content::Valid { body: found, .. } => found == body,
            Content::Damaged => {
                slot::body_id(slot) == body
                    || slot::repair(&self.master, slot).is_some_and(|s| slot::body_id(&s) == body)
            }
        }
    }
}

#[cfg(test)]
mod tests;

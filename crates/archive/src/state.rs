//! The state of an open archive that every operation uses: catalog, key table, logs and settings.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fulgurite_catalog::{
    CatalogError, Committer, ErrorKind, FjallConfig, FjallStore, KeyRange, KeyValue, ReadView,
    Transaction,
};
use fulgurite_glass::{Panics, Platters, Shared};
use fulgurite_tier::FailPoints;
use fulgurite_units::{ArchiveId, Clock, UnixTime};

use crate::bodies::cipher::random_bytes;
use crate::bodies::digest_pool::DigestPool;
use crate::bodies::key_files;
use crate::bodies::key_table::KeyTable;
use crate::bodies::log::orphans::Orphans;
use crate::bodies::log::{Budget, Extent, LogKind, LogPlace, SegmentLog};
use crate::bodies::unconfirmed::StartupScan;
use crate::catalog_mark::{CountingCatalog, MarkFile, refuse_older};
use crate::commits::CommitCounter;
use crate::config::ArchiveConfig;
use crate::directory::{
    Identity, Paths, is_empty_dir, lock_directory, make_dir, make_durable_path, master_key,
    master_key_path, read_identity, sync_dir, unusable, write_identity,
};
use crate::fail_point::FAIL_POINTS;
use crate::jobs::{Inboxes, JobHandles};
use crate::limits::GIVEN_UP_WAITING_MAX;
use crate::objects::commit::delete_shred_rows;
use crate::objects::completion_locks::CompletionLocks;
use crate::permissions;
use crate::restore::watch::FailedRestore;
use crate::rows::accounting::Retired;
use crate::rows::{self, SEGMENTS, SPACES, SettledRow};
use crate::space::Space;
use crate::tiers::{self, Tiers, far_libraries, refuse_missing, refuse_swapped};
use crate::{ArchiveError, Result};

/// Advice for a catalog that is partly unreadable.
pub(crate) const DAMAGED_CATALOG_REMEDY: &str = "run `fulgurite recover`, which keeps its \
    readable rows and rebuilds the others from platters and logs";

/// An open data directory.
#[derive(Debug)]
pub(crate) struct ArchiveState {
    pub(crate) config: ArchiveConfig,
    /// What goes on in this run.
    pub(crate) runtime: Runtime,
    pub(crate) archive: ArchiveId,
    pub(crate) kv: Arc<FjallStore>,
    pub(crate) committer: Arc<Committer>,
    pub(crate) keys: KeyTable,
    pub(crate) staging: Arc<SegmentLog>,
    pub(crate) online: Arc<SegmentLog>,
    pub(crate) restored: Arc<SegmentLog>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) digest_pool: Arc<DigestPool>,
    pub(crate) space: Arc<Space>,
    pub(crate) mark: MarkFile,
    /// Damaged restored copies dropped since the start; they have to be restored again.
    pub(crate) copies_dropped: AtomicU64,
    /// The glass tier.
    pub(crate) platters: Platters,
    /// Number of this server run; every key created in it carries this number.
    pub(crate) run: u64,
    pub(crate) tiers: Tiers,
    pub(crate) completion_locks: CompletionLocks,
    /// Bodies with a key and an entry in a log that no row names, not even as unconfirmed, as found
    /// by the sweep of this start: parts of uploads.
    pub(crate) unconfirmed_parts: AtomicU64,
    /// Set when keys that rows mark for destruction could not be destroyed.
    pub(crate) has_failed_shreds: AtomicBool,
    _lock: File,
}

/// What goes on in a run of the archive, as opposed to what is stored: time, faults, jobs, the
/// stop.
#[derive(Debug)]
pub(crate) struct Runtime {
    clock: Clock,
    pub(crate) fail: Arc<FailPoints>,
    pub(crate) panics: Arc<Panics>,
    /// Set when long work is to end at its next safe point.
    pub(crate) stopping: Arc<AtomicBool>,
    pub(crate) job_handles: JobHandles,
    /// The receiving ends of `job_handles`, until the workers take them.
    pub(crate) inboxes: Mutex<Option<Inboxes>>,
    /// Notified whenever the job of a tier has processed its queue, and when it never will again.
    pub(crate) moves_polled: tokio::sync::Notify,
    /// Broadcasts each restore that is given up.
    pub(crate) given_up: tokio::sync::broadcast::Sender<FailedRestore>,
}

impl Runtime {
    fn new(clock: Clock, fail: FailPoints, tiers: &Tiers) -> Self {
        let (job_handles, inboxes) = JobHandles::new(&clock, tiers);
        Self {
            clock,
            fail: Arc::new(fail),
            panics: Arc::default(),
            stopping: Arc::default(),
            job_handles,
            inboxes: Mutex::new(Some(inboxes)),
            moves_polled: tokio::sync::Notify::new(),
            given_up: tokio::sync::broadcast::Sender::new(GIVEN_UP_WAITING_MAX),
        }
    }
}

/// Reads the identity, rebuilds it from the key table, or creates one in a directory without an
/// archive.
fn identity(config: &ArchiveConfig) -> Result<Identity> {
    if let Some(identity) = read_identity(&config.data)? {
        return Ok(identity);
    }
    let of_keys = KeyTable::archive_of(&key_files::key_tables(config));
    let archive = match of_keys {
        Some(archive) => {
            tracing::warn!(%archive, "archive.json was missing, and is recreated");
            archive
        }
        None => ArchiveId::from_random(random_bytes()?),
    };
    write_identity(&config.data, archive)
}

/// Returns the fail points, with that of a test armed.
fn fail_points(armed: Option<&(String, u32)>) -> Result<FailPoints> {
    let Some((name, count)) = armed else { return Ok(FailPoints::unarmed(&FAIL_POINTS)) };
    FailPoints::armed(&FAIL_POINTS, name, *count)
        .map_err(|what| ArchiveError::InvalidArgument { what })
}

/// Refuses a configuration or a data directory with which no archive opens, as far as that shows
/// without opening the catalog. Creates and changes nothing.
pub(crate) fn check(config: &ArchiveConfig) -> Result<()> {
    config.glass.validate()?;
    fail_points(config.fail_point.as_ref())?;
    key_files::check_places(config)?;
    tiers::check(config)?;
    permissions::check(config)?;
    let lock = Paths::new(&config.data).lock();
    let _lock = lock.exists().then(|| lock_directory(&config.data)).transpose()?;
    check_directory(config).map(drop)
}

/// Refuses a data directory that has lost what only a backup or a recovery brings back. Returns
/// whether there is no archive in it yet.
fn check_directory(config: &ArchiveConfig) -> Result<bool> {
    let paths = Paths::new(&config.data);
    let is_known = KeyTable::archive_of(&key_files::key_tables(config)).is_some();
    let is_new = read_identity(&config.data)?.is_none() && !is_known;
    let has_catalog = !is_empty_dir(&paths.catalog()) || paths.catalog_recovered().exists();
    let has_platters = !is_empty_dir(&paths.platters());
    if is_new && (has_platters || has_catalog) {
        let reason = "archive.json and the key table are missing; restore the key table or its \
                      copy from a backup";
        return Err(unusable(&config.data, reason));
    }
    if !is_new && !has_catalog && (key_files::has_any_key(config) || has_platters) {
        return Err(unusable(
            &config.data,
            "the catalog is missing; run recover to rebuild it from platters and logs",
        ));
    }
    if !may_create_key(config, is_new) {
        master_key(&master_key_path(config), false)?;
    }
    Ok(is_new)
}

/// Whether the master key may be created: there is no key that another one wrapped.
fn may_create_key(config: &ArchiveConfig, is_new: bool) -> bool {
    !key_files::any_exists(config) && is_new
}

impl ArchiveState {
    /// Opens or creates the data directory. Blocks on the disk.
    pub(crate) fn open(config: ArchiveConfig, clock: Clock) -> Result<Self> {
        Self::open_directory(config, clock).inspect_err(|error| {
            if let ArchiveError::Catalog(error) = error
                && error.kind() == ErrorKind::Corrupt
            {
                tracing::error!("the catalog is damaged: {DAMAGED_CATALOG_REMEDY}");
            }
        })
    }

    fn open_directory(config: ArchiveConfig, clock: Clock) -> Result<Self> {
        let paths = Paths::new(&config.data);
        check(&config)?;
        make_durable_path(&config.data)?;
        let lock = lock_directory(&config.data)?;
        paths.settle_recovered_catalog()?;
        let is_new = check_directory(&config)?;
        for dir in [paths.keys(), paths.catalog(), paths.platters()] {
            make_dir(&dir)?;
        }
        permissions::secure(&config)?;
        let space = Arc::new(Space::open(&config.data, &config.space)?);
        // On a full disk this frees the reserve, so that the catalog can open and process deletes.
        space.make_room(false);
        // The identity is written last, so that an interrupted first start is repeated as a first
        // start.
        let may_create_key = may_create_key(&config, is_new);
        let master = master_key(&master_key_path(&config), may_create_key)?;
        let identity = identity(&config)?;
        let accept = |view: &dyn ReadView| {
            refuse_older(&paths, identity.archive, view)?;
            refuse_missing(&config, view)?;
            refuse_swapped(&config, view)
        };
        let kv = Arc::new(open_catalog(&paths.catalog(), &space, &accept)?);
        let keys = key_files::open(&config, master, identity.archive, &*kv)?;
        key_files::warn_if_same_disk(&config);
        Self::assemble(config, clock, identity.archive, kv, keys, (lock, space))
    }

    fn assemble(
        config: ArchiveConfig,
        clock: Clock,
        archive: ArchiveId,
        kv: Arc<FjallStore>,
        keys: KeyTable,
        (lock, space): (File, Arc<Space>),
    ) -> Result<Self> {
        let fail = fail_points(config.fail_point.as_ref())?;
        let room = Arc::clone(&space);
        let before_reopen = move |error: &CatalogError| room.make_room(error.is_out_of_space());
        // First of all changes: with an older key table this fails, and nothing may be changed.
        let catalog_run = rows::totals(&*kv)?.run;
        let run = keys.begin_run(catalog_run)?;
        let commits = Arc::<CommitCounter>::default();
        let counted = Arc::new(CountingCatalog::new(Arc::clone(&kv), run, Arc::clone(&commits)));
        let committer = Arc::new(Committer::start_with(counted, Box::new(before_reopen))?);
        let paths = Paths::new(&config.data);
        let scan = StartupScan { paths, kv: &kv, committer: &committer, keys: &keys, catalog_run };
        scan.record_unconfirmed()?;
        let (budget, live) = (Arc::new(Budget::new(config.log_capacity)), live_segments(&kv)?);
        let log = |kind: LogKind| -> Result<Arc<SegmentLog>> {
            let (data, commits) = (config.data.clone(), Arc::clone(&commits));
            let place = LogPlace { data, kind, archive, run, catalog_run, commits };
            let live = live.get(&kind).cloned().unwrap_or_default();
            Ok(Arc::new(SegmentLog::open(&place, &live, Arc::clone(&budget))?))
        };
        let [staging, online, restored] =
            [log(LogKind::Staging)?, log(LogKind::Online)?, log(LogKind::Restored)?];
        sync_dir(&config.data)?;
        // Not before now: the logs compare segments with the run that the catalog knew before.
        record_run(&committer, run)?;
        let mark = MarkFile::new(Paths::new(&config.data), archive, run, commits);
        mark.record_or_warn(false);
        let tiers = Tiers::open(&config, archive, |tier| rows::tiers::is_claimed(&*kv, tier))?;
        let runtime = Runtime::new(clock, fail, &tiers);
        let shared = Shared {
            archive,
            far: far_libraries(&config, &tiers, Some((&kv, &committer)))?,
            catalog: Arc::clone(&kv) as Arc<dyn KeyValue>,
            committer: Arc::clone(&committer),
            folder: Paths::new(&config.data).platters(),
            clock: runtime.clock.clone(),
            panics: Arc::clone(&runtime.panics),
            fail: Arc::clone(&runtime.fail),
            stopping: Arc::clone(&runtime.stopping),
        };
        let platters = Platters::open(shared, &config.glass)?;
        let digest_pool = DigestPool::new(Arc::clone(&runtime.fail), Arc::clone(&runtime.panics));
        Ok(Self {
            config,
            runtime,
            archive,
            kv,
            committer,
            keys,
            staging,
            online,
            restored,
            budget,
            digest_pool: Arc::new(digest_pool),
            space,
            mark,
            copies_dropped: AtomicU64::new(0),
            platters,
            run,
            completion_locks: CompletionLocks::default(),
            tiers,
            unconfirmed_parts: AtomicU64::new(0),
            has_failed_shreds: AtomicBool::new(false),
            _lock: lock,
        })
    }

    pub(crate) const fn log(&self, kind: LogKind) -> &Arc<SegmentLog> {
        match kind {
            LogKind::Staging => &self.staging,
            LogKind::Online => &self.online,
            LogKind::Restored => &self.restored,
        }
    }

    /// Closes the active segments, so that no empty one is left behind.
    pub(crate) fn close_logs(&self) {
        LogKind::ALL.into_iter().for_each(|kind| self.log(kind).close_active());
    }

    /// Returns the orphans: segments that the catalog does not name and that are kept all the same.
    pub(crate) fn orphans(&self) -> Orphans {
        Orphans::new(&self.config.data)
    }

    /// Returns wall-clock time.
    pub(crate) fn now(&self) -> UnixTime {
        self.runtime.clock.now()
    }

    /// Returns the one clock of the archive.
    pub(crate) const fn clock(&self) -> &Clock {
        &self.runtime.clock
    }

    /// Returns the bytes of restored copies that fit on the disk and in the logs' budget.
    pub(crate) fn room_for_copies(&self) -> Result<u64> {
        let in_budget = self.budget.max().saturating_sub(self.budget.used());
        Ok(self.space.room()?.min(in_budget))
    }

    /// Returns how often the catalog was reopened after a failure. After each reopen it may contain
    /// rows whose writers got an error, so jobs that work from rows must check again.
    pub(crate) fn catalog_reopens(&self) -> u64 {
        self.committer.metrics().counts().reopens
    }

    /// Destroys the keys and frees the extents that a committed transaction retired. On return the
    /// keys are durably gone.
    pub(crate) async fn finish_retired(&self, retired: Retired) -> Result<()> {
        if !retired.keys.is_empty() {
            if let Err(error) = self.keys.destroy(&retired.keys).await {
                // The client gets the error; the keys are destroyed when its cause is gone.
                self.has_failed_shreds.store(true, Ordering::SeqCst);
                self.free(&retired.extents);
                return Err(error);
            }
            self.runtime.fail.pass("delete-shredded");
            self.mark.record_unsynced();
            let done = retired.keys.iter().map(|&(_, body)| body).collect();
            // Not awaited: shredding again after a crash is idempotent.
            drop(self.committer.submit(move |tx| delete_shred_rows(tx, done)).await);
        }
        self.free(&retired.extents);
        self.notify_movers();
        self.runtime.fail.pass("delete-freed");
        Ok(())
    }

    /// Frees extents that no row names any more.
    pub(crate) fn free(&self, extents: &[(LogKind, Extent)]) {
        for (kind, extent) in extents {
            self.log(*kind).free(std::slice::from_ref(extent));
        }
    }

    /// Stores in the catalog from which segments on commits may be incomplete, if that has changed.
    /// Blocks.
    pub(crate) fn record_settled(&self) -> Result<()> {
        let now = SettledRow {
            staging: self.staging.settled_below(),
            online: self.online.settled_below(),
        };
        if now == rows::settled(&*self.kv)? {
            return Ok(());
        }
        // The zeroed keys of rejected uploads must be durable first.
        self.keys.sync_blocking()?;
        self.committer.commit_blocking(move |tx: &mut Transaction<'_>| rows::set_settled(tx, now))
    }

    /// Returns `Stopping` when the archive is being stopped; called between the steps of long work.
    pub(crate) fn check_stopping(&self) -> Result<()> {
        if self.runtime.stopping.load(Ordering::SeqCst) {
            Err(ArchiveError::Stopping)
        } else {
            Ok(())
        }
    }
}

/// Records that a run has begun.
fn record_run(committer: &Committer, run: u64) -> Result<()> {
    committer.commit_blocking(move |tx: &mut Transaction<'_>| {
        rows::set_settled(tx, SettledRow::default())?;
        rows::with_totals(tx, |totals| totals.run = run)
    })
}

/// Opens the catalog if `accept` agrees, giving up the reserve if that is necessary.
fn open_catalog(
    path: &Path,
    space: &Space,
    accept: &dyn Fn(&dyn ReadView) -> Result<()>,
) -> Result<FjallStore> {
    let config = FjallConfig::default();
    match FjallStore::open_if(path, &SPACES, &config, accept) {
        Err(ArchiveError::Catalog(error))
            if (error.is_out_of_space() || space.lacks_room()) && space.give_up_reserve() =>
        {
            tracing::warn!(error = error.chain(), "the catalog did not open; retrying");
            FjallStore::open_if(path, &SPACES, &config, accept)
        }
        opened => opened,
    }
}

type LiveSegments = BTreeMap<LogKind, BTreeMap<u32, u64>>;

fn live_segments(kv: &FjallStore) -> Result<LiveSegments> {
    let mut live = LiveSegments::new();
    let mut failure = None;
    kv.scan(
        SEGMENTS,
        &KeyRange::prefix(b""),
        fulgurite_catalog::Direction::Ascending,
        &mut |key, value| {
            let row = rows::parse_segment_key(key).and_then(|(code, segment)| {
                Ok((code, segment, rows::decode::<u64>(SEGMENTS, value)?))
            });
            match row {
                Ok((code, segment, bytes)) => {
                    if let Some(kind) = LogKind::ALL.into_iter().find(|kind| kind.code() == code) {
                        live.entry(kind).or_default().insert(segment, bytes);
                    }
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        },
    )?;
    failure.map_or(Ok(live), Err)
}

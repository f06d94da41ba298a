//! The ground that every step of an object's life stands on: catalog, key table, logs and settings.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fulgurite_catalog::{
    CatalogError, Committer, FjallConfig, FjallStore, KeyRange, KeyValue, ReadView, Transaction,
};
use fulgurite_platters::{FailPoints, Panics, Platters, Shared};
use fulgurite_units::{ArchiveId, Clock, UnixTime};
use serde::{Deserialize, Serialize};

use crate::body::{SecretKey, random_bytes};
use crate::catalog_mark::{Commits, Counted, MarkFile, refuse_older};
use crate::config::ArchiveConfig;
use crate::doubts::Start;
use crate::fail_point::FAIL_POINTS;
use crate::jobs::{Bells, Inboxes};
use crate::key_files;
use crate::key_table::KeyTable;
use crate::log::orphans::Orphans;
use crate::log::{Budget, LogKind, LogPlace, SegmentLog, sync_dir};
use crate::private;
use crate::rows::{self, SEGMENTS, SPACES, SettledRow};
use crate::space::Space;
use crate::tiers::Tiers;
use crate::{ArchiveError, Result};

/// Identity of a data directory, written once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Identity {
    /// Version of the data directory's layout.
    pub(crate) format: u32,
    pub(crate) archive: ArchiveId,
}

const FORMAT: u32 = 1;

/// An open data directory.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) config: ArchiveConfig,
    clock: Clock,
    pub(crate) archive: ArchiveId,
    pub(crate) kv: Arc<FjallStore>,
    pub(crate) committer: Arc<Committer>,
    pub(crate) keys: KeyTable,
    pub(crate) staging: Arc<SegmentLog>,
    pub(crate) online: Arc<SegmentLog>,
    pub(crate) restored: Arc<SegmentLog>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) space: Arc<Space>,
    pub(crate) mark: MarkFile,
    pub(crate) fail: Arc<FailPoints>,
    pub(crate) panics: Arc<Panics>,
    /// Restored copies since start that were damaged, to be restored again.
    pub(crate) copies_dropped: AtomicU64,
    /// The glass tier.
    pub(crate) platters: Platters,
    /// Number of this server run; the key table names it in every key it makes.
    pub(crate) run: u64,
    pub(crate) bells: Bells,
    /// The other ends of the bells, until the workers take them.
    pub(crate) inboxes: Mutex<Option<Inboxes>>,
    pub(crate) tiers: Tiers,
    /// Bodies with a key and an entry in a log that no row names, not even as one in doubt, as the
    /// sweep of this start met them: parts of uploads.
    pub(crate) parts_in_doubt: AtomicU64,
    /// Set when keys that rows say are to be destroyed could not be.
    pub(crate) has_failed_shreds: AtomicBool,
    /// Set when long work shall end at its next safe point.
    pub(crate) stopping: Arc<AtomicBool>,
    _lock: File,
}

/// Paths inside a data directory.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    root: PathBuf,
}

impl Paths {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }
    pub(crate) fn identity(&self) -> PathBuf {
        self.root.join("archive.json")
    }
    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }
    pub(crate) fn keys(&self) -> PathBuf {
        self.root.join("keys")
    }
    pub(crate) fn key_table(&self) -> PathBuf {
        self.keys().join("table")
    }
    pub(crate) fn catalog(&self) -> PathBuf {
        self.root.join("catalog")
    }
    /// What is known outside of the catalog of how far it has come.
    pub(crate) fn catalog_mark(&self) -> PathBuf {
        self.root.join("catalog.mark")
    }
    pub(crate) fn key_table_copy(&self) -> PathBuf {
        self.keys().join("table.copy")
    }
    /// Where a recovery builds a catalog before it is whole.
    pub(crate) fn catalog_part(&self) -> PathBuf {
        self.root.join("catalog.part")
    }
    /// A recovered catalog that is whole, while the one before it makes room.
    pub(crate) fn catalog_recovered(&self) -> PathBuf {
        self.root.join("catalog.recovered")
    }
    /// Finishes what a crash left of giving a recovered catalog its name. Beside another catalog it
    /// is scrap: that one was not moved away yet, and can be recovered again.
    pub(crate) fn settle_recovered_catalog(&self) -> Result<()> {
        let (from, to) = (self.catalog_recovered(), self.catalog());
        if !from.exists() {
            return Ok(());
        }
        if !is_empty_dir(&to) {
            return std::fs::remove_dir_all(&from).map_err(ArchiveError::io("remove", &from));
        }
        if to.exists() {
            std::fs::remove_dir(&to).map_err(ArchiveError::io("replace", &to))?;
        }
        tracing::warn!("a recovery was cut short at its end, and is finished now");
        std::fs::rename(&from, &to).map_err(ArchiveError::io("rename", &from))?;
        sync_dir(&self.root)
    }
    /// What starts found in doubt; there need not be such a file.
    pub(crate) fn doubts(&self) -> PathBuf {
        self.root.join("doubts")
    }
    pub(crate) fn log(&self, kind: LogKind) -> PathBuf {
        self.root.join(kind.folder())
    }
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
    pub(crate) fn platters(&self) -> PathBuf {
        self.root.join("platters")
    }
}

/// Takes the data directory for this process alone.
pub(crate) fn lock_directory(data: &Path) -> Result<File> {
    let path = Paths::new(data).lock();
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(ArchiveError::io("open", &path))?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| ArchiveError::Locked { path: data.display().to_string() })?;
    Ok(file)
}

fn unusable(data: &Path, reason: impl Into<String>) -> ArchiveError {
    ArchiveError::Unusable { path: data.display().to_string(), reason: reason.into() }
}

/// Reads the identity; none if there is no file.
pub(crate) fn read_identity(data: &Path) -> Result<Option<Identity>> {
    let path = Paths::new(data).identity();
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ArchiveError::io("read", &path)(error)),
    };
    let identity: Identity = serde_json::from_slice(&bytes).map_err(|e| {
        unusable(data, format!("archive.json is damaged: {e}; move it away to have it made again"))
    })?;
    if identity.format != FORMAT {
        let reason = format!("its format {} is not {FORMAT}", identity.format);
        return Err(unusable(data, reason));
    }
    Ok(Some(identity))
}

/// Reads the identity, makes it again from the key table, or makes one in a directory that holds
/// no archive yet.
fn identity(config: &ArchiveConfig) -> Result<Identity> {
    if let Some(identity) = read_identity(&config.data)? {
        return Ok(identity);
    }
    let of_keys = KeyTable::archive_of(&key_files::key_tables(config));
    let archive = match of_keys {
        Some(archive) => {
            tracing::warn!(%archive, "archive.json was missing, and is made again");
            archive
        }
        None => ArchiveId::from_random(random_bytes()?),
    };
    write_identity(&config.data, archive)?;
    Ok(Identity { format: FORMAT, archive })
}

/// Writes the identity.
pub(crate) fn write_identity(data: &Path, archive: ArchiveId) -> Result<()> {
    let text = serde_json::to_vec_pretty(&Identity { format: FORMAT, archive })
        .map_err(|e| ArchiveError::Internal { what: e.to_string() })?;
    write_durably(&Paths::new(data).identity(), &text, 0o644)
}

/// Writes a small file so that it is there whole or not at all.
pub(crate) fn write_durably(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let part = path.with_extension("part");
    let mut options = File::options();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(&part)
        .map_err(ArchiveError::io("create", &part))?;
    file.write_all(bytes).map_err(ArchiveError::io("write", &part))?;
    file.sync_all().map_err(ArchiveError::io("sync", &part))?;
    std::fs::rename(&part, path).map_err(ArchiveError::io("rename", &part))?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// The master key: read from `path`, or made there when `may_create`.
pub(crate) fn master_key(path: &Path, may_create: bool) -> Result<SecretKey> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => zeroize::Zeroizing::new(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && may_create => {
            let key = SecretKey::random()?;
            let text = zeroize::Zeroizing::new(hex::encode(key.expose()));
            write_durably(path, text.as_bytes(), 0o600)?;
            return Ok(key);
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(unusable(
                path,
                "the master key is missing: bring it back from its backup; without it no object \
                 can be read",
            ));
        }
        Err(error) => return Err(ArchiveError::io("read the master key", path)(error)),
    };
    let mut key = [0; 32];
    hex::decode_to_slice(text.trim(), &mut key).map_err(|_| {
        unusable(path, "a master key is 64 hexadecimal digits; restore it from its backup")
    })?;
    Ok(SecretKey::from_bytes(key))
}

/// The path of the master key that `config` names.
pub(crate) fn master_key_path(config: &ArchiveConfig) -> PathBuf {
    let default = || Paths::new(&config.data).keys().join("master.key");
    config.master_key.clone().unwrap_or_else(default)
}

pub(crate) fn make_dir(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(ArchiveError::io("create", path))
}

/// Whether `dir` is missing or has no entries.
pub(crate) fn is_empty_dir(dir: &Path) -> bool {
    std::fs::read_dir(dir).map_or(true, |mut entries| entries.next().is_none())
}

impl Ground {
    /// Opens or creates the data directory. Blocks on the disk.
    pub(crate) fn open(config: ArchiveConfig, clock: Clock) -> Result<Self> {
        config.glass.validate()?;
        let paths = Paths::new(&config.data);
        make_dir(&config.data)?;
        let lock = lock_directory(&config.data)?;
        paths.settle_recovered_catalog()?;
        let is_known = KeyTable::archive_of(&key_files::key_tables(&config)).is_some();
        let is_new = !paths.identity().exists() && !is_known;
        if is_new && !(is_empty_dir(&paths.platters()) && is_empty_dir(&paths.catalog())) {
            let reason = "archive.json and the key table are missing; bring the key table, or its \
                          copy, back from a backup";
            return Err(unusable(&config.data, reason));
        }
        let has_content = key_files::have_keys(&config) || !is_empty_dir(&paths.platters());
        if !is_new && is_empty_dir(&paths.catalog()) && has_content {
            return Err(unusable(
                &config.data,
                "the catalog is missing; run recover to rebuild it from platters and logs",
            ));
        }
        for dir in [paths.keys(), paths.catalog(), paths.platters()] {
            make_dir(&dir)?;
        }
        private::secure(&config)?;
        let space = Arc::new(Space::open(&config.data, &config.space)?);
        // On a full disk the catalog opens and deletes in what the reserve gives up.
        space.make_room(false);
        // The identity is written last, so that a first start cut short is a first start again.
        let may_create_key = !key_files::exist(&config) && is_new;
        let master = master_key(&master_key_path(&config), may_create_key)?;
        let identity = identity(&config)?;
        let accept = |view: &dyn ReadView| refuse_older(&paths, identity.archive, view);
        let kv = Arc::new(open_catalog(&paths.catalog(), &space, &accept)?);
        let keys = key_files::open(&config, master, identity.archive, &*kv)?;
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
        let fail = FailPoints::new(&FAIL_POINTS, config.fail_point.as_ref())
            .map_err(|what| ArchiveError::InvalidArgument { what })?;
        let room = Arc::clone(&space);
        let before_reopen = move |error: &CatalogError| room.make_room(error.is_lack_of_room());
        // Before anything is changed: with an older key table nothing may be.
        let catalog_run = rows::totals(&*kv)?.run;
        let run = keys.begin_run(catalog_run)?;
        let commits = Arc::<Commits>::default();
        let counted = Arc::new(Counted::new(Arc::clone(&kv), run, Arc::clone(&commits)));
        let committer = Arc::new(Committer::start_with(counted, Box::new(before_reopen))?);
        let paths = Paths::new(&config.data);
        Start { paths, kv: &kv, committer: &committer, keys: &keys, catalog_run }.note()?;
        let budget = Arc::new(Budget::new(config.log_capacity));
        let live = live_segments(&kv)?;
        let log = |kind: LogKind| -> Result<Arc<SegmentLog>> {
            let none = BTreeMap::new();
            let data = config.data.clone();
            let commits = Arc::clone(&commits);
            let place = LogPlace { data, kind, archive, run, catalog_run, commits };
            let live = live.get(&kind).unwrap_or(&none);
            Ok(Arc::new(SegmentLog::open(&place, live, Arc::clone(&budget))?))
        };
        let (staging, online) = (log(LogKind::Staging)?, log(LogKind::Online)?);
        let restored = log(LogKind::Restored)?;
        sync_dir(&config.data)?;
        // Only now: segments are judged by the run that the catalog knew before.
        committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            rows::set_settled(tx, SettledRow::default())?;
            rows::with_totals(tx, |totals| totals.run = run)
        })?;
        let mark = MarkFile::new(Paths::new(&config.data), archive, run, commits);
        mark.note_or_warn(false);
        let tiers = Tiers::open(&config, archive, |tier| rows::is_tier_taken(&*kv, tier))?;
        let (bells, inboxes) = Bells::new(&clock, &tiers);
        let (panics, stopping, fail) = (Arc::default(), Arc::default(), Arc::new(fail));
        let shared = Shared {
            archive,
            catalog: Arc::clone(&kv) as Arc<dyn KeyValue>,
            committer: Arc::clone(&committer),
            folder: Paths::new(&config.data).platters(),
            clock: clock.clone(),
            panics: Arc::clone(&panics),
            fail: Arc::clone(&fail),
            stopping: Arc::clone(&stopping),
        };
        let platters = Platters::open(shared, &config.glass)?;
        Ok(Self {
            config,
            clock,
            archive,
            kv,
            committer,
            keys,
            staging,
            online,
            restored,
            budget,
            space,
            mark,
            fail,
            panics,
            copies_dropped: AtomicU64::new(0),
            platters,
            run,
            bells,
            inboxes: Mutex::new(Some(inboxes)),
            tiers,
            parts_in_doubt: AtomicU64::new(0),
            has_failed_shreds: AtomicBool::new(false),
            stopping,
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

    /// Ends the segments that are appended to, so that none that is empty is left behind.
    pub(crate) fn close_logs(&self) {
        LogKind::ALL.into_iter().for_each(|kind| self.log(kind).close_active());
    }

    /// Segments that the catalog does not name and that are kept all the same.
    pub(crate) fn orphans(&self) -> Orphans {
        Orphans::new(&self.config.data)
    }

    /// The time of day.
    pub(crate) fn now(&self) -> UnixTime {
        self.clock.now()
    }

    /// The one clock of the archive.
    pub(crate) const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Bytes of restored copies that there is room for, on the disk and in the logs' budget.
    pub(crate) fn room_for_copies(&self) -> Result<u64> {
        let in_budget = self.budget.max().saturating_sub(self.budget.used());
        Ok(self.space.room()?.min(in_budget))
    }

    /// How often the catalog was opened anew behind a failure. Each time it may have rows of which
    /// whoever wrote them was told that they came to nothing: whoever goes by rows has to look.
    pub(crate) fn catalog_mended(&self) -> u64 {
        self.committer.metrics().counts().mended
    }

    /// `Stopping` when the archive is being stopped; asked between the steps of long work.
    pub(crate) fn check_stopping(&self) -> Result<()> {
        if self.stopping.load(Ordering::SeqCst) { Err(ArchiveError::Stopping) } else { Ok(()) }
    }
}

/// Opens the catalog if `accept` agrees to it, at the price of the reserve if it must be.
fn open_catalog(
    path: &Path,
    space: &Space,
    accept: &dyn Fn(&dyn ReadView) -> Result<()>,
) -> Result<FjallStore> {
    let config = FjallConfig::default();
    match FjallStore::open_if(path, &SPACES, &config, accept) {
        Err(ArchiveError::Catalog(error))
            if (error.is_lack_of_room() || space.lacks_room()) && space.give_up_reserve() =>
        {
            tracing::warn!(error = error.chain(), "the catalog did not open; it is tried again");
            FjallStore::open_if(path, &SPACES, &config, accept)
        }
        Err(ArchiveError::Catalog(error))
            if error.kind() == fulgurite_catalog::ErrorKind::Corrupt =>
        {
            tracing::error!(
                "the catalog is damaged: run `fulgurite recover`, which keeps all that can be \
                 read of it and takes the rest from platters and logs"
            );
            Err(error.into())
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

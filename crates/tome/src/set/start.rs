//! Start of a set: it is created or found, its tomes are opened one by one, and its token manager
//! last.
//!
//! A tome that cannot be opened is lost to this start but not to the set: the others continue.

mod finished_moves;
mod membership_sync;
mod metadata_rebuild;
mod older_copies;
pub(super) mod start_counter;
mod tombstones;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use fulgurite_disks::{Cause, Guard, LedgerFile, Observed, Pacer, PlaceId, Power, SpinUp};
use fulgurite_tome_core::group::Group;
use fulgurite_tome_core::limits::{IDLE_MAX, IDLE_MIN, SPIN_UPS_A_DAY_MAX};
use fulgurite_tome_core::metadata::TomeMetadata;
use fulgurite_tome_core::token::{TokenId, TokenState, token_count};
use fulgurite_tome_core::{CodeParams, TomeId};
use fulgurite_units::{Duration, ErrorKind, Seed, TomeSetId, error_chain};
use tokio::sync::Semaphore;

use super::choice::Choice;
use super::degraded_reads::DegradedReads;
use super::local::Local;
use super::names::Names;
use super::operator::ClosedTomes;
use super::options::StandaloneOptions;
use super::rejoin::{SetRejoin, StandaloneRejoin};
use super::remotes::{Remotes, SetLink};
use super::slot_mover::{self, Mover};
use super::{RemoteDriver, SetOptions, TomeHandle, TomeSet};
use crate::driver::{Driver, Parts, Rejoin, data_blocks};
use crate::handshake::SetHandshake;
use crate::identity::{self, TomeIdentity};
use crate::limits::{
    BLOCK_BYTES_MAX, PUT_BYTES_MAX, PUT_GRAIN_BYTES, SPIN_UP_TRIES_MAX, TOMES_MAX,
};
use crate::metadata_store::MetadataStore;
use crate::network::Network;
use crate::piece_store::{OpenedPieces, PieceStore};
use crate::set_store::{SetRow, SetStore};
use crate::spin_gate::SpinGate;
use crate::start_counts::CountedStore;
use crate::token_manager::TokenManagerDriver;
use crate::watch::EventPublisher;
use crate::{FAIL_POINTS, FailPoints};
use crate::{Result, TomesError};
pub(super) use membership_sync::sync_membership;
pub(super) use tombstones::apply_tombstones;

/// Ledger file of a tome, beside its metadata store.
pub(super) const LEDGER: &str = "spin-ups.jsonl";

/// State shared by all tomes of a start.
struct Startup {
    options: SetOptions,
    fail: Arc<FailPoints>,
    set: TomeSetId,
    groups: Vec<Group>,
    /// Number of tokens, if known.
    tokens: Option<u32>,
    guard: Guard,
    gate: Arc<SpinGate>,
    network: Arc<Local>,
    remotes: Arc<Remotes>,
    events: EventPublisher,
    rejoin: Arc<dyn Rejoin>,
}

/// A tome whose metadata store is open.
struct OpenTome {
    identity: TomeIdentity,
    store: MetadataStore,
    ledger: LedgerFile,
}

/// The same with its state loaded.
struct LoadedTome {
    opened: OpenTome,
    metadata: TomeMetadata,
}

/// Opens a set, or creates it.
pub(super) fn start(options: SetOptions, is_new: bool) -> Result<TomeSet> {
    let requested = requested_set(&options)?;
    let tomes = requested.tomes;
    let (store, row, added) =
        SetStore::open(&options.directory, &requested, is_new, &options.fail)?;
    if let Some(set) = options.set.filter(|set| *set != row.set) {
        let what = format!("the set is {}, but {set} was expected", row.set);
        return Err(TomesError::Invalid { what });
    }
    let rejoin = Arc::new(SetRejoin::default());
    let mut start = Startup::new(options, &store, &row, Arc::clone(&rejoin) as _)?;
    let opened = start.open_all(&store, is_new)?;
    let pieces = OpenedPieces::open(&start.options.directory)?;
    let is_behind = start.is_behind(&store, &pieces)?;
    let mut loaded = start.load_all(opened);
    start.reject_older_copies((&pieces, is_behind), &mut loaded)?;
    start.adopt_finished_moves(&store, &pieces, &loaded)?;
    let rebuilt = start.rebuild_lost_metadata(&store, (&pieces, is_behind), &mut loaded)?;
    start.count_tome_starts(&store, &mut loaded)?;
    let store = Arc::new(store);
    let token_manager = start.start_token_manager(&store, tomes)?;
    let (mut names, mut handles) = start.start_drivers(loaded, &pieces)?;
    metadata_rebuild::scrub_rebuilt(&rebuilt, &handles);
    let unaccounted_tomes = start_counter::count_pieces(&store, &pieces, &handles, is_behind)?;
    let out = store.out()?;
    start.await_remotes(&out, &mut names, &pieces)?;
    let (names, pieces) = (Arc::new(Mutex::new(names)), Arc::new(pieces.start()?));
    let choice = Arc::new(Choice::new(store.groups()?, start.options.clock.clone()));
    rejoin.connect(&store, &pieces, &names, &choice, &start.fail);
    let begin = |tome| start.set_link(tome, is_new, &store, (&names, &pieces));
    handles.extend(start.begin_remotes(&out, begin));
    let tomes = Arc::new(handles);
    let inventory_runner = start.inventory_runner(&tomes, &out, &store.retired()?)?;
    let mover = Mover::start(slot_mover::Shared {
        row: row.clone(),
        store: Arc::clone(&store),
        pieces: Arc::clone(&pieces),
        tomes: Arc::clone(&tomes),
        names: Arc::clone(&names),
        events: start.events.clone(),
        choice: Arc::clone(&choice),
        fail: Arc::clone(&start.fail),
    })?;
    Ok(TomeSet {
        set: row.set,
        layout: row.layout,
        split: row.split,
        added,
        store,
        tomes,
        names,
        unaccounted_tomes,
        guard: start.guard,
        room: put_room(),
        pieces,
        degraded_reads: DegradedReads::default(),
        closed: ClosedTomes::default(),
        choice,
        mover,
        token_manager,
        remotes: start.remotes,
        events: start.events,
        fail: start.fail,
        simulated: start.options.backend.is_simulated(),
        inventory_runner,
        rebuilt,
        faults: start.options.faults,
        directory: start.options.directory,
        is_end_counted: AtomicBool::new(false),
    })
}

/// Whether every tome of a set that has member slots was created.
pub(super) fn is_whole(options: &SetOptions) -> Result<bool> {
    let folder = &options.directory;
    let (store, row, _) = SetStore::open(folder, &requested_set(options)?, false, &options.fail)?;
    let (out, retired) = (store.out()?, store.retired()?);
    for tome in (0..row.tomes).map(TomeId::new) {
        if !out.contains(&tome) && !retired.contains(&tome) && !store.is_made(tome)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the set as requested by the options.
fn requested_set(options: &SetOptions) -> Result<SetRow> {
    Ok(SetRow {
        set: options.set.unwrap_or_else(|| TomeSetId::from_random(options.entropy.draw())),
        layout: options.layout,
        split: options.split,
        tomes: check(options)?,
    })
}

/// Returns the memory limit for objects being put, in grains.
pub(crate) fn put_room() -> Arc<Semaphore> {
    let grains = PUT_BYTES_MAX.get() / PUT_GRAIN_BYTES.get();
    Arc::new(Semaphore::new(usize::try_from(grains).unwrap_or(Semaphore::MAX_PERMITS)))
}

/// Opens one tome without its set; with a handshake, as that says.
pub(crate) fn start_standalone(
    options: StandaloneOptions,
    handshake: Option<&SetHandshake>,
) -> Result<(TomeIdentity, Driver, Arc<Local>)> {
    let StandaloneOptions { set, tome, network, .. } = options;
    let folder = options.directory.join(folder_name(tome));
    let layout = match handshake {
        Some(handshake) => handshake.layout,
        None => MetadataStore::open_any(&folder)?.1.layout,
    };
    let remotes = Arc::default();
    let start = Startup {
        fail: Arc::new(options.fail),
        set,
        groups: handshake.map_or_else(Vec::new, |handshake| handshake.groups.clone()),
        tokens: None,
        guard: Guard::new(),
        gate: Arc::default(),
        network: Arc::new(Local::new(network)),
        remotes,
        rejoin: Arc::new(StandaloneRejoin),
        events: EventPublisher::new(options.clock.clone()),
        options: SetOptions {
            set: Some(set),
            directory: options.directory,
            roots: BTreeMap::from([(tome, options.root)]),
            remotes: BTreeMap::new(),
            layout,
            // Only sets make groups.
            split: CodeParams::new(1, 1)?,
            backend: options.backend,
            spin_ups_a_day: options.spin_ups_a_day,
            idle: options.idle,
            clock: options.clock,
            entropy: options.entropy,
            fail: FailPoints::unarmed(&FAIL_POINTS),
            faults: options.faults,
        },
    };
    start.guard_disks();
    let is_new = handshake.is_some_and(|handshake| handshake.may_make);
    let opened = start.open(tome, is_new, !is_new)?;
    let opened = opened.map_err(|why| TomesError::GivenUp { tome, why })?;
    let identity = opened.identity.clone();
    let metadata = opened.store.load(&opened.identity)?;
    let metadata = sync_membership(&start.groups, &opened.store, metadata, &start.fail)?;
    let driver = start.start_driver(opened, metadata, &mut Names::default())?;
    Ok((identity, driver, start.network))
}

/// Returns the name of a tome's metadata folder.
pub(super) fn folder_name(tome: TomeId) -> String {
    format!("tome-{:04}", tome.get())
}

/// Checks the options; returns the number of tomes.
fn check(options: &SetOptions) -> Result<u32> {
    let invalid = |what: String| Err(TomesError::Invalid { what });
    if options.spin_ups_a_day.is_some_and(|count| !(1..=SPIN_UPS_A_DAY_MAX).contains(&count)) {
        return invalid(format!("a spin-up budget is 1 to {SPIN_UPS_A_DAY_MAX} a day"));
    }
    if !(IDLE_MIN..=IDLE_MAX).contains(&options.idle) {
        return invalid(format!("the idle time of a disk is {IDLE_MIN} to {IDLE_MAX}"));
    }
    let count = options.roots.len() + options.remotes.len();
    let Some(tomes) = u32::try_from(count).ok().filter(|tomes| *tomes <= TOMES_MAX) else {
        return invalid(format!("{count} tomes are more than {TOMES_MAX}"));
    };
    let numbers = options.roots.keys().chain(options.remotes.keys());
    if !numbers.map(|tome| tome.get()).collect::<BTreeSet<_>>().into_iter().eq(0..tomes) {
        return invalid("tomes are numbered from zero, without gaps or duplicates".to_owned());
    }
    let block = options.layout.parts().block;
    if block > BLOCK_BYTES_MAX {
        return invalid(format!("blocks of {block} are larger than {BLOCK_BYTES_MAX}"));
    }
    Ok(tomes)
}

impl Startup {
    fn new(
        mut options: SetOptions,
        store: &SetStore,
        row: &SetRow,
        rejoin: Arc<dyn Rejoin>,
    ) -> Result<Self> {
        let fail =
            Arc::new(std::mem::replace(&mut options.fail, FailPoints::unarmed(&FAIL_POINTS)));
        fail.pass("tomes-set-made");
        let remotes = Arc::new(Remotes::new(std::mem::take(&mut options.remotes)));
        let start = Self {
            fail,
            set: row.set,
            groups: store.groups()?,
            tokens: Some(token_count(row.tomes)),
            guard: Guard::new(),
            gate: Arc::default(),
            network: Arc::new(Local::new(Arc::clone(&remotes) as _)),
            remotes,
            rejoin,
            events: EventPublisher::new(options.clock.clone()),
            options,
        };
        start.guard_disks();
        Ok(start)
    }

    /// Opens the metadata store of each tome, except for those without member slots.
    fn open_all(
        &self,
        store: &SetStore,
        is_new: bool,
    ) -> Result<BTreeMap<TomeId, Result<OpenTome, String>>> {
        let mut opened = BTreeMap::new();
        let (out, retired) = (store.out()?, store.retired()?);
        for tome in self.options.roots.keys().copied() {
            if out.contains(&tome) || retired.contains(&tome) {
                let why = if out.contains(&tome) {
                    "its member slots belong to other tomes: its disk may be removed"
                } else {
                    crate::driver::RETIRED
                };
                opened.insert(tome, Err(why.to_owned()));
                continue;
            }
            // A tome that was created and is missing is lost: an empty one in its member slots
            // would be worse.
            let is_made = store.is_made(tome)?;
            let mut found = self.open(tome, is_new, is_made)?;
            if let Ok(OpenTome { store: own, .. }) = &found
                && self.is_older(store, CountedStore::Tome(tome), own.start_number()?)?
            {
                let why = "its metadata store is an older copy that lacks newer changes";
                tracing::error!(%tome, "not opened: {why}");
                found = Err(why.to_owned());
            }
            if found.is_ok() && !is_made {
                store.record_made(tome)?;
            }
            opened.insert(tome, found);
        }
        Ok(opened)
    }

    /// Starts all tomes; returns them and the names of all objects, including those of lost tomes.
    fn start_drivers(
        &self,
        loaded: BTreeMap<TomeId, Result<LoadedTome, String>>,
        pieces: &OpenedPieces,
    ) -> Result<(Names, BTreeMap<TomeId, TomeHandle>)> {
        let mut names = Names::default();
        let mut handles = BTreeMap::new();
        for (tome, loaded) in loaded {
            let ready = loaded.and_then(|LoadedTome { opened, metadata }| {
                let metadata = sync_membership(&self.groups, &opened.store, metadata, &self.fail)
                    .map_err(|error| error_chain(&error))?;
                self.apply_tombstones(&opened, metadata, pieces).map(|metadata| (opened, metadata))
            });
            let handle = match ready {
                Ok((opened, metadata)) => {
                    // A failure of this store is not that tome's fault.
                    pieces.reconcile(&metadata)?;
                    let driver = self.start_driver(opened, metadata, &mut names);
                    driver.map_or_else(
                        |error| TomeHandle::Lost(error_chain(&error)),
                        TomeHandle::Live,
                    )
                }
                Err(why) => TomeHandle::Lost(why),
            };
            handles.insert(tome, handle);
        }
        for (tome, _) in handles.iter().filter(|(_, handle)| matches!(handle, TomeHandle::Lost(_)))
        {
            // Names that another tome has by now belonged to a member slot that moved.
            pieces.for_each(*tome, |name, placed| {
                names.add(&name, *tome, placed.object.blocks.len() as u64);
            })?;
        }
        Ok((names, handles))
    }

    fn start_token_manager(&self, store: &Arc<SetStore>, tomes: u32) -> Result<TokenManagerDriver> {
        TokenManagerDriver::start(
            Arc::clone(store),
            (tomes, &self.release_stale_tokens(store.tokens()?)),
            Arc::clone(&self.network) as Arc<dyn Network>,
            (self.options.clock.clone(), self.events.clone()),
            (Arc::clone(&self.fail), self.options.faults.clone()),
            |inbox| self.network.set_token_manager(inbox),
        )
    }

    /// Adds the recorded objects of tomes in other processes, before those answer.
    fn await_remotes(
        &self,
        out: &BTreeSet<TomeId>,
        names: &mut Names,
        pieces: &OpenedPieces,
    ) -> Result<()> {
        tombstones::forget(out, pieces)?;
        for (tome, _) in self.remotes.handles().filter(|(tome, _)| !out.contains(tome)) {
            names.await_tome(tome);
            pieces.removals(tome)?.into_iter().for_each(|name| names.defer_removal(tome, name));
            pieces.for_each(tome, |name, placed| {
                names.add(&name, tome, placed.object.blocks.len() as u64);
            })?;
        }
        Ok(())
    }

    /// Starts to connect to tomes in other processes, except for those without member slots.
    fn begin_remotes(
        &self,
        out: &BTreeSet<TomeId>,
        set_link: impl Fn(TomeId) -> SetLink,
    ) -> Vec<(TomeId, TomeHandle)> {
        let begin = |(tome, handle): (TomeId, &Arc<dyn super::RemoteHandle>)| {
            if !out.contains(&tome) {
                handle.begin(set_link(tome));
            }
            (tome, TomeHandle::Remote(RemoteDriver(Arc::clone(handle))))
        };
        self.remotes.handles().map(begin).collect()
    }

    fn guard_disks(&self) {
        let pacer = self.options.backend.pace();
        let pacer = pacer.map(|pace| Pacer::new(self.options.clock.clone(), pace));
        for (tome, root) in &self.options.roots {
            let place = PlaceId::new(tome.get());
            match &pacer {
                Some(pacer) => self.guard.add_paced(place, root, pacer.clone()),
                None => self.guard.add(place, root),
            }
        }
    }

    /// Releases tokens that tomes of this process held when it ended: only this process spins their
    /// disks, and a disk that still spins is spun down first. So no tome waits for those leases to
    /// expire.
    fn release_stale_tokens(
        &self,
        mut tokens: BTreeMap<TokenId, TokenState>,
    ) -> BTreeMap<TokenId, TokenState> {
        for state in tokens.values_mut() {
            let here = state.holder.filter(|tome| self.options.roots.contains_key(tome));
            if here.is_some_and(|tome| self.ensure_spun_down(tome)) {
                state.holder = None;
            }
        }
        tokens
    }

    /// Spins a disk down if it still spins; returns whether it stands still.
    fn ensure_spun_down(&self, tome: TomeId) -> bool {
        let (place, backend) = (PlaceId::new(tome.get()), &self.options.backend);
        match backend.observe(place) {
            Ok(Observed::Turning) => {
                tracing::warn!(%tome, "its disk was left spinning: spinning it down");
                backend.spin_down(place).is_ok()
            }
            Ok(_) => true,
            Err(_) => false,
        }
    }

    /// Opens a tome's metadata store. With `is_new`, that and its disk are created, unless they
    /// were before: then the disk must prove its identity. Failure to open is returned as a reason,
    /// and failure to create as an error.
    fn open(&self, tome: TomeId, is_new: bool, is_made: bool) -> Result<Result<OpenTome, String>> {
        let folder = self.folder(tome);
        let identity = TomeIdentity::new(self.set, tome, self.options.layout);
        let open = || -> Result<OpenTome> {
            let opened = if is_new && !is_made { MetadataStore::init } else { MetadataStore::open };
            let store = opened(&folder, &identity)?;
            let (ledger, reloaded) = LedgerFile::open_or_quarantine(&folder.join(LEDGER))?;
            if let Some((path, problem)) = reloaded.set_aside {
                let path = path.display();
                tracing::error!(%tome, "the ledger was set aside as \"{path}\": {problem}");
            }
            Ok(OpenTome { identity: identity.clone(), store, ledger })
        };
        match open() {
            Ok(mut opened) => {
                let made = if is_new { self.create_disk(&mut opened, is_made) } else { Ok(()) };
                match made {
                    // A created tome without its disk is lost; a disk of another tome must not be
                    // used.
                    Err(error) if is_made && error.kind() != ErrorKind::Conflict => {
                        tracing::error!(%tome, "not opened: {}", error_chain(&error));
                        Ok(Err(error_chain(&error)))
                    }
                    made => made.map(|()| Ok(opened)),
                }
            }
            Err(error) if !is_new || is_made => {
                tracing::error!(%tome, "not opened: {}", error_chain(&error));
                Ok(Err(error_chain(&error)))
            }
            Err(error) => Err(error),
        }
    }

    fn folder(&self, tome: TomeId) -> PathBuf {
        self.options.directory.join(folder_name(tome))
    }

    /// Returns the set's side of a tome in another process.
    fn set_link(
        &self,
        tome: TomeId,
        may_make: bool,
        store: &Arc<SetStore>,
        (names, pieces): (&Arc<Mutex<Names>>, &Arc<PieceStore>),
    ) -> SetLink {
        let has_slot = |group: &&Group| group.slots().iter().any(|slot| slot.tome == tome);
        SetLink {
            handshake: SetHandshake {
                set: self.set,
                tome,
                layout: self.options.layout,
                groups: self.groups.iter().filter(has_slot).cloned().collect(),
                may_make,
            },
            store: Arc::downgrade(store),
            names: Arc::downgrade(names),
            pieces: Arc::downgrade(pieces),
            local: Arc::downgrade(&self.network),
            remotes: Arc::downgrade(&self.remotes),
        }
    }

    /// Spins a disk up to check or write its identity, and spins it down again.
    fn create_disk(&self, opened: &mut OpenTome, is_made: bool) -> Result<()> {
        let OpenTome { identity, ledger, .. } = opened;
        let (place, backend) = (PlaceId::new(identity.tome.get()), &self.options.backend);
        let at = self.options.clock.now();
        ledger.record(SpinUp { at, group: None, places: vec![place], cause: Cause::Init })?;
        self.guard.turn(place, Power::SpinningUp)?;
        let up = self.spin_up(place).and_then(|_| backend.mount(place, 0));
        let made = match up {
            Ok(_) => {
                self.guard.turn(place, Power::Active)?;
                let made = self.guard.acquire(place).map_err(TomesError::from);
                let made = made.and_then(|lease| {
                    if is_made {
                        identity::check(&lease, identity)?;
                    }
                    identity::make(&lease, identity, &self.fail)
                });
                self.guard.turn(place, Power::Unmounting)?;
                backend.unmount(place)?;
                made
            }
            Err(error) => Err(error.into()),
        };
        backend.spin_down(place)?;
        self.guard.turn(place, Power::Standby)?;
        made
    }

    /// Spins a disk up, with a limited number of tries.
    fn spin_up(&self, place: PlaceId) -> fulgurite_disks::Result<Duration> {
        let mut tries = 1;
        loop {
            match self.options.backend.spin_up(place) {
                Err(error) if tries < SPIN_UP_TRIES_MAX => {
                    tracing::warn!(%place, "{}", error_chain(&error));
                    tries += 1;
                }
                up => return up,
            }
        }
    }

    /// Loads the state of each tome. One with inconsistent rows is lost to this start.
    fn load_all(
        &self,
        opened: BTreeMap<TomeId, Result<OpenTome, String>>,
    ) -> BTreeMap<TomeId, Result<LoadedTome, String>> {
        let load = |opened: OpenTome| {
            let metadata =
                opened.store.load(&opened.identity).map_err(|error| error_chain(&error))?;
            Ok(LoadedTome { opened, metadata })
        };
        opened.into_iter().map(|(tome, opened)| (tome, opened.and_then(load))).collect()
    }

    /// Starts a tome.
    fn start_driver(
        &self,
        opened: OpenTome,
        metadata: TomeMetadata,
        names: &mut Names,
    ) -> Result<Driver> {
        let OpenTome { identity, store, ledger } = opened;
        let tome = identity.tome;
        names.add_tome(tome, data_blocks(&metadata));
        for (name, object) in metadata.objects() {
            if !names.add(name, tome, object.blocks.len() as u64) {
                names.add_duplicate(name, tome);
                tracing::error!(%tome, name, "another tome has an object of this name as well");
            }
        }
        let number = self.options.entropy.draw();
        let parts = Parts {
            identity,
            store,
            metadata,
            ledger,
            guard: self.guard.clone(),
            backend: Arc::clone(&self.options.backend),
            gate: Arc::clone(&self.gate),
            network: Arc::clone(&self.network) as Arc<dyn Network>,
            rejoin: Arc::clone(&self.rejoin),
            events: self.events.clone(),
            spin_ups_a_day: self.options.spin_ups_a_day,
            idle: self.options.idle,
            clock: self.options.clock.clone(),
            tokens: self.tokens,
            seed: Seed::new(u64::from(tome.get())).child(&number),
            fail: Arc::clone(&self.fail),
            faults: self.options.faults.clone(),
        };
        Driver::start(parts, |inbox| self.network.add(tome, inbox))
    }
}

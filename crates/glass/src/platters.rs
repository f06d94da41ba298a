//! The glass tier of an open archive: its public interface.
//!
//! ```text
//! open --> start --> seal, fetch, verify ... --> stop
//!   |                 (everything that needs the library)
//!   '--> snapshot, place, unknown, dead: from the catalog alone
//! ```

use std::sync::{Arc, OnceLock};

use fulgurite_catalog::{ReadView, Transaction};
use fulgurite_glass_core::control::Machine;
use fulgurite_tier::Progress;
use fulgurite_units::{ByteCount, PlatterId};

use crate::carry::{self, Carrier};
use crate::config::{GlassConfig, LibraryOptions};
use crate::context::{Context, Shared};
use crate::fetch::{Fetched, Fetcher, PlatterVisit, SetRecovery, ShardRequest};
use crate::library_driver::{LibraryWatch, LiveLibrary};
use crate::rows::{self, PLATTERS, PlatterRow, SETS, SetRow, SetState};
use crate::seal::{self, SealFailures, SealReadiness, SealTrigger, Sealer};
use crate::status::{
    GlassStatus, OnPlatter, SealReport, VerifiedPlatter, set_status, unreadable_set,
};
use crate::verification::{self, Verification};
use crate::verify::{Stored, Verifier, stored_platters};
use crate::{Bodies, GlassError, Result, Shard};

/// The glass tier of an archive.
#[derive(Debug)]
pub struct Platters {
    context: Arc<Context>,
    options: LibraryOptions,
    live: OnceLock<Live>,
    failures: Arc<SealFailures>,
    /// Progress of the current sealing.
    sealing: Arc<Progress>,
}

/// The parts that run from start to stop.
#[derive(Debug)]
struct Live {
    library: LiveLibrary,
    fetcher: Fetcher,
}

impl Platters {
    /// Opens the tier as configured. Nothing moves before it is started.
    ///
    /// # Errors
    /// When the configuration is invalid, or names files that cannot be used.
    pub fn open(shared: Shared, config: &GlassConfig) -> Result<Self> {
        config.validate()?;
        Ok(Self {
            context: Arc::new(Context::new(shared, config)?),
            options: config.library.clone(),
            live: OnceLock::new(),
            failures: Arc::default(),
            sealing: Arc::default(),
        })
    }

    /// Starts the library. Its answers are awaited on `runtime`.
    ///
    /// # Errors
    /// When the library's configuration is invalid, its log cannot be started, or it was started
    /// before.
    pub fn start(&self, runtime: tokio::runtime::Handle) -> Result<()> {
        let context = &self.context;
        let track_size = ByteCount::new(context.geometry.track_user_bytes() as u64);
        let library = LiveLibrary::start(&self.options, track_size, &context.panics)?;
        let fetcher = Fetcher::new(context, &library, runtime);
        self.live.set(Live { library, fetcher }).map_err(|Live { library, .. }| {
            library.stop();
            GlassError::Internal { what: "the library was started twice".to_owned() }
        })
    }

    /// Stops the library and the decode service, and returns when no drive is working any more.
    pub fn stop(&self) {
        self.context.medium.stop();
        if let Some(live) = self.live.get() {
            live.library.stop();
        }
    }

    fn live(&self) -> Result<&Live> {
        self.live
            .get()
            .ok_or_else(|| GlassError::Internal { what: "the library was not started".to_owned() })
    }

    fn sealer(&self, bodies: &Arc<dyn Bodies>) -> Result<Sealer> {
        let library = &self.live()?.library;
        Ok(Sealer::new(&self.context, bodies, library, &self.failures, &self.sealing))
    }

    /// Finishes sets that were started, then seals everything that waits now. A set that cannot go
    /// on is left for later, and the error of the first one is returned at the end. One call at a
    /// time.
    ///
    /// # Errors
    /// What stopped the first set that did not go on.
    pub fn seal(&self, bodies: &Arc<dyn Bodies>, trigger: SealTrigger) -> Result<SealReport> {
        let sealer = self.sealer(bodies)?;
        let sealed = self.context.panics.run("sealing", || sealer.seal_all(trigger));
        // Nothing is in progress any more.
        self.sealing.set(0, 0);
        sealed
    }

    /// Returns what is started or waits now.
    ///
    /// # Errors
    /// When the catalog fails.
    pub fn seal_readiness(&self) -> Result<SealReadiness> {
        seal::seal_readiness(&self.context, &self.failures)
    }

    /// Returns the failure of the set that has waited longest, if any waits.
    #[must_use]
    pub fn oldest_failure(&self) -> Option<String> {
        self.failures.oldest()
    }

    /// Progress of the current sealing.
    #[must_use]
    pub const fn sealing(&self) -> &Arc<Progress> {
        &self.sealing
    }

    /// Has the library mount a platter and read the wanted shards. Calls `then` with the result of
    /// each run of neighboring tracks, as soon as that ends.
    ///
    /// # Errors
    /// When it is stopping.
    pub fn fetch<P: Copy + Send + Sync + 'static>(
        &self,
        platter: PlatterId,
        requests: Vec<ShardRequest<P>>,
        then: impl FnOnce(PlatterVisit<P>) + Clone + Send + 'static,
    ) -> Result<()> {
        self.live()?.fetcher.fetch(platter, requests, then)
    }

    /// Asks the library for all other platters of a set at once, for what a visit left. Calls
    /// `then` when the last of them was brought, or could not be.
    ///
    /// # Errors
    /// When it is stopping, or the catalog fails.
    pub fn bring_set<P: Send + 'static>(
        &self,
        visited: PlatterVisit<P>,
        then: impl FnOnce(SetRecovery<P>) + Send + 'static,
    ) -> Result<()> {
        self.live()?.fetcher.bring_set(visited, then)
    }

    /// Recovers shards of a platter that could not give them from the other platters of its set.
    /// Platters that the library did not bring are not read, even if their files exist. It needs no
    /// drive, but much processor time.
    ///
    /// # Errors
    /// When it was not started. Shards that could not be recovered are not an error.
    pub fn recover_shards<P: Copy>(&self, brought: &SetRecovery<P>) -> Result<Fetched<P>> {
        Ok(self.live()?.fetcher.recover_shards(brought))
    }

    /// Number of read drives.
    #[must_use]
    pub fn drives(&self) -> usize {
        usize::try_from(self.options.read_drives()).unwrap_or(usize::MAX).max(1)
    }

    /// Returns a carrier of platters to libraries at other sites. Use one at a time.
    #[must_use]
    pub fn carrier(&self) -> Carrier {
        Carrier::new(&self.context)
    }

    /// Returns the stored platters: one, or all.
    ///
    /// # Errors
    /// When it is not stored, or the catalog fails.
    pub fn stored(&self, only: Option<PlatterId>) -> Result<Vec<Stored>> {
        stored_platters(&self.context, only)
    }

    /// Reads a stored platter completely again. Defects of the platter are in the report.
    ///
    /// # Errors
    /// When it is stopping, or the catalog fails.
    pub fn verify(&self, stored: &Stored, progress: &Arc<Progress>) -> Result<VerifiedPlatter> {
        Verifier::new(&self.context, &self.live()?.library, progress).verify_stored(stored)
    }

    /// Returns what the last verification of a platter found, sector by sector; `None` if there was
    /// none.
    ///
    /// # Errors
    /// When the catalog fails.
    pub fn verification(&self, platter: PlatterId) -> Result<Option<Verification>> {
        verification::load(&self.context, platter)
    }

    /// Subtracts shards that no body needs any more from the live bytes of their platters.
    ///
    /// # Errors
    /// When the transaction fails.
    pub fn release_shards(tx: &mut Transaction<'_>, shards: &[Shard]) -> Result<()> {
        rows::release_shards(tx, shards)
    }

    /// Returns where a shard is; `None` when its platter has no row.
    ///
    /// # Errors
    /// When the catalog fails.
    pub fn place(&self, view: &dyn ReadView, shard: &Shard) -> Result<Option<OnPlatter>> {
        let row: Option<PlatterRow> = rows::get(view, PLATTERS, &shard.platter.to_bytes())?;
        let Some(row) = row else { return Ok(None) };
        let set: Option<SetRow> = rows::get(view, SETS, &row.set.to_bytes())?;
        let geometry = set.map_or_else(|| self.context.geometry.clone(), |set| set.geometry);
        let last = shard.offset + shard.bytes.max(1) - 1;
        Ok(Some(OnPlatter {
            set: row.set,
            track_first: geometry.address(shard.offset).track.get(),
            track_last: geometry.address(last).track.get(),
            slot: row.slot,
        }))
    }

    /// Returns a platter file that no row names, if there is one: the catalog may be older than it.
    ///
    /// # Errors
    /// When the disk or the catalog fails.
    pub fn find_unknown(&self) -> Result<Option<PlatterId>> {
        self.context.find_unknown()
    }

    /// Returns how many platters are stored here according to the catalog, but have no file.
    ///
    /// # Errors
    /// When the disk or the catalog fails.
    pub fn missing_count(&self) -> Result<usize> {
        Ok(self.context.missing()?.len())
    }

    /// Returns the status of sets, failures, repairs, medium and library, for operators.
    ///
    /// # Errors
    /// When the catalog fails.
    pub fn snapshot(&self) -> Result<GlassStatus> {
        let context = &self.context;
        let all: rows::Readable<SetRow> = rows::readable(&*context.catalog, SETS)?;
        let is_stored = |row: &&SetRow| row.state >= SetState::Stored;
        let stored = all.rows.iter().map(|(_, row)| row).filter(is_stored);
        let platters = stored.map(|row| row.platters().count() as u64).sum();
        let unreadable = all.unreadable.iter().map(|(key, _)| unreadable_set(key));
        let sets = all.rows.iter().map(|(key, row)| set_status(key, row)).chain(unreadable);
        let sets = sets.collect::<Result<_>>()?;
        let unverified = self.live.get().map(|live| live.library.unverified());
        let (waiting, age, warning) = unverified.map_or((0, None, None), |all| all.status());
        let (seal_failures, sets_given_up) = self.failures.status(context.passed());
        let (sealed, to_seal) = self.sealing.bytes();
        Ok(GlassStatus {
            profile: context.geometry.profile.clone(),
            fidelity: context.medium.name(),
            sets,
            platters,
            unverified_platters: waiting as u64,
            unverified_age: age,
            unverified_failure: warning,
            seal_bytes: (sealed.get(), to_seal.get()),
            seal_failures,
            sets_given_up,
            repaired: context.repairs.counts(),
            far: carry::status(context)?,
            decode: context.medium.decode_status(),
        })
    }

    /// Returns one line for each current failure.
    #[must_use]
    pub fn degraded(&self) -> Vec<String> {
        let (failures, _) = self.failures.status(self.context.passed());
        let unverified = self.live.get().and_then(|live| live.library.unverified().status().2);
        failures.iter().map(ToString::to_string).chain(unverified).collect()
    }

    /// Returns the kinds of failures that [`Self::degraded`] reports, for clients without a
    /// signature: names neither paths nor platters.
    #[must_use]
    pub fn degraded_kinds(&self) -> Vec<&'static str> {
        let (failures, _) = self.failures.status(self.context.passed());
        let unverified = self.live.get().and_then(|live| live.library.unverified().status().2);
        let sealing = (!failures.is_empty()).then_some("sealing fails");
        let verifying = unverified.map(|_| "new platters are verified late");
        sealing.into_iter().chain(verifying).collect()
    }

    /// Subscribes to the library's events from now on.
    ///
    /// # Errors
    /// When it is stopping.
    pub fn watch(&self) -> Result<LibraryWatch> {
        self.live()?.library.watch()
    }

    /// Breaks an emulated machine: it stops where it is, and its current command gets no answer.
    ///
    /// # Errors
    /// When there is no such machine, or it is stopping.
    pub fn broke(&self, machine: Machine) -> Result<()> {
        self.library_with(machine)?.broke(machine)
    }

    /// Repairs a broken machine.
    ///
    /// # Errors
    /// When there is no such machine, or it is stopping.
    pub fn repaired(&self, machine: Machine) -> Result<()> {
        self.library_with(machine)?.repaired(machine)
    }

    /// Returns the library, if it has this machine.
    fn library_with(&self, machine: Machine) -> Result<&LiveLibrary> {
        if self.context.shape.has(machine) {
            return Ok(&self.live()?.library);
        }
        let what = format!("the library has no machine {machine:?}");
        Err(GlassError::InvalidArgument { what })
    }
}

//! A set of tomes in one process: it is created and opened, and stores objects.
//!
//! ```text
//! put(name) --> the tome with its affinity group, or one with room that spins if there is any
//!                                                    --> Local: on its disk
//!                                                    '--> protected(name): in every parity
//! get, delete, protected --> the tome that has the name
//! ```
//!
//! Names are known without a disk: they are read from the metadata stores when the set is opened.
//! What a client is acknowledged holds whatever happens to the process:
//!
//! | acknowledged | what holds |
//! | --- | --- |
//! | [`TomeSet::put`] | `local`: on one disk with parity of its segments, and lost with that tome |
//! | [`TomeSet::protected`] | survives as many lost tomes as groups have parities, and bad blocks |
//! | [`TomeSet::delete`] | its name is gone, of a lost tome too; bytes stay until overwritten |
//! | an error of a failed tome | unknown until it works again, or the next start |
//!
//! A tome may be in another process ([`RemoteHandle`]): its names are known once it answered, and
//! requests fail while it does not. Not here: the transport between processes.

mod choice;
mod degraded_reads;
mod inventories;
mod local;
mod names;
mod operator;
mod options;
mod rejoin;
mod remotes;
mod removal;
mod slot_mover;
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_disks::{Guard, Power};
use fulgurite_tome_core::{CodeParams, Layout, TomeError, TomeId};
use fulgurite_units::{AffinityGroup, ByteCount, TomeSetId, error_chain};
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, oneshot};

pub(crate) use local::Local;
pub use options::{SetOptions, StandaloneOptions};
pub use remotes::{RemoteHandle, SetLink};
use start::start_counter;
pub(crate) use start::{put_room, start_standalone};

use self::choice::{Choice, PutTarget, Refusals};
pub use self::degraded_reads::DegradedReadCounts;
use self::degraded_reads::DegradedReads;
use self::inventories::InventoryRunner;
pub use self::inventories::{InventoryProgress, RebuiltTome};
use self::names::Names;
use self::operator::ClosedTomes;
pub use self::operator::GroupChecked;
use self::remotes::Remotes;
use self::slot_mover::Mover;
pub use self::slot_mover::{MoveStatus, Moves};
use crate::FailPoints;
use crate::driver::{Done, Driver, Reply, TomeRequest, TomeStatus};
use crate::faults::{FaultInjector, InjectedFault};
use crate::limits::{
    LOAD_PAGE_MAX, NAME_BYTES_MAX, NAMES_LISTED_MAX, PUT_BYTES_MAX, PUT_GRAIN_BYTES,
    UNPROTECTED_AGE_MAX,
};
use crate::piece_store::{ObjectLocation, PieceStore};
use crate::set_store::SetStore;
use crate::start_counts::{CopyAge, CountedStore, StartRow};
use crate::token_manager::TokenManagerDriver;
use crate::watch::{EventPublisher, TimestampedEvent};
use crate::{Result, TomesError, Watch};

/// A set of tomes.
#[derive(Debug)]
pub struct TomeSet {
    set: TomeSetId,
    layout: Layout,
    split: CodeParams,
    added: u32,
    store: Arc<SetStore>,
    tomes: Arc<BTreeMap<TomeId, TomeHandle>>,
    names: Arc<Mutex<Names>>,
    /// Lost tomes some of whose objects may be unknown.
    unaccounted_tomes: BTreeSet<TomeId>,
    guard: Guard,
    /// Memory limit for objects being put, in grains.
    room: Arc<Semaphore>,
    pieces: Arc<PieceStore>,
    degraded_reads: DegradedReads,
    closed: ClosedTomes,
    choice: Arc<Choice>,
    fail: Arc<FailPoints>,
    mover: Mover,
    token_manager: TokenManagerDriver,
    remotes: Arc<Remotes>,
    events: EventPublisher,
    simulated: bool,
    inventory_runner: InventoryRunner,
    rebuilt: Vec<RebuiltTome>,
    faults: FaultInjector,
    directory: PathBuf,
    /// Whether its end was counted.
    is_end_counted: AtomicBool,
}

/// A tome of the set, or why there is none.
#[derive(Debug)]
enum TomeHandle {
    Live(Driver),
    Remote(RemoteDriver),
    Lost(String),
}

/// A tome in another process, which is stopped with its set.
#[derive(Debug)]
struct RemoteDriver(Arc<dyn RemoteHandle>);

impl Drop for RemoteDriver {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Status of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct SetStatus {
    /// Each tome.
    pub tomes: Vec<TomeStatus>,
    /// Why it is not healthy, a line each; empty when it is.
    pub reasons: Vec<String>,
    /// Moves of member slots of lost tomes.
    pub moves: Moves,
    /// Counters of degraded reads.
    pub degraded_reads: DegradedReadCounts,
}

impl SetStatus {
    /// Whether the set is healthy.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.reasons.is_empty()
    }
}

impl TomeSet {
    /// Creates a set: its groups, its metadata stores, and an identity file on each disk, for which
    /// each disk is spun up once. Idempotent; an interrupted creation continues. A tome that was
    /// created and is gone is lost, and not created again.
    ///
    /// # Errors
    /// [`TomesError::WrongDisk`] for a disk of another owner, which stays as it is, and all of
    /// [`Self::open`].
    pub fn init(options: SetOptions) -> Result<Self> {
        start::start(options, true)
    }

    /// Opens an existing set. No disk is touched before it is needed. A tome whose metadata store
    /// cannot be used is reported in the status, and the others continue without it.
    ///
    /// # Errors
    /// When there is none, another process has it, or its layout differs.
    pub fn open(options: SetOptions) -> Result<Self> {
        start::start(options, false)
    }

    /// Whether a set was created completely: every tome that has member slots was created. One that
    /// was created and is lost counts as well. Only the set's own store is opened.
    ///
    /// # Errors
    /// [`TomesError::NotCreated`] when there is none, and others of [`Self::open`].
    pub fn is_whole(options: &SetOptions) -> Result<bool> {
        start::is_whole(options)
    }

    /// Id of the set.
    #[must_use]
    pub const fn id(&self) -> TomeSetId {
        self.set
    }

    /// Layout of its disks.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Number of tomes that this start has added to the set.
    #[must_use]
    pub const fn added(&self) -> u32 {
        self.added
    }

    /// Returns the moves in progress, and the tomes without member slots.
    #[must_use]
    pub fn moves(&self) -> Moves {
        self.mover.moves()
    }

    /// Puts an object, and returns its tome when it is `local`.
    ///
    /// # Errors
    /// Kind `Conflict` when its name is taken, `Invalid` when it is empty or too large,
    /// `Unavailable` when no tome has room. After [`TomesError::GivenUp`] the outcome is unknown,
    /// and its name is taken until that tome works again, or the set is reopened.
    pub async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<TomeId> {
        self.put_with_affinity(name, bytes, None).await
    }

    /// As [`Self::put`], for an object of an affinity group, whose objects are likely to be read
    /// together: it goes where the last ones went, if there is room, so that reading them takes
    /// fewer spin-ups. Where they went is forgotten with the process.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn put_with_affinity<'a>(
        &'a self,
        name: &'a str,
        bytes: Vec<u8>,
        affinity: Option<AffinityGroup>,
    ) -> BoxFuture<'a, Result<TomeId>> {
        Box::pin(async move {
            let block = self.layout.block_bytes();
            let max = self.object_bytes_max().get();
            let length = bytes.len() as u64;
            if !(1..=max).contains(&length) {
                let name = name.to_owned();
                return Err(TomeError::ObjectBytes { name, bytes: length, max }.into());
            }
            if !(1..=NAME_BYTES_MAX).contains(&name.len()) {
                let what =
                    format!("a name of {} bytes: 1 to {NAME_BYTES_MAX} are allowed", name.len());
                return Err(TomesError::Invalid { what });
            }
            let blocks = length.div_ceil(block);
            let (mut bytes, mut refusals) = (bytes, Refusals::default());
            loop {
                let chosen = self.choose((name, blocks), affinity, &mut refusals)?;
                // An object must fit in one region, and the largest permitted free space may be too
                // small.
                let may_refuse = chosen.is_careful || self.may_not_fit_region(chosen.tome, blocks);
                let retained = may_refuse.then(|| bytes.clone());
                match (self.put_on(&chosen, name, bytes).await, retained) {
                    (Err(error), Some(retained)) if error.is_region_full() => {
                        refusals.record(&chosen, error);
                        bytes = retained;
                    }
                    (put, _) => return put.map(|()| chosen.tome),
                }
            }
        })
    }

    /// Puts an object to the tome for which its name is reserved.
    async fn put_on(&self, chosen: &PutTarget, name: &str, bytes: Vec<u8>) -> Result<()> {
        let (tome, avoided) = (chosen.tome, chosen.avoided.clone());
        let grains = (bytes.len() as u64).div_ceil(PUT_GRAIN_BYTES.get());
        let grains = u32::try_from(grains).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.room).acquire_many_owned(grains).await;
        let Ok(permit) = permit else {
            lock(&self.names).remove(name);
            return Err(TomesError::Stopped);
        };
        let (names, owned_name) = (Arc::clone(&self.names), name.to_owned());
        let put = |reply: Reply<Option<ObjectLocation>>| {
            let reserved = owned_name.clone();
            let done = Done::new(move |done| {
                // After a failure or stop the outcome is unknown, and its name stays taken.
                lock(&names).end_put(&reserved, done.as_ref().is_err_and(is_refusal));
                // The requester may be gone.
                let _ = reply.send(done);
            });
            TomeRequest::Put { name: owned_name, bytes, avoided, permit, done }
        };
        // So that its name is known when its tome is lost.
        if let Some(placed) = self.call(tome, put).await? {
            self.faults.pass(tome, InjectedFault::Piece)?;
            self.pieces.record(tome, name, placed).await?;
        }
        self.record_choice(chosen);
        Ok(())
    }

    /// Reads an object. Its disk is spun up, unless enough others of its group spin. When its tome
    /// is lost, others of its group are spun up.
    ///
    /// # Errors
    /// Kind `NotFound`, `Unavailable` when its tome and too many of its group are lost, `Corrupt`
    /// when a segment has more bad blocks than parity.
    pub fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<u8>>> {
        self.read(name, false)
    }

    /// The same as a read-back by the writer, which the ledger of spin-ups calls `verify`.
    ///
    /// # Errors
    /// As those of [`Self::get`].
    pub fn read_back<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<u8>>> {
        self.read(name, true)
    }

    fn read<'a>(&'a self, name: &'a str, is_own: bool) -> BoxFuture<'a, Result<Vec<u8>>> {
        Box::pin(async move {
            let tome = self.tome_of(name)?;
            tokio::select! {
                biased;
                got = self.read_following_moves(tome, name, is_own) => got,
                // No disk can spin up until tokens can be persisted again.
                why = self.token_manager.stuck() => Err(TomesError::Unanswered { tome, why }),
            }
        })
    }

    async fn read_following_moves(
        &self,
        mut tome: TomeId,
        name: &str,
        is_own: bool,
    ) -> Result<Vec<u8>> {
        loop {
            let got = self.read_from(tome, name, is_own).await;
            match self.tome_of(name) {
                // Its member slot has moved meanwhile.
                Ok(now) if got.is_err() && now != tome => tome = now,
                _ => return got,
            }
        }
    }

    /// Reads an object that a tome has, or had.
    async fn read_from(&self, tome: TomeId, name: &str, is_own: bool) -> Result<Vec<u8>> {
        if let Some(bytes) = self.read_from_spinning(tome, name).await {
            return Ok(bytes);
        }
        let owned_name = name.to_owned();
        match self.call(tome, |reply| TomeRequest::Get { name: owned_name, is_own, reply }).await {
            Err(TomesError::GivenUp { why, .. }) => {
                let lost = |why| TomesError::GivenUp { tome, why };
                self.degraded_read(tome, name, &why, lost).await
            }
            Err(TomesError::Away { why, .. } | TomesError::Unanswered { why, .. }) => {
                let lost = |why| TomesError::Away { tome, why };
                self.degraded_read(tome, name, &why, lost).await
            }
            got => got,
        }
    }

    /// Returns when every parity of its groups has an object, whenever it was put.
    ///
    /// # Errors
    /// Kind `NotFound`, also when it is removed meanwhile, or `Unavailable` when its tome failed.
    pub fn protected<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let owned_name = name.to_owned();
            self.call(self.tome_of(name)?, |reply| TomeRequest::Protected {
                name: owned_name,
                reply,
            })
            .await
        })
    }

    /// Returns the tome that has an object; needs no spin-up.
    ///
    /// # Errors
    /// Kind `NotFound`, or `Unavailable` while a tome that has not answered yet may have it.
    pub fn tome_of(&self, name: &str) -> Result<TomeId> {
        let names = lock(&self.names);
        let mut unlisted = names.unlisted().iter().copied();
        let unlisted = unlisted.find(|tome| !self.mover.moves().out.contains(tome));
        match (names.tome_of(name), unlisted) {
            (Some(tome), _) => Ok(tome),
            (None, None) => Err(TomeError::NoObject { name: name.to_owned() }.into()),
            (None, Some(tome)) => {
                let why = "it has not listed its objects yet".to_owned();
                Err(TomesError::Away { tome, why })
            }
        }
    }

    /// Returns the names of all objects, in order; needs no spin-up.
    #[must_use]
    pub fn list(&self) -> Vec<String> {
        lock(&self.names).list()
    }

    /// Returns the names with a prefix.
    #[must_use]
    pub fn list_prefix(&self, prefix: &str) -> Vec<String> {
        lock(&self.names).list_prefix(prefix)
    }

    /// Returns the tomes whose objects are unknown: those that are lost to this start, and those
    /// that have not listed them yet.
    #[must_use]
    pub fn unknown(&self) -> BTreeSet<TomeId> {
        let out = self.mover.moves().out;
        let is_lost = |(tome, handle): &(&TomeId, &TomeHandle)| {
            matches!(handle, TomeHandle::Lost(_)) && !out.contains(tome)
        };
        let lost = self.tomes.iter().filter(is_lost).map(|(tome, _)| *tome);
        lost.chain(lock(&self.names).unlisted().iter().copied()).collect()
    }

    /// Returns the size of the largest object that can be put: it fits in a region, and with the
    /// parity of its segments in the spare physical blocks of a disk.
    #[must_use]
    pub fn object_bytes_max(&self) -> ByteCount {
        let (parts, segment) = (self.layout.parts(), self.layout.parts().segment);
        let physical_blocks = |blocks: u64| {
            // It may begin and end within a segment.
            let segments = blocks / u64::from(segment.data()) + 2;
            blocks + segments * u64::from(segment.parity())
        };
        let mut most = (1..=self.layout.object_blocks_max()).rev();
        let blocks = most.find(|blocks| physical_blocks(*blocks) <= u64::from(parts.spares));
        ByteCount::new(blocks.unwrap_or(1) * self.layout.block_bytes())
    }

    /// Whether the names of all objects are known, including those of lost tomes.
    #[must_use]
    pub fn has_all_names(&self) -> bool {
        self.unaccounted_tomes.is_empty() && lock(&self.names).unlisted().is_empty()
    }

    /// Sorts names of objects in the order in which reading them takes the fewest spin-ups: by
    /// tome, and then by location. Needs no spin-up.
    ///
    /// # Errors
    /// When the set's record of objects cannot be read.
    pub fn in_disk_order(&self, names: Vec<String>) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(async move {
            let mut placed = Vec::with_capacity(names.len());
            for (number, name) in names.into_iter().enumerate() {
                // Each name takes a row read; other tasks get their turn in between.
                if number % LOAD_PAGE_MAX == 0 {
                    tokio::task::yield_now().await;
                }
                // A name that is gone fails when it is read.
                let tome = lock(&self.names).tome_of(&name);
                let object = match tome {
                    Some(tome) => self.pieces.get(tome, &name)?.map(|placed| placed.object),
                    None => None,
                };
                let first = object.and_then(|object| object.blocks.first().copied());
                placed.push((tome, first, name));
            }
            placed.sort_unstable();
            Ok(placed.into_iter().map(|(.., name)| name).collect())
        })
    }

    /// Returns the power state of each disk of this process, all at one moment.
    #[must_use]
    pub fn powers(&self) -> Vec<(TomeId, Power)> {
        let powers = self.guard.powers().into_iter();
        powers.map(|(place, power)| (TomeId::new(place.get()), power)).collect()
    }

    /// Whether its disks are simulated: plain directories.
    #[must_use]
    pub const fn is_simulated(&self) -> bool {
        self.simulated
    }

    /// Subscribes to events from now on.
    #[must_use]
    pub fn watch(&self) -> Watch<TimestampedEvent> {
        self.events.watch()
    }

    /// Returns the status; needs no spin-up.
    pub fn status(&self) -> BoxFuture<'_, SetStatus> {
        Box::pin(async move {
            let mut tomes = Vec::with_capacity(self.tomes.len());
            for (tome, handle) in &*self.tomes {
                tomes.push(match handle {
                    TomeHandle::Live(driver) => status_of(*tome, driver).await,
                    TomeHandle::Remote(RemoteDriver(handle)) => {
                        remote_status(*tome, handle.as_ref()).await
                    }
                    TomeHandle::Lost(why) => {
                        TomeStatus::lost(*tome, self.inventory_runner.loss_reason(*tome, why))
                    }
                });
            }
            let moves = self.mover.moves();
            let members = tomes.iter().filter(|tome| !moves.out.contains(&tome.tome));
            let mut reasons: Vec<String> = members.flat_map(TomeStatus::reasons).collect();
            for tome in tomes.iter().filter(|tome| tome.unprotected.age > UNPROTECTED_AGE_MAX) {
                let bytes = tome.unprotected.bytes;
                let age = tome.unprotected.age.as_secs_f64() / 3600.0;
                reasons.push(format!("tome {}: {bytes} unprotected for {age:.0} h", tome.tome));
            }
            for tome in self.unaccounted_tomes.difference(&moves.out) {
                reasons.push(format!(
                    "tome {tome}: which objects it had is not known for sure: the set's record of \
                     them is missing or an older copy; restore the latest copy of its folder \
                     \"pieces\", or what is missing of the tome"
                ));
            }
            for (tome, duplicates) in lock(&self.names).duplicates() {
                let some: Vec<&str> =
                    duplicates.iter().take(NAMES_LISTED_MAX).map(String::as_str).collect();
                reasons.push(format!(
                    "tome {tome}: {} objects are not read, since another tome has those of their \
                 names: {}",
                    duplicates.len(),
                    some.join(", ")
                ));
            }
            reasons.extend(self.degraded_placement());
            reasons.extend(self.rebuilt.iter().flat_map(RebuiltTome::reasons));
            reasons.extend(self.token_manager.failure());
            reasons.extend(moves.reasons.iter().cloned());
            SetStatus { tomes, reasons, moves, degraded_reads: self.degraded_reads.counts() }
        })
    }

    /// Spins all disks down, and returns when they stand still. Waiting requests fail.
    pub fn stop(&self) {
        self.room.close();
        self.degraded_reads.stop();
        // Threads that wait for an answer of a remote tome get an error.
        self.remotes.handles().for_each(|(_, handle)| handle.stop());
        self.inventory_runner.stop();
        self.mover.stop();
        for handle in self.tomes.values() {
            match handle {
                TomeHandle::Live(driver) => driver.stop(),
                TomeHandle::Remote(_) | TomeHandle::Lost(_) => {}
            }
        }
        self.token_manager.stop();
        self.count_end();
    }

    /// Counts the end of a start of the set's record of objects, once: a copy that was made before
    /// is then recognized as an older one. A record that is behind stays uncounted.
    fn count_end(&self) {
        if !self.unaccounted_tomes.is_empty() || self.is_end_counted.swap(true, Ordering::AcqRel) {
            return;
        }
        let record = |number| self.pieces.record_start(number);
        if let Err(error) = start_counter::count(&self.store, CountedStore::Pieces, record) {
            tracing::warn!("the end of this start is not counted: {}", error_chain(&error));
        }
    }

    /// Whether an index with this start number is an older copy, or missing.
    ///
    /// # Errors
    /// [`TomesError::WrongStore`] when the set's own store is older than the index.
    pub fn is_index_older(&self, own: u64) -> Result<bool> {
        match self.store.starts(CountedStore::Index)?.age(StartRow(own)) {
            CopyAge::Latest => Ok(false),
            CopyAge::Older => Ok(true),
            CopyAge::SetOlder => {
                Err(start_counter::set_store_is_older(&self.directory, CountedStore::Index))
            }
        }
    }

    /// Begins to count a start of the index; returns the number that the index must record.
    ///
    /// # Errors
    /// When it cannot be persisted.
    pub fn begin_index(&self) -> Result<u64> {
        let begun = self.store.starts(CountedStore::Index)?.next();
        self.store.record_starts(&BTreeMap::from([(CountedStore::Index, begun)]))?;
        Ok(begun.begun)
    }

    /// Completes the count: the index has recorded the number of its start.
    ///
    /// # Errors
    /// When that cannot be persisted.
    pub fn index_begun(&self) -> Result<()> {
        let begun = self.store.starts(CountedStore::Index)?;
        self.store.record_starts(&BTreeMap::from([(CountedStore::Index, begun.ended())]))
    }

    async fn call<T>(
        &self,
        tome: TomeId,
        request: impl FnOnce(Reply<T>) -> TomeRequest,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.send_request(tome, request(reply))?;
        answer.await.unwrap_or_else(|_| match self.tomes.get(&tome) {
            Some(TomeHandle::Live(driver)) => Err(driver.unavailable_error()),
            Some(TomeHandle::Remote(_) | TomeHandle::Lost(_)) | None => Err(TomesError::Stopped),
        })
    }

    /// Sends a request to a tome, wherever it is.
    fn send_request(&self, tome: TomeId, request: TomeRequest) -> Result<()> {
        match self.tomes.get(&tome) {
            Some(TomeHandle::Live(driver)) => driver.send_request(request)?,
            Some(TomeHandle::Remote(RemoteDriver(handle))) => handle.send_request(request),
            Some(TomeHandle::Lost(why)) => {
                return Err(TomesError::GivenUp { tome, why: why.clone() });
            }
            None => return Err(TomeError::NoTome { tome }.into()),
        }
        Ok(())
    }
}

/// Whether a failed put has certainly left nothing.
fn is_refusal(error: &TomesError) -> bool {
    let is_unknown = matches!(
        error,
        TomesError::GivenUp { .. } | TomesError::Unanswered { .. } | TomesError::Stopped
    );
    !is_unknown
}

fn lock(names: &Mutex<Names>) -> MutexGuard<'_, Names> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn status_of(tome: TomeId, driver: &Driver) -> TomeStatus {
    let (reply, answer) = oneshot::channel();
    let call = driver.send_request(TomeRequest::Status(reply));
    let why = match call {
        Ok(()) => match answer.await {
            Ok(status) => return status,
            Err(_) => driver.unavailable_error().to_string(),
        },
        Err(error) => error.to_string(),
    };
    TomeStatus::lost(tome, why)
}

async fn remote_status(tome: TomeId, handle: &dyn RemoteHandle) -> TomeStatus {
    if let Some(why) = handle.away() {
        return TomeStatus::away(tome, why);
    }
    let (reply, answer) = oneshot::channel();
    handle.send_request(TomeRequest::Status(reply));
    let gone = || handle.away().unwrap_or_else(|| "it did not answer".to_owned());
    answer.await.unwrap_or_else(|_| TomeStatus::away(tome, gone()))
}

const _: () = assert!(PUT_BYTES_MAX.get().is_multiple_of(PUT_GRAIN_BYTES.get()), "whole grains");

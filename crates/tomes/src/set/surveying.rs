//! Inventory of the disk of a tome whose metadata store is lost: it is read completely, so that the
//! metadata store can be rebuilt.
//!
//! ```text
//! requested --> token --> ledger --> disk up --> labels and signatures, in batches
//!                 '--- spun down when others wait for it, and requested again <---'
//! all read  --> the next start rebuilds the metadata store
//! ```
//!
//! The tome is lost meanwhile: its objects get degraded reads, and nothing writes to its disk.
//! Progress is persisted, and a start continues from there. Not here: how the store is rebuilt
//! ([`crate::regain`]).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use fulgurite_codes::signature;
use fulgurite_disks::{Backend, Cause, Guard, LedgerFile, PlaceId, Power, Wake};
use fulgurite_tome::token::{Holder, Need, TokenId};
use fulgurite_tome::{Epoch, GroupId, Layout, Spot, TomeError, TomeId};
use fulgurite_units::{Clock, Duration, Instant, Seed, TomeSetId, error_chain};

use super::local::Local;
use super::{Entropy, Seat, TomeSet};
use crate::disk::Disk;
use crate::driver::Letter;
use crate::fail_point::FailPoints;
use crate::identity::TomeIdentity;
use crate::limits::{
    INBOX_MAX, NAMES_TOLD, SPIN_UP_REST, SPIN_UP_TRIES_MAX, SURVEY_BATCH, SURVEY_TURN,
};
use crate::network::Network as _;
use crate::spin_gate::SpinGate;
use crate::survey::{Found, Survey};
use crate::{Result, TomesError};

/// Progress of an inventory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surveyed {
    /// Physical blocks read so far.
    pub read: u64,
    /// Physical blocks in all.
    pub of: u64,
    /// Blocks found in them.
    pub blocks: u64,
    /// Why it is stuck, until it is requested again or the set is reopened.
    pub trouble: Option<String>,
}

impl Surveyed {
    /// Whether everything was read.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.of > 0 && self.read >= self.of
    }
}

/// A tome whose metadata store was rebuilt at this start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegainedTome {
    /// The tome.
    pub tome: TomeId,
    /// Number of its objects.
    pub objects: u64,
    /// Names of its objects that are not intact.
    pub lost: Vec<String>,
    /// Blocks to be rebuilt from their segments or their groups.
    pub bad: u64,
    /// Groups that do not agree, with the number of wrong blocks.
    pub differing: Vec<(GroupId, u64)>,
}

impl RegainedTome {
    /// Returns what an operator should know, a line each.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let tome = self.tome;
        let mut reasons = Vec::new();
        if !self.lost.is_empty() {
            let some: Vec<&str> = self.lost.iter().take(NAMES_TOLD).map(String::as_str).collect();
            reasons.push(format!(
                "tome {tome}: {} objects were not whole when its awake store was made again, and \
                 are gone: {}",
                self.lost.len(),
                some.join(", ")
            ));
        }
        let differs = |(group, blocks): &(GroupId, u64)| {
            format!(
                "tome {tome}: {blocks} blocks of group {group} are not as its code word says, \
                 after its awake store was made again"
            )
        };
        reasons.extend(self.differing.iter().map(differs));
        reasons
    }

    /// Returns the same with a line for each lost object.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        let tome = self.tome;
        let lost = |name: &String| format!("tome {tome}: object \"{name}\" was not whole: lost");
        let others = self.reasons().into_iter().skip(usize::from(!self.lost.is_empty()));
        self.lost.iter().map(lost).chain(others).collect()
    }

    pub(super) fn tell(&self) {
        let Self { tome, objects, bad, .. } = self;
        tracing::warn!(%tome, objects, bad, "its awake store was made again out of its disk");
        for name in &self.lost {
            tracing::error!(%tome, name, "not whole when the awake store was made again: lost");
        }
        self.reasons().iter().for_each(|why| tracing::error!("{why}"));
    }
}

/// Runs inventories of disks.
pub(super) struct Surveyor {
    set: TomeSetId,
    layout: Layout,
    directory: PathBuf,
    guard: Guard,
    backend: Arc<dyn Backend>,
    gate: Arc<SpinGate>,
    network: Arc<Local>,
    clock: Clock,
    entropy: Entropy,
    fail: Arc<FailPoints>,
    surveys: Mutex<BTreeMap<TomeId, Under>>,
}

/// An inventory in progress, or done since the start.
struct Under {
    inbox: SyncSender<Letter>,
    thread: Option<JoinHandle<()>>,
    told: Arc<Mutex<Surveyed>>,
}

impl std::fmt::Debug for Surveyor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surveyor").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Surveyor {
    pub(super) fn new(
        (set, layout, directory): (TomeSetId, Layout, PathBuf),
        (guard, backend, gate): (Guard, Arc<dyn Backend>, Arc<SpinGate>),
        network: Arc<Local>,
        clock: Clock,
        entropy: Entropy,
        fail: Arc<FailPoints>,
    ) -> Self {
        let surveys = Mutex::default();
        Self {
            set,
            layout,
            directory,
            guard,
            backend,
            gate,
            network,
            clock,
            entropy,
            fail,
            surveys,
        }
    }

    fn folder(&self, tome: TomeId) -> PathBuf {
        self.directory.join(super::start::folder_name(tome))
    }

    /// Whether an inventory was requested before this start.
    pub(super) fn is_begun(&self, tome: TomeId) -> bool {
        Survey::is_begun(&self.folder(tome))
    }

    /// Starts or continues an inventory. Idempotent.
    pub(super) fn begin(&self, tome: TomeId) -> Result<()> {
        let mut surveys = lock(&self.surveys);
        // One that was stuck continues.
        let is_over = |under: &Under| lock(&under.told).trouble.is_some();
        if let Some(thread) = surveys.get_mut(&tome).filter(|u| is_over(u)).map(|u| u.thread.take())
        {
            if thread.is_some_and(|thread| thread.join().is_err()) {
                tracing::error!("the thread of a survey panicked");
            }
            surveys.remove(&tome);
        }
        if surveys.contains_key(&tome) {
            return Ok(());
        }
        let folder = self.folder(tome);
        std::fs::create_dir_all(&folder).map_err(TomesError::io("make", &folder))?;
        let lock = crate::awake_store::lock(&folder)?;
        let identity = TomeIdentity::new(self.set, tome, self.layout);
        let survey = Survey::begin(&folder, &identity)?;
        let (ledger, _) = LedgerFile::open_or_set_aside(&folder.join(super::start::LEDGER))?;
        let (inbox, letters) = sync_channel(INBOX_MAX);
        crate::driver::listen(&self.clock, inbox.clone());
        self.network.add(tome, inbox.clone());
        let (read, of) = (survey.next(), self.layout.spots());
        let told = Arc::new(Mutex::new(Surveyed { read, of, blocks: 0, trouble: None }));
        let nonce = Seed::new(u64::from(tome.get())).child(&self.entropy.draw());
        let reader = Reader {
            _lock: lock,
            identity,
            survey,
            ledger,
            guard: self.guard.clone(),
            backend: Arc::clone(&self.backend),
            gate: Arc::clone(&self.gate),
            network: Arc::clone(&self.network),
            clock: self.clock.clone(),
            fail: Arc::clone(&self.fail),
            holder: Holder::new(nonce.stream().next_u64()),
            told: Arc::clone(&told),
            is_stopping: false,
        };
        let thread = std::thread::Builder::new()
            .name(format!("survey-{tome}"))
            .spawn(move || reader.run(&letters))
            .map_err(|error| TomesError::Invalid { what: format!("no thread: {error}") })?;
        surveys.insert(tome, Under { inbox, thread: Some(thread), told });
        Ok(())
    }

    /// Returns the progress of a tome's inventory.
    fn surveyed(&self, tome: TomeId) -> Option<Surveyed> {
        lock(&self.surveys).get(&tome).map(|under| lock(&under.told).clone())
    }

    /// Returns why a tome is lost, and what is done about it.
    pub(super) fn told(&self, tome: TomeId, why: &str) -> String {
        match self.surveyed(tome) {
            None => why.to_owned(),
            Some(Surveyed { trouble: Some(trouble), .. }) => {
                format!("{why}; its disk is not read whole: {trouble}")
            }
            Some(surveyed) if surveyed.is_whole() => format!(
                "{why}; its disk was read whole, and its awake store is made again when the set is \
                 opened next"
            ),
            Some(Surveyed { read, of, .. }) => {
                format!("{why}; its disk is being read whole: {read} of {of} spots")
            }
        }
    }

    /// Spins the disks down, and returns when they stand still.
    pub(super) fn stop(&self) {
        for under in lock(&self.surveys).values_mut() {
            // It may be gone already.
            let _ = under.inbox.send(Letter::Stop);
            if under.thread.take().is_some_and(|thread| thread.join().is_err()) {
                tracing::error!("the thread of a survey panicked");
            }
        }
    }
}

impl Drop for Surveyor {
    fn drop(&mut self) {
        self.stop();
    }
}

impl TomeSet {
    /// Starts the inventory of the disk of a tome whose metadata store is lost. Returns when that
    /// has begun, or had; it continues across starts. When it is complete, the next start rebuilds
    /// the metadata store. The tome is lost until then.
    ///
    /// # Errors
    /// Kind `NotFound`; `Invalid` when it is not lost to this start, is in another process, or was
    /// retired.
    pub fn survey(&self, tome: TomeId) -> Result<Surveyed> {
        let is_out =
            self.mover.moves().out.contains(&tome) || self.store.retired()?.contains(&tome);
        let what = match self.tomes.get(&tome) {
            None => return Err(TomeError::NoTome { tome }.into()),
            Some(_) if is_out => "was taken out",
            Some(Seat::Remote(_)) => "is in another process",
            Some(Seat::Live(driver)) if driver.is_given_up() => {
                "is given up and knows what it has: it goes on by itself when it works again"
            }
            Some(Seat::Live(_)) => "is not lost",
            Some(Seat::Lost(_)) => {
                self.surveyor.begin(tome)?;
                return Ok(self.surveyed(tome).unwrap_or_default());
            }
        };
        Err(TomesError::Invalid { what: format!("tome {tome} {what}") })
    }

    /// Returns the progress of a tome's inventory, if one was requested.
    #[must_use]
    pub fn surveyed(&self, tome: TomeId) -> Option<Surveyed> {
        self.surveyor.surveyed(tome)
    }

    /// Returns the tomes whose metadata stores were rebuilt at this start.
    #[must_use]
    pub fn regained(&self) -> &[RegainedTome] {
        &self.regained
    }
}

/// State of its thread.
struct Reader {
    _lock: std::fs::File,
    identity: TomeIdentity,
    survey: Survey,
    ledger: LedgerFile,
    guard: Guard,
    backend: Arc<dyn Backend>,
    gate: Arc<SpinGate>,
    network: Arc<Local>,
    clock: Clock,
    fail: Arc<FailPoints>,
    holder: Holder,
    told: Arc<Mutex<Surveyed>>,
    is_stopping: bool,
}

impl Reader {
    fn run(mut self, letters: &Receiver<Letter>) {
        let mut tries = 0;
        while !self.is_stopping && !self.survey.is_whole() {
            match self.turn(letters) {
                Ok(()) => tries = 0,
                Err(error) if tries + 1 < SPIN_UP_TRIES_MAX && !is_final(&error) => {
                    tracing::warn!(tome = %self.tome(), "{}", error_chain(&error));
                    tries += 1;
                    self.rest(letters, SPIN_UP_REST);
                }
                Err(error) => {
                    let why = error_chain(&error);
                    tracing::error!(tome = %self.tome(), "its disk is not read whole: {why}");
                    lock(&self.told).trouble = Some(why);
                    return;
                }
            }
        }
    }

    fn tome(&self) -> TomeId {
        self.identity.tome
    }

    fn place(&self) -> PlaceId {
        PlaceId::new(self.tome().get())
    }

    /// Requests a token, and reads while it is held.
    fn turn(&mut self, letters: &Receiver<Letter>) -> Result<()> {
        let need = Need { rebuild: true, ..Need::default() };
        let (token, epoch) = loop {
            let now = self.clock.passed();
            if self.is_stopping {
                return Ok(());
            }
            if let Some(message) = self.holder.want(now, need) {
                self.network.tell_keeper(self.tome(), message);
            }
            if let Some(held) = self.holder.held(now) {
                break held;
            }
            let until = self.holder.deadline(now).unwrap_or(now);
            self.next(letters, until);
        };
        let read = self.read(letters, (token, epoch), need);
        let down = self.put_down(letters);
        self.gate.stopped(self.tome());
        if let Some(message) = self.holder.release() {
            self.network.tell_keeper(self.tome(), message);
        }
        read.and(down)
    }

    /// Spins the disk up, and reads until done or until the token must be released.
    fn read(
        &mut self,
        letters: &Receiver<Letter>,
        (token, epoch): (TokenId, Epoch),
        need: Need,
    ) -> Result<()> {
        let place = self.place();
        self.gate.admit(token, epoch, self.tome())?;
        let at = self.clock.now();
        self.ledger.note(Wake { at, group: None, places: vec![place], cause: Cause::Rebuild })?;
        self.guard.turn(place, Power::SpinningUp)?;
        let wait = self.backend.spin_up(place)?;
        self.rest(letters, wait);
        let wait = self.backend.mount(place, 0)?;
        self.rest(letters, wait);
        self.guard.turn(place, Power::Active)?;
        let mut disk = Disk::open(self.guard.enter(place)?, &self.identity)?;
        let since = self.clock.passed();
        while !self.survey.is_whole() {
            for letter in letters.try_iter() {
                self.take(letter);
            }
            let now = self.clock.passed();
            if let Some(message) = self.holder.want(now, need) {
                self.network.tell_keeper(self.tome(), message);
            }
            let is_long = self.holder.is_wanted() && now.since(since) >= SURVEY_TURN;
            if self.is_stopping || is_long || self.holder.held(now).is_none() {
                break;
            }
            self.read_some(&mut disk)?;
        }
        Ok(())
    }

    fn read_some(&mut self, disk: &mut Disk) -> Result<()> {
        let from = self.survey.next();
        let until = (from + SURVEY_BATCH).min(self.identity.layout.spots());
        let mut found = Vec::new();
        for number in from..until {
            let Ok(number) = u32::try_from(number) else { break };
            let spot = Spot::new(number);
            let read = disk.read(spot)?;
            found.extend(read.map(|(label, block)| {
                let signature = signature(&block);
                Found { spot, label, signature }
            }));
        }
        self.survey.note(&found, until)?;
        self.fail.pass("tomes-surveyed");
        let mut told = lock(&self.told);
        told.read = until;
        told.blocks += found.len() as u64;
        Ok(())
    }

    fn put_down(&mut self, letters: &Receiver<Letter>) -> Result<()> {
        let place = self.place();
        let power = self.guard.power(place).unwrap_or(Power::Absent);
        if power == Power::Active {
            self.guard.turn(place, Power::Unmounting)?;
            let wait = self.backend.unmount(place)?;
            self.rest(letters, wait);
        }
        if power.turns() {
            let wait = self.backend.spin_down(place)?;
            self.rest(letters, wait);
            self.guard.turn(place, Power::Standby)?;
        }
        Ok(())
    }

    /// Waits for a time while it handles messages.
    fn rest(&mut self, letters: &Receiver<Letter>, time: Duration) {
        let until = self.clock.passed() + time;
        while self.clock.passed() < until && !self.is_stopping {
            self.next(letters, until);
        }
    }

    /// Handles the next message; returns without one when the time has come.
    fn next(&mut self, letters: &Receiver<Letter>, until: Instant) {
        let letter = match self.clock.sleep_until(until) {
            Some(time) => letters.recv_timeout(time.into()),
            // With a manual clock time passes only when it is advanced, which arrives as a message.
            None if until <= self.clock.passed() => Err(RecvTimeoutError::Timeout),
            None => letters.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match letter {
            Ok(letter) => self.take(letter),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.is_stopping = true,
        }
    }

    fn take(&mut self, letter: Letter) {
        match letter {
            Letter::Keeper(message) => {
                if let Some(answer) = self.holder.told(self.clock.passed(), message) {
                    self.network.tell_keeper(self.tome(), answer);
                }
            }
            Letter::Stop => self.is_stopping = true,
            // The tome is lost: others repeat their messages when it is back.
            Letter::Told { .. } | Letter::Ask(_) | Letter::Stage(_) | Letter::Retired => {}
            Letter::Turned(waits) => waits.store(false, Ordering::Release),
        }
    }
}

/// Whether a retry is pointless.
fn is_final(error: &TomesError) -> bool {
    matches!(error, TomesError::WrongDisk { .. } | TomesError::Damaged { .. })
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

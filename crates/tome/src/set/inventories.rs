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
//! ([`crate::rebuild_metadata`]).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use fulgurite_codes::signature;
use fulgurite_disks::{Backend, Cause, Guard, LedgerFile, PlaceId, Power, SpinUp};
use fulgurite_tome_core::token::{Holder, Need, TokenId};
use fulgurite_tome_core::{Epoch, GroupId, Layout, PhysicalBlock, TomeError, TomeId};
use fulgurite_units::{Clock, Duration, Instant, Seed, TomeSetId, error_chain};

use super::local::Local;
use super::{TomeHandle, TomeSet};
use crate::disk::Disk;
use crate::driver::DriverMessage;
use crate::identity::TomeIdentity;
use crate::inventory::{Found, Inventory};
use crate::limits::{
    INBOX_MAX, INVENTORY_BATCH, INVENTORY_TURN, NAMES_LISTED_MAX, SPIN_UP_BACKOFF,
    SPIN_UP_TRIES_MAX,
};
use crate::network::Network as _;
use crate::spin_gate::SpinGate;
use crate::{Entropy, FailPoints};
use crate::{Result, TomesError};

/// Progress of an inventory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InventoryProgress {
    /// Physical blocks read so far.
    pub read: u64,
    /// Physical blocks in all.
    pub total: u64,
    /// Blocks found in them.
    pub blocks: u64,
    /// Why it is stuck, until it is requested again or the set is reopened.
    pub failure: Option<String>,
}

impl InventoryProgress {
    /// Whether everything was read.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.total > 0 && self.read >= self.total
    }
}

/// A tome whose metadata store was rebuilt at this start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebuiltTome {
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

impl RebuiltTome {
    /// Returns what an operator should know, a line each.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let tome = self.tome;
        let mut reasons = Vec::new();
        if !self.lost.is_empty() {
            let names: Vec<&str> =
                self.lost.iter().take(NAMES_LISTED_MAX).map(String::as_str).collect();
            reasons.push(format!(
                "tome {tome}: {} objects were not intact when its metadata store was rebuilt, and \
                 are gone: {}",
                self.lost.len(),
                names.join(", ")
            ));
        }
        let mismatch = |(group, blocks): &(GroupId, u64)| {
            format!(
                "tome {tome}: {blocks} blocks of group {group} do not match its codeword \
                 after its metadata store was rebuilt"
            )
        };
        reasons.extend(self.differing.iter().map(mismatch));
        reasons
    }

    /// Returns the same with a line for each lost object.
    #[must_use]
    pub fn report_lines(&self) -> Vec<String> {
        let tome = self.tome;
        let lost =
            |name: &String| format!("tome {tome}: object \"{name}\" was not intact and is lost");
        let others = self.reasons().into_iter().skip(usize::from(!self.lost.is_empty()));
        self.lost.iter().map(lost).chain(others).collect()
    }

    pub(super) fn log(&self) {
        let Self { tome, objects, bad, .. } = self;
        tracing::warn!(%tome, objects, bad, "its metadata store was rebuilt from its disk");
        for name in &self.lost {
            tracing::error!(%tome, name, "not intact when the metadata store was rebuilt: lost");
        }
        self.reasons().iter().for_each(|why| tracing::error!("{why}"));
    }
}

/// Runs inventories of disks.
pub(super) struct InventoryRunner {
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
    inventories: Mutex<BTreeMap<TomeId, RunningInventory>>,
}

/// An inventory in progress, or done since the start.
struct RunningInventory {
    inbox: SyncSender<DriverMessage>,
    thread: Option<JoinHandle<()>>,
    progress: Arc<Mutex<InventoryProgress>>,
}

impl std::fmt::Debug for InventoryRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InventoryRunner")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl InventoryRunner {
    pub(super) fn new(
        (set, layout, directory): (TomeSetId, Layout, PathBuf),
        (guard, backend, gate): (Guard, Arc<dyn Backend>, Arc<SpinGate>),
        network: Arc<Local>,
        clock: Clock,
        entropy: Entropy,
        fail: Arc<FailPoints>,
    ) -> Self {
        let inventories = Mutex::default();
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
            inventories,
        }
    }

    fn folder(&self, tome: TomeId) -> PathBuf {
        self.directory.join(super::start::folder_name(tome))
    }

    /// Whether an inventory was requested before this start.
    pub(super) fn is_begun(&self, tome: TomeId) -> bool {
        Inventory::is_begun(&self.folder(tome))
    }

    /// Starts or continues an inventory. Idempotent.
    pub(super) fn begin(&self, tome: TomeId) -> Result<()> {
        let mut inventories = lock(&self.inventories);
        // One that was stuck continues.
        let is_over = |running: &RunningInventory| lock(&running.progress).failure.is_some();
        if let Some(thread) =
            inventories.get_mut(&tome).filter(|u| is_over(u)).map(|u| u.thread.take())
        {
            if thread.is_some_and(|thread| thread.join().is_err()) {
                tracing::error!("the thread of an inventory panicked");
            }
            inventories.remove(&tome);
        }
        if inventories.contains_key(&tome) {
            return Ok(());
        }
        let folder = self.folder(tome);
        std::fs::create_dir_all(&folder).map_err(TomesError::io("create", &folder))?;
        let lock = crate::metadata_store::lock(&folder)?;
        let identity = TomeIdentity::new(self.set, tome, self.layout);
        let inventory = Inventory::begin(&folder, &identity)?;
        let (ledger, _) = LedgerFile::open_or_quarantine(&folder.join(super::start::LEDGER))?;
        let (inbox, messages) = sync_channel(INBOX_MAX);
        crate::driver::listen(&self.clock, inbox.clone());
        self.network.add(tome, inbox.clone());
        let (read, total) = (inventory.next(), self.layout.physical_blocks());
        let progress =
            Arc::new(Mutex::new(InventoryProgress { read, total, blocks: 0, failure: None }));
        let nonce = Seed::new(u64::from(tome.get())).child(&self.entropy.draw());
        let reader = Reader {
            _lock: lock,
            identity,
            inventory,
            ledger,
            guard: self.guard.clone(),
            backend: Arc::clone(&self.backend),
            gate: Arc::clone(&self.gate),
            network: Arc::clone(&self.network),
            clock: self.clock.clone(),
            fail: Arc::clone(&self.fail),
            holder: Holder::new(nonce.stream().next_u64()),
            progress: Arc::clone(&progress),
            is_stopping: false,
        };
        let thread = std::thread::Builder::new()
            .name(format!("inventory-{tome}"))
            .spawn(move || reader.run(&messages))
            .map_err(|error| TomesError::Invalid { what: format!("no thread: {error}") })?;
        inventories.insert(tome, RunningInventory { inbox, thread: Some(thread), progress });
        Ok(())
    }

    /// Returns the progress of a tome's inventory.
    fn inventory_progress(&self, tome: TomeId) -> Option<InventoryProgress> {
        lock(&self.inventories).get(&tome).map(|running| lock(&running.progress).clone())
    }

    /// Returns why a tome is lost, and what is done about it.
    pub(super) fn loss_reason(&self, tome: TomeId, why: &str) -> String {
        match self.inventory_progress(tome) {
            None => why.to_owned(),
            Some(InventoryProgress { failure: Some(failure), .. }) => {
                format!("{why}; its disk cannot be read completely: {failure}")
            }
            Some(inventory_progress) if inventory_progress.is_whole() => format!(
                "{why}; its disk was read whole, and its metadata store is rebuilt when the set \
                 is next opened"
            ),
            Some(InventoryProgress { read, total, .. }) => {
                format!("{why}; its disk is being read whole: {read} of {total} physical blocks")
            }
        }
    }

    /// Spins the disks down, and returns when they stand still.
    pub(super) fn stop(&self) {
        for running in lock(&self.inventories).values_mut() {
            // It may be gone already.
            let _ = running.inbox.send(DriverMessage::Stop);
            if running.thread.take().is_some_and(|thread| thread.join().is_err()) {
                tracing::error!("the thread of an inventory panicked");
            }
        }
    }
}

impl Drop for InventoryRunner {
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
    pub fn inventory(&self, tome: TomeId) -> Result<InventoryProgress> {
        let is_out =
            self.mover.moves().out.contains(&tome) || self.store.retired()?.contains(&tome);
        let what = match self.tomes.get(&tome) {
            None => return Err(TomeError::NoTome { tome }.into()),
            Some(_) if is_out => "was retired",
            Some(TomeHandle::Remote(_)) => "is in another process",
            Some(TomeHandle::Live(driver)) if driver.is_given_up() => {
                "failed but still has its metadata store: it continues when it works again"
            }
            Some(TomeHandle::Live(_)) => "is not lost",
            Some(TomeHandle::Lost(_)) => {
                self.inventory_runner.begin(tome)?;
                return Ok(self.inventory_progress(tome).unwrap_or_default());
            }
        };
        Err(TomesError::Invalid { what: format!("tome {tome} {what}") })
    }

    /// Returns the progress of a tome's inventory, if one was requested.
    #[must_use]
    pub fn inventory_progress(&self, tome: TomeId) -> Option<InventoryProgress> {
        self.inventory_runner.inventory_progress(tome)
    }

    /// Returns the tomes whose metadata stores were rebuilt at this start.
    #[must_use]
    pub fn rebuilt(&self) -> &[RebuiltTome] {
        &self.rebuilt
    }
}

/// State of its thread.
struct Reader {
    _lock: std::fs::File,
    identity: TomeIdentity,
    inventory: Inventory,
    ledger: LedgerFile,
    guard: Guard,
    backend: Arc<dyn Backend>,
    gate: Arc<SpinGate>,
    network: Arc<Local>,
    clock: Clock,
    fail: Arc<FailPoints>,
    holder: Holder,
    progress: Arc<Mutex<InventoryProgress>>,
    is_stopping: bool,
}

impl Reader {
    fn run(mut self, messages: &Receiver<DriverMessage>) {
        let mut tries = 0;
        while !self.is_stopping && !self.inventory.is_whole() {
            match self.take_turn(messages) {
                Ok(()) => tries = 0,
                Err(error) if tries + 1 < SPIN_UP_TRIES_MAX && !is_final(&error) => {
                    tracing::warn!(tome = %self.tome(), "{}", error_chain(&error));
                    tries += 1;
                    self.wait_for(messages, SPIN_UP_BACKOFF);
                }
                Err(error) => {
                    let why = error_chain(&error);
                    tracing::error!(tome = %self.tome(), "cannot read its whole disk: {why}");
                    lock(&self.progress).failure = Some(why);
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
    fn take_turn(&mut self, messages: &Receiver<DriverMessage>) -> Result<()> {
        let need = Need { rebuild: true, ..Need::default() };
        let (token, epoch) = loop {
            let now = self.clock.passed();
            if self.is_stopping {
                return Ok(());
            }
            if let Some(message) = self.holder.want(now, need) {
                self.network.send_to_token_manager(self.tome(), message);
            }
            if let Some(held) = self.holder.current_token(now) {
                break held;
            }
            let until = self.holder.deadline(now).unwrap_or(now);
            self.next(messages, until);
        };
        let read = self.read(messages, (token, epoch), need);
        let down = self.spin_down(messages);
        self.gate.stopped(self.tome());
        if let Some(message) = self.holder.release() {
            self.network.send_to_token_manager(self.tome(), message);
        }
        read.and(down)
    }

    /// Spins the disk up, and reads until done or until the token must be released.
    fn read(
        &mut self,
        messages: &Receiver<DriverMessage>,
        (token, epoch): (TokenId, Epoch),
        need: Need,
    ) -> Result<()> {
        let place = self.place();
        self.gate.admit(token, epoch, self.tome())?;
        let at = self.clock.now();
        self.ledger.record(SpinUp {
            at,
            group: None,
            places: vec![place],
            cause: Cause::Rebuild,
        })?;
        self.guard.turn(place, Power::SpinningUp)?;
        let wait = self.backend.spin_up(place)?;
        self.wait_for(messages, wait);
        let wait = self.backend.mount(place, 0)?;
        self.wait_for(messages, wait);
        self.guard.turn(place, Power::Active)?;
        let mut disk = Disk::open(self.guard.acquire(place)?, &self.identity)?;
        let since = self.clock.passed();
        while !self.inventory.is_whole() {
            for message in messages.try_iter() {
                self.handle_message(message);
            }
            let now = self.clock.passed();
            if let Some(message) = self.holder.want(now, need) {
                self.network.send_to_token_manager(self.tome(), message);
            }
            let is_long = self.holder.is_wanted() && now.since(since) >= INVENTORY_TURN;
            if self.is_stopping || is_long || self.holder.current_token(now).is_none() {
                break;
            }
            self.read_some(&mut disk)?;
        }
        Ok(())
    }

    fn read_some(&mut self, disk: &mut Disk) -> Result<()> {
        let from = self.inventory.next();
        let until = (from + INVENTORY_BATCH).min(self.identity.layout.physical_blocks());
        let mut found = Vec::new();
        for number in from..until {
            let Ok(number) = u32::try_from(number) else { break };
            let physical_block = PhysicalBlock::new(number);
            let read = disk.read(physical_block)?;
            found.extend(read.map(|(label, block)| {
                let signature = signature(&block);
                Found { physical_block, label, signature }
            }));
        }
        self.inventory.record(&found, until)?;
        self.fail.pass("tomes-inventoried");
        let mut progress = lock(&self.progress);
        progress.read = until;
        progress.blocks += found.len() as u64;
        Ok(())
    }

    fn spin_down(&mut self, messages: &Receiver<DriverMessage>) -> Result<()> {
        let place = self.place();
        let power = self.guard.power(place).unwrap_or(Power::Absent);
        if power == Power::Active {
            self.guard.turn(place, Power::Unmounting)?;
            let wait = self.backend.unmount(place)?;
            self.wait_for(messages, wait);
        }
        if power.is_spinning() {
            let wait = self.backend.spin_down(place)?;
            self.wait_for(messages, wait);
            self.guard.turn(place, Power::Standby)?;
        }
        Ok(())
    }

    /// Waits for a time while it handles messages.
    fn wait_for(&mut self, messages: &Receiver<DriverMessage>, time: Duration) {
        let until = self.clock.passed() + time;
        while self.clock.passed() < until && !self.is_stopping {
            self.next(messages, until);
        }
    }

    /// Handles the next message; returns without one when the time has come.
    fn next(&mut self, messages: &Receiver<DriverMessage>, until: Instant) {
        let message = match self.clock.sleep_until(until) {
            Some(time) => messages.recv_timeout(time.into()),
            // With a manual clock time passes only when it is advanced, which arrives as a message.
            None if until <= self.clock.passed() => Err(RecvTimeoutError::Timeout),
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match message {
            Ok(message) => self.handle_message(message),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.is_stopping = true,
        }
    }

    fn handle_message(&mut self, message: DriverMessage) {
        match message {
            DriverMessage::TokenManager(message) => {
                if let Some(answer) = self.holder.handle_message(self.clock.passed(), message) {
                    self.network.send_to_token_manager(self.tome(), answer);
                }
            }
            DriverMessage::Stop => self.is_stopping = true,
            // The tome is lost: others repeat their messages when it is back.
            DriverMessage::Received { .. }
            | DriverMessage::TomeRequest(_)
            | DriverMessage::Stage(_)
            | DriverMessage::Retired => {}
            DriverMessage::ClockAdvanced(waits) => waits.store(false, Ordering::Release),
        }
    }
}

/// Whether a retry is pointless.
fn is_final(error: &TomesError) -> bool {
    matches!(error, TomesError::WrongDisk { .. } | TomesError::Damaged { .. })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

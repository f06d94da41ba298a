//! The live token manager: a thread that persists the holder of each token before it sends an
//! offer.
//!
//! If it cannot write, it sends nothing, and the set reports why. It retries with its store
//! reopened, and when that can be written it restarts from what it persisted: every recorded holder
//! counts as holding its token for a full lease. So a full disk costs as long as it lasts. Readers
//! get an error meanwhile, once that retry has failed too. Not here: which tome gets a token
//! ([`fulgurite_tome::token::Keeper`]).

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use fulgurite_tome::TomeId;
use fulgurite_tome::token::{Command, Event, FromKeeper, Keeper, Kept, ToKeeper, TokenId};
use fulgurite_units::{Clock, Controller as _, Duration, Instant, Outbox, error_chain};
use tokio::sync::watch;

use crate::fail_point::FailPoints;
use crate::injected::{Failing, Injected};
use crate::limits::{KEEPER_INBOX_MAX, KEEPER_REST, STUCK_GRACE};
use crate::network::Network;
use crate::set_store::SetStore;
use crate::watch::{Happening, Watched};
use crate::{Result, TomesError};

/// Longest sleep when nothing is due.
const IDLE: Duration = Duration::from_secs(3600);

/// A message to its thread.
#[derive(Debug)]
pub(crate) enum Note {
    Told { tome: TomeId, message: ToKeeper },
    Turned,
    Stop,
}

/// Handle of its thread.
#[derive(Debug)]
pub(crate) struct KeeperDriver {
    inbox: SyncSender<Note>,
    thread: Mutex<Option<JoinHandle<()>>>,
    trouble: Arc<Mutex<Option<String>>>,
    stuck: watch::Sender<bool>,
}

struct Loop {
    keeper: Keeper,
    tomes: u32,
    /// When to reopen the store after a failed write.
    mend_at: Option<Instant>,
    injected: Injected,
    store: Arc<SetStore>,
    network: Arc<dyn Network>,
    clock: Clock,
    fail: Arc<FailPoints>,
    trouble: Arc<Mutex<Option<String>>>,
    /// Whether the store could not be written after it was reopened either.
    stuck: watch::Sender<bool>,
    watched: Watched,
    /// Tomes last confirmed as holders.
    told: BTreeMap<TokenId, TomeId>,
}

impl KeeperDriver {
    /// Starts the token manager of a set of this many tomes, with the persisted state of its
    /// tokens.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(
        store: Arc<SetStore>,
        (tomes, tokens): (u32, &BTreeMap<TokenId, Kept>),
        network: Arc<dyn Network>,
        (clock, watched): (Clock, Watched),
        (fail, injected): (Arc<FailPoints>, Injected),
        known: impl FnOnce(SyncSender<Note>),
    ) -> Result<Self> {
        let (inbox, notes) = sync_channel(KEEPER_INBOX_MAX);
        known(inbox.clone());
        let turned = inbox.clone();
        clock.listen(move || drop(turned.try_send(Note::Turned)));
        let keeper = Keeper::new(clock.passed(), tomes, tokens);
        let trouble = Arc::<Mutex<Option<String>>>::default();
        let (told, own, mend_at) = (BTreeMap::new(), Arc::clone(&trouble), None);
        let stuck = watch::Sender::new(false);
        let keeping = Loop {
            keeper,
            tomes,
            mend_at,
            injected,
            store,
            network,
            clock,
            fail,
            trouble: own,
            stuck: stuck.clone(),
            watched,
            told,
        };
        let thread = std::thread::Builder::new()
            .name("tokens".to_owned())
            .spawn(move || keeping.run(&notes))
            .map_err(|error| TomesError::Invalid { what: format!("no thread: {error}") })?;
        Ok(Self { inbox, thread: Mutex::new(Some(thread)), trouble, stuck })
    }

    /// Returns why no tokens are granted now.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the reason once no tokens have been granted for so long that reads should fail.
    pub(crate) async fn stuck(&self) -> String {
        let mut stuck = self.stuck.subscribe();
        loop {
            // The channel is open as long as this exists.
            let _ = stuck.wait_for(|is_stuck| *is_stuck).await;
            // Reads of a spinning disk need no token.
            tokio::time::sleep(STUCK_GRACE.into()).await;
            if let Some(why) = self.trouble().filter(|_| *stuck.borrow()) {
                return why;
            }
        }
    }

    pub(crate) fn stop(&self) {
        // It may be gone already.
        let _ = self.inbox.send(Note::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the keeper of tokens panicked");
        }
    }
}

impl Drop for KeeperDriver {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Loop {
    fn run(mut self, notes: &Receiver<Note>) {
        loop {
            match self.next(notes) {
                Ok(Note::Told { tome, message }) => self.step(Event::Told { tome, message }),
                Ok(Note::Turned) => {}
                Err(RecvTimeoutError::Timeout) => self.step(Event::Timer),
                Ok(Note::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = self.clock.passed();
            let due = self.mend_at.or_else(|| self.keeper.deadline());
            if due.is_some_and(|at| at <= now) {
                self.step(Event::Timer);
            }
        }
    }

    fn next(&self, notes: &Receiver<Note>) -> Result<Note, RecvTimeoutError> {
        let due = self.mend_at.or_else(|| self.keeper.deadline());
        let due = due.unwrap_or_else(|| self.clock.passed() + IDLE);
        match self.clock.sleep_until(due) {
            Some(time) => notes.recv_timeout(time.into()),
            None => notes.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn step(&mut self, event: Event) {
        if let Some(at) = self.mend_at {
            // Tomes retry the requests that are dropped meanwhile.
            if at <= self.clock.passed() {
                self.mend();
            }
            return;
        }
        let mut out = Outbox::new();
        self.keeper.step(self.clock.passed(), event, &mut out);
        for command in out.drain() {
            match command {
                Command::Commit { token, kept } => {
                    if let Err(error) = self.keep(token, kept) {
                        self.cannot_write(&error);
                        return;
                    }
                    self.fail.pass("tomes-token-kept");
                }
                Command::Tell { tome, message } => self.network.tell_holder(tome, message),
            }
            self.tell_watchers(command);
        }
    }

    fn keep(&self, token: TokenId, kept: Kept) -> Result<()> {
        if let Some(tome) = kept.holder {
            self.injected.pass(tome, Failing::Token)?;
        }
        self.store.keep(token, kept)
    }

    /// Returns the persisted state, once it can be written again.
    fn mended(&self) -> Result<BTreeMap<TokenId, Kept>> {
        for tome in (0..self.tomes).map(TomeId::new) {
            self.injected.pass(tome, Failing::Token)?;
        }
        self.store.mended()
    }

    /// Records a failed write. No message is sent before its state is persisted.
    fn cannot_write(&mut self, error: &TomesError) {
        let why = format!("no tokens are given now: {}", error_chain(error));
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.is_none() {
            tracing::error!("{why}");
        }
        *trouble = Some(why);
        self.mend_at = Some(self.clock.passed() + KEEPER_REST);
    }

    /// Restarts from the persisted state, if the store can be written again.
    fn mend(&mut self) {
        match self.mended() {
            Ok(tokens) => {
                let now = self.clock.passed();
                self.keeper = Keeper::new(now, self.tomes, &tokens);
                self.mend_at = None;
                let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
                tracing::info!("tokens are given again: what is written down can be");
                *trouble = None;
                self.stuck.send_replace(false);
            }
            Err(error) => {
                self.cannot_write(&error);
                self.stuck.send_replace(true);
            }
        }
    }

    /// Reports a granted or released token to subscribers.
    fn tell_watchers(&mut self, done: Command) {
        match done {
            Command::Commit { token, kept: Kept { holder: None, .. } } => {
                if self.told.remove(&token).is_some() {
                    self.watched.tell(|| Happening::Token { token, tome: None });
                }
            }
            Command::Tell { tome, message: FromKeeper::Held { token, .. } } => {
                if self.told.insert(token, tome) != Some(tome) {
                    self.watched.tell(|| Happening::Token { token, tome: Some(tome) });
                }
            }
            Command::Commit { .. } | Command::Tell { .. } => {}
        }
    }
}

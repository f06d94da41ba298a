//! The live token manager: a thread that persists the holder of each token before it sends an
//! offer.
//!
//! If it cannot write, it sends nothing, and the set reports why. It retries with its store
//! reopened, and when that can be written it restarts from what it persisted: every recorded holder
//! counts as holding its token for a full lease. So a full disk costs as long as it lasts. Readers
//! get an error meanwhile, once that retry has failed too. Not here: which tome gets a token
//! ([`fulgurite_tome_core::token::TokenManager`]).

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use fulgurite_tome_core::TomeId;
use fulgurite_tome_core::token::{
    Command, Event, FromTokenManager, ToTokenManager, TokenId, TokenManager, TokenState,
};
use fulgurite_units::{Clock, Controller as _, Duration, Instant, Outbox, error_chain};
use tokio::sync::watch;

use crate::FailPoints;
use crate::faults::{FaultInjector, InjectedFault};
use crate::limits::{STUCK_GRACE, TOKEN_MANAGER_BACKOFF, TOKEN_MANAGER_INBOX_MAX};
use crate::network::Network;
use crate::set_store::SetStore;
use crate::watch::{EventPublisher, TomeEvent};
use crate::{Result, TomesError};

/// Longest sleep when nothing is due.
const IDLE: Duration = Duration::from_secs(3600);

/// A message to its thread.
#[derive(Debug)]
pub(crate) enum TokenManagerMessage {
    Received { tome: TomeId, message: ToTokenManager },
    ClockAdvanced,
    Stop,
}

/// Handle of its thread.
#[derive(Debug)]
pub(crate) struct TokenManagerDriver {
    inbox: SyncSender<TokenManagerMessage>,
    thread: Mutex<Option<JoinHandle<()>>>,
    failure: Arc<Mutex<Option<String>>>,
    stuck: watch::Sender<bool>,
}

struct Loop {
    token_manager: TokenManager,
    tomes: u32,
    /// When to reopen the store after a failed write.
    retry_at: Option<Instant>,
    faults: FaultInjector,
    store: Arc<SetStore>,
    network: Arc<dyn Network>,
    clock: Clock,
    fail: Arc<FailPoints>,
    failure: Arc<Mutex<Option<String>>>,
    /// Whether the store could not be written after it was reopened either.
    stuck: watch::Sender<bool>,
    events: EventPublisher,
    /// Tomes last confirmed as holders.
    holders: BTreeMap<TokenId, TomeId>,
}

impl TokenManagerDriver {
    /// Starts the token manager of a set of this many tomes, with the persisted state of its
    /// tokens.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(
        store: Arc<SetStore>,
        (tomes, tokens): (u32, &BTreeMap<TokenId, TokenState>),
        network: Arc<dyn Network>,
        (clock, events): (Clock, EventPublisher),
        (fail, faults): (Arc<FailPoints>, FaultInjector),
        register: impl FnOnce(SyncSender<TokenManagerMessage>),
    ) -> Result<Self> {
        let (inbox, messages) = sync_channel(TOKEN_MANAGER_INBOX_MAX);
        register(inbox.clone());
        let advanced = inbox.clone();
        clock.listen(move || drop(advanced.try_send(TokenManagerMessage::ClockAdvanced)));
        let token_manager = TokenManager::new(clock.passed(), tomes, tokens);
        let failure = Arc::<Mutex<Option<String>>>::default();
        let (holders, shared_failure, retry_at) = (BTreeMap::new(), Arc::clone(&failure), None);
        let stuck = watch::Sender::new(false);
        let manager = Loop {
            token_manager,
            tomes,
            retry_at,
            faults,
            store,
            network,
            clock,
            fail,
            failure: shared_failure,
            stuck: stuck.clone(),
            events,
            holders,
        };
        let thread = std::thread::Builder::new()
            .name("tokens".to_owned())
            .spawn(move || manager.run(&messages))
            .map_err(|error| TomesError::Invalid { what: format!("no thread: {error}") })?;
        Ok(Self { inbox, thread: Mutex::new(Some(thread)), failure, stuck })
    }

    /// Returns why no tokens are granted now.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the reason once no tokens have been granted for so long that reads should fail.
    pub(crate) async fn stuck(&self) -> String {
        let mut stuck = self.stuck.subscribe();
        loop {
            // The channel is open as long as this exists.
            let _ = stuck.wait_for(|is_stuck| *is_stuck).await;
            // Reads of a spinning disk need no token.
            tokio::time::sleep(STUCK_GRACE.into()).await;
            if let Some(why) = self.failure().filter(|_| *stuck.borrow()) {
                return why;
            }
        }
    }

    pub(crate) fn stop(&self) {
        // It may be gone already.
        let _ = self.inbox.send(TokenManagerMessage::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the token manager panicked");
        }
    }
}

impl Drop for TokenManagerDriver {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Loop {
    fn run(mut self, messages: &Receiver<TokenManagerMessage>) {
        loop {
            match self.next(messages) {
                Ok(TokenManagerMessage::Received { tome, message }) => {
                    self.step(Event::Received { tome, message })
                }
                Ok(TokenManagerMessage::ClockAdvanced) => {}
                Err(RecvTimeoutError::Timeout) => self.step(Event::Timer),
                Ok(TokenManagerMessage::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = self.clock.passed();
            let due = self.retry_at.or_else(|| self.token_manager.deadline());
            if due.is_some_and(|at| at <= now) {
                self.step(Event::Timer);
            }
        }
    }

    fn next(
        &self,
        messages: &Receiver<TokenManagerMessage>,
    ) -> Result<TokenManagerMessage, RecvTimeoutError> {
        let due = self.retry_at.or_else(|| self.token_manager.deadline());
        let due = due.unwrap_or_else(|| self.clock.passed() + IDLE);
        match self.clock.sleep_until(due) {
            Some(time) => messages.recv_timeout(time.into()),
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn step(&mut self, event: Event) {
        if let Some(at) = self.retry_at {
            // Tomes retry the requests that are dropped meanwhile.
            if at <= self.clock.passed() {
                self.recover();
            }
            return;
        }
        let mut out = Outbox::new();
        self.token_manager.step(self.clock.passed(), event, &mut out);
        for command in out.drain() {
            match command {
                Command::Commit { token, state: kept } => {
                    if let Err(error) = self.persist(token, kept) {
                        self.write_failed(&error);
                        return;
                    }
                    self.fail.pass("tomes-token-kept");
                }
                Command::Send { tome, message } => self.network.send_to_holder(tome, message),
            }
            self.publish(command);
        }
    }

    fn persist(&self, token: TokenId, state: TokenState) -> Result<()> {
        if let Some(tome) = state.holder {
            self.faults.pass(tome, InjectedFault::Token)?;
        }
        self.store.record_token(token, state)
    }

    /// Returns the persisted state, once it can be written again.
    fn reload_tokens(&self) -> Result<BTreeMap<TokenId, TokenState>> {
        for tome in (0..self.tomes).map(TomeId::new) {
            self.faults.pass(tome, InjectedFault::Token)?;
        }
        self.store.reload_tokens()
    }

    /// Records a failed write. No message is sent before its state is persisted.
    fn write_failed(&mut self, error: &TomesError) {
        let why = format!("no tokens are granted now: {}", error_chain(error));
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() {
            tracing::error!("{why}");
        }
        *failure = Some(why);
        self.retry_at = Some(self.clock.passed() + TOKEN_MANAGER_BACKOFF);
    }

    /// Restarts from the persisted state, if the store can be written again.
    fn recover(&mut self) {
        match self.reload_tokens() {
            Ok(tokens) => {
                let now = self.clock.passed();
                self.token_manager = TokenManager::new(now, self.tomes, &tokens);
                self.retry_at = None;
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                tracing::info!("tokens are granted again: the set store can be written");
                *failure = None;
                self.stuck.send_replace(false);
            }
            Err(error) => {
                self.write_failed(&error);
                self.stuck.send_replace(true);
            }
        }
    }

    /// Reports a granted or released token to subscribers.
    fn publish(&mut self, done: Command) {
        match done {
            Command::Commit { token, state: TokenState { holder: None, .. } } => {
                if self.holders.remove(&token).is_some() {
                    self.events.send(|| TomeEvent::Token { token, tome: None });
                }
            }
            Command::Send { tome, message: FromTokenManager::Held { token, .. } } => {
                if self.holders.insert(token, tome) != Some(tome) {
                    self.events.send(|| TomeEvent::Token { token, tome: Some(tome) });
                }
            }
            Command::Commit { .. } | Command::Send { .. } => {}
        }
    }
}

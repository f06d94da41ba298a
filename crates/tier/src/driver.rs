//! The live driver of a controller: a thread that turns messages into events and carries out the
//! commands that follow.
//!
//! ```text
//! Inbox::send  --> inbox --> Actor::handle --> Core::queue --> Actor::apply: Core::step, commands
//!                    ^                              ^                              |
//!                    |        alarms, time passed --'                              |
//!                    '------ the result of a worker thread (Core::spawn) <---------'
//! ```
//!
//! The driver owns what every such thread needs: a bounded inbox, the order of events, alarms, the
//! controller's deadline, the stop, and what happens when something panics. All time comes from the
//! clock that is passed in. An [`Actor`] knows what the messages and the commands mean.
//!
//! A panic of a worker becomes its result. A panic of the thread itself ends it, unless the actor
//! recovers: the actor is dropped, with the channels on which callers wait, so nobody waits for
//! ever.
//!
//! Not here: decisions, and who waits for what.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{JoinHandle, ThreadId};

use fulgurite_units::{Clock, Controller, Duration, Instant, Outbox};

/// How long the thread sleeps when nothing is due.
const IDLE: Duration = Duration::from_secs(3600);

/// Messages that are handled in one turn, before the clock is read again.
const MESSAGES_PER_TURN_MAX: usize = 64;

type Event<A> = <<A as Actor>::Controller as Controller>::Event;
type Command<A> = <<A as Actor>::Controller as Controller>::Command;

/// What a driver's thread does with messages, alarms and events.
pub trait Actor: Sized + Send + 'static {
    /// Makes the decisions.
    type Controller: Controller;
    /// What arrives in the inbox.
    type Message: Send + 'static;
    /// What is to be done at a later time.
    type Alarm: Send + 'static;

    /// The controller's event for its deadline.
    const TIMER: Event<Self>;

    /// Returns the part that the driver works with.
    fn core(&mut self) -> &mut Core<Self>;

    /// Handles a message: mostly, queues the events that follow from it.
    fn handle(&mut self, message: Self::Message);

    /// Does what was to be done at this time.
    fn ring(&mut self, alarm: Self::Alarm);

    /// Passes an event to the controller ([`Core::step`]) and carries out its commands.
    fn apply(&mut self, event: Event<Self>);

    /// Called after the messages of a turn, and when time has passed.
    fn end_turn(&mut self) {}

    /// Returns when a turn is due even if no message comes.
    fn deadline(&mut self) -> Option<Instant> {
        None
    }

    /// Refuses what waits, once. What runs may finish.
    fn stop(&mut self);

    /// Whether nothing runs, so that a stopping thread may end.
    fn is_idle(&self) -> bool;

    /// Called when the thread ends, unless it panicked.
    fn end(self) {}

    /// Called after a panic, when no state can be trusted. Returns whether the thread may continue.
    fn recover(&mut self, _: &Panicked) -> bool {
        false
    }

    /// Applies all queued events.
    fn settle(&mut self) {
        while let Some(event) = self.core().events.pop_front() {
            self.apply(event);
        }
    }

    /// Applies an event after all queued ones.
    fn step(&mut self, event: Event<Self>) {
        self.core().queue(event);
        self.settle();
    }
}

/// The controller of an actor, with the events and alarms that wait for it.
pub struct Core<A: Actor> {
    /// The controller.
    pub controller: A::Controller,
    /// The only source of time.
    pub clock: Clock,
    inbox: Inbox<A::Message>,
    /// Commands of one event are carried out before the next is applied.
    events: VecDeque<Event<A>>,
    /// By time; the number orders those of the same moment.
    alarms: BTreeMap<(Instant, u64), A::Alarm>,
    next_alarm: u64,
    is_stopping: bool,
    /// Whether the controller gets no more events.
    is_ended: bool,
}

impl<A: Actor> std::fmt::Debug for Core<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("is_stopping", &self.is_stopping).finish_non_exhaustive()
    }
}

impl<A: Actor> Core<A> {
    /// Creates it without events and alarms.
    #[must_use]
    pub const fn new(controller: A::Controller, clock: Clock, inbox: Inbox<A::Message>) -> Self {
        Self {
            controller,
            clock,
            inbox,
            events: VecDeque::new(),
            alarms: BTreeMap::new(),
            next_alarm: 0,
            is_stopping: false,
            is_ended: false,
        }
    }

    /// Returns the time of the controller.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.passed()
    }

    /// Whether the driver is to stop.
    #[must_use]
    pub const fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Queues an event, which is applied when the commands of earlier ones are carried out.
    pub fn queue(&mut self, event: Event<A>) {
        if !self.is_ended {
            self.events.push_back(event);
        }
    }

    /// Passes an event to the controller and returns its commands.
    pub fn step(&mut self, now: Instant, event: Event<A>) -> Vec<Command<A>> {
        let mut out = Outbox::new();
        self.controller.step(now, event, &mut out);
        out.drain().collect()
    }

    /// Sets an alarm.
    pub fn set_alarm(&mut self, at: Instant, alarm: A::Alarm) {
        self.next_alarm += 1;
        self.alarms.insert((at, self.next_alarm), alarm);
    }

    /// Removes all events and alarms.
    pub fn clear(&mut self) {
        self.events.clear();
        self.alarms.clear();
    }

    /// Removes all events and alarms, and passes nothing more to the controller. For an actor that
    /// stops and only waits for its workers.
    pub fn end(&mut self) {
        self.clear();
        self.is_ended = true;
    }

    /// Returns the controller's deadline, unless it gets no more events.
    fn deadline(&self) -> Option<Instant> {
        if self.is_ended { None } else { self.controller.deadline() }
    }

    /// Runs `work` on a thread of its own. `then` makes a message of its result, or of its panic.
    ///
    /// # Errors
    /// When no thread can be started.
    #[expect(clippy::disallowed_methods, reason = "a driver owns the threads of its workers")]
    pub fn spawn<T>(
        &self,
        name: String,
        work: impl FnOnce() -> T + Send + 'static,
        then: impl FnOnce(Result<T, Panicked>) -> A::Message + Send + 'static,
    ) -> std::io::Result<()> {
        let inbox = self.inbox.clone();
        std::thread::Builder::new().name(name).spawn(move || {
            // If the driver is gone, nobody waits for the result.
            let _ = inbox.send(then(catch_panic(work)));
        })?;
        Ok(())
    }

    fn due_alarm(&mut self) -> Option<A::Alarm> {
        let first = self.alarms.first_entry().filter(|first| first.key().0 <= self.clock.passed());
        Some(first?.remove())
    }
}

/// A panic that was caught, with its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked(String);

impl std::fmt::Display for Panicked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "panicked: {}", self.0)
    }
}

impl std::error::Error for Panicked {}

/// Runs `work`. Locks that it held when it panicked are used again.
///
/// # Errors
/// When it panicked.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Panicked(message(&*payload).to_owned()))
}

/// Returns the message of a panic.
fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let owned = || payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(owned).unwrap_or("no message")
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The inbox is full.
    Full,
    /// The thread has ended.
    Stopped,
}

enum Envelope<M> {
    Message(M),
    /// The clock or a flag changed.
    Wake,
    Stop,
}

#[derive(Debug, Default)]
struct Signals {
    /// Set by a `Wake`, and reset in each turn before the clock is read, so that a clock that
    /// advances often does not fill the inbox.
    is_woken: AtomicBool,
    /// Whether the handle was dropped, or the thread itself asked for the stop.
    is_stop_requested: AtomicBool,
}

/// The sending end of an inbox.
pub struct Inbox<M> {
    sender: SyncSender<Envelope<M>>,
    signals: Arc<Signals>,
}

impl<M> std::fmt::Debug for Inbox<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inbox")
    }
}

impl<M> Clone for Inbox<M> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), signals: Arc::clone(&self.signals) }
    }
}

/// The receiving end of an inbox.
pub struct Messages<M> {
    receiver: Receiver<Envelope<M>>,
    signals: Arc<Signals>,
}

impl<M> std::fmt::Debug for Messages<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Messages")
    }
}

/// Creates an inbox for at most this many waiting messages, whose receiver wakes when a manual
/// clock is advanced.
#[must_use]
pub fn inbox<M: Send + 'static>(messages_max: usize, clock: &Clock) -> (Inbox<M>, Messages<M>) {
    let (sender, receiver) = mpsc::sync_channel(messages_max);
    let signals = Arc::<Signals>::default();
    let inbox = Inbox { sender, signals: Arc::clone(&signals) };
    let waker = inbox.clone();
    clock.listen(move || waker.wake());
    (inbox, Messages { receiver, signals })
}

impl<M> Inbox<M> {
    /// Sends a message; waits while the inbox is full.
    ///
    /// # Errors
    /// [`SendError::Stopped`].
    pub fn send(&self, message: M) -> Result<(), SendError> {
        self.sender.send(Envelope::Message(message)).map_err(|_| SendError::Stopped)
    }

    /// Sends a message if there is room.
    ///
    /// # Errors
    /// When it was not sent.
    pub fn try_send(&self, message: M) -> Result<(), SendError> {
        self.sender.try_send(Envelope::Message(message)).map_err(|refused| match refused {
            TrySendError::Full(_) => SendError::Full,
            TrySendError::Disconnected(_) => SendError::Stopped,
        })
    }

    fn wake(&self) {
        if !self.signals.is_woken.swap(true, Ordering::AcqRel) {
            // A full inbox is as good: the thread has a turn before it sleeps.
            drop(self.sender.try_send(Envelope::Wake));
        }
    }
}

impl<M> Messages<M> {
    /// Waits for the next message, until this time of the clock.
    fn next(&self, clock: &Clock, until: Option<Instant>) -> Option<Envelope<M>> {
        let now = clock.passed();
        match clock.sleep_until(until.unwrap_or(now + IDLE)) {
            Some(time) => self.receiver.recv_timeout(time.into()).ok(),
            // A manual clock advances only when its owner turns it, which wakes the thread.
            None if until.is_some_and(|until| until <= now) => None,
            None => self.receiver.recv().ok(),
        }
    }
}

/// The handle of a driver's thread. When it is dropped, the thread stops; only
/// [`stop`](Self::stop) waits for that.
pub struct Driver<M> {
    inbox: Inbox<M>,
    id: ThreadId,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<M> std::fmt::Debug for Driver<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Driver")
    }
}

impl<M: Send + 'static> Driver<M> {
    /// Starts the thread of an actor, whose core has the other end of this inbox.
    ///
    /// # Errors
    /// When no thread can be started.
    #[expect(clippy::disallowed_methods, reason = "this is where the threads of drivers begin")]
    pub fn start<A: Actor<Message = M>>(
        name: String,
        mut actor: A,
        messages: Messages<M>,
    ) -> std::io::Result<Self> {
        let inbox = actor.core().inbox.clone();
        let run = move || run(actor, &messages);
        let thread = std::thread::Builder::new().name(name).spawn(run)?;
        Ok(Self { inbox, id: thread.thread().id(), thread: Mutex::new(Some(thread)) })
    }

    /// Returns its inbox.
    #[must_use]
    pub const fn inbox(&self) -> &Inbox<M> {
        &self.inbox
    }

    /// Stops the thread after the messages that wait: what runs finishes, what waits is refused.
    /// Returns when the thread has ended, unless it is called by that thread. A worker must not
    /// call it: the thread waits for its workers.
    pub fn stop(&self) {
        if std::thread::current().id() == self.id {
            self.inbox.signals.is_stop_requested.store(true, Ordering::Release);
            return;
        }
        // The thread may have ended already.
        let _ = self.inbox.sender.send(Envelope::Stop);
        // A second caller waits here for the first.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("a driver panicked when it ended");
        }
    }
}

impl<M> Drop for Driver<M> {
    fn drop(&mut self) {
        self.inbox.signals.is_stop_requested.store(true, Ordering::Release);
        self.inbox.wake();
    }
}

fn run<A: Actor>(mut actor: A, messages: &Messages<A::Message>) {
    let mut served = catch_panic(|| serve(&mut actor, messages));
    while let Err(panicked) = served {
        if !catch_panic(|| actor.recover(&panicked)).unwrap_or(false) {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default();
            tracing::error!(
                "the driver \"{name}\" {panicked}; this is a bug; it is stopped until the next \
                 start"
            );
            return;
        }
        served = catch_panic(|| serve(&mut actor, messages));
    }
    actor.end();
}

/// Serves until the actor has stopped.
fn serve<A: Actor>(actor: &mut A, messages: &Messages<A::Message>) {
    actor.settle();
    while !(actor.core().is_stopping && actor.is_idle()) {
        let own = actor.deadline();
        let core = actor.core();
        let alarm = core.alarms.first_key_value().map(|((at, _), _)| *at);
        let due = [own, core.deadline(), alarm].into_iter().flatten().min();
        let mut received = messages.next(&core.clock, due);
        let mut left = MESSAGES_PER_TURN_MAX;
        while let Some(next) = received {
            left -= 1;
            match next {
                Envelope::Message(message) => actor.handle(message),
                Envelope::Wake => {}
                Envelope::Stop => {
                    stop(actor);
                    left = 0;
                }
            }
            actor.settle();
            received = if left > 0 { messages.receiver.try_recv().ok() } else { None };
        }
        messages.signals.is_woken.swap(false, Ordering::AcqRel);
        if messages.signals.is_stop_requested.load(Ordering::Acquire) {
            stop(actor);
        }
        pass_time(actor);
        actor.end_turn();
        actor.settle();
    }
}

fn stop<A: Actor>(actor: &mut A) {
    if !std::mem::replace(&mut actor.core().is_stopping, true) {
        actor.stop();
    }
    actor.settle();
}

fn pass_time<A: Actor>(actor: &mut A) {
    while let Some(alarm) = actor.core().due_alarm() {
        actor.ring(alarm);
        actor.settle();
    }
    let core = actor.core();
    if core.deadline().is_some_and(|at| at <= core.now()) {
        actor.step(A::TIMER);
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests send and stop from several threads")]
mod tests;

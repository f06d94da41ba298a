//! Replays the external events of a log to one library with the twin's machines, event by event;
//! with the restore controller in front if there is a log of the restores as well.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_glass_core::control::{Event, Library, LibraryShape, Mechanics, Output, RequestId};
use fulgurite_restore as restore;
use fulgurite_units::{Controller as _, Duration, Instant, Outbox, Seed};

use super::restore_log::{
    PlatterMap, RestoreHistory, RestoreInput, Restores, is_successful_read, platter_of,
};
use super::{End, ServedLog, request_of};
use crate::Error;
use crate::engine::EventQueue;
use crate::glass::restore_driver::{self, RestoreDriver, RestoreOutput};
use crate::glass::utilization::{ReadUtilization, Shares};
use crate::glass::{Machines, PendingEvent, Work};

/// Multiple of the log's length after which unfinished requests count as never finishing.
const LENGTHS_MAX: u64 = 10;

/// When a request was sent in the twin, when it ended, and how.
pub(super) type RequestRecord = Option<(Instant, Instant, End)>;

/// First number of the requests of restores: no log has as many events.
const RESTORE_READS: u64 = 1 << 40;

/// The outcome of a replay.
#[derive(Debug)]
pub(super) struct ReplayResult {
    /// The outcome of each external event.
    pub(super) ends: Vec<RequestRecord>,
    /// The outcome of restores, if those were replayed instead of their reads.
    pub(super) restores: Option<RestoreReplay>,
}

/// The outcome of restores.
#[derive(Debug)]
pub(super) struct RestoreReplay {
    pub(super) history: RestoreHistory,
    /// For each read of the library, the time until its deadline, and how long it took.
    pub(super) reads: Vec<(Duration, Duration)>,
    pub(super) busy: Shares,
}

/// Replays all external events and returns their outcomes.
pub(super) fn play(
    served: &ServedLog,
    mechanics: Mechanics,
    seed: &Seed,
) -> Result<ReplayResult, Error> {
    let library = Library::with_policy(&served.shape, served.policy.clone())?;
    let drives = usize::from(served.shape.drives_per_panel() * served.shape.panels);
    let seed = seed.child(b"machines");
    let count = served.external_events.len();
    let mut play = Replayer {
        served,
        library,
        machines: Machines::with_mechanics(&served.shape, mechanics, drives, &seed),
        event_queue: EventQueue::new(),
        due: BTreeSet::new(),
        followers: vec![Vec::new(); count],
        at_once: Vec::new(),
        begun: vec![None; count],
        ended: vec![None; count],
        clients: served.restores.as_ref().map(|log| Clients::new(log, &served.shape)),
        open: 0,
        out: Outbox::new(),
        timer: None,
        now: Instant::ZERO,
    };
    for (number, ask) in served.external_events.iter().enumerate() {
        // The reads of restores are derived again from the restores.
        if play.clients.is_some() && matches!(ask.event, Event::Read { .. } | Event::Cancel { .. })
        {
            continue;
        }
        match ask.follows {
            Some(verification) => play.followers[verification].push(number),
            None => {
                play.due.insert((ask.at, number));
            }
        }
    }
    play.run();
    let restores = play.clients.map(|clients| RestoreReplay {
        history: clients.history,
        reads: clients.reads,
        busy: clients.busy.shares(),
    });
    Ok(ReplayResult { ends: play.ended, restores })
}

/// The clients that request restores.
struct Clients<'a> {
    log: &'a Restores,
    restore_driver: RestoreDriver,
    platter_map: PlatterMap,
    /// Number of inputs passed to the controller so far.
    inputs_passed: usize,
    timer: Option<Instant>,
    history: RestoreHistory,
    /// For each read, when it began, and the time until its deadline.
    begun: BTreeMap<RequestId, (Instant, Duration)>,
    reads: Vec<(Duration, Duration)>,
    busy: ReadUtilization,
}

impl<'a> Clients<'a> {
    fn new(log: &'a Restores, shape: &LibraryShape) -> Self {
        Self {
            log,
            restore_driver: RestoreDriver::new(log.drives, RESTORE_READS),
            platter_map: log.platter_map.clone(),
            inputs_passed: 0,
            timer: None,
            history: RestoreHistory::default(),
            begun: BTreeMap::new(),
            reads: Vec::new(),
            busy: ReadUtilization::new(shape),
        }
    }

    fn next_at(&self) -> Option<Instant> {
        self.log.inputs.get(self.inputs_passed).map(|(at, _)| *at)
    }

    fn is_done(&self) -> bool {
        self.next_at().is_none() && self.restore_driver.is_idle()
    }

    fn pass_next_input(&mut self) {
        let Some((_, input)) = self.log.inputs.get(self.inputs_passed) else { return };
        self.inputs_passed += 1;
        match input {
            RestoreInput::Asked { restore, retrieval, at, parts } => {
                self.restore_driver.request_restore(*restore, *retrieval, *at, parts.clone());
            }
            RestoreInput::Room(bytes) => {
                self.restore_driver.pass_event(restore::Event::Room { bytes: *bytes })
            }
            RestoreInput::Forgotten(restore) => self.restore_driver.cancel(*restore),
        }
    }

    /// Returns the next read that restores need from the library.
    fn next_read(&mut self, now: Instant) -> Option<Event> {
        loop {
            let history = &mut self.history;
            let wanted =
                self.restore_driver.next(now, &mut self.platter_map, |trace| match trace {
                    restore_driver::ControllerTrace::Event(event) => history.event(now, event),
                    restore_driver::ControllerTrace::Command(command) => {
                        history.command(now, command)
                    }
                })?;
            if let RestoreOutput::Read { request, place, tracks, due } = wanted {
                let (deadline, slot) = (self.log.instant(due), self.platter_map.slot(place));
                self.begun.insert(request, (now, deadline.since(now)));
                let platter = platter_of(place);
                return Some(Event::Read { request, platter, slot, tracks, deadline });
            }
        }
    }

    fn ended(&mut self, now: Instant, request: RequestId, end: End) {
        if let Some((begun, left)) = self.begun.remove(&request) {
            if is_successful_read(end) {
                self.reads.push((left, now.since(begun)));
            }
            self.restore_driver.ended(request, is_successful_read(end), &mut self.platter_map);
        }
    }
}

struct Replayer<'a> {
    served: &'a ServedLog,
    library: Library,
    machines: Machines,
    event_queue: EventQueue<PendingEvent>,
    /// External events still to come, by time.
    due: BTreeSet<(Instant, usize)>,
    /// The store requests that follow each verification.
    followers: Vec<Vec<usize>>,
    /// Those that follow the request that just ended without delay.
    at_once: Vec<usize>,
    begun: Vec<Option<Instant>>,
    ended: Vec<RequestRecord>,
    clients: Option<Clients<'a>>,
    /// Requests in progress.
    open: usize,
    out: Outbox<Output>,
    timer: Option<Instant>,
    now: Instant,
}

impl Replayer<'_> {
    fn run(&mut self) {
        let limit = self.served.until.as_nanos().saturating_mul(LENGTHS_MAX);
        while !self.is_done() && self.now.as_nanos() <= limit {
            let ask = self.due.first().copied();
            let next_at = self.event_queue.next_at();
            let soonest = next_at.into_iter().chain(ask.map(|(at, _)| at)).min();
            if let Some(clients) = &mut self.clients
                && let Some(at) = clients.next_at()
                && soonest.is_none_or(|next| at < next)
            {
                self.now = at;
                clients.pass_next_input();
                self.settle();
            } else if let Some((at, number)) =
                ask.filter(|(at, _)| next_at.is_none_or(|next| *at < next))
            {
                self.due.remove(&(at, number));
                self.now = at;
                self.send(number);
            } else if let Some((at, next)) = self.event_queue.pop() {
                self.now = at;
                self.handle_event(next);
            } else {
                return;
            }
        }
    }

    fn is_done(&self) -> bool {
        let is_idle = self.open == 0 && self.due.is_empty();
        is_idle && self.clients.as_ref().is_none_or(Clients::is_done)
    }

    fn send(&mut self, number: usize) {
        let event = self.begin(number);
        self.step(event);
    }

    /// Starts an external event; returns it for the library.
    fn begin(&mut self, number: usize) -> Event {
        let event = self.served.external_events[number].event;
        if let Event::Broke { machine } = event {
            self.machines.break_down(machine);
        } else if let Event::Repaired { machine } = event {
            self.machines.repair(machine);
        }
        if request_of(&event).is_some() {
            self.begun[number] = Some(self.now);
            self.open += 1;
        }
        event
    }

    fn handle_event(&mut self, next: PendingEvent) {
        match next {
            PendingEvent::Done(command, device) => {
                if let Some(work) = self.machines.done(command, device) {
                    self.answer(&work);
                }
            }
            PendingEvent::Alarm(drive) => {
                if let Some(work) = self.machines.alarm(self.now, drive, &mut self.event_queue) {
                    self.answer(&work);
                }
            }
            PendingEvent::Passed(command, device, at) => {
                if self.machines.is_under_way(command, device) {
                    self.step(Event::Passed { command, at });
                }
            }
            PendingEvent::Timer => {
                if self.timer == Some(self.now) {
                    self.timer = None;
                    self.step(Event::Timer);
                }
            }
            PendingEvent::RestoreTimer => {
                if let Some(clients) = &mut self.clients
                    && clients.timer == Some(self.now)
                {
                    clients.timer = None;
                    clients.restore_driver.pass_event(restore::Event::Timer);
                    self.settle();
                }
            }
            // These belong to scenarios; here they come from the log, as external events.
            PendingEvent::Break(_)
            | PendingEvent::Repair(_)
            | PendingEvent::Swap(_)
            | PendingEvent::PollBatteries
            | PendingEvent::Write(_) => {}
        }
    }

    fn answer(&mut self, work: &Work) {
        let answer = self.machines.answer(work);
        self.step(answer);
    }

    fn step(&mut self, event: Event) {
        self.step_once(event);
        self.settle();
    }

    /// Steps the library with the events that follow at once and the reads that restores need by
    /// now. Sets the timers.
    fn settle(&mut self) {
        while let Some(event) = self.next_event() {
            self.step_once(event);
        }
        if let Some(due) = self.library.deadline()
            && self.timer.is_none_or(|timer| due < timer)
        {
            self.timer = Some(due);
            self.event_queue.push(due, PendingEvent::Timer);
        }
        if let Some(clients) = &mut self.clients
            && let Some(due) = clients.restore_driver.deadline()
            && clients.timer.is_none_or(|timer| due < timer)
        {
            clients.timer = Some(due);
            self.event_queue.push(due, PendingEvent::RestoreTimer);
        }
    }

    fn next_event(&mut self) -> Option<Event> {
        if let Some(follower) = self.at_once.pop() {
            return Some(self.begin(follower));
        }
        self.clients.as_mut().and_then(|clients| clients.next_read(self.now))
    }

    fn step_once(&mut self, event: Event) {
        if let Some(clients) = &mut self.clients {
            clients.busy.event(self.now, &event);
        }
        self.library.step(self.now, event, &mut self.out);
        for output in self.out.drain().collect::<Vec<_>>() {
            if let Some(clients) = &mut self.clients {
                clients.busy.output(self.now, &output);
            }
            match output {
                Output::Do(command) => {
                    self.machines.start(self.now, &command, &mut self.event_queue)
                }
                Output::Halt { command } => {
                    self.machines.halt(self.now, command, &mut self.event_queue)
                }
                Output::Finished { request, outcome } => self.end(request, End::Finished(outcome)),
                Output::Rejected { request, .. } => self.end(request, End::Rejected),
                Output::Traveled(_) => {}
            }
        }
    }

    fn end(&mut self, request: RequestId, end: End) {
        if request.get() >= RESTORE_READS {
            if let Some(clients) = &mut self.clients {
                clients.ended(self.now, request, end);
            }
            return;
        }
        let number = usize::try_from(request.get()).unwrap_or(usize::MAX);
        if let Some(begun) = self.begun[number] {
            self.ended[number] = Some((begun, self.now, end));
            self.open -= 1;
        }
        let verified_at = self.served.external_events[number].ended.map(|(at, _)| at);
        for follower in std::mem::take(&mut self.followers[number]) {
            let requested = self.served.external_events[follower].at;
            let after = verified_at.map_or(Duration::ZERO, |at| requested.since(at));
            if after == Duration::ZERO {
                self.at_once.push(follower);
            } else {
                self.due.insert((self.now + after, follower));
            }
        }
    }
}

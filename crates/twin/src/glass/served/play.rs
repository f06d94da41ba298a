//! Replays the external events of a log to one library with the twin's machines, event by event;
//! with the restore controller in front if there is a log of the restores as well.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_library::{Event, Library, LibraryShape, Mechanics, Output, RequestId};
use fulgurite_restore as restore;
use fulgurite_units::{Controller as _, Duration, Instant, Outbox, Seed};

use super::restores::{Course, Restores, Shelf, Told, platter_of, was_read};
use super::{End, Served, request_of};
use crate::Error;
use crate::engine::Agenda;
use crate::glass::busy::{Busy, Shares};
use crate::glass::restoring::{self, Restoring, Wanted};
use crate::glass::{Machines, Next, Work};

/// Multiple of the log's length after which unfinished requests count as never finishing.
const LENGTHS_MAX: u64 = 10;

/// When a request was sent in the twin, when it ended, and how.
pub(super) type Ended = Option<(Instant, Instant, End)>;

/// First number of the requests of restores: no log has as many events.
const RESTORE_READS: u64 = 1 << 40;

/// The outcome of a replay.
#[derive(Debug)]
pub(super) struct Played {
    /// The outcome of each external event.
    pub(super) ends: Vec<Ended>,
    /// The outcome of restores, if those were replayed instead of their reads.
    pub(super) restores: Option<PlayedRestores>,
}

/// The outcome of restores.
#[derive(Debug)]
pub(super) struct PlayedRestores {
    pub(super) course: Course,
    /// For each read of the library, the time until its deadline, and how long it took.
    pub(super) reads: Vec<(Duration, Duration)>,
    pub(super) busy: Shares,
}

/// Replays all external events and returns their outcomes.
pub(super) fn play(served: &Served, mechanics: Mechanics, seed: &Seed) -> Result<Played, Error> {
    let library = Library::with_policy(&served.shape, served.policy.clone())?;
    let drives = usize::from(served.shape.drives_per_panel() * served.shape.panels);
    let seed = seed.child(b"machines");
    let count = served.asks.len();
    let mut play = Play {
        served,
        library,
        machines: Machines::with_mechanics(&served.shape, mechanics, drives, &seed),
        agenda: Agenda::new(),
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
    for (number, ask) in served.asks.iter().enumerate() {
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
    let restores = play.clients.map(|clients| PlayedRestores {
        course: clients.course,
        reads: clients.reads,
        busy: clients.busy.shares(),
    });
    Ok(Played { ends: play.ended, restores })
}

/// The clients that request restores.
struct Clients<'a> {
    log: &'a Restores,
    restoring: Restoring,
    shelf: Shelf,
    /// Number of inputs passed to the controller so far.
    told: usize,
    timer: Option<Instant>,
    course: Course,
    /// For each read, when it began, and the time until its deadline.
    begun: BTreeMap<RequestId, (Instant, Duration)>,
    reads: Vec<(Duration, Duration)>,
    busy: Busy,
}

impl<'a> Clients<'a> {
    fn new(log: &'a Restores, shape: &LibraryShape) -> Self {
        Self {
            log,
            restoring: Restoring::new(log.drives, RESTORE_READS),
            shelf: log.shelf.clone(),
            told: 0,
            timer: None,
            course: Course::default(),
            begun: BTreeMap::new(),
            reads: Vec::new(),
            busy: Busy::new(shape),
        }
    }

    fn next_at(&self) -> Option<Instant> {
        self.log.told.get(self.told).map(|(at, _)| *at)
    }

    fn is_done(&self) -> bool {
        self.next_at().is_none() && self.restoring.is_idle()
    }

    fn tell_next(&mut self) {
        let Some((_, told)) = self.log.told.get(self.told) else { return };
        self.told += 1;
        match told {
            Told::Asked { restore, retrieval, at, parts } => {
                self.restoring.ask(*restore, *retrieval, *at, parts.clone());
            }
            Told::Room(bytes) => self.restoring.tell(restore::Event::Room { bytes: *bytes }),
            Told::Forgotten(restore) => self.restoring.forget(*restore),
        }
    }

    /// Returns the next read that restores need from the library.
    fn next_read(&mut self, now: Instant) -> Option<Event> {
        loop {
            let course = &mut self.course;
            let wanted = self.restoring.next(now, &mut self.shelf, |told| match told {
                restoring::Told::Event(event) => course.event(now, event),
                restoring::Told::Command(command) => course.command(now, command),
            })?;
            if let Wanted::Read { request, place, tracks, due } = wanted {
                let (deadline, slot) = (self.log.instant(due), self.shelf.slot(place));
                self.begun.insert(request, (now, deadline.since(now)));
                let platter = platter_of(place);
                return Some(Event::Read { request, platter, slot, tracks, deadline });
            }
        }
    }

    fn ended(&mut self, now: Instant, request: RequestId, end: End) {
        if let Some((begun, left)) = self.begun.remove(&request) {
            if was_read(end) {
                self.reads.push((left, now.since(begun)));
            }
            self.restoring.ended(request, was_read(end), &mut self.shelf);
        }
    }
}

struct Play<'a> {
    served: &'a Served,
    library: Library,
    machines: Machines,
    agenda: Agenda<Next>,
    /// External events still to come, by time.
    due: BTreeSet<(Instant, usize)>,
    /// The store requests that follow each verification.
    followers: Vec<Vec<usize>>,
    /// Those that follow the request that just ended without delay.
    at_once: Vec<usize>,
    begun: Vec<Option<Instant>>,
    ended: Vec<Ended>,
    clients: Option<Clients<'a>>,
    /// Requests in progress.
    open: usize,
    out: Outbox<Output>,
    timer: Option<Instant>,
    now: Instant,
}

impl Play<'_> {
    fn run(&mut self) {
        let limit = self.served.until.as_nanos().saturating_mul(LENGTHS_MAX);
        while !self.is_done() && self.now.as_nanos() <= limit {
            let ask = self.due.first().copied();
            let next_at = self.agenda.next_at();
            let soonest = next_at.into_iter().chain(ask.map(|(at, _)| at)).min();
            if let Some(clients) = &mut self.clients
                && let Some(at) = clients.next_at()
                && soonest.is_none_or(|next| at < next)
            {
                self.now = at;
                clients.tell_next();
                self.settle();
            } else if let Some((at, number)) =
                ask.filter(|(at, _)| next_at.is_none_or(|next| *at < next))
            {
                self.due.remove(&(at, number));
                self.now = at;
                self.ask(number);
            } else if let Some((at, next)) = self.agenda.pop() {
                self.now = at;
                self.happen(next);
            } else {
                return;
            }
        }
    }

    fn is_done(&self) -> bool {
        let asked = self.open == 0 && self.due.is_empty();
        asked && self.clients.as_ref().is_none_or(Clients::is_done)
    }

    fn ask(&mut self, number: usize) {
        let event = self.begin(number);
        self.step(event);
    }

    /// Starts an external event; returns it for the library.
    fn begin(&mut self, number: usize) -> Event {
        let event = self.served.asks[number].event;
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

    fn happen(&mut self, next: Next) {
        match next {
            Next::Done(command, device) => {
                if let Some(work) = self.machines.done(command, device) {
                    self.answer(&work);
                }
            }
            Next::Alarm(drive) => {
                if let Some(work) = self.machines.alarm(self.now, drive, &mut self.agenda) {
                    self.answer(&work);
                }
            }
            Next::Passed(command, device, at) => {
                if self.machines.is_under_way(command, device) {
                    self.step(Event::Passed { command, at });
                }
            }
            Next::Timer => {
                if self.timer == Some(self.now) {
                    self.timer = None;
                    self.step(Event::Timer);
                }
            }
            Next::Rested => {
                if let Some(clients) = &mut self.clients
                    && clients.timer == Some(self.now)
                {
                    clients.timer = None;
                    clients.restoring.tell(restore::Event::Timer);
                    self.settle();
                }
            }
            // These belong to scenarios; here they come from the log, as external events.
            Next::Break(_) | Next::Repair(_) | Next::Swap(_) | Next::Look | Next::Write(_) => {}
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
            self.agenda.push(due, Next::Timer);
        }
        if let Some(clients) = &mut self.clients
            && let Some(due) = clients.restoring.deadline()
            && clients.timer.is_none_or(|timer| due < timer)
        {
            clients.timer = Some(due);
            self.agenda.push(due, Next::Rested);
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
                Output::Do(command) => self.machines.start(self.now, &command, &mut self.agenda),
                Output::Halt { command } => self.machines.halt(self.now, command, &mut self.agenda),
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
        let verified_at = self.served.asks[number].ended.map(|(at, _)| at);
        for follower in std::mem::take(&mut self.followers[number]) {
            let asked = self.served.asks[follower].at;
            let after = verified_at.map_or(Duration::ZERO, |at| asked.since(at));
            if after == Duration::ZERO {
                self.at_once.push(follower);
            } else {
                self.due.insert((self.now + after, follower));
            }
        }
    }
}

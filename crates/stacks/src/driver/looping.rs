//! The driver's thread: turns messages into events, and commands into actions.

mod looks;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_disks::{CauseKind, GroupId, Health, LedgerFile, PlaceId, Power, Wake};
use fulgurite_rack::{
    Assignment, Command, Event, GroupState, Loss, Members, Op, OpId, OpKind, Part, PlaceState,
    Rack, Refusal, Side, Wakes, Watts,
};
use fulgurite_units::{Clock, Controller as _, Duration, Instant, Outbox, UnixTime, error_chain};

use self::looks::Looks;
use super::snapshot::{DiskSnapshot, GroupRoom, GroupSnapshot, Since, Snapshot};
use super::stages::{Ended, How, Stage, Stagehand};
use super::watch::Watchers;
use super::{Message, Parts, Task};
use crate::index::TotalsRow;
use crate::limits::{LEDGER_REST, WRONG_DISK_REST, WRONG_DISK_REST_MAX};
use crate::scrub::{Piece, Scrubs};
use crate::work::{Arrival, Group, count, disk_name, group_name, piece_of, scrub};
use crate::{Fault, StacksError};

/// How long the thread sleeps when nothing is due.
const IDLE: Duration = Duration::from_secs(3600);

/// The failure shown for a disk that was given up.
const GIVEN_UP: &str = "given up";

/// State owned by the thread.
pub(super) struct Loop {
    rack: Rack,
    assignment: Assignment,
    hand: Stagehand,
    ledger: LedgerFile,
    clock: Clock,
    watts: Watts,
    rated_spin_ups: Option<u64>,
    inbox: SyncSender<Message>,
    /// Operations that wait or run, by id.
    tasks: BTreeMap<OpId, Waiting>,
    next_op: u64,
    running: usize,
    /// Stages that begin at a later time; the number orders those of the same moment.
    alarms: BinaryHeap<Reverse<(Instant, u64, PlaceId, Stage)>>,
    next_alarm: u64,
    troubles: BTreeMap<PlaceId, String>,
    since: Since,
    /// Spin-ups held back until the ledger can record them.
    held: BTreeMap<PlaceId, (OpId, OpKind)>,
    /// When recording is retried.
    held_until: Instant,
    /// Disks that are not the right ones: how often each was found wrong, and when it is checked
    /// again.
    wrong: BTreeMap<PlaceId, (u32, Option<Instant>)>,
    scrubs: Scrubs,
    /// Ended pieces of verifications, pushed by the worker threads.
    scrubbed: Arc<Mutex<Vec<(GroupId, Piece)>>>,
    /// Events for the controller, in order: the commands of one are carried out before the next is
    /// delivered.
    events: VecDeque<Event>,
    watchers: Watchers,
    looks: Looks,
    /// Health that disks reported when they last came up.
    health: BTreeMap<PlaceId, Health>,
    is_stopping: bool,
    /// Set when all handles of the driver were dropped.
    is_left: Arc<AtomicBool>,
}

struct Waiting {
    group: GroupId,
    /// None while it runs.
    task: Option<Task>,
}

impl Loop {
    pub(super) fn new(parts: Parts, inbox: SyncSender<Message>, is_left: Arc<AtomicBool>) -> Self {
        let rated_spin_ups = parts.rated_spin_ups;
        let Parts { rack, assignment, shop, backend, ledger, clock, watts, scrubs, .. } = parts;
        // Disks given up before the last start remain given up.
        let lost = |place| Event::Lost { part: Part::Place(place), loss: Loss::Gone };
        let given_up = shop.places.given_up();
        let troubles = given_up.iter().map(|&place| (place, GIVEN_UP.to_owned())).collect();
        let events = given_up.into_iter().map(lost).collect();
        Self {
            rack,
            assignment,
            hand: Stagehand { backend, shop },
            ledger,
            clock,
            watts,
            rated_spin_ups,
            inbox,
            tasks: BTreeMap::new(),
            next_op: 0,
            running: 0,
            alarms: BinaryHeap::new(),
            next_alarm: 0,
            troubles,
            since: Since::default(),
            held: BTreeMap::new(),
            held_until: Instant::ZERO,
            wrong: BTreeMap::new(),
            scrubs,
            scrubbed: Arc::default(),
            events,
            watchers: Watchers::default(),
            looks: Looks::default(),
            health: BTreeMap::new(),
            is_stopping: false,
            is_left,
        }
    }

    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        while !self.is_stopping || self.running > 0 {
            match self.next(messages) {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.is_left.load(Ordering::Acquire) && !self.is_stopping {
                self.begin_to_stop();
            }
            self.settle();
            self.pass_time();
            self.settle();
            self.scrub();
            self.settle();
            self.look();
            self.settle();
            let states = self.assignment.groups().map(|group| self.rack.group_state(group).into());
            let slept = self.since.look(states, self.clock.now());
            self.remember_rooms(&slept);
        }
        self.end();
    }

    /// Returns the next message, or a timeout when something is due before one arrives.
    fn next(&self, messages: &Receiver<Message>) -> Result<Message, RecvTimeoutError> {
        let now = self.clock.passed();
        let alarm = self.alarms.peek().map(|Reverse((at, ..))| *at);
        let held = (!self.held.is_empty()).then_some(self.held_until);
        let wrong = self.wrong.values().filter_map(|(_, until)| *until).min();
        let scrub = self.scrubs.deadline().filter(|_| !self.is_stopping);
        let scrub = scrub.map(|at| now + at.since(self.clock.now()));
        // A piece that was refused at once has ended already.
        let ended = (!self.is_stopping && !lock(&self.scrubbed).is_empty()).then_some(now);
        let look = self.looks.deadline().filter(|_| !self.is_stopping);
        let due = [alarm, self.rack.deadline(), held, wrong, scrub, ended, look]
            .into_iter()
            .flatten()
            .min();
        match self.clock.sleep_until(due.unwrap_or(now + IDLE)) {
            Some(time) => messages.recv_timeout(time.into()),
            // A manual clock advances only when its owner turns it, which sends a message.
            None if due.is_some_and(|due| due <= now) => Err(RecvTimeoutError::Timeout),
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Submit(task) => self.submit(task),
            Message::Stage(ended) => self.stage_ended(ended),
            Message::Worked(op) => {
                self.running -= 1;
                self.tasks.remove(&op);
                let now = self.clock.passed();
                self.watchers.unmended(now, &self.hand.shop.unmended.take());
                self.tell(Event::Done { op });
            }
            Message::GiveUp(place) => {
                self.wrong.remove(&place);
                self.trouble(place, GIVEN_UP.to_owned());
                self.held.remove(&place);
                // A spinning disk uses its share of power until it is spun down.
                let power = self.hand.shop.guard.power(place);
                let turns = power.is_some_and(Power::turns);
                let loss = if turns { Loss::Barred } else { Loss::Gone };
                self.tell(Event::Lost { part: Part::Place(place), loss });
            }
            Message::Replaced(place) => {
                self.troubles.remove(&place);
                self.wrong.remove(&place);
                self.looks.replaced(place);
                self.hand.shop.starts.forget(place);
                self.health.remove(&place);
                if let Err(error) = self.ledger.replaced(place) {
                    tracing::warn!(%place, "the ledger: {}", error_chain(&error));
                }
                self.tell(Event::Back { part: Part::Place(place) });
            }
            Message::Verified(group, Some(now_ms)) => self.scrubs.verified(group, now_ms),
            Message::Verified(group, None) => self.scrubs.ask(group),
            Message::Snapshot(send) => drop(send.send(self.snapshot())),
            Message::Wakes(send) => {
                drop(send.send(self.ledger.ledger().recent().cloned().collect()));
            }
            Message::Watch(watcher) => {
                let (now, scene) = (self.clock.passed(), self.snapshot());
                self.watchers.add(watcher, now, &scene);
            }
            Message::Looked(looked) => self.looked(looked),
            Message::Turned => {}
            Message::Stop => self.begin_to_stop(),
        }
    }

    /// Fails waiting operations with an error; running ones are allowed to finish.
    fn begin_to_stop(&mut self) {
        self.is_stopping = true;
        let waiting = self.tasks.values_mut().filter_map(|waiting| waiting.task.take());
        waiting.for_each(|task| (task.work)(Err(StacksError::Stopping)));
    }

    /// Begins the pieces of verifications that are due and whose predecessors have ended.
    fn scrub(&mut self) {
        let now = self.clock.now();
        let ended = std::mem::take(&mut *lock(&self.scrubbed));
        for (group, piece) in ended {
            self.scrubs.ended(group, &piece, now);
        }
        if self.is_stopping {
            return;
        }
        let rack = &self.rack;
        let begun = self.scrubs.begin(now, |of| rack.group_state(of) == GroupState::Spinning);
        for (group, after) in begun {
            let shop = Arc::clone(&self.hand.shop);
            let blobs = piece_of(&shop, group, after).unwrap_or_default();
            let bytes = blobs.iter().map(|(_, row)| row.length).sum();
            let (ended, clock) = (Arc::clone(&self.scrubbed), self.clock.clone());
            let work = move |ready: crate::Result<&Group>| {
                let now_ms = clock.now().as_millis();
                let done = ready.and_then(|ready| scrub(&shop, ready, after, now_ms));
                let piece = done.unwrap_or_else(|error| {
                    tracing::warn!(%group, "a verification is put off: {error}");
                    Piece::Failed
                });
                lock(&ended).push((group, piece));
            };
            self.submit(Task {
                group,
                kind: OpKind::Scrub,
                bytes,
                due: None,
                needs: None,
                work: Box::new(work),
            });
        }
    }

    /// Handles whatever is due by now.
    fn pass_time(&mut self) {
        let now = self.clock.passed();
        while let Some(&Reverse((at, _, place, stage))) = self.alarms.peek() {
            if at > now {
                break;
            }
            self.alarms.pop();
            self.act(place, stage);
            self.settle();
        }
        if !self.held.is_empty() && self.held_until <= now {
            self.try_the_held();
        }
        for (&place, (_, until)) in &mut self.wrong {
            if until.take_if(|until| *until <= now).is_some() {
                self.events.push_back(Event::Back { part: Part::Place(place) });
            }
        }
        if self.rack.deadline().is_some_and(|due| due <= now) {
            self.tell(Event::Timer);
        }
    }

    fn submit(&mut self, task: Task) {
        if self.is_stopping {
            (task.work)(Err(StacksError::Stopping));
            return;
        }
        let id = OpId::new(self.next_op);
        self.next_op += 1;
        let group = task.group;
        let (kind, bytes) = (task.kind, task.bytes);
        let (now, passed) = (self.clock.now(), self.clock.passed());
        let due = task.due.map(|due| passed + due.since(now));
        let (members, enough) = self.needed(&task);
        self.tasks.insert(id, Waiting { group: task.group, task: Some(task) });
        self.tell(Event::Submit { op: Op { id, group, kind, bytes, members, enough, due } });
    }

    /// Returns the disks that a task can use, and how many are enough; zero, for all disks, when
    /// the policy always spins up all or too few are usable. The task then runs anyway, because it
    /// knows the disks and faults to report.
    fn needed(&self, task: &Task) -> (Members, u32) {
        let places = self.assignment.places(task.group);
        let all = (Members::first(places.len()), 0);
        let Some(needs) = &task.needs else { return all };
        if self.rack.policy().wakes == Wakes::All {
            return all;
        }
        let has = |at: &usize| needs.places.contains(&places[*at]);
        let members: Members = (0..places.len()).filter(has).collect();
        let usable = self.rack.usable(task.group).and(members).count();
        if usable < needs.enough { all } else { (members, needs.enough) }
    }

    /// Queues an event for the controller, which gets it once the commands of earlier events are
    /// carried out.
    fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Delivers all queued events to the controller and carries out its commands.
    fn settle(&mut self) {
        while let Some(event) = self.events.pop_front() {
            let mut out = Outbox::new();
            let now = self.clock.passed();
            self.rack.step(now, event, &mut out);
            let commands: Vec<Command> = out.drain().collect();
            self.watchers.step(now, &event, &commands);
            let held = self.note_wakes(&commands);
            self.obey(commands, held);
        }
        if cfg!(debug_assertions) {
            self.check();
        }
    }

    /// Asserts the invariants: those of the controller, which counts the spinning disks of each
    /// domain, and that no disk is active without the controller knowing it.
    fn check(&self) {
        self.rack.check();
        for (place, power) in self.hand.shop.guard.powers() {
            let state = self.rack.place_state(place);
            let is_known =
                !matches!(state, PlaceState::Asleep | PlaceState::Resting | PlaceState::Lost);
            assert!(is_known || !power.turns(), "disk {place} is {power}, and is to be {state:?}");
        }
    }

    fn obey(&mut self, commands: Vec<Command>, held: Option<String>) {
        for command in commands {
            match command {
                Command::SpinUp { place, op, kind } => match &held {
                    Some(why) => {
                        self.trouble(place, why.clone());
                        self.held.insert(place, (op, kind));
                        self.held_until = self.clock.passed() + LEDGER_REST;
                    }
                    None => self.turn_up(place),
                },
                Command::SpinDown { place } if self.held.remove(&place).is_some() => {
                    // Its spin-up was held back and never commanded.
                    self.tell(Event::Down { place });
                }
                // Another program spun it up, so nothing of it is mounted here.
                Command::SpinDown { place } if self.sleeps(place) => {
                    self.looks.sinks(place);
                    self.act(place, Stage::TurnDown);
                }
                Command::SpinDown { place } => self.act(place, Stage::Unmount),
                Command::Run { op, up } => self.run_task(op, up),
                Command::Refuse { op, refusal } => self.refuse(op, refusal),
                Command::Overdrawn { group, kind } => {
                    let name = group_name(group);
                    tracing::warn!(?kind, "{name} is woken beyond its budget of spin-ups");
                }
                Command::Alarm { group, away } => {
                    let name = group_name(group);
                    tracing::error!(away, "{name} has lost redundancy: disks are away");
                }
            }
        }
    }

    /// Retries to record held-back spin-ups.
    fn try_the_held(&mut self) {
        let held = std::mem::take(&mut self.held);
        let again = |(place, (op, kind))| Command::SpinUp { place, op, kind };
        let commands: Vec<Command> = held.into_iter().map(again).collect();
        let held = self.note_wakes(&commands);
        self.obey(commands, held);
    }

    /// Records which operation spins up which disks before they are commanded to. On failure it
    /// returns the reason, and no disk may be spun up.
    fn note_wakes(&mut self, commands: &[Command]) -> Option<String> {
        let mut wakes: BTreeMap<(OpId, GroupId), (OpKind, Vec<PlaceId>)> = BTreeMap::new();
        for command in commands {
            let Command::SpinUp { place, op, kind } = *command else { continue };
            let group = self.assignment.seat(place).group;
            wakes.entry((op, group)).or_insert((kind, Vec::new())).1.push(place);
        }
        for ((op, group), (kind, places)) in wakes {
            let wake =
                Wake { at: self.clock.now(), group: Some(group), places, cause: kind.cause(op) };
            let injected = self.hand.shop.injected.on_ledger().map_err(|fault| fault.to_string());
            let noted =
                injected.and_then(|()| self.ledger.note(wake).map_err(|error| error_chain(&error)));
            if let Err(what) = noted {
                return Some(format!(
                    "not woken, since its wake cannot be written down: {what}; it is tried every \
                     {} s",
                    seconds(LEDGER_REST)
                ));
            }
        }
        None
    }

    /// Whether we want the disk spun down.
    fn sleeps(&self, place: PlaceId) -> bool {
        self.hand.shop.guard.power(place) == Some(Power::Standby)
    }

    fn turn_up(&mut self, place: PlaceId) {
        if self.looks.is_sinking(place) {
            // Tried again once it has spun down.
            self.trouble(place, "another program woke it, and it is put down first".to_owned());
            return self.tell(Event::UpFailed { place });
        }
        match self.hand.shop.guard.turn(place, Power::SpinningUp) {
            Ok(()) => self.act(place, Stage::TurnUp),
            Err(error) => {
                self.trouble(place, error_chain(&error));
                self.tell(Event::UpFailed { place });
            }
        }
    }

    /// Begins a stage of a disk.
    fn act(&mut self, place: PlaceId, stage: Stage) {
        let class = self.assignment.class_of(self.assignment.seat(place).group);
        let waiting = self.rack.waiting(class, Side::Client);
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
        if self.hand.backend.is_simulated() {
            let ended = self.hand.act(place, stage, waiting);
            return self.stage_ended(ended);
        }
        let (hand, inbox) = (self.hand.clone(), self.inbox.clone());
        let act = move || drop(inbox.send(Message::Stage(hand.act(place, stage, waiting))));
        if let Err(error) = std::thread::Builder::new().name("rack-disk".to_owned()).spawn(act) {
            let how = How::Failed(format!("no thread: {error}"));
            self.stage_ended(Ended { place, stage, how });
        }
    }

    fn stage_ended(&mut self, Ended { place, stage, how }: Ended) {
        match (stage, how) {
            (Stage::TurnUp, How::Well(time)) => self.later(place, Stage::Mount, time),
            (Stage::Mount, How::Well(time)) => self.later(place, Stage::Arrive, time),
            (Stage::Unmount, How::Well(time)) => self.later(place, Stage::TurnDown, time),
            (Stage::TurnDown, How::Well(time)) => self.later(place, Stage::Rest, time),
            (Stage::Rest | Stage::Arrive, How::Well(_)) => {
                self.looks.stands_still(place);
                self.tell(Event::Down { place });
            }
            (_, How::Arrived(arrival, health)) => {
                tracing::trace!(%place, ?arrival, "a disk is active");
                if arrival == Arrival::Older {
                    self.lacks_what_came_since(place);
                }
                self.arrived(place, health);
            }
            (_, How::Wrong(fault)) => self.wrong(place, &fault),
            (Stage::TurnUp | Stage::Mount | Stage::Arrive, How::Failed(why)) => {
                self.hand.put_down(place);
                self.trouble(place, why);
                self.tell(Event::UpFailed { place });
            }
            (Stage::Unmount | Stage::TurnDown | Stage::Rest, How::Failed(why)) => {
                self.looks.does_not_sink(place);
                self.trouble(place, why);
                self.tell(Event::DownFailed { place });
            }
        }
    }

    /// Handles a disk that is active and has reported its health.
    fn arrived(&mut self, place: PlaceId, health: Option<Health>) {
        self.wrong.remove(&place);
        self.looks.came_up(place);
        if self.troubles.remove(&place).is_some() {
            tracing::info!(%place, "a disk is well again");
        }
        if let Some(health) = health {
            if health.passes == Some(false) {
                tracing::warn!(%place, "{} says that it will fail (SMART)", disk_name(place));
            }
            self.health.insert(place, health);
        }
        self.tell(Event::Up { place });
    }

    /// Handles a disk that is an older copy of itself: schedules an immediate verification, which
    /// rebuilds what it lacks.
    fn lacks_what_came_since(&mut self, place: PlaceId) {
        let group = self.assignment.seat(place).group;
        tracing::warn!(
            %place, %group,
            "{} is an older copy of itself: its group is verified now, and what it lacks is made \
             anew",
            disk_name(place)
        );
        if let Err(error) = self.hand.shop.index.ask_to_scrub(group, true) {
            tracing::warn!(%group, "a verification is not noted: {}", error_chain(&error));
        }
        self.scrubs.ask(group);
    }

    /// Handles a disk that must not be used: it is spun down and counts as lost until the next
    /// check, because the right disk may have been put back by then.
    fn wrong(&mut self, place: PlaceId, fault: &Fault) {
        self.hand.put_down(place);
        if self.hand.shop.places.is_given_up(place) {
            return self.lose(place, GIVEN_UP.to_owned());
        }
        let (times, until) = self.wrong.entry(place).or_insert((0, None));
        let rest = WRONG_DISK_REST.as_nanos().checked_shl((*times).min(32)).unwrap_or(u64::MAX);
        let rest = Duration::from_nanos(rest).min(WRONG_DISK_REST_MAX);
        *until = Some(self.clock.passed() + rest);
        *times += 1;
        // The error of a read already adds "out of reach".
        let told = fault.to_string();
        let what = if let Fault::OutOfReach { why } = fault { why } else { &told };
        self.lose(place, format!("{what}; nothing on it was changed"));
    }

    fn lose(&mut self, place: PlaceId, why: String) {
        self.held.remove(&place);
        self.trouble(place, why);
        self.tell(Event::Lost { part: Part::Place(place), loss: Loss::Gone });
    }

    fn trouble(&mut self, place: PlaceId, why: String) {
        if self.troubles.get(&place) != Some(&why) {
            tracing::warn!(%place, "{}: {why}", disk_name(place));
            self.troubles.insert(place, why);
        }
    }

    fn later(&mut self, place: PlaceId, stage: Stage, time: Duration) {
        if time == Duration::ZERO {
            return self.act(place, stage);
        }
        self.next_alarm += 1;
        self.alarms.push(Reverse((self.clock.passed() + time, self.next_alarm, place, stage)));
    }

    /// Runs an operation on a thread of its own.
    fn run_task(&mut self, op: OpId, up: Members) {
        let Some(waiting) = self.tasks.get_mut(&op) else { return self.tell(Event::Done { op }) };
        let (id, task) = (waiting.group, waiting.task.take());
        let Some(task) = task else {
            self.tasks.remove(&op);
            return self.tell(Event::Done { op });
        };
        let places = self.assignment.places(id);
        let up = up.positions().filter_map(|at| places.get(at)).copied();
        let up = up.filter(|&place| self.hand.shop.guard.power(place) == Some(Power::Active));
        let up: Vec<PlaceId> = up.collect();
        if up.is_empty() {
            let what =
                format!("{} has no disk that can be used: {}", group_name(id), self.away(id));
            self.tasks.remove(&op);
            let is_write = task.kind == OpKind::Write;
            // A write can be retried in another group.
            let error =
                if is_write { StacksError::Full { what } } else { StacksError::Busy { what } };
            (task.work)(Err(error));
            return self.tell(Event::Done { op });
        }
        let asleep = self.left_asleep(id);
        let places = self.assignment.places(id).iter();
        let troubles = places.filter_map(|at| self.troubles.get_key_value(at));
        let troubles = troubles.map(|(&at, why)| (at, why.clone())).collect();
        let group = Group { asleep, troubles, ..self.hand.shop.group(id, up) };
        let inbox = self.inbox.clone();
        let work = move || {
            let done = catch_unwind(AssertUnwindSafe(|| (task.work)(Ok(&group))));
            if done.is_err() {
                tracing::error!("an operation in {} panicked; this is a bug", group_name(id));
            }
            let _ = inbox.send(Message::Worked(op));
        };
        match std::thread::Builder::new().name("rack-work".to_owned()).spawn(work) {
            Ok(_) => self.running += 1,
            Err(error) => {
                tracing::error!("an operation in {} has no thread: {error}", group_name(id));
                self.tasks.remove(&op);
                self.tell(Event::Done { op });
            }
        }
    }

    /// Returns the disks of a group that have no failure but were not spun up for the current
    /// operation, or are not up yet.
    fn left_asleep(&self, id: GroupId) -> Vec<PlaceId> {
        let sleeps = |place: &&PlaceId| {
            let state = self.rack.place_state(**place);
            let is_down = matches!(state, PlaceState::Asleep | PlaceState::SpinningUp);
            is_down && !self.troubles.contains_key(place)
        };
        self.assignment.places(id).iter().filter(sleeps).copied().collect()
    }

    fn refuse(&mut self, op: OpId, refusal: Refusal) {
        let Some(Waiting { group, task: Some(task) }) = self.tasks.remove(&op) else { return };
        if task.needs.is_some() && matches!(refusal, Refusal::TooFew { .. }) {
            // The task knows the names of disks and their faults for its error.
            return self.submit(Task { needs: None, ..task });
        }
        let name = group_name(group);
        let what = match refusal {
            Refusal::Busy { retry_after } => {
                format!("too much waits for {name}; try again in {} s", seconds(retry_after))
            }
            Refusal::TooFew { usable, retry_after } => {
                let away = self.away(group);
                let when = match retry_after {
                    Some(time) => format!("they are tried again in {} s", seconds(time)),
                    None => "they have to be replaced".to_owned(),
                };
                format!("{name} has {usable} disks that can be used; {when}: {away}")
            }
        };
        (task.work)(Err(StacksError::Busy { what }));
    }

    /// Returns the failures of a group's disks.
    fn away(&self, group: GroupId) -> String {
        let places = self.assignment.places(group);
        let told = places.iter().filter_map(|&place| {
            Some(format!("{}: {}", disk_name(place), self.troubles.get(&place)?))
        });
        told.collect::<Vec<_>>().join("; ")
    }

    fn snapshot(&self) -> Snapshot {
        let groups: Vec<GroupSnapshot> =
            self.assignment.groups().map(|group| self.group_snapshot(group)).collect();
        let oldest = groups.iter().map(|group| group.verified).min().flatten();
        Snapshot {
            verified_oldest: oldest,
            rack: self.hand.shop.rack,
            simulated: self.hand.backend.is_simulated(),
            max_spinups_per_day: self.rack.policy().budget.map(|of| of.max_spinups_per_day),
            overdrawn: self.rack.counters().overdrawn,
            rated_spin_ups: self.rated_spin_ups,
            watts: groups.iter().map(|group| group.watts).sum(),
            groups,
            unmended: self.hand.shop.unmended.count(),
            index_is_older: self.hand.shop.starts.is_index_older(),
        }
    }

    fn group_snapshot(&self, group: GroupId) -> GroupSnapshot {
        let id = group;
        let ledger = self.ledger.ledger();
        let disk = |&place: &PlaceId| DiskSnapshot {
            place,
            power: self.hand.shop.guard.power(place).unwrap_or(Power::Absent),
            spin_ups: ledger.of(place).map_or(0, fulgurite_disks::Totals::life),
            health: self.health.get(&place).cloned(),
            trouble: self.troubles.get(&place).cloned().or_else(|| {
                let is_new = self.hand.shop.places.is_new(place);
                is_new.then(|| "it is not made one of the rack yet (replace)".to_owned())
            }),
        };
        let disks: Vec<DiskSnapshot> = self.assignment.places(group).iter().map(disk).collect();
        let totals = ledger.of_group(id);
        let by = CauseKind::ALL.into_iter().filter_map(|kind| {
            let count = totals.map_or(0, |totals| totals.by(kind));
            (count > 0).then_some((kind, count))
        });
        let waiting = self.tasks.values().filter(|waiting| waiting.group == id).count();
        let lies = self.hand.shop.index.totals(id).unwrap_or_else(|error| {
            tracing::warn!(group = %id, "its blobs are not counted: {}", error_chain(&error));
            TotalsRow::default()
        });
        let unsound = self.hand.shop.index.problems(id).unwrap_or_else(|error| {
            tracing::warn!(group = %id, "what is wrong is not counted: {}", error_chain(&error));
            0
        });
        let (verified, verifies) = self.scrubs.of(id);
        GroupSnapshot {
            group: id,
            class: self.assignment.class_of(group).get(),
            state: self.rack.group_state(group).into(),
            since: self.since.of(group),
            waiting: crate::format::bytes(waiting),
            blobs: lies.blobs,
            bytes: lies.bytes.get(),
            unsound,
            room: self.room_of(group),
            spin_ups: totals.map_or(0, fulgurite_disks::Totals::life),
            spin_ups_by: by.collect(),
            spin_ups_of_a_day: totals.map_or(0, |totals| totals.day(self.clock.now())),
            rests_until: self.rack.rests_until(id).map(|at| {
                let left = at.since(self.clock.passed()).as_nanos() / 1_000_000;
                UnixTime::from_millis(self.clock.now().as_millis() + left)
            }),
            watts: disks.iter().map(|disk| self.watts_of(disk.power)).sum(),
            verified,
            verifies,
            disks,
        }
    }

    /// Returns the space of a group's disks together; none while that of one is unknown.
    fn room_of(&self, group: GroupId) -> Option<GroupRoom> {
        let mut systems = BTreeMap::new();
        let mut at_ms = u64::MAX;
        for &place in self.assignment.places(group) {
            let places = &self.hand.shop.places;
            if places.is_given_up(place) {
                continue;
            }
            let room = places.room(place)?;
            at_ms = at_ms.min(room.at_ms);
            // On a file system shared by several places the latest query counts.
            let known = systems.entry(room.file_system).or_insert(room);
            if known.at_ms < room.at_ms {
                *known = room;
            }
        }
        let free = systems.values().map(|room| room.free.get()).sum();
        let total = systems.values().map(|room| room.total.get()).sum();
        let at = UnixTime::from_millis(at_ms);
        (!systems.is_empty()).then_some(GroupRoom { free, total, at })
    }

    /// Persists the space of the disks of groups that went to sleep.
    fn remember_rooms(&self, slept: &[usize]) {
        if slept.is_empty() {
            return;
        }
        let groups: Vec<GroupId> = self.assignment.groups().collect();
        let places = slept.iter().filter_map(|&at| Some(self.assignment.places(*groups.get(at)?)));
        let places = places.flatten();
        let rooms = places.filter_map(|&at| Some((at, self.hand.shop.places.room(at)?)));
        if let Err(error) = self.hand.shop.index.set_rooms(rooms.collect()) {
            // It is queried again when the group spins next.
            tracing::warn!("the room of disks is not remembered: {}", error_chain(&error));
        }
    }

    fn watts_of(&self, power: Power) -> f64 {
        match power {
            Power::Standby | Power::Failed => self.watts.standby,
            Power::SpinningUp => self.watts.spinning_up,
            Power::Active | Power::Unmounting => self.watts.active,
            Power::Absent | Power::Unclean => 0.0,
        }
    }

    /// Spins the disks down. Nothing runs any more.
    fn end(mut self) {
        // Allows a copy made before this end to be detected.
        if let Err(error) = count(&self.hand.shop.index, &mut self.ledger) {
            tracing::warn!("the end of a start is not counted: {}", error_chain(&error));
        }
        let all: Vec<usize> = (0..self.assignment.groups().count()).collect();
        self.remember_rooms(&all);
        for (place, power) in self.hand.shop.guard.powers() {
            if power.turns() {
                self.hand.put_down(place);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whole seconds, rounded up.
fn seconds(time: Duration) -> u64 {
    time.as_nanos().div_ceil(1_000_000_000)
}

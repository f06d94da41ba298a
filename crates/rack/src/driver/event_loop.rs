//! The rack's actor: turns messages into events, and commands into actions.

mod polls;
mod snapshots;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_disks::{GroupId, Health, LedgerFile, PlaceId, Power, SpinUp};
use fulgurite_rack_core::{
    Assignment, Command, Event, GroupState, Loss, Members, Op, OpId, OpKind, Part, PlaceState,
    Rack, Refusal, Side, SpinUps, Watts,
};
use fulgurite_tier::driver::{Actor, Core, Inbox};
use fulgurite_tier::watch::Publisher;
use fulgurite_units::{Controller as _, Duration, Instant, error_chain};

use self::polls::Polls;
use super::snapshot::StateTimes;
use super::stages::{DiskWorker, Ended, Stage, StageResult};
use super::{Message, Notification, Parts, Task};
use crate::limits::{
    EVENTS_BUFFERED, LEDGER_RETRY_INTERVAL, WRONG_DISK_BACKOFF, WRONG_DISK_BACKOFF_MAX,
};
use crate::scrub::{Piece, Scrubs};
use crate::work::{
    Group, Identification, UnrepairedBlob, count, disk_name, group_name, piece_blobs, scrub,
};
use crate::{Fault, RackError};

/// The failure shown for a disk that was given up.
const GIVEN_UP: &str = "given up";

/// State owned by the thread.
pub(super) struct Loop {
    core: Core<Self>,
    assignment: Assignment,
    worker: DiskWorker,
    ledger: LedgerFile,
    watts: Watts,
    rated_spin_ups: Option<u64>,
    /// Operations that wait or run, by id.
    tasks: BTreeMap<OpId, Waiting>,
    next_op: u64,
    running: usize,
    failures: BTreeMap<PlaceId, String>,
    since: StateTimes,
    /// Spin-ups held back until the ledger can record them.
    deferred: BTreeMap<PlaceId, (OpId, OpKind)>,
    /// Whether an alarm is set to retry them.
    has_ledger_retry: bool,
    /// Disks that are not the right ones: how often each was found wrong, and when it is checked
    /// again.
    wrong: BTreeMap<PlaceId, (u32, Option<Instant>)>,
    scrubs: Scrubs,
    /// Ended pieces of verifications, pushed by the worker threads.
    scrubbed: Arc<Mutex<Vec<(GroupId, Piece)>>>,
    publisher: Publisher<Notification>,
    polls: Polls,
    /// Health that disks reported when they last came up.
    health: BTreeMap<PlaceId, Health>,
}

/// What is to be done at a later time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Alarm {
    /// Begin a stage of a disk.
    Stage(PlaceId, Stage),
    /// Record the deferred spin-ups.
    RetryLedger,
    /// Check whether the right disk is in a place.
    Recheck(PlaceId),
}

struct Waiting {
    group: GroupId,
    /// None while it runs.
    task: Option<Task>,
}

impl Actor for Loop {
    type Controller = Rack;
    type Message = Message;
    type Alarm = Alarm;

    const TIMER: Event = Event::Timer;

    fn core(&mut self) -> &mut Core<Self> {
        &mut self.core
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Submit(task) => self.submit(task),
            Message::Stage(ended) => self.stage_ended(ended),
            Message::Worked(op) => {
                self.running -= 1;
                self.tasks.remove(&op);
                self.publish_unrepaired();
                self.core.queue(Event::Done { op });
            }
            Message::GiveUp(place) => {
                self.wrong.remove(&place);
                self.set_failure(place, GIVEN_UP.to_owned());
                self.deferred.remove(&place);
                // A spinning disk uses its share of power until it is spun down.
                let power = self.worker.ctx.guard.power(place);
                let is_spinning = power.is_some_and(Power::is_spinning);
                let loss = if is_spinning { Loss::Barred } else { Loss::Gone };
                self.core.queue(Event::Lost { part: Part::Place(place), loss });
            }
            Message::Replaced(place) => {
                self.failures.remove(&place);
                self.wrong.remove(&place);
                self.polls.replaced(place);
                self.worker.ctx.starts.forget(place);
                self.health.remove(&place);
                if let Err(error) = self.ledger.replaced(place) {
                    tracing::warn!(
                        %place,
                        "cannot record a replaced disk in the ledger: {}",
                        error_chain(&error)
                    );
                }
                self.core.queue(Event::Back { part: Part::Place(place) });
            }
            Message::Verified(group, Some(now_ms)) => self.scrubs.verified(group, now_ms),
            Message::Verified(group, None) => self.scrubs.request(group),
            Message::Snapshot(send) => drop(send.send(self.snapshot())),
            Message::SpinUps(send) => {
                drop(send.send(self.ledger.ledger().recent().cloned().collect()));
            }
            Message::Watch(send) => {
                let (step, at) = (self.publisher.steps(), self.core.now());
                let first = Notification::Snapshot { step, at, rack: Box::new(self.snapshot()) };
                drop(send.send(self.publisher.watch_from(first)));
            }
            Message::Polled(polled) => self.handle_polled(polled),
        }
    }

    fn ring(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::Stage(place, stage) => self.run_stage(place, stage),
            Alarm::RetryLedger => self.retry_deferred(),
            Alarm::Recheck(place) => {
                let now = self.core.now();
                if let Some((_, until)) = self.wrong.get_mut(&place)
                    && until.take_if(|until| *until <= now).is_some()
                {
                    self.core.queue(Event::Back { part: Part::Place(place) });
                }
            }
        }
    }

    fn apply(&mut self, event: Event) {
        let now = self.core.now();
        let commands = self.core.step(now, event);
        if cfg!(debug_assertions) {
            self.core.controller.check();
        }
        self.publisher.step(|step| {
            let commands = commands.clone();
            Notification::Step { step, at: now, event, commands }
        });
        let ledger_failure = self.record_spin_ups(&commands);
        self.execute(commands, ledger_failure);
    }

    fn end_turn(&mut self) {
        self.scrub();
        self.settle();
        self.poll();
        self.settle();
        let states = self.assignment.groups();
        let states = states.map(|group| self.core.controller.group_state(group).into());
        let slept = self.since.poll(states, self.core.clock.now());
        self.save_rooms(&slept);
        if cfg!(debug_assertions) {
            self.check();
        }
    }

    fn deadline(&mut self) -> Option<Instant> {
        if self.core.is_stopping() {
            return None;
        }
        let (now, wall) = (self.core.now(), self.core.clock.now());
        let scrub = self.scrubs.deadline().map(|at| now + at.since(wall));
        // A piece that was refused at once has ended already.
        let ended = (!lock(&self.scrubbed).is_empty()).then_some(now);
        [scrub, ended, self.polls.deadline()].into_iter().flatten().min()
    }

    /// Fails waiting operations with an error.
    fn stop(&mut self) {
        let waiting = self.tasks.values_mut().filter_map(|waiting| waiting.task.take());
        waiting.for_each(|task| (task.work)(Err(RackError::Stopping)));
    }

    fn is_idle(&self) -> bool {
        self.running == 0
    }

    /// Spins the disks down. Nothing runs any more.
    fn end(mut self) {
        // Allows a copy made before this end to be detected.
        if let Err(error) = count(&self.worker.ctx.index, &mut self.ledger) {
            tracing::warn!("cannot count the end of a start: {}", error_chain(&error));
        }
        let all: Vec<usize> = (0..self.assignment.groups().count()).collect();
        self.save_rooms(&all);
        for (place, power) in self.worker.ctx.guard.powers() {
            if power.is_spinning() {
                self.worker.spin_down(place);
            }
        }
    }
}

impl Loop {
    pub(super) fn new(parts: Parts, inbox: Inbox<Message>) -> Self {
        let rated_spin_ups = parts.rated_spin_ups;
        let Parts { rack, assignment, ctx, backend, ledger, clock, watts, scrubs, .. } = parts;
        // Disks given up before the last start remain given up.
        let lost = |place| Event::Lost { part: Part::Place(place), loss: Loss::Gone };
        let given_up = ctx.places.given_up();
        let failures = given_up.iter().map(|&place| (place, GIVEN_UP.to_owned())).collect();
        let mut core = Core::new(rack, clock, inbox);
        given_up.into_iter().map(lost).for_each(|event| core.queue(event));
        Self {
            core,
            assignment,
            worker: DiskWorker { backend, ctx },
            ledger,
            watts,
            rated_spin_ups,
            tasks: BTreeMap::new(),
            next_op: 0,
            running: 0,
            failures,
            since: StateTimes::default(),
            deferred: BTreeMap::new(),
            has_ledger_retry: false,
            wrong: BTreeMap::new(),
            scrubs,
            scrubbed: Arc::default(),
            publisher: Publisher::new(EVENTS_BUFFERED),
            polls: Polls::default(),
            health: BTreeMap::new(),
        }
    }

    /// Begins the pieces of verifications that are due and whose predecessors have ended.
    fn scrub(&mut self) {
        let now = self.core.clock.now();
        let ended = std::mem::take(&mut *lock(&self.scrubbed));
        for (group, piece) in ended {
            self.scrubs.record_end(group, &piece, now);
        }
        if self.core.is_stopping() {
            return;
        }
        let rack = &self.core.controller;
        let begun = self.scrubs.begin(now, |group| rack.group_state(group) == GroupState::Spinning);
        for (group, after) in begun {
            let ctx = Arc::clone(&self.worker.ctx);
            let blobs = piece_blobs(&ctx, group, after).unwrap_or_default();
            let bytes = blobs.iter().map(|(_, row)| row.length).sum();
            let (ended, clock) = (Arc::clone(&self.scrubbed), self.core.clock.clone());
            let work = move |ready: crate::Result<&Group>| {
                let now_ms = clock.now().as_millis();
                let done = ready.and_then(|ready| scrub(&ctx, ready, after, now_ms));
                let piece = done.unwrap_or_else(|error| {
                    tracing::warn!(%group, "a verification is postponed: {error}");
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

    fn submit(&mut self, task: Task) {
        if self.core.is_stopping() {
            (task.work)(Err(RackError::Stopping));
            return;
        }
        let id = OpId::new(self.next_op);
        self.next_op += 1;
        let group = task.group;
        let (kind, bytes) = (task.kind, task.bytes);
        let (now, passed) = (self.core.clock.now(), self.core.now());
        let due = task.due.map(|due| passed + due.since(now));
        let (members, enough) = self.needed(&task);
        self.tasks.insert(id, Waiting { group: task.group, task: Some(task) });
        self.core.queue(Event::Submit { op: Op { id, group, kind, bytes, members, enough, due } });
    }

    /// Returns the disks that a task can use, and how many are enough; zero, for all disks, when
    /// the policy always spins up all or too few are usable. The task then runs anyway, because it
    /// knows the disks and faults to report.
    fn needed(&self, task: &Task) -> (Members, u32) {
        let places = self.assignment.places(task.group);
        let all = (Members::first(places.len()), 0);
        let Some(needs) = &task.needs else { return all };
        if self.core.controller.policy().spin_ups == SpinUps::All {
            return all;
        }
        let has = |at: &usize| needs.places.contains(&places[*at]);
        let members: Members = (0..places.len()).filter(has).collect();
        let usable = self.core.controller.usable(task.group).intersection(members).count();
        if usable < needs.enough { all } else { (members, needs.enough) }
    }

    /// Asserts the invariants: those of the controller, which counts the spinning disks of each
    /// domain, and that no disk is active without the controller knowing it.
    fn check(&self) {
        self.core.controller.check();
        for (place, power) in self.worker.ctx.guard.powers() {
            let state = self.core.controller.place_state(place);
            let is_known =
                !matches!(state, PlaceState::Asleep | PlaceState::Resting | PlaceState::Lost);
            assert!(
                is_known || !power.is_spinning(),
                "disk {place} is {power}, but the controller knows it as {state:?}"
            );
        }
    }

    fn execute(&mut self, commands: Vec<Command>, ledger_failure: Option<String>) {
        for command in commands {
            match command {
                Command::SpinUp { place, op, kind } => match &ledger_failure {
                    Some(reason) => {
                        self.set_failure(place, reason.clone());
                        self.deferred.insert(place, (op, kind));
                        self.set_ledger_retry();
                    }
                    None => self.spin_up(place),
                },
                Command::SpinDown { place } if self.deferred.remove(&place).is_some() => {
                    // Its spin-up was held back and never commanded.
                    self.core.queue(Event::Down { place });
                }
                // Another program spun it up, so nothing of it is mounted here.
                Command::SpinDown { place } if self.is_in_standby(place) => {
                    self.polls.mark_spinning_down(place);
                    self.run_stage(place, Stage::SpinDown);
                }
                Command::SpinDown { place } => self.run_stage(place, Stage::Unmount),
                Command::Run { op, up } => self.run_task(op, up),
                Command::Refuse { op, refusal } => self.refuse(op, refusal),
                Command::Overdrawn { group, kind } => {
                    let name = group_name(group);
                    tracing::warn!(?kind, "{name} is spun up beyond its spin-up budget");
                }
                Command::Alarm { group, away } => {
                    let name = group_name(group);
                    tracing::error!(away, "{name} has lost redundancy: disks are unavailable");
                }
            }
        }
    }

    /// Reports blobs that could not be repaired.
    fn publish_unrepaired(&self) {
        let (step, at) = (self.publisher.steps(), self.core.now());
        for UnrepairedBlob { group, blob, detail } in self.worker.ctx.unrepaired.take() {
            let notification = Notification::Unrepaired { step, at, group, blob, detail };
            self.publisher.publish(|| notification);
        }
    }

    /// Sets the alarm to record deferred spin-ups, once.
    fn set_ledger_retry(&mut self) {
        if !std::mem::replace(&mut self.has_ledger_retry, true) {
            self.core.set_alarm(self.core.now() + LEDGER_RETRY_INTERVAL, Alarm::RetryLedger);
        }
    }

    /// Retries to record deferred spin-ups.
    fn retry_deferred(&mut self) {
        self.has_ledger_retry = false;
        let deferred = std::mem::take(&mut self.deferred);
        let again = |(place, (op, kind))| Command::SpinUp { place, op, kind };
        let commands: Vec<Command> = deferred.into_iter().map(again).collect();
        let ledger_failure = self.record_spin_ups(&commands);
        self.execute(commands, ledger_failure);
    }

    /// Records which operation spins up which disks before they are commanded to. On failure it
    /// returns the reason, and no disk may be spun up.
    fn record_spin_ups(&mut self, commands: &[Command]) -> Option<String> {
        let mut spin_ups: BTreeMap<(OpId, GroupId), (OpKind, Vec<PlaceId>)> = BTreeMap::new();
        for command in commands {
            let Command::SpinUp { place, op, kind } = *command else { continue };
            let group = self.assignment.slot(place).group;
            spin_ups.entry((op, group)).or_insert((kind, Vec::new())).1.push(place);
        }
        for ((op, group), (kind, places)) in spin_ups {
            let record = SpinUp {
                at: self.core.clock.now(),
                group: Some(group),
                places,
                cause: kind.cause(op),
            };
            let injected =
                self.worker.ctx.injected.check_ledger().map_err(|fault| fault.to_string());
            let recorded = injected
                .and_then(|()| self.ledger.record(record).map_err(|error| error_chain(&error)));
            if let Err(detail) = recorded {
                return Some(format!(
                    "not spun up, because the spin-up cannot be recorded: {detail}; retried every \
                     {} s",
                    seconds(LEDGER_RETRY_INTERVAL)
                ));
            }
        }
        None
    }

    /// Whether the guard has the disk in standby.
    fn is_in_standby(&self, place: PlaceId) -> bool {
        self.worker.ctx.guard.power(place) == Some(Power::Standby)
    }

    fn spin_up(&mut self, place: PlaceId) {
        if self.polls.is_spinning_down(place) {
            // Tried again once it has spun down.
            self.set_failure(place, "another program spun it up; it is spun down first".to_owned());
            return self.core.queue(Event::UpFailed { place });
        }
        match self.worker.ctx.guard.turn(place, Power::SpinningUp) {
            Ok(()) => self.run_stage(place, Stage::SpinUp),
            Err(error) => {
                self.set_failure(place, error_chain(&error));
                self.core.queue(Event::UpFailed { place });
            }
        }
    }

    /// Begins a stage of a disk.
    fn run_stage(&mut self, place: PlaceId, stage: Stage) {
        let class = self.assignment.class_of(self.assignment.slot(place).group);
        let waiting = self.core.controller.waiting(class, Side::Client);
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
        if self.worker.backend.is_simulated() {
            let ended = self.worker.run_stage(place, stage, waiting);
            return self.stage_ended(ended);
        }
        let worker = self.worker.clone();
        let run_stage = move || worker.run_stage(place, stage, waiting);
        let failed = move |reason| Ended { place, stage, result: StageResult::Failed(reason) };
        let spawned = self.core.spawn("rack-disk".to_owned(), run_stage, move |ended| {
            Message::Stage(ended.unwrap_or_else(|panicked| failed(panicked.to_string())))
        });
        if let Err(error) = spawned {
            self.stage_ended(failed(format!("cannot start a thread: {error}")));
        }
    }

    fn stage_ended(&mut self, Ended { place, stage, result }: Ended) {
        match (stage, result) {
            (Stage::SpinUp, StageResult::Ok(time)) => {
                self.schedule_stage(place, Stage::Mount, time)
            }
            (Stage::Mount, StageResult::Ok(time)) => {
                self.schedule_stage(place, Stage::Identify, time)
            }
            (Stage::Unmount, StageResult::Ok(time)) => {
                self.schedule_stage(place, Stage::SpinDown, time)
            }
            (Stage::SpinDown, StageResult::Ok(time)) => {
                self.schedule_stage(place, Stage::Standby, time)
            }
            (Stage::Standby | Stage::Identify, StageResult::Ok(_)) => {
                self.polls.mark_stopped(place);
                self.core.queue(Event::Down { place });
            }
            (_, StageResult::Identified(identification, health)) => {
                tracing::trace!(%place, ?identification, "a disk is active");
                if identification == Identification::Older {
                    self.handle_older_copy(place);
                }
                self.handle_active(place, health);
            }
            (_, StageResult::Wrong(fault)) => self.handle_wrong_disk(place, &fault),
            (Stage::SpinUp | Stage::Mount | Stage::Identify, StageResult::Failed(reason)) => {
                self.worker.spin_down(place);
                self.set_failure(place, reason);
                self.core.queue(Event::UpFailed { place });
            }
            (Stage::Unmount | Stage::SpinDown | Stage::Standby, StageResult::Failed(reason)) => {
                self.polls.mark_spin_down_failed(place);
                self.set_failure(place, reason);
                self.core.queue(Event::DownFailed { place });
            }
        }
    }

    /// Handles a disk that is active and has reported its health.
    fn handle_active(&mut self, place: PlaceId, health: Option<Health>) {
        self.wrong.remove(&place);
        self.polls.mark_up(place);
        if self.failures.remove(&place).is_some() {
            tracing::info!(%place, "a disk has recovered");
        }
        if let Some(health) = health {
            if health.passes == Some(false) {
                tracing::warn!(%place, "{} predicts its own failure (SMART)", disk_name(place));
            }
            self.health.insert(place, health);
        }
        self.core.queue(Event::Up { place });
    }

    /// Handles a disk that is an older copy of itself: schedules an immediate verification, which
    /// rebuilds what it lacks.
    fn handle_older_copy(&mut self, place: PlaceId) {
        let group = self.assignment.slot(place).group;
        tracing::warn!(
            %place, %group,
            "{} is an older copy of itself: its group is verified now, and what it lacks is \
             rebuilt",
            disk_name(place)
        );
        if let Err(error) = self.worker.ctx.index.request_scrub(group, true) {
            tracing::warn!(%group, "cannot record a verification request: {}", error_chain(&error));
        }
        self.scrubs.request(group);
    }

    /// Handles a disk that must not be used: it is spun down and counts as lost until the next
    /// check, because the right disk may have been put back by then.
    fn handle_wrong_disk(&mut self, place: PlaceId, fault: &Fault) {
        self.worker.spin_down(place);
        if self.worker.ctx.places.is_given_up(place) {
            return self.lose(place, GIVEN_UP.to_owned());
        }
        let (times, until) = self.wrong.entry(place).or_insert((0, None));
        let backoff =
            WRONG_DISK_BACKOFF.as_nanos().checked_shl((*times).min(32)).unwrap_or(u64::MAX);
        let backoff = Duration::from_nanos(backoff).min(WRONG_DISK_BACKOFF_MAX);
        let at = self.core.now() + backoff;
        *until = Some(at);
        *times += 1;
        self.core.set_alarm(at, Alarm::Recheck(place));
        // The error of a read already adds "out of reach".
        let description = fault.to_string();
        let detail = if let Fault::OutOfReach { reason } = fault { reason } else { &description };
        self.lose(place, format!("{detail}; nothing on it was changed"));
    }

    fn lose(&mut self, place: PlaceId, reason: String) {
        self.deferred.remove(&place);
        self.set_failure(place, reason);
        self.core.queue(Event::Lost { part: Part::Place(place), loss: Loss::Gone });
    }

    fn set_failure(&mut self, place: PlaceId, reason: String) {
        if self.failures.get(&place) != Some(&reason) {
            tracing::warn!(%place, "{}: {reason}", disk_name(place));
            self.failures.insert(place, reason);
        }
    }

    fn schedule_stage(&mut self, place: PlaceId, stage: Stage, time: Duration) {
        if time == Duration::ZERO {
            return self.run_stage(place, stage);
        }
        self.core.set_alarm(self.core.now() + time, Alarm::Stage(place, stage));
    }

    /// Runs an operation on a thread of its own.
    fn run_task(&mut self, op: OpId, up: Members) {
        let Some(waiting) = self.tasks.get_mut(&op) else {
            return self.core.queue(Event::Done { op });
        };
        let (id, task) = (waiting.group, waiting.task.take());
        let Some(task) = task else {
            self.tasks.remove(&op);
            return self.core.queue(Event::Done { op });
        };
        let places = self.assignment.places(id);
        let up = up.positions().filter_map(|at| places.get(at)).copied();
        let up = up.filter(|&place| self.worker.ctx.guard.power(place) == Some(Power::Active));
        let up: Vec<PlaceId> = up.collect();
        if up.is_empty() {
            let detail =
                format!("{} has no usable disk: {}", group_name(id), self.describe_failures(id));
            self.tasks.remove(&op);
            let is_write = task.kind == OpKind::Write;
            // A write can be retried in another group.
            let error =
                if is_write { RackError::Full { detail } } else { RackError::Busy { detail } };
            (task.work)(Err(error));
            return self.core.queue(Event::Done { op });
        }
        let asleep = self.left_asleep(id);
        let places = self.assignment.places(id).iter();
        let failures = places.filter_map(|at| self.failures.get_key_value(at));
        let failures = failures.map(|(&at, reason)| (at, reason.clone())).collect();
        let group = Group { asleep, failures, ..self.worker.ctx.group(id, up) };
        let work = move || (task.work)(Ok(&group));
        let spawned = self.core.spawn("rack-work".to_owned(), work, move |done| {
            if let Err(panicked) = done {
                tracing::error!("an operation in {} {panicked}; this is a bug", group_name(id));
            }
            Message::Worked(op)
        });
        match spawned {
            Ok(()) => self.running += 1,
            Err(error) => {
                tracing::error!(
                    "cannot start a thread for an operation in {}: {error}",
                    group_name(id)
                );
                self.tasks.remove(&op);
                self.core.queue(Event::Done { op });
            }
        }
    }

    /// Returns the disks of a group that have no failure but were not spun up for the current
    /// operation, or are not up yet.
    fn left_asleep(&self, id: GroupId) -> Vec<PlaceId> {
        let sleeps = |place: &&PlaceId| {
            let state = self.core.controller.place_state(**place);
            let is_down = matches!(state, PlaceState::Asleep | PlaceState::SpinningUp);
            is_down && !self.failures.contains_key(place)
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
        let detail = match refusal {
            Refusal::Busy { retry_after } => {
                format!(
                    "too many operations wait for {name}; try again in {} s",
                    seconds(retry_after)
                )
            }
            Refusal::TooFew { usable, retry_after } => {
                let away = self.describe_failures(group);
                let when = match retry_after {
                    Some(time) => format!("the others are tried again in {} s", seconds(time)),
                    None => "the others must be replaced".to_owned(),
                };
                format!("{name} has only {usable} usable disks; {when}: {away}")
            }
        };
        (task.work)(Err(RackError::Busy { detail }));
    }

    /// Returns the failures of a group's disks.
    fn describe_failures(&self, group: GroupId) -> String {
        let places = self.assignment.places(group);
        let description = places.iter().filter_map(|&place| {
            Some(format!("{}: {}", disk_name(place), self.failures.get(&place)?))
        });
        description.collect::<Vec<_>>().join("; ")
    }

    /// Persists the space of the disks of groups that went to sleep.
    fn save_rooms(&self, stopped: &[usize]) {
        if stopped.is_empty() {
            return;
        }
        let groups: Vec<GroupId> = self.assignment.groups().collect();
        let places =
            stopped.iter().filter_map(|&at| Some(self.assignment.places(*groups.get(at)?)));
        let places = places.flatten();
        let rooms = places.filter_map(|&at| Some((at, self.worker.ctx.places.room(at)?)));
        if let Err(error) = self.worker.ctx.index.set_rooms(rooms.collect()) {
            // It is queried again when the group spins next.
            tracing::warn!("cannot record the space of disks: {}", error_chain(&error));
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
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whole seconds, rounded up.
fn seconds(time: Duration) -> u64 {
    time.as_nanos().div_ceil(1_000_000_000)
}

//! The driver's thread: messages to events, commands to deeds.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};

use fulgurite_disks::{CauseKind, GroupId, LedgerFile, PlaceId, Power, Wake};
use fulgurite_rack::{
    Assignment, Command, Event, Loss, Members, Op, OpId, OpKind, Part, Rack, Refusal, Watts,
};
use fulgurite_units::{Clock, Controller as _, Duration, Instant, Outbox, UnixTime, error_chain};

use super::snapshot::{DiskSnapshot, GroupSnapshot, Since, Snapshot};
use super::stages::{Ended, How, Stage, Stagehand};
use super::{Message, Parts, Task};
use crate::work::{disk_name, group_name};
use crate::{Fault, StacksError};

/// How long it sleeps when nothing is to come.
const IDLE: Duration = Duration::from_secs(3600);

/// What the thread owns.
pub(super) struct Loop {
    rack: Rack,
    assignment: Assignment,
    hand: Stagehand,
    ledger: LedgerFile,
    clock: Clock,
    watts: Watts,
    inbox: SyncSender<Message>,
    /// Operations that wait or run, by their numbers.
    tasks: BTreeMap<OpId, Waiting>,
    next_op: u64,
    running: usize,
    /// Stages that begin when time has passed; the number tells those of one moment apart.
    alarms: BinaryHeap<Reverse<(Instant, u64, PlaceId, Stage)>>,
    next_alarm: u64,
    troubles: BTreeMap<PlaceId, String>,
    since: Since,
    /// What the controller is to be told, in its order: one event after the deeds of the other.
    events: VecDeque<Event>,
    is_stopping: bool,
    /// Nobody has the driver any more.
    is_left: Arc<AtomicBool>,
}

struct Waiting {
    group: GroupId,
    /// Not here while it runs.
    task: Option<Task>,
}

impl Loop {
    pub(super) fn new(parts: Parts, inbox: SyncSender<Message>, is_left: Arc<AtomicBool>) -> Self {
        let Parts { rack, assignment, shop, backend, ledger, clock, watts } = parts;
        Self {
            rack,
            assignment,
            hand: Stagehand { backend, shop },
            ledger,
            clock,
            watts,
            inbox,
            tasks: BTreeMap::new(),
            next_op: 0,
            running: 0,
            alarms: BinaryHeap::new(),
            next_alarm: 0,
            troubles: BTreeMap::new(),
            since: Since::default(),
            events: VecDeque::new(),
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
            let states = self.assignment.groups().map(|group| self.rack.group_state(group).into());
            self.since.look(states, self.clock.now());
        }
        self.end();
    }

    /// The next message, or none when something is due before one comes.
    fn next(&self, messages: &Receiver<Message>) -> Result<Message, RecvTimeoutError> {
        let now = self.clock.passed();
        let alarm = self.alarms.peek().map(|Reverse((at, ..))| *at);
        let due = [alarm, self.rack.deadline()].into_iter().flatten().min();
        match self.clock.sleep_until(due.unwrap_or(now + IDLE)) {
            Some(time) => messages.recv_timeout(time.into()),
            // Nobody but whoever turns the hands lets time pass, and says so.
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
                self.tell(Event::Done { op });
            }
            Message::GiveUp(place) => self.lose(place, "given up".to_owned()),
            Message::Replaced(place) => {
                self.troubles.remove(&place);
                if let Err(error) = self.ledger.replaced(place) {
                    tracing::warn!(%place, "the ledger: {}", error_chain(&error));
                }
                self.tell(Event::Back { part: Part::Place(place) });
            }
            Message::Snapshot(send) => drop(send.send(self.snapshot())),
            Message::Wakes(send) => {
                drop(send.send(self.ledger.ledger().recent().cloned().collect()));
            }
            Message::Turned => {}
            Message::Stop => self.begin_to_stop(),
        }
    }

    /// What waits is told so; what runs is waited for.
    fn begin_to_stop(&mut self) {
        self.is_stopping = true;
        let waiting = self.tasks.values_mut().filter_map(|waiting| waiting.task.take());
        waiting.for_each(|task| (task.work)(Err(StacksError::Stopping)));
    }

    /// What is due by now.
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
        // Which of its disks it needs is for the work to say: it has their names and their faults.
        let members = Members::first(self.assignment.places(group).len());
        self.tasks.insert(id, Waiting { group: task.group, task: Some(task) });
        self.tell(Event::Submit { op: Op { id, group, kind, bytes, members, enough: 0, due } });
    }

    /// Has the controller told, when what it said before is done.
    fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Tells the controller all that happened, and does what it says.
    fn settle(&mut self) {
        while let Some(event) = self.events.pop_front() {
            let mut out = Outbox::new();
            self.rack.step(self.clock.passed(), event, &mut out);
            let commands: Vec<Command> = out.drain().collect();
            self.note_wakes(&commands);
            self.obey(commands);
        }
    }

    fn obey(&mut self, commands: Vec<Command>) {
        for command in commands {
            match command {
                Command::SpinUp { place, .. } => self.turn_up(place),
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

    /// Writes down who wakes which disks, and why, before they are told to turn.
    fn note_wakes(&mut self, commands: &[Command]) {
        let mut wakes: BTreeMap<(OpId, GroupId), (OpKind, Vec<PlaceId>)> = BTreeMap::new();
        for command in commands {
            let Command::SpinUp { place, op, kind } = *command else { continue };
            let group = self.assignment.seat(place).group;
            wakes.entry((op, group)).or_insert((kind, Vec::new())).1.push(place);
        }
        for ((op, group), (kind, places)) in wakes {
            let wake =
                Wake { at: self.clock.now(), group: Some(group), places, cause: kind.cause(op) };
            if let Err(error) = self.ledger.note(wake) {
                tracing::error!(%group, "the ledger of wakes: {}", error_chain(&error));
            }
        }
    }

    fn turn_up(&mut self, place: PlaceId) {
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
        let waiting = u32::try_from(self.tasks.len()).unwrap_or(u32::MAX);
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
            (Stage::Rest | Stage::Arrive, How::Well(_)) => self.tell(Event::Down { place }),
            (_, How::Arrived(arrival)) => {
                if self.troubles.remove(&place).is_some() {
                    tracing::info!(%place, "a disk is well again");
                }
                tracing::trace!(%place, ?arrival, "a disk is active");
                self.tell(Event::Up { place });
            }
            (_, How::Wrong(fault)) => self.wrong(place, &fault),
            (Stage::TurnUp | Stage::Mount | Stage::Arrive, How::Failed(why)) => {
                self.hand.put_down(place);
                self.trouble(place, why);
                self.tell(Event::UpFailed { place });
            }
            (Stage::Unmount | Stage::TurnDown | Stage::Rest, How::Failed(why)) => {
                self.trouble(place, why);
                self.tell(Event::DownFailed { place });
            }
        }
    }

    /// The disk is none that may be used: it is put down, and counts as lost.
    fn wrong(&mut self, place: PlaceId, fault: &Fault) {
        self.hand.put_down(place);
        self.lose(place, format!("{fault}; nothing on it was changed"));
    }

    fn lose(&mut self, place: PlaceId, why: String) {
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

    /// Has an operation run by a thread of its own.
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
        let group = self.hand.shop.group(id, up.collect());
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

    fn refuse(&mut self, op: OpId, refusal: Refusal) {
        let Some(Waiting { group, task: Some(task) }) = self.tasks.remove(&op) else { return };
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

    /// What is wrong with the disks of a group.
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
        Snapshot {
            rack: self.hand.shop.rack,
            simulated: self.hand.backend.is_simulated(),
            max_spinups_per_day: self.rack.policy().budget.map(|of| of.max_spinups_per_day),
            overdrawn: self.rack.counters().overdrawn,
            watts: groups.iter().map(|group| group.watts).sum(),
            groups,
        }
    }

    fn group_snapshot(&self, group: GroupId) -> GroupSnapshot {
        let id = group;
        let ledger = self.ledger.ledger();
        let disk = |&place: &PlaceId| DiskSnapshot {
            place,
            power: self.hand.shop.guard.power(place).unwrap_or(Power::Absent),
            spin_ups: ledger.of(place).map_or(0, fulgurite_disks::Totals::life),
            trouble: self.troubles.get(&place).cloned(),
        };
        let disks: Vec<DiskSnapshot> = self.assignment.places(group).iter().map(disk).collect();
        let totals = ledger.of_group(id);
        let by = CauseKind::ALL.into_iter().filter_map(|kind| {
            let count = totals.map_or(0, |totals| totals.by(kind));
            (count > 0).then_some((kind, count))
        });
        let waiting = self.tasks.values().filter(|waiting| waiting.group == id).count();
        GroupSnapshot {
            group: id,
            class: self.assignment.class_of(group).get(),
            state: self.rack.group_state(group).into(),
            since: self.since.of(group),
            waiting: crate::format::bytes(waiting),
            spin_ups: totals.map_or(0, fulgurite_disks::Totals::life),
            spin_ups_by: by.collect(),
            spin_ups_of_a_day: totals.map_or(0, |totals| totals.day(self.clock.now())),
            rests_until: self.rack.rests_until(id).map(|at| {
                let left = at.since(self.clock.passed()).as_nanos() / 1_000_000;
                UnixTime::from_millis(self.clock.now().as_millis() + left)
            }),
            watts: disks.iter().map(|disk| self.watts_of(disk.power)).sum(),
            disks,
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

    /// Puts the disks down: nothing runs any more.
    fn end(self) {
        for (place, power) in self.hand.shop.guard.powers() {
            if power.turns() {
                self.hand.put_down(place);
            }
        }
    }
}

/// Whole seconds, and more rather than less.
fn seconds(time: Duration) -> u64 {
    time.as_nanos().div_ceil(1_000_000_000)
}

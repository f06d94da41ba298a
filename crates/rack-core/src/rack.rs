//! The controller: events in, commands out. `switch` changes the spinning group, `service`
//! chooses what runs in it, `failures` handles lost disks.

use fulgurite_units::{ByteCount, Controller, Duration, Instant, Outbox};
use serde::{Deserialize, Serialize};

use crate::event::{Command, Event, Op, OpKind, Refusal, Side};
use crate::fair_share::FairShare;
use crate::limits::{CONCURRENCY_MAX, DEFAULT_DEADLINE, RETRY_MIN, VISIT_MAX};
use crate::order::{Due, Order};
use crate::pace::Measured;
use crate::places::{Places, SpinState, class_numbers};
use crate::queue::{Cost, Waiting};
use crate::side_queue::SideQueue;
use crate::state::{Class, Group, Phase};
use crate::token_bucket::TokenBucket;
use crate::{Assignment, ClassId, GroupId, Members, OpId, PlaceId, Policy, Shape};

/// The controller of one rack.
#[derive(Clone, Debug)]
pub struct Rack {
    pub(crate) policy: Policy,
    pub(crate) now: Instant,
    pub(crate) assignment: Assignment,
    pub(crate) places: Places,
    pub(crate) groups: Vec<Group>,
    pub(crate) classes: Vec<Class>,
    /// Disks that still spin although they were commanded to spin down.
    pub(crate) stuck: Vec<PlaceId>,
    pub(crate) counters: Counters,
    /// Token bucket parameters, if spin-ups are limited.
    pub(crate) token_bucket: Option<TokenBucket>,
    /// Disks of a blob that may be lost before the blob is.
    pub(crate) redundancy: u32,
}

/// Counters since the controller was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// Groups brought up.
    pub switches: u64,
    /// Spin-up commands, including retries.
    pub spin_ups: u64,
    /// Operations run.
    pub runs: u64,
    /// Operations refused because too many waited.
    pub busy: u64,
    /// Operations refused because too few of their disks could be used.
    pub too_few: u64,
    /// Groups brought up although their budget of spin-ups was used up.
    #[serde(default)]
    pub overdrawn: u64,
}

/// The state of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupState {
    /// Its disks do not spin.
    Asleep,
    /// They spin up.
    SpinningUp,
    /// They spin and are mounted.
    Spinning,
    /// They are being unmounted and spun down.
    SpinningDown,
}

/// The state of a disk, as far as the controller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceState {
    /// It does not spin.
    Asleep,
    /// It was commanded to spin up.
    SpinningUp,
    /// It spins and is mounted.
    Spinning,
    /// It was commanded to spin down.
    SpinningDown,
    /// It still spins although it was commanded to spin down; it is commanded again.
    Stuck,
    /// It failed to spin up and is in backoff.
    Resting,
    /// It is lost, until it is reported back.
    Lost,
}

impl Controller for Rack {
    type Event = Event;
    type Command = Command;

    fn step(&mut self, now: Instant, event: Event, out: &mut Outbox<Command>) {
        // A driver may read its clock out of order, and a backoff must not begin in the past.
        self.now = self.now.max(now);
        if !self.stuck.is_empty() {
            self.retry_stuck(out);
        }
        match event {
            Event::Submit { op } => self.submit(op, out),
            Event::Done { op } => self.done(op, out),
            Event::Up { place } => self.handle_up(place, out),
            Event::UpFailed { place } => self.handle_up_failed(place, out),
            Event::Down { place } => self.handle_down(place, out),
            Event::DownFailed { place } => self.handle_down_failed(place, out),
            Event::ExternalSpinUp { place } => self.spun_up(place, out),
            Event::Lost { part, loss } => self.handle_lost(part, loss, out),
            Event::Back { part } => self.handle_back(part, out),
            Event::Timer => (0..self.classes.len()).for_each(|class| self.advance(class, out)),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let classes = self.classes.iter().filter_map(|class| class.timer_at);
        if self.stuck.is_empty() {
            return classes.min();
        }
        let retries =
            self.stuck.iter().filter_map(|place| match self.places.disk(*place).spin_state {
                SpinState::Stuck { retry_at } => Some(retry_at),
                SpinState::Stopped
                | SpinState::SpinningUp
                | SpinState::Spinning
                | SpinState::SpinningDown => None,
            });
        classes.chain(retries).min()
    }

    fn check(&self) {
        self.check_invariants();
    }
}

impl Rack {
    /// Creates the controller of a rack with all disks spun down and no operations. The assignment
    /// must be proved ([`crate::check()`]).
    ///
    /// # Panics
    /// If the assignment is of another shape.
    #[must_use]
    pub fn new(shape: &Shape, assignment: Assignment, mut policy: Policy) -> Self {
        policy.at_once = policy.at_once.clamp(1, CONCURRENCY_MAX);
        assert_eq!(
            assignment.place_count(),
            shape.place_count(),
            "the assignment belongs to another shape"
        );
        let numbers = class_numbers(&assignment);
        let group = |group: GroupId| {
            let class = assignment.class_of(group).as_usize();
            Group::new(class, numbers[group.as_usize()], assignment.places(group))
        };
        let class = |class: ClassId| {
            let groups = assignment.groups_of(class).to_vec();
            let first = groups.first().and_then(|group| assignment.places(*group).first());
            let within_unit =
                shape.within().zip(first).map_or(0, |(unit, place)| unit.index_of(*place));
            let count = groups.len();
            Class {
                within_unit,
                client: SideQueue::new(count, policy.client_queue, policy.order, &policy),
                background: SideQueue::new(
                    count,
                    policy.background_queue,
                    background_order(&policy),
                    &policy,
                ),
                groups,
                inits: std::collections::VecDeque::new(),
                fair_share: FairShare::new(policy.background_share, policy.turn),
                measured: Measured::new(shape.pace()),
                phase: Phase::Stopped,
                cause: (OpId::new(0), OpKind::Init),
                switch_since: Instant::ZERO,
                is_fresh: false,
                has_piggybacked: false,
                running: Vec::with_capacity(policy.at_once),
                idle_since: None,
                was_busy: false,
                timer_at: None,
            }
        };
        Self {
            token_bucket: policy.budget.map(TokenBucket::new),
            redundancy: shape.code().redundancy,
            policy,
            now: Instant::ZERO,
            places: Places::new(shape),
            groups: assignment.groups().map(group).collect(),
            classes: assignment.classes().map(class).collect(),
            assignment,
            stuck: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// The groups and classes.
    #[must_use]
    pub const fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// The policy.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the state of a group.
    ///
    /// # Panics
    /// If the rack has no such group.
    #[must_use]
    pub fn group_state(&self, group: GroupId) -> GroupState {
        match self.classes[self.groups[group.as_usize()].class].phase {
            Phase::SpinningUp { group: own, .. } if own == group => GroupState::SpinningUp,
            Phase::Up { group: own, .. } if own == group => GroupState::Spinning,
            Phase::SpinningDown { group: own } if own == group => GroupState::SpinningDown,
            Phase::Stopped
            | Phase::SpinningUp { .. }
            | Phase::Up { .. }
            | Phase::SpinningDown { .. } => GroupState::Asleep,
        }
    }

    /// Returns the state of a disk.
    ///
    /// # Panics
    /// If the rack has no such place.
    #[must_use]
    pub fn place_state(&self, place: PlaceId) -> PlaceState {
        let disk = self.places.disk(place);
        match disk.spin_state {
            SpinState::SpinningUp => PlaceState::SpinningUp,
            SpinState::Spinning => PlaceState::Spinning,
            SpinState::SpinningDown => PlaceState::SpinningDown,
            SpinState::Stuck { .. } => PlaceState::Stuck,
            SpinState::Stopped if disk.is_lost() => PlaceState::Lost,
            SpinState::Stopped if !disk.can_spin_up(self.now) => PlaceState::Resting,
            SpinState::Stopped => PlaceState::Asleep,
        }
    }

    /// Returns the group of a class that spins or is coming up.
    ///
    /// # Panics
    /// If the rack has no such class.
    #[must_use]
    pub fn spinning(&self, class: ClassId) -> Option<GroupId> {
        self.classes[class.as_usize()].phase.group()
    }

    /// Returns how many operations of a class wait.
    ///
    /// # Panics
    /// If the rack has no such class.
    #[must_use]
    pub fn waiting(&self, class: ClassId, side: Side) -> usize {
        let class = &self.classes[class.as_usize()];
        match side {
            Side::Client => class.client.len() + class.inits.len(),
            Side::Background => class.background.len(),
        }
    }

    /// Returns the bytes of waiting operations of a class.
    ///
    /// # Panics
    /// If the rack has no such class.
    #[must_use]
    pub fn waiting_bytes(&self, class: ClassId, side: Side) -> ByteCount {
        let class = &self.classes[class.as_usize()];
        match side {
            Side::Client => class.client.bytes(),
            Side::Background => class.background.bytes(),
        }
    }

    /// Returns the disks of a group that can be used: neither lost nor in backoff.
    ///
    /// # Panics
    /// If the rack has no such group.
    #[must_use]
    pub fn usable(&self, group: GroupId) -> Members {
        let known = &self.groups[group.as_usize()];
        let away = (0..known.places.len()).filter(|position| {
            known.lost.union(known.in_backoff).contains(*position)
                && !self.places.disk(known.places[*position]).can_spin_up(self.now)
        });
        away.fold(Members::first(known.places.len()), Members::without)
    }

    /// Returns the disks of a group that cannot be used: lost, or in backoff after a failed
    /// spin-up.
    ///
    /// # Panics
    /// If the rack has no such group.
    pub fn away(&self, group: GroupId) -> impl Iterator<Item = PlaceId> {
        let usable = self.usable(group);
        let places = self.groups[group.as_usize()].places.iter().enumerate();
        places.filter(move |(position, _)| !usable.contains(*position)).map(|(_, place)| *place)
    }

    fn submit(&mut self, op: Op, out: &mut Outbox<Command>) {
        let group = &self.groups[op.group.as_usize()];
        let (index, number, has_init) = (group.class, group.number, group.init.is_some());
        let waiting = Waiting { op, since: self.now };
        let side = op.kind.side();
        let limit = match side {
            Side::Client => self.policy.client_queue,
            Side::Background => self.policy.background_queue,
        };
        let class = &mut self.classes[index];
        let did_wait = class.waits(side);
        if op.kind == OpKind::Init {
            if has_init {
                self.refuse(op.id, Refusal::Busy { retry_after: RETRY_MIN }, out);
                return;
            }
            class.inits.push_back(op.group);
            self.groups[op.group.as_usize()].init = Some(waiting);
        } else if let Some(refusal) = self.too_few(&op) {
            self.refuse(op.id, refusal, out);
            return;
        } else {
            let class = &mut self.classes[index];
            let (measured, is_up) = (class.measured, class.phase.group() == Some(op.group));
            let queue = class.queue(side);
            if queue.len() >= limit {
                let retry_after = measured.retry_after(queue.bytes());
                self.refuse(op.id, Refusal::Busy { retry_after }, out);
                return;
            }
            let cost = Cost::new(op.bytes, measured.op_time(op.bytes));
            queue.insert(waiting, number, cost, is_up && self.policy.joins_running);
            if is_up && side == Side::Client {
                self.request_early(index, &op, out);
            }
        }
        if !did_wait {
            self.classes[index].fair_share.activate(side);
        }
        self.advance(index, out);
    }

    fn done(&mut self, id: OpId, out: &mut Outbox<Command>) {
        let ran = |class: &Class| class.running.iter().position(|running| running.op.id == id);
        let found = self.classes.iter().enumerate().find_map(|(at, class)| Some((at, ran(class)?)));
        let (index, at) = found.unwrap_or_else(|| panic!("operation {id} is not running"));
        let class = &mut self.classes[index];
        let running = class.running.swap_remove(at);
        class.measured.served(running.op.bytes, self.now.since(running.since));
        self.advance(index, out);
    }

    pub(crate) fn refuse(&mut self, op: OpId, refusal: Refusal, out: &mut Outbox<Command>) {
        match refusal {
            Refusal::Busy { .. } => self.counters.busy += 1,
            Refusal::TooFew { .. } => self.counters.too_few += 1,
        }
        out.push(Command::Refuse { op, refusal });
    }

    /// Returns why an operation cannot be done in its group, if so.
    pub(crate) fn too_few(&self, op: &Op) -> Option<Refusal> {
        let group = &self.groups[op.group.as_usize()];
        if op.enough == 0 || group.lost.union(group.in_backoff).is_empty() {
            return None;
        }
        let usable = self.usable(op.group).intersection(op.members).count();
        (usable < op.enough).then(|| {
            let backing_off = group.in_backoff.intersection(op.members).positions();
            let until =
                backing_off.filter_map(|at| self.places.disk(group.places[at]).backoff_until);
            let in_backoff = group.in_backoff.intersection(op.members).count();
            let retry_after = (usable + in_backoff >= op.enough)
                .then(|| until.max().map(|until| until.since(self.now).max(RETRY_MIN)))
                .flatten();
            Refusal::TooFew { usable, retry_after }
        })
    }
}

/// Returns the order of background work. With a budget, it is one in which an operation that waits
/// for the budget does not block a rebuild that is exempt. None is delayed for batching.
const fn background_order(policy: &Policy) -> Order {
    match (policy.order, policy.budget) {
        (Order::Batches, None) => Order::Batches,
        (Order::Batches, Some(_)) => {
            Order::Due(Due { patience: Duration::ZERO, usual: DEFAULT_DEADLINE, stay: VISIT_MAX })
        }
        (Order::Due(due), _) => Order::Due(Due { patience: Duration::ZERO, ..due }),
    }
}

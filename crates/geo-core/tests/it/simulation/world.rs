//! World of a run: sites, messages in flight, clients and their operations.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use fulgurite_geo_core::{
    Ask, Collect, Command, Epoch, FetchResult, Fragment, FragmentOp, Heal, KnownVersions,
    OpCommand, OpEvent, OpResult, Operation, Quorums, Read, Request, Restore, Row, SiteIndex,
    Sweep, Terms, Value, Verdict, Version, Write, WriteId, fragments,
};
use fulgurite_units::{Controller, Duration, Instant, Outbox, RandomStream};

use super::history::History;
use super::plan::{Plan, draw_index};
use super::run::{Fault, Totals};
use super::site::Site;

/// A running operation.
#[derive(Debug)]
pub(super) enum Running {
    Write(Box<Write>, WriteId),
    Read(Box<Read>),
    Heal(Box<Heal>),
    Collect(Box<Collect>),
    Sweep(Box<Sweep>),
    Restore(Box<Restore>),
}

impl Running {
    fn step(&mut self, now: Instant, event: OpEvent, out: &mut Outbox<OpCommand>) {
        match self {
            Self::Write(operation, _) => advance(&mut **operation, now, event, out),
            Self::Read(operation) => advance(&mut **operation, now, event, out),
            Self::Heal(operation) => advance(&mut **operation, now, event, out),
            Self::Collect(operation) => advance(&mut **operation, now, event, out),
            Self::Sweep(operation) => advance(&mut **operation, now, event, out),
            Self::Restore(operation) => advance(&mut **operation, now, event, out),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Write(operation, _) => operation.deadline(),
            Self::Read(operation) => operation.deadline(),
            Self::Heal(operation) => operation.deadline(),
            Self::Collect(operation) => operation.deadline(),
            Self::Sweep(operation) => operation.deadline(),
            Self::Restore(operation) => operation.deadline(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Write(operation, _) => operation.end().is_some(),
            Self::Read(operation) => operation.end().is_some(),
            Self::Heal(operation) => operation.end().is_some(),
            Self::Collect(operation) => operation.end().is_some(),
            Self::Sweep(operation) => operation.end().is_some(),
            Self::Restore(operation) => operation.end().is_some(),
        }
    }
}

fn advance<O: Operation>(
    operation: &mut O,
    now: Instant,
    event: OpEvent,
    out: &mut Outbox<OpCommand>,
) {
    operation.step(now, event, out);
    operation.check();
}

/// A scheduled event.
#[derive(Clone, Debug)]
enum Message {
    Ask { operation: u64, ask: Ask },
    Notify { key: u64, site: SiteIndex, known: KnownVersions },
    FragmentOp { operation: u64, fragment: Fragment, fragment_op: FragmentOp },
    Fetch { operation: u64, version: Version, value: Value },
    OpEvent { operation: u64, event: OpEvent },
    Timer { operation: u64 },
    Up { site: SiteIndex },
    Down { site: SiteIndex },
    Replace { site: SiteIndex },
}

#[derive(Debug)]
struct Scheduled {
    time: u64,
    sequence: u64,
    message: Message,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        (self.time, self.sequence) == (other.time, other.sequence)
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.sequence).cmp(&(other.time, other.sequence))
    }
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) random: RandomStream,
    pub(super) now: u64,
    sequence: u64,
    queue: BinaryHeap<Reverse<Scheduled>>,
    pub(super) sites: Vec<Site>,
    /// The site that is being replaced.
    pub(super) replacing: Option<SiteIndex>,
    pub(super) epoch: Epoch,
    operations: BTreeMap<u64, (u64, Running)>,
    pub(super) ended: Vec<u64>,
    pub(super) history: History,
    pub(super) totals: Totals,
    /// Clients that died, and the object each was working on.
    dead: BTreeMap<u64, u64>,
    /// Whether faults have ended.
    pub(super) calm: bool,
    /// Whether to print every event.
    pub(super) trace: bool,
    next: u64,
}

impl World {
    pub(super) fn new(plan: Plan, random: RandomStream) -> Self {
        let sites = (0..plan.sites).map(|_| Site::new()).collect();
        Self {
            plan,
            random,
            now: 0,
            sequence: 0,
            queue: BinaryHeap::new(),
            sites,
            replacing: None,
            epoch: Epoch(1),
            operations: BTreeMap::new(),
            ended: Vec::new(),
            history: History::default(),
            totals: Totals::default(),
            dead: BTreeMap::new(),
            calm: false,
            trace: std::env::var_os("FULGURITE_TEST_GEO_TRACE").is_some(),
            next: 0,
        }
    }

    pub(super) fn voters(&self) -> impl Iterator<Item = SiteIndex> + use<> {
        (0..u8::try_from(self.plan.sites).unwrap()).map(SiteIndex)
    }

    /// Returns the terms of a client near one of the sites.
    pub(super) fn terms(&mut self, near: usize) -> Terms {
        let mut voters: Vec<_> = self.voters().collect();
        voters.rotate_left(near);
        let down = self.replacing.into_iter().collect::<BTreeSet<_>>();
        let quorums = match self.plan.fault {
            Some(Fault::SmallQuorum) => Quorums::unchecked(self.plan.sites, 2, 2, 2),
            _ => Quorums::new(self.plan.sites, self.plan.sizes).unwrap(),
        };
        // Some clients believe that a site does not answer, and may be wrong.
        let silent = voters.iter().copied().filter(|_| self.random.below(16) == 0).collect();
        Terms {
            quorums,
            epoch: self.epoch,
            voters,
            down,
            silent,
            fast: self.plan.loss == 0 || self.random.below(8) > 0,
            round: Duration::from_millis(3 * self.plan.delay_ms),
            backoff: Duration::from_millis(self.plan.delay_ms),
            patience: Duration::from_millis(40 * self.plan.delay_ms),
        }
    }

    fn chance(&mut self, thousandths: u64) -> bool {
        !self.calm && thousandths > 0 && self.random.below(1000) < thousandths
    }

    fn delay(&mut self) -> u64 {
        // Most are quick; a few take much longer than a round lasts.
        let longest = self.plan.delay_ms * 1_000_000;
        let slow = if self.chance(self.plan.loss / 2) { 6 } else { 1 };
        1 + self.random.below(longest * slow)
    }

    fn post(&mut self, after: u64, message: Message) {
        self.sequence += 1;
        let order = Scheduled { time: self.now + after, sequence: self.sequence, message };
        self.queue.push(Reverse(order));
    }

    /// Sends a message: it may be lost, late, or duplicated.
    fn send(&mut self, message: Message) {
        if self.chance(self.plan.loss) {
            self.totals.lost_messages += 1;
            return;
        }
        if self.chance(self.plan.twice) {
            let delay = self.delay();
            self.post(delay, message.clone());
        }
        let delay = self.delay();
        self.post(delay, message);
    }

    pub(super) fn fail_site(&mut self, site: SiteIndex, after: u64, length: u64) {
        self.post(after, Message::Down { site });
        self.post(after + length, Message::Up { site });
    }

    pub(super) fn replace_site(&mut self, site: SiteIndex, after: u64) {
        self.post(after, Message::Replace { site });
    }

    /// Begins an operation on an object.
    pub(super) fn begin(&mut self, key: u64, running: Running) -> u64 {
        self.next += 1;
        let operation = self.next;
        if self.trace {
            eprintln!("{:>12} begins {operation} of {key}: {running:?}", self.now);
        }
        self.operations.insert(operation, (key, running));
        self.handle_event(operation, OpEvent::Begin);
        operation
    }

    pub(super) fn take(&mut self, operation: u64) -> Option<(u64, Running)> {
        self.operations.remove(&operation)
    }

    fn handle_event(&mut self, operation: u64, event: OpEvent) {
        let Some((_, running)) = self.operations.get_mut(&operation) else { return };
        let mut out = Outbox::new();
        running.step(Instant::from_nanos(self.now), event, &mut out);
        let (over, deadline) = (running.is_over(), running.deadline());
        for command in out.drain() {
            self.command(operation, command);
        }
        if over {
            self.ended.push(operation);
        } else if let Some(deadline) = deadline {
            let after = deadline.as_nanos().saturating_sub(self.now);
            self.post(after, Message::Timer { operation });
        }
    }

    fn command(&mut self, operation: u64, command: OpCommand) {
        match command {
            OpCommand::Ask(ask) => self.send(Message::Ask { operation, ask }),
            OpCommand::Notify { site, known } => {
                let Some((key, _)) = self.operations.get(&operation) else { return };
                let key = *key;
                self.send(Message::Notify { key, site, known });
            }
            OpCommand::Fragment(fragment, fragment_op) => {
                // The driver waits as long as it takes, and reports an unknown result.
                let delay = self.delay();
                self.post(delay, Message::FragmentOp { operation, fragment, fragment_op });
            }
            OpCommand::Fetch { version, value } => {
                let delay = self.delay();
                self.post(delay, Message::Fetch { operation, version, value });
            }
        }
    }

    /// Executes the next event; false if there is none.
    pub(super) fn run_next_event(&mut self) -> Result<bool, String> {
        let Some(Reverse(order)) = self.queue.pop() else { return Ok(false) };
        self.now = order.time;
        self.totals.mix(order.time);
        if self.trace {
            eprintln!("{:>12} {:?}", order.time, order.message);
        }
        match order.message {
            Message::Ask { operation, ask } => self.handle_ask(operation, ask)?,
            Message::Notify { key, site, known } => {
                let request = Request { epoch: self.epoch, known, command: Command::Learn };
                if self.sites[site.index()].up {
                    self.apply(key, site, &request)?;
                }
            }
            Message::FragmentOp { operation, fragment, fragment_op } => {
                self.fragment_op(operation, fragment, fragment_op)
            }
            Message::Fetch { operation, version, value } => {
                let fetched = self.fetch(&value);
                self.handle_event(operation, OpEvent::FetchResult(version, fetched));
            }
            Message::OpEvent { operation, event } => self.handle_event(operation, event),
            Message::Timer { operation } => {
                let now = Instant::from_nanos(self.now);
                let due =
                    self.operations.get(&operation).and_then(|(_, running)| running.deadline());
                if due.is_some_and(|due| due <= now) {
                    self.handle_event(operation, OpEvent::Timer);
                }
            }
            Message::Up { site } => self.sites[site.index()].up = true,
            Message::Down { site } if !self.calm => self.sites[site.index()].up = false,
            Message::Replace { site } if !self.calm => self.replace(site),
            Message::Down { .. } | Message::Replace { .. } => {}
        }
        Ok(true)
    }

    fn apply(
        &mut self,
        key: u64,
        site: SiteIndex,
        request: &Request,
    ) -> Result<(Verdict, Row), String> {
        let answer = self.sites[site.index()].apply(key, request, self.plan.fault);
        self.history.witness(key, &answer.1.known)?;
        Ok(answer)
    }

    fn handle_ask(&mut self, operation: u64, ask: Ask) -> Result<(), String> {
        let Some((key, _)) = self.operations.get(&operation) else {
            // The sender is dead; its request is not.
            let Some(key) = self.dead.get(&operation).copied() else { return Ok(()) };
            if self.sites[ask.site.index()].up {
                self.apply(key, ask.site, &ask.request)?;
            }
            return Ok(());
        };
        let key = *key;
        let answer = if self.sites[ask.site.index()].up {
            Some(self.apply(key, ask.site, &ask.request)?)
        } else {
            None
        };
        let event = OpEvent::Answered { site: ask.site, call: ask.call, answer };
        self.send(Message::OpEvent { operation, event });
        Ok(())
    }

    fn fragment_op(&mut self, operation: u64, fragment: Fragment, fragment_op: FragmentOp) {
        let present = self.sites[fragment.site.index()].has(fragment);
        let up = self.sites[fragment.site.index()].up && !self.chance(self.plan.loss);
        let id = (fragment.write, fragment.index);
        let result = match fragment_op {
            _ if !up => OpResult::Unknown,
            FragmentOp::Probe if present => OpResult::Done,
            FragmentOp::Probe => OpResult::Absent,
            FragmentOp::Write if self.sites[fragment.site.index()].fenced.contains(&id) => {
                OpResult::Absent
            }
            FragmentOp::Write => {
                self.sites[fragment.site.index()].fragments.insert(id);
                OpResult::Done
            }
            FragmentOp::Fence if present => OpResult::Unknown,
            FragmentOp::Fence => {
                self.sites[fragment.site.index()].fenced.insert(id);
                OpResult::Done
            }
            FragmentOp::Erase => {
                self.sites[fragment.site.index()].fragments.remove(&id);
                self.sites[fragment.site.index()].fenced.remove(&id);
                OpResult::Done
            }
            FragmentOp::Rebuild => {
                let have = self.sites.iter().filter(|site| site.up);
                let have = have.flat_map(|site| &site.fragments);
                let have = have.filter(|(write, _)| *write == fragment.write).count();
                if have >= usize::from(self.plan.data) {
                    self.sites[fragment.site.index()].fragments.insert(id);
                    OpResult::Done
                } else {
                    OpResult::Unknown
                }
            }
        };
        // Done, but the answer is lost.
        let lost = self.chance(self.plan.loss);
        let result = if lost { OpResult::Unknown } else { result };
        let delay = self.delay();
        self.post(
            delay,
            Message::OpEvent { operation, event: OpEvent::Fragment(fragment, fragment_op, result) },
        );
    }

    fn fetch(&mut self, value: &Value) -> FetchResult {
        let eager = self.plan.fault == Some(Fault::UnknownIsAbsent);
        let (mut present, mut absent, mut unknown) = (0, 0, 0);
        for fragment in fragments(value) {
            let site = &self.sites[fragment.site.index()];
            let silent = !site.up || site.state.rebuilding;
            if site.up && site.has(fragment) {
                present += 1;
            } else if silent && !eager {
                unknown += 1;
            } else {
                absent += 1;
            }
        }
        if present >= self.plan.data {
            FetchResult::Complete
        } else {
            FetchResult::TooFew { absent, unknown }
        }
    }

    fn replace(&mut self, site: SiteIndex) {
        if self.replacing.is_some() {
            return;
        }
        self.totals.replaced += 1;
        self.history.lost_site = true;
        self.replacing = Some(site);
        self.epoch = Epoch(self.epoch.0 + 1);
        self.sites[site.index()].wipe();
        self.sites[site.index()].up = true;
        self.announce();
    }

    /// Marks all rows of the replaced site as rebuilt: it votes on new objects as well.
    pub(super) fn mark_restored(&mut self) {
        let Some(site) = self.replacing.take() else { return };
        self.sites[site.index()].state.rebuilding = false;
        self.epoch = Epoch(self.epoch.0 + 1);
        self.announce();
    }

    /// Gives all sites the new map at once; requests with an older one are rejected.
    fn announce(&mut self) {
        for site in &mut self.sites {
            site.state.epoch = self.epoch;
        }
    }

    /// Kills a client. Its messages stay in flight.
    pub(super) fn kill(&mut self, operation: u64) -> Option<(u64, Running)> {
        let (key, running) = self.operations.remove(&operation)?;
        self.dead.insert(operation, key);
        self.totals.crashed += 1;
        Some((key, running))
    }

    /// Returns the keys of which any site has a row.
    pub(super) fn keys(&self) -> BTreeSet<u64> {
        self.sites.iter().flat_map(|site| site.rows.keys().copied()).collect()
    }

    /// Derives an independent random stream.
    pub(super) fn child(&mut self) -> RandomStream {
        fulgurite_units::Seed::new(self.random.next_u64()).stream()
    }

    /// Draws an index below `bound`.
    pub(super) fn draw_index(&mut self, bound: usize) -> usize {
        draw_index(&mut self.random, bound as u64)
    }
}

//! World of a run: sites, messages in flight, clients and their operations.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use fulgurite_geo::{
    Act, Ask, Collect, Command, Deed, Epoch, Fetched, Fragment, Heal, Heard, How, Known, Operation,
    Quorums, Read, Request, Restore, Row, SiteIndex, Sweep, Terms, Value, Verdict, Version, Write,
    WriteId, fragments,
};
use fulgurite_units::{Controller, Duration, Instant, Outbox, RandomStream};

use super::history::History;
use super::plan::{Plan, at};
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
    fn step(&mut self, now: Instant, heard: Heard, out: &mut Outbox<Act>) {
        match self {
            Self::Write(it, _) => advance(&mut **it, now, heard, out),
            Self::Read(it) => advance(&mut **it, now, heard, out),
            Self::Heal(it) => advance(&mut **it, now, heard, out),
            Self::Collect(it) => advance(&mut **it, now, heard, out),
            Self::Sweep(it) => advance(&mut **it, now, heard, out),
            Self::Restore(it) => advance(&mut **it, now, heard, out),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Write(it, _) => it.deadline(),
            Self::Read(it) => it.deadline(),
            Self::Heal(it) => it.deadline(),
            Self::Collect(it) => it.deadline(),
            Self::Sweep(it) => it.deadline(),
            Self::Restore(it) => it.deadline(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Write(it, _) => it.end().is_some(),
            Self::Read(it) => it.end().is_some(),
            Self::Heal(it) => it.end().is_some(),
            Self::Collect(it) => it.end().is_some(),
            Self::Sweep(it) => it.end().is_some(),
            Self::Restore(it) => it.end().is_some(),
        }
    }
}

fn advance<O: Operation>(it: &mut O, now: Instant, heard: Heard, out: &mut Outbox<Act>) {
    it.step(now, heard, out);
    it.check();
}

/// A scheduled event.
#[derive(Clone, Debug)]
enum Message {
    Ask { operation: u64, ask: Ask },
    Tell { key: u64, site: SiteIndex, known: Known },
    Deed { operation: u64, fragment: Fragment, deed: Deed },
    Fetch { operation: u64, version: Version, value: Value },
    Heard { operation: u64, heard: Heard },
    Wake { operation: u64 },
    Up { site: SiteIndex },
    Down { site: SiteIndex },
    Replace { site: SiteIndex },
}

#[derive(Debug)]
struct Order {
    at: u64,
    sequence: u64,
    message: Message,
}

impl PartialEq for Order {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl Eq for Order {}

impl PartialOrd for Order {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Order {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) random: RandomStream,
    pub(super) now: u64,
    sequence: u64,
    queue: BinaryHeap<Reverse<Order>>,
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
    /// Whether everything works from now on.
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
            Some(Fault::SmallQuorum) => Quorums::unproved(self.plan.sites, 2, 2, 2),
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
            pause: Duration::from_millis(self.plan.delay_ms),
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
        let order = Order { at: self.now + after, sequence: self.sequence, message };
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
        self.hear(operation, Heard::Begin);
        operation
    }

    pub(super) fn take(&mut self, operation: u64) -> Option<(u64, Running)> {
        self.operations.remove(&operation)
    }

    fn hear(&mut self, operation: u64, heard: Heard) {
        let Some((_, running)) = self.operations.get_mut(&operation) else { return };
        let mut out = Outbox::new();
        running.step(Instant::from_nanos(self.now), heard, &mut out);
        let (over, deadline) = (running.is_over(), running.deadline());
        for act in out.drain() {
            self.act(operation, act);
        }
        if over {
            self.ended.push(operation);
        } else if let Some(deadline) = deadline {
            let after = deadline.as_nanos().saturating_sub(self.now);
            self.post(after, Message::Wake { operation });
        }
    }

    fn act(&mut self, operation: u64, act: Act) {
        match act {
            Act::Ask(ask) => self.send(Message::Ask { operation, ask }),
            Act::Tell { site, known } => {
                let Some((key, _)) = self.operations.get(&operation) else { return };
                let key = *key;
                self.send(Message::Tell { key, site, known });
            }
            Act::Fragment(fragment, deed) => {
                // The driver waits as long as it takes, and reports an unknown result.
                let delay = self.delay();
                self.post(delay, Message::Deed { operation, fragment, deed });
            }
            Act::Fetch { version, value } => {
                let delay = self.delay();
                self.post(delay, Message::Fetch { operation, version, value });
            }
        }
    }

    /// Executes the next event; false if there is none.
    pub(super) fn happen(&mut self) -> Result<bool, String> {
        let Some(Reverse(order)) = self.queue.pop() else { return Ok(false) };
        self.now = order.at;
        self.totals.mix(order.at);
        if self.trace {
            eprintln!("{:>12} {:?}", order.at, order.message);
        }
        match order.message {
            Message::Ask { operation, ask } => self.asked(operation, ask)?,
            Message::Tell { key, site, known } => {
                let request = Request { epoch: self.epoch, known, command: Command::Learn };
                if self.sites[site.index()].up {
                    self.apply(key, site, &request)?;
                }
            }
            Message::Deed { operation, fragment, deed } => self.deed(operation, fragment, deed),
            Message::Fetch { operation, version, value } => {
                let fetched = self.fetch(&value);
                self.hear(operation, Heard::Fetched(version, fetched));
            }
            Message::Heard { operation, heard } => self.hear(operation, heard),
            Message::Wake { operation } => {
                let now = Instant::from_nanos(self.now);
                let due = self.operations.get(&operation).and_then(|(_, it)| it.deadline());
                if due.is_some_and(|due| due <= now) {
                    self.hear(operation, Heard::Timer);
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

    fn asked(&mut self, operation: u64, ask: Ask) -> Result<(), String> {
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
        let heard = Heard::Answered { site: ask.site, call: ask.call, answer };
        self.send(Message::Heard { operation, heard });
        Ok(())
    }

    fn deed(&mut self, operation: u64, fragment: Fragment, deed: Deed) {
        let there = self.sites[fragment.site.index()].has(fragment);
        let up = self.sites[fragment.site.index()].up && !self.chance(self.plan.loss);
        let id = (fragment.write, fragment.index);
        let how = match deed {
            _ if !up => How::Unknown,
            Deed::Probe if there => How::Done,
            Deed::Probe => How::Absent,
            Deed::Write if self.sites[fragment.site.index()].forbidden.contains(&id) => How::Absent,
            Deed::Write => {
                self.sites[fragment.site.index()].fragments.insert(id);
                How::Done
            }
            Deed::Forbid if there => How::Unknown,
            Deed::Forbid => {
                self.sites[fragment.site.index()].forbidden.insert(id);
                How::Done
            }
            Deed::Erase => {
                self.sites[fragment.site.index()].fragments.remove(&id);
                self.sites[fragment.site.index()].forbidden.remove(&id);
                How::Done
            }
            Deed::Rebuild => {
                let have = self.sites.iter().filter(|site| site.up);
                let have = have.flat_map(|site| &site.fragments);
                let have = have.filter(|(write, _)| *write == fragment.write).count();
                if have >= usize::from(self.plan.data) {
                    self.sites[fragment.site.index()].fragments.insert(id);
                    How::Done
                } else {
                    How::Unknown
                }
            }
        };
        // Done, but the answer is lost.
        let lost = self.chance(self.plan.loss);
        let how = if lost { How::Unknown } else { how };
        let delay = self.delay();
        self.post(delay, Message::Heard { operation, heard: Heard::Fragment(fragment, deed, how) });
    }

    fn fetch(&mut self, value: &Value) -> Fetched {
        let eager = self.plan.fault == Some(Fault::UnknownIsAbsent);
        let (mut there, mut absent, mut unknown) = (0, 0, 0);
        for fragment in fragments(value) {
            let site = &self.sites[fragment.site.index()];
            let silent = !site.up || site.standing.rebuilding;
            if site.up && site.has(fragment) {
                there += 1;
            } else if silent && !eager {
                unknown += 1;
            } else {
                absent += 1;
            }
        }
        if there >= self.plan.data { Fetched::Whole } else { Fetched::Short { absent, unknown } }
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
    pub(super) fn restored(&mut self) {
        let Some(site) = self.replacing.take() else { return };
        self.sites[site.index()].standing.rebuilding = false;
        self.epoch = Epoch(self.epoch.0 + 1);
        self.announce();
    }

    /// Gives all sites the new map at once; requests with an older one are rejected.
    fn announce(&mut self) {
        for site in &mut self.sites {
            site.standing.epoch = self.epoch;
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

    /// Draws one of so many.
    pub(super) fn one_of(&mut self, bound: usize) -> usize {
        at(&mut self.random, bound as u64)
    }
}

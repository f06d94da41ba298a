//! One run of several sites: the controllers of `geo` over sites, stores and a network of given
//! speeds.
//!
//! ```text
//!   arrivals --> Write, Read, Heal --acts--> Message --drawn time--> Site: row' = step(row)
//!                       ^                                               |
//!                       '----------------- reply <------- drawn time ---'
//! ```
//!
//! Messages are neither lost nor duplicated here, sites are not replaced and nodes do not crash:
//! the simulation of `geo` covers all that. A node never waits for other nodes, only for the sites
//! it asks.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_geo::{Quorums, SiteIndex, Terms, WriteId};
use fulgurite_units::{Duration, Instant, RandomStream, Seed};

use super::arrivals::{Arrival, arrivals};
use super::operation::{Message, Operation};
use super::result::{Accounts, RunResult};
use super::scenario::{Design, Scenario};
use super::site::{EPOCH, Site};
use super::times::{Times, ms};
use crate::Error;
use crate::engine::{Agenda, Ended, Observer, Stage, System};

/// Delay between the write of an object and its read.
pub(super) const REST: Duration = Duration::from_secs(5);
/// Idle time before a site loses its fragments.
const QUIET: Duration = Duration::from_secs(60);

/// The system of several sites.
#[derive(Debug)]
pub struct Sites {
    pub(super) scenario: Scenario,
    pub(super) quorums: Quorums,
    pub(super) voters: Vec<u8>,
    pub(super) holders: Vec<u8>,
    pub(super) sites: Vec<Site>,
    pub(super) times: Times,
    pub(super) random: RandomStream,
    pub(super) operations: BTreeMap<u64, Operation>,
    messages: Vec<Option<Message>>,
    unused: Vec<u32>,
    next: u64,
    /// Fragment size of each write.
    pub(super) fragments: BTreeMap<WriteId, u64>,
    /// For each site, the number of its open stripe and the objects waiting in it.
    pub(super) batches: BTreeMap<u8, (u64, Vec<(u64, Instant)>)>,
    /// Pending events that belong to no operation.
    pub(super) waiting: u64,
    /// Writes started; limits back-to-back clients.
    pub(super) begun: u32,
    /// Objects that were written.
    pub(super) keys: BTreeSet<u64>,
    pub(super) accounts: Accounts,
}

/// A pending event.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// A message between a node and a site, by its slot.
    Message(u32),
    /// An operation's deadline.
    Wake(u64),
    /// A read of an object starts.
    Get {
        /// The object.
        key: u64,
        /// The site.
        near: u8,
    },
    /// A stripe has waited long enough.
    Close {
        /// The site.
        near: u8,
        /// Its number.
        stripe: u64,
    },
    /// An operation without a controller ends.
    Plain {
        /// The object.
        key: u64,
        /// The site.
        near: u8,
        /// When it began.
        began: Instant,
        /// Whether it was a write.
        put: bool,
    },
    /// A site loses its fragments.
    Lose,
}

/// Observable events of several sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seen {
    /// An operation began.
    Begun(u64),
    /// An operation ended, after this many nanoseconds.
    Ended(u64, u64),
    /// A request reached a site.
    Asked(u8),
    /// A fragment was written.
    Written(u8),
    /// Bytes were sent between sites.
    Crossed(u64),
    /// A write needed more than a fast round.
    Slow,
}

impl System for Sites {
    const NAME: &'static str = "giza";
    type Scenario = Scenario;
    type Arrival = Arrival;
    type Next = Next;
    type Seen<'a> = Seen;
    type Result = RunResult;

    fn new(scenario: &Scenario, seed: &Seed, agenda: &mut Agenda<Next>) -> Result<Self, Error> {
        scenario.validate()?;
        let up = |index: u8| !scenario.down.contains(&index);
        let sites = (0_u8..).zip(&scenario.sites).map(|(index, _)| Site::new(up(index)));
        let mut waiting = 0;
        if scenario.rebuilt.is_some() {
            let every = scenario.workload.every.as_nanos();
            let last = u64::from(scenario.workload.objects).saturating_mul(every);
            agenda.push(Instant::from_nanos(last) + QUIET, Next::Lose);
            waiting = 1;
        }
        Ok(Self {
            quorums: scenario.quorums()?,
            voters: scenario.voters(),
            holders: scenario.holders(),
            sites: sites.collect(),
            times: Times::new(seed),
            random: seed.child(b"operations").stream(),
            operations: BTreeMap::new(),
            messages: Vec::new(),
            unused: Vec::new(),
            next: 0,
            fragments: BTreeMap::new(),
            batches: BTreeMap::new(),
            waiting,
            begun: 0,
            keys: BTreeSet::new(),
            accounts: Accounts::default(),
            scenario: scenario.clone(),
        })
    }

    fn arrivals(scenario: &Scenario, seed: &Seed) -> Result<impl Iterator<Item = Arrival>, Error> {
        scenario.validate()?;
        Ok(arrivals(scenario, seed).into_iter())
    }

    fn arrives_at(arrival: &Arrival) -> Instant {
        arrival.at
    }

    fn arrive<O: Observer<Self>>(&mut self, of: &Arrival, stage: &mut Stage<'_, Self, O>) {
        self.begun += 1;
        self.put(of.key, of.near, stage);
    }

    fn happen<O: Observer<Self>>(&mut self, next: Next, stage: &mut Stage<'_, Self, O>) {
        match next {
            Next::Message(place) => {
                let message = self.messages[place as usize].take();
                self.unused.push(place);
                if let Some(message) = message {
                    self.deliver(message, stage);
                }
            }
            Next::Wake(operation) => self.wake(operation, stage),
            Next::Get { key, near } => {
                self.waiting -= 1;
                self.get(key, near, stage);
            }
            Next::Close { near, stripe } => self.close(near, Some(stripe), stage),
            Next::Plain { key, near, began, put } => {
                self.waiting -= 1;
                self.ended_plain((key, near), began, put, stage);
            }
            Next::Lose => {
                self.waiting -= 1;
                self.lose(stage);
            }
        }
    }

    fn is_done(&self) -> bool {
        self.operations.is_empty() && self.waiting == 0 && self.batches.is_empty()
    }

    fn result(self, ended: Ended) -> RunResult {
        let uses = self.sites.iter().map(Site::uses).collect();
        let size = self.scenario.size.get();
        RunResult {
            seed: ended.seed,
            makespan: ended.at.since(Instant::ZERO).as_secs_f64(),
            events: ended.events,
            hash: ended.hash,
            ..self.accounts.result(uses, size, self.scenario.stored_for_each)
        }
    }
}

impl Sites {
    /// Returns the next number for an operation or a stripe.
    pub(super) const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Returns a random stream for a controller.
    pub(super) fn child(&mut self) -> RandomStream {
        Seed::new(self.random.next_u64()).stream()
    }

    /// Sends a message that arrives after a delay.
    pub(super) fn post<O: Observer<Self>>(
        &mut self,
        after: Duration,
        message: Message,
        stage: &mut Stage<'_, Self, O>,
    ) {
        let place = self.unused.pop().unwrap_or_else(|| {
            self.messages.push(None);
            u32::try_from(self.messages.len() - 1).unwrap_or(u32::MAX)
        });
        self.messages[place as usize] = Some(message);
        stage.put(stage.now() + after, Next::Message(place));
    }

    /// Returns the terms of a node at a site.
    pub(super) fn terms(&self, near: u8) -> Terms {
        let scenario = &self.scenario;
        let nearest = scenario.nearest(near, self.voters.clone());
        let mut trips: Vec<f64> = nearest.iter().map(|site| scenario.rtt(near, *site)).collect();
        trips.retain(|rtt| *rtt > 0.0);
        let known = if scenario.down_is_known { scenario.down.as_slice() } else { &[] };
        Terms {
            quorums: self.quorums,
            epoch: EPOCH,
            voters: nearest.into_iter().map(SiteIndex).collect(),
            down: known.iter().map(|site| SiteIndex(*site)).collect(),
            silent: known.iter().map(|site| SiteIndex(*site)).collect(),
            fast: matches!(scenario.design, Design::Giza | Design::SerialFast),
            round: scenario.round,
            // The median round trip between sites (section 6.5).
            pause: ms(trips.get(trips.len() / 2).copied().unwrap_or(1.0)),
            patience: scenario.patience,
        }
    }

    /// Returns whether nodes know that a site is down.
    pub(super) fn is_known_down(&self, site: SiteIndex) -> bool {
        self.scenario.down_is_known && !self.sites[site.index()].up
    }

    /// Draws a round-trip time between a node and a site.
    pub(super) fn trip(&mut self, near: u8, site: SiteIndex) -> Duration {
        let rtt = self.scenario.rtt(near, site.0);
        self.times.round_trip(&self.scenario.network, rtt)
    }

    /// Returns the transfer time of bytes on one of `streams` connections of a node.
    pub(super) fn transfer(
        &self,
        bytes: u64,
        (near, site): (u8, SiteIndex),
        streams: usize,
        way_out: bool,
    ) -> Duration {
        let rtt = self.scenario.rtt(near, site.0);
        ms(self.scenario.network.transfer_ms(bytes, rtt, streams, way_out))
    }

    /// Counts bytes sent from one site to another, for a write or not.
    pub(super) fn cross<O: Observer<Self>>(
        &mut self,
        bytes: u64,
        (from, to): (u8, u8),
        put: bool,
        stage: &mut Stage<'_, Self, O>,
    ) -> u64 {
        if from == to {
            return 0;
        }
        let used = &mut self.sites[usize::from(from)].used;
        used.sent += bytes;
        used.sent_by_puts += if put { bytes } else { 0 };
        stage.show(Seen::Crossed(bytes));
        bytes
    }
}

//! One run of several sites: the controllers of `geo` with sites, stores and a network of stated
//! speeds.
//!
//! ```text
//!   arrivals --> Write, Read, Heal --acts--> Message --drawn time--> Site: row' = step(row)
//!                       ^                                               |
//!                       '----------------- heard <------- drawn time ---'
//! ```
//!
//! Messages are neither lost nor doubled here, sites are not replaced and nodes do not die: the
//! simulation of `geo` has all that. A node waits for nobody but the sites it asks.

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

/// How long a written object rests before it is read.
pub(super) const REST: Duration = Duration::from_secs(5);
/// How long everything rests before a site loses its fragments.
const QUIET: Duration = Duration::from_secs(60);

/// Several sites.
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
    /// Bytes of a fragment of each write.
    pub(super) fragments: BTreeMap<WriteId, u64>,
    /// Objects that wait for their stripe to be full, of each site, and the number of that stripe.
    pub(super) batches: BTreeMap<u8, (u64, Vec<(u64, Instant)>)>,
    /// What is to come and no operation waits for.
    pub(super) waiting: u64,
    /// Writes of back-to-back clients that were begun.
    pub(super) begun: u32,
    /// Objects that were written.
    pub(super) keys: BTreeSet<u64>,
    pub(super) accounts: Accounts,
}

/// What comes to several sites by itself.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// Something between a node and a site, by its place.
    Message(u32),
    /// An operation's deadline.
    Wake(u64),
    /// An object is read.
    Get {
        /// Which.
        key: u64,
        /// Where.
        near: u8,
    },
    /// A stripe has waited long enough.
    Close {
        /// Where.
        near: u8,
        /// Its number.
        stripe: u64,
    },
    /// Something ended that no controller runs.
    Plain {
        /// The object.
        key: u64,
        /// Where.
        near: u8,
        /// When it began.
        began: Instant,
        /// Whether it was a write.
        put: bool,
    },
    /// A site loses its fragments.
    Lose,
}

/// What there is to see of several sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seen {
    /// An operation began.
    Begun(u64),
    /// One ended, after so many nanoseconds.
    Ended(u64, u64),
    /// A question came to a site.
    Asked(u8),
    /// A fragment was written.
    Written(u8),
    /// Bytes crossed between sites.
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
    /// A number for an operation, a stripe or an object.
    pub(super) const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A stream of its own for a controller.
    pub(super) fn child(&mut self) -> RandomStream {
        Seed::new(self.random.next_u64()).stream()
    }

    /// Something is on its way.
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

    /// Terms of a node at a site.
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
            // The median between sites (section 6.5).
            pause: ms(trips.get(trips.len() / 2).copied().unwrap_or(1.0)),
            patience: scenario.patience,
        }
    }

    /// Whether a node knows that a site does not answer.
    pub(super) fn is_known_down(&self, site: SiteIndex) -> bool {
        self.scenario.down_is_known && !self.sites[site.index()].up
    }

    /// A drawn round trip between a node and a site.
    pub(super) fn trip(&mut self, near: u8, site: SiteIndex) -> Duration {
        let rtt = self.scenario.rtt(near, site.0);
        self.times.round_trip(&self.scenario.network, rtt)
    }

    /// How long bytes take on one of so many connections of a node.
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

    /// Bytes leave a site for another, for a write or not.
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

//! One run of several sites: the controllers of `geo-core` over sites, stores and a network of
//! given speeds.
//!
//! ```text
//!   arrivals --> Write, Read, Heal -commands-> Message --drawn time--> Site: row' = step(row)
//!                       ^                                               |
//!                       '----------------- reply <------- drawn time ---'
//! ```
//!
//! Messages are neither lost nor duplicated here, sites are not replaced and nodes do not crash:
//! the simulation of `geo-core` covers all that. A node never waits for other nodes, only for the
//! sites it asks.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_geo_core::{Quorums, SiteIndex, Terms, WriteId};
use fulgurite_units::{Duration, Instant, RandomStream, Seed};

use super::arrivals::{Arrival, arrivals};
use super::latencies::{Times, ms};
use super::operation::{Message, Operation};
use super::result::{RunResult, Stats};
use super::scenario::{Design, Scenario};
use super::site::{EPOCH, Site};
use crate::Error;
use crate::engine::{Context, Ended, EventQueue, Observer, System};

/// Delay between the write of an object and its read.
pub(super) const READ_DELAY: Duration = Duration::from_secs(5);
/// Idle time before a site loses its fragments.
const LOSS_DELAY: Duration = Duration::from_secs(60);

/// The system of several sites.
#[derive(Debug)]
pub struct Geo {
    pub(super) scenario: Scenario,
    pub(super) quorums: Quorums,
    pub(super) voters: Vec<u8>,
    pub(super) holders: Vec<u8>,
    pub(super) sites: Vec<Site>,
    pub(super) times: Times,
    pub(super) random: RandomStream,
    pub(super) operations: BTreeMap<u64, Operation>,
    messages: Vec<Option<Message>>,
    free_slots: Vec<u32>,
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
    pub(super) stats: Stats,
}

/// A pending event.
#[derive(Clone, Copy, Debug)]
pub enum PendingEvent {
    /// A message between a node and a site, by its slot.
    Message(u32),
    /// An operation's deadline.
    Deadline(u64),
    /// A read of an object starts.
    Get {
        /// The object.
        key: u64,
        /// The site.
        node_site: u8,
    },
    /// A stripe has waited long enough.
    Close {
        /// The site.
        node_site: u8,
        /// Its number.
        stripe: u64,
    },
    /// An operation without a controller ends.
    Plain {
        /// The object.
        key: u64,
        /// The site.
        node_site: u8,
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
pub enum Observation {
    /// An operation began.
    Begun(u64),
    /// An operation ended, after this many nanoseconds.
    Ended(u64, u64),
    /// A request reached a site.
    RequestArrived(u8),
    /// A fragment was written.
    Written(u8),
    /// Bytes were sent between sites.
    Crossed(u64),
    /// A write needed more than a fast round.
    Slow,
}

impl System for Geo {
    type Scenario = Scenario;
    type Arrival = Arrival;
    type PendingEvent = PendingEvent;
    type Observation<'a> = Observation;
    type Result = RunResult;

    fn new(
        scenario: &Scenario,
        seed: &Seed,
        event_queue: &mut EventQueue<PendingEvent>,
    ) -> Result<Self, Error> {
        scenario.validate()?;
        let up = |index: u8| !scenario.down.contains(&index);
        let sites = (0_u8..).zip(&scenario.sites).map(|(index, _)| Site::new(up(index)));
        let mut waiting = 0;
        if scenario.rebuilt.is_some() {
            let every = scenario.workload.every.as_nanos();
            let last = u64::from(scenario.workload.objects).saturating_mul(every);
            event_queue.push(Instant::from_nanos(last) + LOSS_DELAY, PendingEvent::Lose);
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
            free_slots: Vec::new(),
            next: 0,
            fragments: BTreeMap::new(),
            batches: BTreeMap::new(),
            waiting,
            begun: 0,
            keys: BTreeSet::new(),
            stats: Stats::default(),
            scenario: scenario.clone(),
        })
    }

    fn arrivals(scenario: &Scenario, seed: &Seed) -> Result<impl Iterator<Item = Arrival>, Error> {
        scenario.validate()?;
        Ok(arrivals(scenario, seed).into_iter())
    }

    fn arrival_time(arrival: &Arrival) -> Instant {
        arrival.at
    }

    fn handle_arrival<O: Observer<Self>>(
        &mut self,
        arrival: &Arrival,
        ctx: &mut Context<'_, Self, O>,
    ) {
        self.begun += 1;
        self.put(arrival.key, arrival.node_site, ctx);
    }

    fn handle_event<O: Observer<Self>>(
        &mut self,
        next: PendingEvent,
        ctx: &mut Context<'_, Self, O>,
    ) {
        match next {
            PendingEvent::Message(place) => {
                let message = self.messages[place as usize].take();
                self.free_slots.push(place);
                if let Some(message) = message {
                    self.deliver(message, ctx);
                }
            }
            PendingEvent::Deadline(operation) => self.handle_deadline(operation, ctx),
            PendingEvent::Get { key, node_site } => {
                self.waiting -= 1;
                self.get(key, node_site, ctx);
            }
            PendingEvent::Close { node_site, stripe } => self.close(node_site, Some(stripe), ctx),
            PendingEvent::Plain { key, node_site, began, put } => {
                self.waiting -= 1;
                self.end_baseline((key, node_site), began, put, ctx);
            }
            PendingEvent::Lose => {
                self.waiting -= 1;
                self.lose(ctx);
            }
        }
    }

    fn is_done(&self) -> bool {
        self.operations.is_empty() && self.waiting == 0 && self.batches.is_empty()
    }

    fn result(self, ended: Ended) -> RunResult {
        let usage = self.sites.iter().map(Site::usage).collect();
        let size = self.scenario.size.get();
        RunResult {
            seed: ended.seed,
            makespan: ended.at.since(Instant::ZERO).as_secs_f64(),
            events: ended.events,
            hash: ended.hash,
            ..self.stats.result(usage, size, self.scenario.stored_for_each)
        }
    }
}

impl Geo {
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
        ctx: &mut Context<'_, Self, O>,
    ) {
        let place = self.free_slots.pop().unwrap_or_else(|| {
            self.messages.push(None);
            u32::try_from(self.messages.len() - 1).unwrap_or(u32::MAX)
        });
        self.messages[place as usize] = Some(message);
        ctx.put(ctx.now() + after, PendingEvent::Message(place));
    }

    /// Returns the terms of a node at a site.
    pub(super) fn terms(&self, node_site: u8) -> Terms {
        let scenario = &self.scenario;
        let nearest = scenario.nearest(node_site, self.voters.clone());
        let mut trips: Vec<f64> =
            nearest.iter().map(|site| scenario.rtt(node_site, *site)).collect();
        trips.retain(|rtt| *rtt > 0.0);
        let known = if scenario.down_is_known { scenario.down.as_slice() } else { &[] };
        Terms {
            quorums: self.quorums,
            epoch: EPOCH,
            voters: nearest.into_iter().map(SiteIndex).collect(),
            down: known.iter().map(|site| SiteIndex(*site)).collect(),
            silent: known.iter().map(|site| SiteIndex(*site)).collect(),
            fast: matches!(scenario.design, Design::ParallelFast | Design::SerialFast),
            round: scenario.round,
            // The median round trip between sites (section 6.5).
            backoff: ms(trips.get(trips.len() / 2).copied().unwrap_or(1.0)),
            patience: scenario.patience,
        }
    }

    /// Returns whether nodes know that a site is down.
    pub(super) fn is_known_down(&self, site: SiteIndex) -> bool {
        self.scenario.down_is_known && !self.sites[site.index()].up
    }

    /// Draws a round-trip time between a node and a site.
    pub(super) fn trip(&mut self, node_site: u8, site: SiteIndex) -> Duration {
        let rtt = self.scenario.rtt(node_site, site.0);
        self.times.round_trip(&self.scenario.network, rtt)
    }

    /// Returns the transfer time of bytes on one of `streams` connections of a node.
    pub(super) fn transfer(
        &self,
        bytes: u64,
        (node_site, site): (u8, SiteIndex),
        streams: usize,
        way_out: bool,
    ) -> Duration {
        let rtt = self.scenario.rtt(node_site, site.0);
        ms(self.scenario.network.transfer_ms(bytes, rtt, streams, way_out))
    }

    /// Counts bytes sent from one site to another, for a write or not.
    pub(super) fn cross<O: Observer<Self>>(
        &mut self,
        bytes: u64,
        (from, to): (u8, u8),
        put: bool,
        ctx: &mut Context<'_, Self, O>,
    ) -> u64 {
        if from == to {
            return 0;
        }
        let used = &mut self.sites[usize::from(from)].used;
        used.sent += bytes;
        used.sent_by_puts += if put { bytes } else { 0 };
        ctx.notify(Observation::Crossed(bytes));
        bytes
    }
}

//! Work in progress: operations with their controllers, and messages between nodes and sites.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_geo_core::{
    Ask, Fragment, Heal, KnownVersions, OpCommand, OpEvent, OpResult, Operation as _, Read,
    SiteIndex, Value, Version, Write, WriteId,
};
use fulgurite_units::{Controller, Duration, Instant, Outbox};

/// The kind of an operation.
#[derive(Debug)]
pub(super) enum Task {
    /// A write.
    Write(Box<Write>, WriteId),
    /// A read that fetches while rows are read.
    Read(Box<Read>),
    /// A read of rows only, after which bytes are fetched.
    Metadata(Box<Read>),
    /// Fetching bytes after the rows were read.
    Bytes,
    /// Healing.
    Heal(Box<Heal>),
    /// Writing fragments before any version is proposed.
    Data(Data),
}

/// Fragments of a stripe, or of an object whose version is proposed later.
#[derive(Debug)]
pub(super) struct Data {
    /// Fragments that are not written yet.
    pub(super) open: BTreeSet<Fragment>,
    /// Fragments not confirmed as written.
    pub(super) missing: usize,
    /// The objects to propose afterwards.
    pub(super) members: Vec<Member>,
}

/// An object whose fragments are written first.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) key: u64,
    pub(super) began: Instant,
    pub(super) value: Value,
}

/// A fetch of the bytes of a version.
#[derive(Debug)]
pub(super) struct Fetch {
    /// Bytes to read of each fragment.
    pub(super) bytes: u64,
    /// Bytes of the object.
    pub(super) object: u64,
    /// Fragments not requested yet, nearest first.
    pub(super) left: Vec<Fragment>,
    pub(super) needed: usize,
    pub(super) open: usize,
    pub(super) arrived: usize,
    pub(super) absent: u8,
    pub(super) unknown: u8,
    pub(super) is_over: bool,
}

/// Components of the time until a version is decided.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    pub(super) query: Duration,
    pub(super) transfer: Duration,
    pub(super) table: Duration,
    pub(super) decided: Option<Instant>,
}

/// An operation in progress.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) key: u64,
    /// The site of the node that runs it.
    pub(super) node_site: u8,
    pub(super) began: Instant,
    pub(super) task: Task,
    pub(super) fetches: BTreeMap<Version, Fetch>,
    pub(super) parts: Parts,
    /// Replies deferred until all have arrived.
    pub(super) deferred: Vec<OpEvent>,
}

impl Operation {
    /// Handles an event; for a reply, with its total time and its round-trip time. Records what a
    /// decision waited for.
    pub(super) fn deliver_event(
        &mut self,
        now: Instant,
        event: OpEvent,
        took: Option<(Duration, Duration)>,
        out: &mut Outbox<OpCommand>,
    ) {
        let (rounds, decided) = self.progress();
        self.step(now, event, out);
        let (rounds_now, decided_now) = self.progress();
        if decided {
            return;
        }
        if let Some((took, trip)) = took {
            if rounds == 0 && rounds_now > 0 {
                self.parts.query = took;
            } else if rounds_now > rounds || decided_now {
                let rest = took.as_nanos().saturating_sub(trip.as_nanos());
                self.parts.transfer = self.parts.transfer + trip;
                self.parts.table = self.parts.table + Duration::from_nanos(rest);
            }
        }
        if decided_now {
            self.parts.decided = Some(now);
        }
    }

    fn step(&mut self, now: Instant, event: OpEvent, out: &mut Outbox<OpCommand>) {
        match &mut self.task {
            Task::Write(it, _) => advance(&mut **it, now, event, out),
            Task::Read(it) | Task::Metadata(it) => advance(&mut **it, now, event, out),
            Task::Heal(it) => advance(&mut **it, now, event, out),
            Task::Data(data) => {
                if let OpEvent::Fragment(fragment, _, result) = event {
                    data.missing +=
                        usize::from(data.open.remove(&fragment) && result != OpResult::Done);
                }
            }
            Task::Bytes => {}
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match &self.task {
            Task::Write(it, _) => it.deadline(),
            Task::Read(it) | Task::Metadata(it) => it.deadline(),
            Task::Heal(it) => it.deadline(),
            Task::Data(_) | Task::Bytes => None,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        match &self.task {
            Task::Write(it, _) => it.end().is_some(),
            Task::Read(it) | Task::Metadata(it) => it.end().is_some(),
            Task::Heal(it) => it.end().is_some(),
            Task::Data(data) => data.open.is_empty(),
            Task::Bytes => self.fetches.values().all(|fetch| fetch.is_over),
        }
    }

    /// Returns the rounds between sites of a write so far, and whether its version is decided.
    pub(super) fn progress(&self) -> (u32, bool) {
        match &self.task {
            Task::Write(it, id) => (it.rounds().total(), it.known().version_of(*id).is_some()),
            Task::Read(_) | Task::Metadata(_) | Task::Bytes | Task::Heal(_) | Task::Data(_) => {
                (0, false)
            }
        }
    }
}

fn advance<C>(it: &mut C, now: Instant, event: OpEvent, out: &mut Outbox<OpCommand>)
where
    C: Controller<Event = OpEvent, Command = OpCommand>,
{
    it.step(now, event, out);
    it.check();
}

/// The origin of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestOrigin {
    pub(super) operation: u64,
    pub(super) key: u64,
    pub(super) node_site: u8,
    /// Whether it belongs to a write.
    pub(super) put: bool,
    pub(super) sent: Instant,
    /// Its round-trip time.
    pub(super) trip: Duration,
    /// The part of the round trip that remains after it has been served.
    pub(super) return_delay: Duration,
}

/// Returns the fragments that hold the bytes of a value: its own, or those of the stripe that it
/// shares.
pub(super) fn pieces(value: &Value) -> Vec<Fragment> {
    let coded = value.put().and_then(|put| put.coded(value.id));
    let Some((write, _, coded)) = coded else { return Vec::new() };
    let piece = |(index, site): (u8, &SiteIndex)| Fragment { write, index, site: *site };
    (0..).zip(&coded.sites).map(piece).collect()
}

/// A message between a node and a site.
#[derive(Debug)]
pub(super) enum Message {
    /// A request reaches its site.
    RequestArrived { origin: RequestOrigin, ask: Ask },
    /// The request has been served.
    RequestServed { origin: RequestOrigin, ask: Ask },
    /// A notification reaches a site.
    NotificationArrived { key: u64, site: SiteIndex, known: KnownVersions },
    /// The row is free to apply the notification.
    NotificationApplied { key: u64, site: SiteIndex, known: KnownVersions },
    /// A fragment has been written.
    Written { operation: u64, fragment: Fragment, bytes: u64, return_delay: Duration, again: bool },
    /// A reply reaches its operation; `took` is its total time and its round-trip time.
    OpEvent { operation: u64, event: OpEvent, took: Option<(Duration, Duration)> },
    /// A fragment of a version has arrived, or is missing.
    Piece { operation: u64, version: Version, result: OpResult },
    /// The hedging delay of a fetch is over.
    Hedge { operation: u64, version: Version },
}

//! The layer between operations and sites: commands become messages, messages reach sites, and
//! replies come back.

use fulgurite_geo_core::{
    Ask, Command, Data, FetchResult, Fragment, FragmentOp, KnownVersions, OpCommand, OpEvent,
    OpResult, Request, SiteIndex, Value, Version,
};
use fulgurite_units::{Duration, Outbox};

use super::latencies::{megabytes, ms};
use super::operation::{Fetch, Message, Operation, RequestOrigin, Task, pieces};
use super::run::{Geo, Observation, PendingEvent};
use super::scenario::ReadStrategy;
use super::site::EPOCH;
use crate::engine::{Context, Observer};

const NONE: Duration = Duration::ZERO;

fn half(trip: Duration) -> Duration {
    Duration::from_nanos(trip.as_nanos() / 2)
}

impl Geo {
    pub(super) fn handle_deadline<O: Observer<Self>>(
        &mut self,
        number: u64,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let due = self.operations.get(&number).and_then(Operation::deadline);
        if due.is_some_and(|due| due <= ctx.now()) {
            self.deliver_event(number, OpEvent::Timer, None, ctx);
        }
    }

    /// Passes an event to an operation; for a reply, with its total time and its round-trip time.
    pub(super) fn deliver_event<O: Observer<Self>>(
        &mut self,
        number: u64,
        event: OpEvent,
        took: Option<(Duration, Duration)>,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let Some(operation) = self.operations.get_mut(&number) else { return };
        let mut out = Outbox::new();
        operation.deliver_event(ctx.now(), event, took, &mut out);
        for command in out.drain() {
            self.command(number, command, ctx);
        }
        let Some(operation) = self.operations.get(&number) else { return };
        if operation.is_over() {
            self.end(number, ctx);
        } else if let Some(deadline) = operation.deadline() {
            ctx.put(deadline.max(ctx.now()), PendingEvent::Deadline(number));
        }
    }

    fn command<O: Observer<Self>>(
        &mut self,
        number: u64,
        command: OpCommand,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let Some((node_site, key)) = self.operations.get(&number).map(|it| (it.node_site, it.key))
        else {
            return;
        };
        match command {
            OpCommand::Ask(ask) => self.ask(number, (node_site, key), ask, ctx),
            OpCommand::Notify { site, known } => {
                if self.sites[site.index()].up {
                    self.waiting += 1;
                    let trip = self.trip(node_site, site);
                    self.post(half(trip), Message::NotificationArrived { key, site, known }, ctx);
                }
            }
            OpCommand::Fragment(fragment, fragment_op) => {
                self.fragment_op(number, fragment, fragment_op, ctx)
            }
            OpCommand::Fetch { version, value } => self.fetch(number, version, &value, ctx),
        }
    }

    fn ask<O: Observer<Self>>(
        &mut self,
        operation: u64,
        (node_site, key): (u8, u64),
        ask: Ask,
        ctx: &mut Context<'_, Self, O>,
    ) {
        if !self.sites[ask.site.index()].up {
            if self.is_known_down(ask.site) {
                let event = OpEvent::Answered { site: ask.site, call: ask.call, answer: None };
                self.post(NONE, Message::OpEvent { operation, event, took: None }, ctx);
            }
            return;
        }
        let once = self.trip(node_site, ask.site);
        let changes = !matches!(ask.request.command, Command::Read);
        // Without a proxy node at the row's site, the tag is read across sites before the
        // conditional write.
        let tag = if changes && !self.scenario.rows.proxies {
            let rows = self.scenario.rows;
            self.trip(node_site, ask.site) + self.times.row(&rows, false)
        } else {
            NONE
        };
        let (sent, trip, return_delay) = (ctx.now(), once + tag, half(once));
        let task = self.operations.get(&operation).map(|it| &it.task);
        let put = matches!(task, Some(Task::Write(..)));
        let origin = RequestOrigin { operation, key, node_site, put, sent, trip, return_delay };
        self.post(half(once) + tag, Message::RequestArrived { origin, ask }, ctx);
    }

    /// Executes an operation on a fragment.
    pub(super) fn fragment_op<O: Observer<Self>>(
        &mut self,
        operation: u64,
        fragment: Fragment,
        fragment_op: FragmentOp,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let Some(node_site) = self.operations.get(&operation).map(|it| it.node_site) else {
            return;
        };
        let site = fragment.site;
        let bytes = self.fragments.get(&fragment.write).copied().unwrap_or(0);
        if !self.sites[site.index()].up {
            let after = if self.is_known_down(site) { NONE } else { self.scenario.round };
            let event = OpEvent::Fragment(fragment, fragment_op, OpResult::Unknown);
            let message = Message::OpEvent { operation, event, took: None };
            return self.post(after, message, ctx);
        }
        let trip = self.trip(node_site, site);
        let (blob, coding) = (self.scenario.blob, self.scenario.coding);
        match fragment_op {
            FragmentOp::Write => {
                let data = f64::from(self.scenario.data);
                let encode = ms(megabytes(bytes) * data * coding.encode_ms_per_mb);
                let transfer = self.transfer(bytes, (node_site, site), self.holders.len(), true);
                let crossed = self.cross(bytes, (node_site, site.0), true, ctx);
                self.stats.put_crossed += crossed;
                let after = encode + half(trip) + transfer + self.times.write(&blob, bytes);
                let again = false;
                let return_delay = half(trip);
                let message = Message::Written { operation, fragment, bytes, return_delay, again };
                self.post(after, message, ctx);
            }
            FragmentOp::Rebuild => {
                let after = self.rebuild(fragment, bytes, ctx) + half(trip);
                let (again, return_delay) = (true, half(trip));
                let message = Message::Written { operation, fragment, bytes, return_delay, again };
                self.post(after, message, ctx);
            }
            FragmentOp::Probe | FragmentOp::Fence | FragmentOp::Erase => {
                let there = self.sites[site.index()].has(fragment);
                let result = if there || fragment_op != FragmentOp::Probe {
                    OpResult::Done
                } else {
                    OpResult::Absent
                };
                let after = trip + self.times.read(&blob, 0);
                let event = OpEvent::Fragment(fragment, fragment_op, result);
                self.post(after, Message::OpEvent { operation, event, took: None }, ctx);
            }
        }
    }

    /// Rebuilds a fragment at its site from the nearest others. Returns how long it takes to read,
    /// decode and write it.
    fn rebuild<O: Observer<Self>>(
        &mut self,
        fragment: Fragment,
        bytes: u64,
        ctx: &mut Context<'_, Self, O>,
    ) -> Duration {
        let at = fragment.site.0;
        let data = usize::from(self.scenario.data);
        let others = self.scenario.nearest(at, self.holders.clone());
        let others = others.into_iter().filter(|site| *site != at);
        let others: Vec<u8> = others.filter(|site| self.sites[usize::from(*site)].up).collect();
        let (blob, coding) = (self.scenario.blob, self.scenario.coding);
        let mut longest = NONE;
        for site in others.into_iter().take(data) {
            let from = SiteIndex(site);
            let transfer = self.transfer(bytes, (at, from), data, false);
            let takes = self.trip(at, from) + transfer + self.times.read(&blob, bytes);
            longest = longest.max(takes);
            self.sites[usize::from(site)].used.fragment_reads += 1;
            let crossed = self.cross(bytes, (site, at), false, ctx);
            self.stats.rebuild_crossed += crossed;
        }
        let decode = ms(megabytes(bytes) * coding.decode_ms_per_mb);
        longest + decode + self.times.write(&blob, bytes)
    }

    /// Fetches a version: the nearest fragments at once, the others when those fail or are late.
    pub(super) fn fetch<O: Observer<Self>>(
        &mut self,
        operation: u64,
        version: Version,
        value: &Value,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let Some(node_site) = self.operations.get(&operation).map(|it| it.node_site) else {
            return;
        };
        let mut left = pieces(value);
        let rtt = |of: &Fragment| self.scenario.rtt(node_site, of.site.0);
        left.sort_by(|a, b| rtt(a).total_cmp(&rtt(b)));
        let (known_down, left): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|of| self.is_known_down(of.site));
        let write = left.first().map(|of| of.write);
        let bytes = write.and_then(|write| self.fragments.get(&write)).copied().unwrap_or(0);
        let object = value.put().map_or(0, |put| put.size);
        let (left, bytes, needed) = match part(value, bytes, &left) {
            Some(part) => (part.clone(), object, part.len()),
            None => (left, bytes, usize::from(self.scenario.data)),
        };
        let unknown = u8::try_from(known_down.len()).unwrap_or(u8::MAX);
        let (open, arrived, absent, is_over) = (0, 0, 0, false);
        let fetch = Fetch { bytes, object, left, needed, open, arrived, absent, unknown, is_over };
        let Some(it) = self.operations.get_mut(&operation) else { return };
        it.fetches.insert(version, fetch);
        let hedge = self.scenario.fetching;
        let at_once =
            if hedged_at_once(hedge) { usize::MAX } else { usize::from(self.scenario.data) };
        self.ask_fragments((operation, version), at_once, ctx);
        if hedge.hedged && !hedged_at_once(hedge) {
            self.post(hedge.after, Message::Hedge { operation, version }, ctx);
        }
        self.conclude_fetch((operation, version), ctx);
    }

    /// Requests the next `count` fragments of a version.
    fn ask_fragments<O: Observer<Self>>(
        &mut self,
        (operation, version): (u64, Version),
        count: usize,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let Some(it) = self.operations.get_mut(&operation) else { return };
        let node_site = it.node_site;
        let Some(fetch) = it.fetches.get_mut(&version) else { return };
        let next: Vec<Fragment> = fetch.left.drain(..count.min(fetch.left.len())).collect();
        fetch.open += next.len();
        let bytes = fetch.bytes;
        let streams = usize::from(self.scenario.data);
        for fragment in next {
            let (site, blob) = (fragment.site, self.scenario.blob);
            if !self.sites[site.index()].up {
                let result = OpResult::Unknown;
                let message = Message::Piece { operation, version, result };
                self.post(self.scenario.round, message, ctx);
                continue;
            }
            let there = self.sites[site.index()].has(fragment);
            let result = if there { OpResult::Done } else { OpResult::Absent };
            let trip = self.trip(node_site, site);
            let transfer = self.transfer(bytes, (node_site, site), streams, false);
            let after = trip + transfer + self.times.read(&blob, bytes);
            self.sites[site.index()].used.fragment_reads += 1;
            self.stats.fragment_reads += 1;
            self.stats.fetched += bytes;
            let crossed = self.cross(bytes, (site.0, node_site), false, ctx);
            self.stats.get_crossed += crossed;
            self.post(after, Message::Piece { operation, version, result }, ctx);
        }
    }

    /// Reports a fetch that has all it needs, or never will.
    fn conclude_fetch<O: Observer<Self>>(
        &mut self,
        (operation, version): (u64, Version),
        ctx: &mut Context<'_, Self, O>,
    ) {
        let Some(it) = self.operations.get_mut(&operation) else { return };
        let serial = matches!(it.task, Task::Bytes);
        let Some(fetch) = it.fetches.get_mut(&version) else { return };
        if fetch.is_over {
            return;
        }
        let whole = fetch.arrived >= fetch.needed;
        let lacks = fetch.needed.saturating_sub(fetch.arrived + fetch.open);
        if !whole && lacks > 0 && !fetch.left.is_empty() {
            return self.ask_fragments((operation, version), lacks, ctx);
        }
        if !whole && fetch.open > 0 {
            return;
        }
        let (absent, unknown) = (fetch.absent, fetch.unknown);
        let fetched =
            if whole { FetchResult::Complete } else { FetchResult::TooFew { absent, unknown } };
        let decode = ms(megabytes(fetch.object) * self.scenario.coding.decode_ms_per_mb);
        // A serial read ends when its bytes arrive; an optimistic one ends here.
        fetch.is_over = !serial;
        let after = if whole { decode } else { NONE };
        let event = OpEvent::FetchResult(version, fetched);
        self.post(after, Message::OpEvent { operation, event, took: None }, ctx);
    }

    pub(super) fn deliver<O: Observer<Self>>(
        &mut self,
        message: Message,
        ctx: &mut Context<'_, Self, O>,
    ) {
        match message {
            Message::RequestArrived { origin, ask } => self.request_arrived(origin, ask, ctx),
            Message::RequestServed { origin, ask } => self.request_served(origin, &ask, ctx),
            Message::NotificationArrived { key, site, known } => {
                let rows = self.scenario.rows;
                let takes = self.times.row(&rows, true);
                let at = self.sites[site.index()].serve(key, ctx.now(), takes);
                let after = at.since(ctx.now());
                self.post(after, Message::NotificationApplied { key, site, known }, ctx);
            }
            Message::NotificationApplied { key, site, known } => {
                self.apply_notification(key, site, known)
            }
            Message::Written { operation, fragment, bytes, return_delay, again } => {
                self.sites[fragment.site.index()].write(fragment, bytes);
                ctx.record(&Observation::Written(fragment.site.0));
                ctx.notify(Observation::Written(fragment.site.0));
                if again {
                    self.stats.rebuilt += 1;
                    self.stats.rebuilt_bytes += bytes;
                }
                let fragment_op = if again { FragmentOp::Rebuild } else { FragmentOp::Write };
                let event = OpEvent::Fragment(fragment, fragment_op, OpResult::Done);
                let message = Message::OpEvent { operation, event, took: None };
                self.post(return_delay, message, ctx);
            }
            Message::OpEvent { operation, event, took } => {
                self.event(operation, event, took, ctx);
            }
            Message::Piece { operation, version, result } => {
                let Some(it) = self.operations.get_mut(&operation) else { return };
                let Some(fetch) = it.fetches.get_mut(&version) else { return };
                fetch.open -= 1;
                match result {
                    OpResult::Done => fetch.arrived += 1,
                    OpResult::Absent => fetch.absent += 1,
                    OpResult::Unknown => fetch.unknown += 1,
                }
                self.conclude_fetch((operation, version), ctx);
            }
            Message::Hedge { operation, version } => {
                let it = self.operations.get(&operation);
                if it.and_then(|it| it.fetches.get(&version)).is_some_and(|fetch| !fetch.is_over) {
                    self.ask_fragments((operation, version), usize::MAX, ctx);
                }
            }
        }
    }

    fn request_arrived<O: Observer<Self>>(
        &mut self,
        origin: RequestOrigin,
        ask: Ask,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let rows = self.scenario.rows;
        let changes = !matches!(ask.request.command, Command::Read);
        let takes = self.times.row(&rows, changes);
        let at = if changes {
            self.sites[ask.site.index()].serve(origin.key, ctx.now(), takes)
        } else {
            ctx.now() + takes
        };
        ctx.record(&Observation::RequestArrived(ask.site.0));
        ctx.notify(Observation::RequestArrived(ask.site.0));
        self.post(at.since(ctx.now()), Message::RequestServed { origin, ask }, ctx);
    }

    fn request_served<O: Observer<Self>>(
        &mut self,
        origin: RequestOrigin,
        ask: &Ask,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let (verdict, row) = self.sites[ask.site.index()].apply(origin.key, &ask.request);
        let bytes = row.encode().map_or(0, |bytes| bytes.len() as u64);
        let crossed = self.cross(bytes, (ask.site.0, origin.node_site), origin.put, ctx);
        self.stats.row_crossed += if origin.put { crossed } else { 0 };
        let event =
            OpEvent::Answered { site: ask.site, call: ask.call, answer: Some((verdict, row)) };
        let took = Some(((ctx.now() + origin.return_delay).since(origin.sent), origin.trip));
        self.post(
            origin.return_delay,
            Message::OpEvent { operation: origin.operation, event, took },
            ctx,
        );
    }

    fn apply_notification(&mut self, key: u64, site: SiteIndex, known: KnownVersions) {
        self.waiting -= 1;
        let request = Request { epoch: EPOCH, known, command: Command::Learn };
        self.sites[site.index()].apply(key, &request);
    }

    /// Delivers a reply to an operation.
    fn event<O: Observer<Self>>(
        &mut self,
        operation: u64,
        event: OpEvent,
        took: Option<(Duration, Duration)>,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let all = self.scenario.reading == ReadStrategy::SerialAll;
        let Some(it) = self.operations.get_mut(&operation) else { return };
        if all && matches!((&it.task, &event), (Task::Metadata(_), OpEvent::Answered { .. })) {
            it.deferred.push(event);
            if it.deferred.len() >= self.voters.len() {
                for event in std::mem::take(&mut it.deferred) {
                    self.deliver_event(operation, event, None, ctx);
                }
            }
            return;
        }
        if let (Task::Bytes, OpEvent::FetchResult(version, _)) = (&it.task, &event)
            && let Some(fetch) = it.fetches.get_mut(version)
        {
            fetch.is_over = true;
        }
        self.deliver_event(operation, event, took, ctx);
    }
}

const fn hedged_at_once(fetching: super::scenario::Fetching) -> bool {
    fetching.hedged && fetching.after.as_nanos() == 0
}

/// Returns the fragments of a stripe that contain the object itself, if all of them can be
/// requested.
fn part(value: &Value, fragment: u64, left: &[Fragment]) -> Option<Vec<Fragment>> {
    let Some(Data::Shared { at, .. }) = value.put().map(|put| &put.data) else { return None };
    let size = value.put().map_or(0, |put| put.size);
    let (first, last) = (at / fragment.max(1), (at + size.max(1) - 1) / fragment.max(1));
    let contains = |fragment: &&Fragment| (first..=last).contains(&u64::from(fragment.index));
    let parts: Vec<Fragment> = left.iter().filter(contains).copied().collect();
    (parts.len() as u64 == last - first + 1).then_some(parts)
}

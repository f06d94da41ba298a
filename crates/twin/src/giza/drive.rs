//! The layer between operations and sites: commands become messages, messages reach sites, and
//! replies come back.

use fulgurite_geo::{
    Act, Ask, Command, Data, Deed, Fetched, Fragment, Heard, How, Known, Request, SiteIndex, Value,
    Version,
};
use fulgurite_units::{Duration, Outbox};

use super::operation::{Asked, Doing, Fetch, Message, Operation, pieces};
use super::run::{Next, Seen, Sites};
use super::scenario::Reading;
use super::site::EPOCH;
use super::times::{megabytes, ms};
use crate::engine::{Observer, Stage};

const NONE: Duration = Duration::ZERO;

fn half(trip: Duration) -> Duration {
    Duration::from_nanos(trip.as_nanos() / 2)
}

impl Sites {
    pub(super) fn wake<O: Observer<Self>>(&mut self, number: u64, stage: &mut Stage<'_, Self, O>) {
        let due = self.operations.get(&number).and_then(Operation::deadline);
        if due.is_some_and(|due| due <= stage.now()) {
            self.hear(number, Heard::Timer, None, stage);
        }
    }

    /// Passes an event to an operation; for a reply, with its total time and its round-trip time.
    pub(super) fn hear<O: Observer<Self>>(
        &mut self,
        number: u64,
        heard: Heard,
        took: Option<(Duration, Duration)>,
        stage: &mut Stage<'_, Self, O>,
    ) {
        let Some(operation) = self.operations.get_mut(&number) else { return };
        let mut out = Outbox::new();
        operation.hear(stage.now(), heard, took, &mut out);
        for act in out.drain() {
            self.act(number, act, stage);
        }
        let Some(operation) = self.operations.get(&number) else { return };
        if operation.is_over() {
            self.end(number, stage);
        } else if let Some(deadline) = operation.deadline() {
            stage.put(deadline.max(stage.now()), Next::Wake(number));
        }
    }

    fn act<O: Observer<Self>>(&mut self, number: u64, act: Act, stage: &mut Stage<'_, Self, O>) {
        let Some((near, key)) = self.operations.get(&number).map(|it| (it.near, it.key)) else {
            return;
        };
        match act {
            Act::Ask(ask) => self.ask(number, (near, key), ask, stage),
            Act::Tell { site, known } => {
                if self.sites[site.index()].up {
                    self.waiting += 1;
                    let trip = self.trip(near, site);
                    self.post(half(trip), Message::Told { key, site, known }, stage);
                }
            }
            Act::Fragment(fragment, deed) => self.deed(number, fragment, deed, stage),
            Act::Fetch { version, value } => self.fetch(number, version, &value, stage),
        }
    }

    fn ask<O: Observer<Self>>(
        &mut self,
        operation: u64,
        (near, key): (u8, u64),
        ask: Ask,
        stage: &mut Stage<'_, Self, O>,
    ) {
        if !self.sites[ask.site.index()].up {
            if self.is_known_down(ask.site) {
                let heard = Heard::Answered { site: ask.site, call: ask.call, answer: None };
                self.post(NONE, Message::Heard { operation, heard, took: None }, stage);
            }
            return;
        }
        let once = self.trip(near, ask.site);
        let changes = !matches!(ask.request.command, Command::Read);
        // Without a proxy node at the row's site, the tag is read across sites before the
        // conditional write.
        let tag = if changes && !self.scenario.rows.proxies {
            let rows = self.scenario.rows;
            self.trip(near, ask.site) + self.times.row(&rows, false)
        } else {
            NONE
        };
        let (sent, trip, back) = (stage.now(), once + tag, half(once));
        let doing = self.operations.get(&operation).map(|it| &it.doing);
        let put = matches!(doing, Some(Doing::Write(..)));
        let of = Asked { operation, key, near, put, sent, trip, back };
        self.post(half(once) + tag, Message::Reaches { of, ask }, stage);
    }

    /// Executes an operation on a fragment.
    pub(super) fn deed<O: Observer<Self>>(
        &mut self,
        operation: u64,
        fragment: Fragment,
        deed: Deed,
        stage: &mut Stage<'_, Self, O>,
    ) {
        let Some(near) = self.operations.get(&operation).map(|it| it.near) else { return };
        let site = fragment.site;
        let bytes = self.fragments.get(&fragment.write).copied().unwrap_or(0);
        if !self.sites[site.index()].up {
            let after = if self.is_known_down(site) { NONE } else { self.scenario.round };
            let heard = Heard::Fragment(fragment, deed, How::Unknown);
            let message = Message::Heard { operation, heard, took: None };
            return self.post(after, message, stage);
        }
        let trip = self.trip(near, site);
        let (blob, coding) = (self.scenario.blob, self.scenario.coding);
        match deed {
            Deed::Write => {
                let data = f64::from(self.scenario.data);
                let encode = ms(megabytes(bytes) * data * coding.encode_ms_per_mb);
                let transfer = self.transfer(bytes, (near, site), self.holders.len(), true);
                let crossed = self.cross(bytes, (near, site.0), true, stage);
                self.accounts.put_crossed += crossed;
                let after = encode + half(trip) + transfer + self.times.write(&blob, bytes);
                let again = false;
                let back = half(trip);
                let message = Message::Written { operation, fragment, bytes, back, again };
                self.post(after, message, stage);
            }
            Deed::Rebuild => {
                let after = self.rebuild(fragment, bytes, stage) + half(trip);
                let (again, back) = (true, half(trip));
                let message = Message::Written { operation, fragment, bytes, back, again };
                self.post(after, message, stage);
            }
            Deed::Probe | Deed::Forbid | Deed::Erase => {
                let there = self.sites[site.index()].has(fragment);
                let how = if there || deed != Deed::Probe { How::Done } else { How::Absent };
                let after = trip + self.times.read(&blob, 0);
                let heard = Heard::Fragment(fragment, deed, how);
                self.post(after, Message::Heard { operation, heard, took: None }, stage);
            }
        }
    }

    /// Rebuilds a fragment at its site from the nearest others. Returns how long it takes to read,
    /// decode and write it.
    fn rebuild<O: Observer<Self>>(
        &mut self,
        fragment: Fragment,
        bytes: u64,
        stage: &mut Stage<'_, Self, O>,
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
            let crossed = self.cross(bytes, (site, at), false, stage);
            self.accounts.rebuild_crossed += crossed;
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
        stage: &mut Stage<'_, Self, O>,
    ) {
        let Some(near) = self.operations.get(&operation).map(|it| it.near) else { return };
        let mut left = pieces(value);
        let rtt = |of: &Fragment| self.scenario.rtt(near, of.site.0);
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
        let (open, here, absent, is_over) = (0, 0, 0, false);
        let fetch = Fetch { bytes, object, left, needed, open, here, absent, unknown, is_over };
        let Some(it) = self.operations.get_mut(&operation) else { return };
        it.fetches.insert(version, fetch);
        let hedge = self.scenario.fetching;
        let at_once =
            if hedged_at_once(hedge) { usize::MAX } else { usize::from(self.scenario.data) };
        self.ask_fragments((operation, version), at_once, stage);
        if hedge.hedged && !hedged_at_once(hedge) {
            self.post(hedge.after, Message::Hedge { operation, version }, stage);
        }
        self.conclude_fetch((operation, version), stage);
    }

    /// Requests the next `count` fragments of a version.
    fn ask_fragments<O: Observer<Self>>(
        &mut self,
        (operation, version): (u64, Version),
        count: usize,
        stage: &mut Stage<'_, Self, O>,
    ) {
        let Some(it) = self.operations.get_mut(&operation) else { return };
        let near = it.near;
        let Some(fetch) = it.fetches.get_mut(&version) else { return };
        let next: Vec<Fragment> = fetch.left.drain(..count.min(fetch.left.len())).collect();
        fetch.open += next.len();
        let bytes = fetch.bytes;
        let streams = usize::from(self.scenario.data);
        for fragment in next {
            let (site, blob) = (fragment.site, self.scenario.blob);
            if !self.sites[site.index()].up {
                let how = How::Unknown;
                let message = Message::Piece { operation, version, how };
                self.post(self.scenario.round, message, stage);
                continue;
            }
            let there = self.sites[site.index()].has(fragment);
            let how = if there { How::Done } else { How::Absent };
            let trip = self.trip(near, site);
            let transfer = self.transfer(bytes, (near, site), streams, false);
            let after = trip + transfer + self.times.read(&blob, bytes);
            self.sites[site.index()].used.fragment_reads += 1;
            self.accounts.fragment_reads += 1;
            self.accounts.fetched += bytes;
            let crossed = self.cross(bytes, (site.0, near), false, stage);
            self.accounts.get_crossed += crossed;
            self.post(after, Message::Piece { operation, version, how }, stage);
        }
    }

    /// Reports a fetch that has all it needs, or never will.
    fn conclude_fetch<O: Observer<Self>>(
        &mut self,
        (operation, version): (u64, Version),
        stage: &mut Stage<'_, Self, O>,
    ) {
        let Some(it) = self.operations.get_mut(&operation) else { return };
        let serial = matches!(it.doing, Doing::Bytes);
        let Some(fetch) = it.fetches.get_mut(&version) else { return };
        if fetch.is_over {
            return;
        }
        let whole = fetch.here >= fetch.needed;
        let lacks = fetch.needed.saturating_sub(fetch.here + fetch.open);
        if !whole && lacks > 0 && !fetch.left.is_empty() {
            return self.ask_fragments((operation, version), lacks, stage);
        }
        if !whole && fetch.open > 0 {
            return;
        }
        let (absent, unknown) = (fetch.absent, fetch.unknown);
        let fetched = if whole { Fetched::Whole } else { Fetched::Short { absent, unknown } };
        let decode = ms(megabytes(fetch.object) * self.scenario.coding.decode_ms_per_mb);
        // A serial read ends when its bytes arrive; an optimistic one ends here.
        fetch.is_over = !serial;
        let after = if whole { decode } else { NONE };
        let heard = Heard::Fetched(version, fetched);
        self.post(after, Message::Heard { operation, heard, took: None }, stage);
    }

    pub(super) fn deliver<O: Observer<Self>>(
        &mut self,
        message: Message,
        stage: &mut Stage<'_, Self, O>,
    ) {
        match message {
            Message::Reaches { of, ask } => self.reaches(of, ask, stage),
            Message::Served { of, ask } => self.served(of, &ask, stage),
            Message::Told { key, site, known } => {
                let rows = self.scenario.rows;
                let takes = self.times.row(&rows, true);
                let at = self.sites[site.index()].serve(key, stage.now(), takes);
                let after = at.since(stage.now());
                self.post(after, Message::Learns { key, site, known }, stage);
            }
            Message::Learns { key, site, known } => self.learns(key, site, known),
            Message::Written { operation, fragment, bytes, back, again } => {
                self.sites[fragment.site.index()].write(fragment, bytes);
                stage.note(&Seen::Written(fragment.site.0));
                stage.show(Seen::Written(fragment.site.0));
                if again {
                    self.accounts.rebuilt += 1;
                    self.accounts.rebuilt_bytes += bytes;
                }
                let deed = if again { Deed::Rebuild } else { Deed::Write };
                let heard = Heard::Fragment(fragment, deed, How::Done);
                let message = Message::Heard { operation, heard, took: None };
                self.post(back, message, stage);
            }
            Message::Heard { operation, heard, took } => {
                self.heard(operation, heard, took, stage);
            }
            Message::Piece { operation, version, how } => {
                let Some(it) = self.operations.get_mut(&operation) else { return };
                let Some(fetch) = it.fetches.get_mut(&version) else { return };
                fetch.open -= 1;
                match how {
                    How::Done => fetch.here += 1,
                    How::Absent => fetch.absent += 1,
                    How::Unknown => fetch.unknown += 1,
                }
                self.conclude_fetch((operation, version), stage);
            }
            Message::Hedge { operation, version } => {
                let it = self.operations.get(&operation);
                if it.and_then(|it| it.fetches.get(&version)).is_some_and(|fetch| !fetch.is_over) {
                    self.ask_fragments((operation, version), usize::MAX, stage);
                }
            }
        }
    }

    fn reaches<O: Observer<Self>>(&mut self, of: Asked, ask: Ask, stage: &mut Stage<'_, Self, O>) {
        let rows = self.scenario.rows;
        let changes = !matches!(ask.request.command, Command::Read);
        let takes = self.times.row(&rows, changes);
        let at = if changes {
            self.sites[ask.site.index()].serve(of.key, stage.now(), takes)
        } else {
            stage.now() + takes
        };
        stage.note(&Seen::Asked(ask.site.0));
        stage.show(Seen::Asked(ask.site.0));
        self.post(at.since(stage.now()), Message::Served { of, ask }, stage);
    }

    fn served<O: Observer<Self>>(&mut self, of: Asked, ask: &Ask, stage: &mut Stage<'_, Self, O>) {
        let (verdict, row) = self.sites[ask.site.index()].apply(of.key, &ask.request);
        let bytes = row.encode().map_or(0, |bytes| bytes.len() as u64);
        let crossed = self.cross(bytes, (ask.site.0, of.near), of.put, stage);
        self.accounts.row_crossed += if of.put { crossed } else { 0 };
        let heard =
            Heard::Answered { site: ask.site, call: ask.call, answer: Some((verdict, row)) };
        let took = Some(((stage.now() + of.back).since(of.sent), of.trip));
        self.post(of.back, Message::Heard { operation: of.operation, heard, took }, stage);
    }

    fn learns(&mut self, key: u64, site: SiteIndex, known: Known) {
        self.waiting -= 1;
        let request = Request { epoch: EPOCH, known, command: Command::Learn };
        self.sites[site.index()].apply(key, &request);
    }

    /// Delivers a reply to an operation.
    fn heard<O: Observer<Self>>(
        &mut self,
        operation: u64,
        heard: Heard,
        took: Option<(Duration, Duration)>,
        stage: &mut Stage<'_, Self, O>,
    ) {
        let all = self.scenario.reading == Reading::SerialAll;
        let Some(it) = self.operations.get_mut(&operation) else { return };
        if all && matches!((&it.doing, &heard), (Doing::Facts(_), Heard::Answered { .. })) {
            it.held.push(heard);
            if it.held.len() >= self.voters.len() {
                for heard in std::mem::take(&mut it.held) {
                    self.hear(operation, heard, None, stage);
                }
            }
            return;
        }
        if let (Doing::Bytes, Heard::Fetched(version, _)) = (&it.doing, &heard)
            && let Some(fetch) = it.fetches.get_mut(version)
        {
            fetch.is_over = true;
        }
        self.hear(operation, heard, took, stage);
    }
}

const fn hedged_at_once(of: super::scenario::Fetching) -> bool {
    of.hedged && of.after.as_nanos() == 0
}

/// Returns the fragments of a stripe that contain the object itself, if all of them can be
/// requested.
fn part(value: &Value, fragment: u64, left: &[Fragment]) -> Option<Vec<Fragment>> {
    let Some(Data::Shared { at, .. }) = value.put().map(|put| &put.data) else { return None };
    let size = value.put().map_or(0, |put| put.size);
    let (first, last) = (at / fragment.max(1), (at + size.max(1) - 1) / fragment.max(1));
    let lies = |of: &&Fragment| (first..=last).contains(&u64::from(of.index));
    let lies: Vec<Fragment> = left.iter().filter(lies).copied().collect();
    (lies.len() as u64 == last - first + 1).then_some(lies)
}

//! How operations begin and end.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_geo_core::{
    Change, Coded, Condition, Data as Place, Fragment, FragmentOp, Heal, HealPolicy, OpEvent,
    Operation as _, Put, Read, ReadResult, ReadTarget, Rounds, SiteIndex, Value, Version, Write,
    WriteId, WriteResult,
};
use fulgurite_units::{Duration, Instant, UnixTime};

use super::arrivals::pick;
use super::operation::{Data, Member, Operation, Parts, Task, pieces};
use super::run::{Geo, Observation, PendingEvent, READ_DELAY};
use super::scenario::{Design, Layout, ReadStrategy};
use crate::engine::{Context, Observer};

impl Geo {
    /// Starts a write.
    pub(super) fn put<O: Observer<Self>>(
        &mut self,
        key: u64,
        node_site: u8,
        ctx: &mut Context<'_, Self, O>,
    ) {
        ctx.record(&Observation::Begun(key));
        ctx.notify(Observation::Begun(key));
        let began = ctx.now();
        match (self.scenario.design, self.scenario.layout) {
            (Design::Baseline | Design::Local | Design::Cockroach, _) => {
                self.begin_baseline((key, node_site), true, ctx);
            }
            (Design::ParallelFast, Layout::Shared) => self.batch(key, node_site, ctx),
            (Design::SerialFast | Design::SerialClassic, Layout::Own) => {
                let value = self.value(node_site, true);
                let open = pieces(&value).into_iter().collect();
                let members = vec![Member { key, began, value }];
                self.write_first(node_site, Data { open, missing: 0, members }, ctx);
            }
            (_, _) => {
                let value = self.value(node_site, false);
                self.propose(node_site, Member { key, began, value }, ctx);
            }
        }
    }

    /// Returns the value of an object with its own fragments or inline data.
    fn value(&mut self, node_site: u8, written: bool) -> Value {
        let id = WriteId::draw(&mut self.random);
        let size = self.scenario.size.get();
        let data = if self.scenario.layout == Layout::Inline {
            Place::Inline(vec![0; usize::try_from(size).unwrap_or(0)])
        } else {
            self.fragments.insert(id, self.scenario.fragment(size));
            Place::Coded(self.coded(node_site, size, written))
        };
        value(id, size, data)
    }

    /// Places fragments at all data sites; the nearest get the data fragments.
    fn coded(&self, node_site: u8, chunk: u64, written: bool) -> Coded {
        let sites = self.scenario.nearest(node_site, self.holders.clone());
        let (data, parity) = (self.scenario.data, self.scenario.parity);
        let sites = sites.into_iter().map(SiteIndex).collect();
        Coded { data, parity, chunk, sites, written, parts: Vec::new() }
    }

    /// Adds an object to the open stripe.
    fn batch<O: Observer<Self>>(
        &mut self,
        key: u64,
        node_site: u8,
        ctx: &mut Context<'_, Self, O>,
    ) {
        if !self.batches.contains_key(&node_site) {
            let stripe = self.number();
            self.batches.insert(node_site, (stripe, Vec::new()));
            let at = ctx.now() + self.scenario.workload.batch_wait;
            ctx.put(at, PendingEvent::Close { node_site, stripe });
        }
        let Some((_, waiting)) = self.batches.get_mut(&node_site) else { return };
        waiting.push((key, ctx.now()));
        if waiting.len() >= self.scenario.workload.batch as usize {
            self.close(node_site, None, ctx);
        }
    }

    /// Closes a stripe that is full or has waited long enough, and writes its fragments.
    pub(super) fn close<O: Observer<Self>>(
        &mut self,
        node_site: u8,
        only: Option<u64>,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let open = self.batches.get(&node_site).map(|(stripe, _)| *stripe);
        if open.is_none() || only.is_some_and(|only| open != Some(only)) {
            return;
        }
        let Some((_, waiting)) = self.batches.remove(&node_site) else { return };
        let size = self.scenario.size.get();
        let stripe_size = size * waiting.len() as u64;
        let stripe = WriteId::draw(&mut self.random);
        let coded = self.coded(node_site, stripe_size, true);
        self.fragments.insert(stripe, self.scenario.fragment(stripe_size));
        let mut members = Vec::new();
        for (place, (key, began)) in (0..).zip(waiting) {
            let (id, coded) = (WriteId::draw(&mut self.random), coded.clone());
            let data = Place::Shared { stripe, at: place * size, stripe_size, coded };
            members.push(Member { key, began, value: value(id, size, data) });
        }
        let open: BTreeSet<Fragment> =
            members.first().into_iter().flat_map(|member| pieces(&member.value)).collect();
        self.write_first(node_site, Data { open, missing: 0, members }, ctx);
    }

    /// Writes fragments before proposing any version.
    fn write_first<O: Observer<Self>>(
        &mut self,
        node_site: u8,
        data: Data,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let open: Vec<Fragment> = data.open.iter().copied().collect();
        let key = data.members.first().map_or(0, |member| member.key);
        let operation = self.open((key, node_site), ctx.now(), Task::Data(data));
        for fragment in open {
            self.fragment_op(operation, fragment, FragmentOp::Write, ctx);
        }
    }

    /// Proposes a value, with its fragments if they are not written yet.
    fn propose<O: Observer<Self>>(
        &mut self,
        node_site: u8,
        member: Member,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let Member { key, began, value } = member;
        let (id, random, terms) = (value.id, self.child(), self.terms(node_site));
        let needed = self.scenario.needed();
        let write = Write::new(terms, (value, Condition::Always), needed, None, random);
        let operation = self.open((key, node_site), began, Task::Write(Box::new(write), id));
        self.deliver_event(operation, OpEvent::Begin, None, ctx);
    }

    /// Starts a read.
    pub(super) fn get<O: Observer<Self>>(
        &mut self,
        key: u64,
        node_site: u8,
        ctx: &mut Context<'_, Self, O>,
    ) {
        ctx.record(&Observation::Begun(key));
        ctx.notify(Observation::Begun(key));
        if matches!(self.scenario.design, Design::Baseline | Design::Local | Design::Cockroach) {
            return self.begin_baseline((key, node_site), false, ctx);
        }
        let (terms, random) = (self.terms(node_site), self.child());
        let task = if self.scenario.reading == ReadStrategy::Optimistic {
            Task::Read(Box::new(Read::new(terms, ReadTarget::Latest, random)))
        } else {
            Task::Metadata(Box::new(Read::new(terms, ReadTarget::Metadata, random)))
        };
        let operation = self.open((key, node_site), ctx.now(), task);
        self.deliver_event(operation, OpEvent::Begin, None, ctx);
    }

    /// Loses the fragments of a site and starts healing every object from there.
    pub(super) fn lose<O: Observer<Self>>(&mut self, ctx: &mut Context<'_, Self, O>) {
        let Some(site) = self.scenario.rebuilt else { return };
        self.sites[usize::from(site)].lose();
        for key in self.keys.clone() {
            let (terms, random) = (self.terms(site), self.child());
            let care = HealPolicy { needed: self.scenario.needed(), finish: true, keep: None };
            let heal = Heal::new(terms, care, UnixTime::default(), random);
            let operation = self.open((key, site), ctx.now(), Task::Heal(Box::new(heal)));
            self.deliver_event(operation, OpEvent::Begin, None, ctx);
        }
    }

    fn open(&mut self, (key, node_site): (u64, u8), began: Instant, task: Task) -> u64 {
        let number = self.number();
        let operation = Operation {
            key,
            node_site,
            began,
            task,
            fetches: BTreeMap::new(),
            parts: Parts::default(),
            deferred: Vec::new(),
        };
        self.operations.insert(number, operation);
        number
    }

    /// Ends an operation.
    pub(super) fn end<O: Observer<Self>>(&mut self, number: u64, ctx: &mut Context<'_, Self, O>) {
        let Some(operation) = self.operations.remove(&number) else { return };
        let took = ctx.now().since(operation.began);
        let (key, node_site) = (operation.key, operation.node_site);
        match operation.task {
            Task::Data(data) => return self.written(node_site, data, ctx),
            Task::Metadata(read) => {
                if let Some(ReadResult::Found(version, value)) = read.end() {
                    let (version, value) = (*version, value.clone());
                    self.stats.get_rounds += u64::from(read.rounds());
                    return self.bytes((key, node_site), operation.began, (version, &value), ctx);
                }
                self.stats.failed += 1;
            }
            Task::Write(write, _) => {
                let done = matches!(write.end(), Some(WriteResult::Done { .. }));
                self.record_decision(write.rounds(), operation.parts, operation.began, ctx);
                self.stats.failed += u64::from(!done);
                if done {
                    self.stats.puts += 1;
                    self.stats.put.add(took);
                    self.keys.insert(key);
                }
                self.after_write(key, node_site, done, ctx);
            }
            Task::Read(read) => {
                self.stats.get_rounds += u64::from(read.rounds());
                self.record_read(matches!(read.end(), Some(ReadResult::Found(..))), took);
            }
            Task::Bytes => {
                let whole = operation.fetches.values().all(|fetch| fetch.arrived >= fetch.needed);
                self.record_read(whole, took);
            }
            Task::Heal(heal) => {
                let whole = heal.end().is_some_and(|end| end.whole);
                self.stats.failed += u64::from(!whole);
                self.stats.heal.add(took);
            }
        }
        ctx.record(&Observation::Ended(key, took.as_nanos()));
        ctx.notify(Observation::Ended(key, took.as_nanos()));
    }

    fn record_read(&mut self, whole: bool, took: Duration) {
        if whole {
            self.stats.gets += 1;
            self.stats.get.add(took);
        } else {
            self.stats.failed += 1;
        }
    }

    /// Fetches the bytes of a serial read once its rows are known.
    fn bytes<O: Observer<Self>>(
        &mut self,
        origin: (u64, u8),
        began: Instant,
        (version, value): (Version, &Value),
        ctx: &mut Context<'_, Self, O>,
    ) {
        let operation = self.open(origin, began, Task::Bytes);
        self.fetch(operation, version, value, ctx);
    }

    /// Records how the version of a write was decided.
    fn record_decision<O: Observer<Self>>(
        &mut self,
        rounds: Rounds,
        parts: Parts,
        began: Instant,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let Some(decided) = parts.decided else { return };
        let total = u64::from(rounds.total());
        let fast = total == 1 && rounds.fast == 1;
        if !fast {
            ctx.notify(Observation::Slow);
        }
        self.stats.decided += 1;
        self.stats.fast += u64::from(fast);
        self.stats.put_rounds += total;
        self.stats.put_rounds_max = self.stats.put_rounds_max.max(total);
        self.stats.metadata.add(decided.since(began));
        self.stats.query.add(parts.query);
        self.stats.transfer.add(parts.transfer);
        self.stats.table.add(parts.table);
    }

    /// Continues after a write: its client writes again, or its object is read later.
    pub(super) fn after_write<O: Observer<Self>>(
        &mut self,
        key: u64,
        node_site: u8,
        done: bool,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let workload = &self.scenario.workload;
        if workload.back_to_back > 0 {
            if self.begun < workload.objects {
                self.begun += 1;
                self.put(key, node_site, ctx);
            }
        } else if done && !workload.read_from.is_empty() {
            let node_site = pick(&workload.read_from, key);
            self.waiting += 1;
            ctx.put(ctx.now() + READ_DELAY, PendingEvent::Get { key, node_site });
        }
    }

    /// Proposes the members of written fragments, if enough fragments were written.
    fn written<O: Observer<Self>>(
        &mut self,
        node_site: u8,
        data: Data,
        ctx: &mut Context<'_, Self, O>,
    ) {
        if self.holders.len() - data.missing < self.scenario.needed() {
            self.stats.failed += data.members.len() as u64;
            return;
        }
        for member in data.members {
            self.propose(node_site, member, ctx);
        }
    }
}

fn value(id: WriteId, size: u64, data: Place) -> Value {
    let put = Put { size, digest: [0; 32], data, attributes: Vec::new() };
    Value::new(id, UnixTime::default(), Change::Put(put))
}

//! How operations begin and end.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_geo::{
    Care, Change, Coded, Condition, Data as Place, Deed, Fragment, Got, Heal, Heard,
    Operation as _, Put, Read, Rounds, SiteIndex, Value, Version, Wanted, Write, WriteId, Wrote,
};
use fulgurite_units::{Duration, Instant, UnixTime};

use super::arrivals::pick;
use super::operation::{Data, Doing, Member, Operation, Parts, pieces};
use super::run::{Next, REST, Seen, Sites};
use super::scenario::{Design, Layout, Reading};
use crate::engine::{Observer, Stage};

impl Sites {
    /// Starts a write.
    pub(super) fn put<O: Observer<Self>>(
        &mut self,
        key: u64,
        near: u8,
        stage: &mut Stage<'_, Self, O>,
    ) {
        stage.note(&Seen::Begun(key));
        stage.show(Seen::Begun(key));
        let began = stage.now();
        match (self.scenario.design, self.scenario.layout) {
            (Design::Baseline | Design::Local | Design::Cockroach, _) => {
                self.begin_plain((key, near), true, stage);
            }
            (Design::Giza, Layout::Shared) => self.batch(key, near, stage),
            (Design::SerialFast | Design::SerialClassic, Layout::Own) => {
                let value = self.value(near, true);
                let open = pieces(&value).into_iter().collect();
                let members = vec![Member { key, began, value }];
                self.write_first(near, Data { open, missing: 0, members }, stage);
            }
            (_, _) => {
                let value = self.value(near, false);
                self.propose(near, Member { key, began, value }, stage);
            }
        }
    }

    /// Returns the value of an object with its own fragments or inline data.
    fn value(&mut self, near: u8, written: bool) -> Value {
        let id = WriteId::draw(&mut self.random);
        let size = self.scenario.size.get();
        let data = if self.scenario.layout == Layout::Inline {
            Place::Inline(vec![0; usize::try_from(size).unwrap_or(0)])
        } else {
            self.fragments.insert(id, self.scenario.fragment(size));
            Place::Coded(self.coded(near, size, written))
        };
        value(id, size, data)
    }

    /// Places fragments at all data sites; the nearest get the data fragments.
    fn coded(&self, near: u8, chunk: u64, written: bool) -> Coded {
        let sites = self.scenario.nearest(near, self.holders.clone());
        let (data, parity) = (self.scenario.data, self.scenario.parity);
        let sites = sites.into_iter().map(SiteIndex).collect();
        Coded { data, parity, chunk, sites, written, parts: Vec::new() }
    }

    /// Adds an object to the open stripe.
    fn batch<O: Observer<Self>>(&mut self, key: u64, near: u8, stage: &mut Stage<'_, Self, O>) {
        if !self.batches.contains_key(&near) {
            let stripe = self.number();
            self.batches.insert(near, (stripe, Vec::new()));
            let at = stage.now() + self.scenario.workload.batch_wait;
            stage.put(at, Next::Close { near, stripe });
        }
        let Some((_, waiting)) = self.batches.get_mut(&near) else { return };
        waiting.push((key, stage.now()));
        if waiting.len() >= self.scenario.workload.batch as usize {
            self.close(near, None, stage);
        }
    }

    /// Closes a stripe that is full or has waited long enough, and writes its fragments.
    pub(super) fn close<O: Observer<Self>>(
        &mut self,
        near: u8,
        only: Option<u64>,
        stage: &mut Stage<'_, Self, O>,
    ) {
        let open = self.batches.get(&near).map(|(stripe, _)| *stripe);
        if open.is_none() || only.is_some_and(|only| open != Some(only)) {
            return;
        }
        let Some((_, waiting)) = self.batches.remove(&near) else { return };
        let size = self.scenario.size.get();
        let stripe_size = size * waiting.len() as u64;
        let stripe = WriteId::draw(&mut self.random);
        let coded = self.coded(near, stripe_size, true);
        self.fragments.insert(stripe, self.scenario.fragment(stripe_size));
        let mut members = Vec::new();
        for (place, (key, began)) in (0..).zip(waiting) {
            let (id, coded) = (WriteId::draw(&mut self.random), coded.clone());
            let data = Place::Shared { stripe, at: place * size, stripe_size, coded };
            members.push(Member { key, began, value: value(id, size, data) });
        }
        let open: BTreeSet<Fragment> =
            members.first().into_iter().flat_map(|member| pieces(&member.value)).collect();
        self.write_first(near, Data { open, missing: 0, members }, stage);
    }

    /// Writes fragments before proposing any version.
    fn write_first<O: Observer<Self>>(
        &mut self,
        near: u8,
        data: Data,
        stage: &mut Stage<'_, Self, O>,
    ) {
        let open: Vec<Fragment> = data.open.iter().copied().collect();
        let key = data.members.first().map_or(0, |member| member.key);
        let operation = self.open((key, near), stage.now(), Doing::Data(data));
        for fragment in open {
            self.deed(operation, fragment, Deed::Write, stage);
        }
    }

    /// Proposes a value, with its fragments if they are not written yet.
    fn propose<O: Observer<Self>>(
        &mut self,
        near: u8,
        member: Member,
        stage: &mut Stage<'_, Self, O>,
    ) {
        let Member { key, began, value } = member;
        let (id, random, terms) = (value.id, self.child(), self.terms(near));
        let needed = self.scenario.needed();
        let write = Write::new(terms, (value, Condition::Always), needed, None, random);
        let operation = self.open((key, near), began, Doing::Write(Box::new(write), id));
        self.hear(operation, Heard::Begin, None, stage);
    }

    /// Starts a read.
    pub(super) fn get<O: Observer<Self>>(
        &mut self,
        key: u64,
        near: u8,
        stage: &mut Stage<'_, Self, O>,
    ) {
        stage.note(&Seen::Begun(key));
        stage.show(Seen::Begun(key));
        if matches!(self.scenario.design, Design::Baseline | Design::Local | Design::Cockroach) {
            return self.begin_plain((key, near), false, stage);
        }
        let (terms, random) = (self.terms(near), self.child());
        let doing = if self.scenario.reading == Reading::Optimistic {
            Doing::Read(Box::new(Read::new(terms, Wanted::Latest, random)))
        } else {
            Doing::Facts(Box::new(Read::new(terms, Wanted::Facts, random)))
        };
        let operation = self.open((key, near), stage.now(), doing);
        self.hear(operation, Heard::Begin, None, stage);
    }

    /// Loses the fragments of a site and starts healing every object from there.
    pub(super) fn lose<O: Observer<Self>>(&mut self, stage: &mut Stage<'_, Self, O>) {
        let Some(site) = self.scenario.rebuilt else { return };
        self.sites[usize::from(site)].lose();
        for key in self.keys.clone() {
            let (terms, random) = (self.terms(site), self.child());
            let care = Care { needed: self.scenario.needed(), finish: true, keep: None };
            let heal = Heal::new(terms, care, UnixTime::default(), random);
            let operation = self.open((key, site), stage.now(), Doing::Heal(Box::new(heal)));
            self.hear(operation, Heard::Begin, None, stage);
        }
    }

    fn open(&mut self, (key, near): (u64, u8), began: Instant, doing: Doing) -> u64 {
        let number = self.number();
        let operation = Operation {
            key,
            near,
            began,
            doing,
            fetches: BTreeMap::new(),
            parts: Parts::default(),
            held: Vec::new(),
        };
        self.operations.insert(number, operation);
        number
    }

    /// Ends an operation.
    pub(super) fn end<O: Observer<Self>>(&mut self, number: u64, stage: &mut Stage<'_, Self, O>) {
        let Some(operation) = self.operations.remove(&number) else { return };
        let took = stage.now().since(operation.began);
        let (key, near) = (operation.key, operation.near);
        match operation.doing {
            Doing::Data(data) => return self.written(near, data, stage),
            Doing::Facts(read) => {
                if let Some(Got::Found(version, value)) = read.end() {
                    let (version, value) = (*version, value.clone());
                    self.accounts.get_rounds += u64::from(read.rounds());
                    return self.bytes((key, near), operation.began, (version, &value), stage);
                }
                self.accounts.failed += 1;
            }
            Doing::Write(write, _) => {
                let done = matches!(write.end(), Some(Wrote::Done { .. }));
                self.wrote(write.rounds(), operation.parts, operation.began, stage);
                self.accounts.failed += u64::from(!done);
                if done {
                    self.accounts.puts += 1;
                    self.accounts.put.add(took);
                    self.keys.insert(key);
                }
                self.follow(key, near, done, stage);
            }
            Doing::Read(read) => {
                self.accounts.get_rounds += u64::from(read.rounds());
                self.had_bytes(matches!(read.end(), Some(Got::Found(..))), took);
            }
            Doing::Bytes => {
                let whole = operation.fetches.values().all(|fetch| fetch.here >= fetch.needed);
                self.had_bytes(whole, took);
            }
            Doing::Heal(heal) => {
                let whole = heal.end().is_some_and(|end| end.whole);
                self.accounts.failed += u64::from(!whole);
                self.accounts.heal.add(took);
            }
        }
        stage.note(&Seen::Ended(key, took.as_nanos()));
        stage.show(Seen::Ended(key, took.as_nanos()));
    }

    fn had_bytes(&mut self, whole: bool, took: Duration) {
        if whole {
            self.accounts.gets += 1;
            self.accounts.get.add(took);
        } else {
            self.accounts.failed += 1;
        }
    }

    /// Fetches the bytes of a serial read once its rows are known.
    fn bytes<O: Observer<Self>>(
        &mut self,
        of: (u64, u8),
        began: Instant,
        (version, value): (Version, &Value),
        stage: &mut Stage<'_, Self, O>,
    ) {
        let operation = self.open(of, began, Doing::Bytes);
        self.fetch(operation, version, value, stage);
    }

    /// Records how the version of a write was decided.
    fn wrote<O: Observer<Self>>(
        &mut self,
        rounds: Rounds,
        parts: Parts,
        began: Instant,
        stage: &mut Stage<'_, Self, O>,
    ) {
        let Some(decided) = parts.decided else { return };
        let total = u64::from(rounds.total());
        let fast = total == 1 && rounds.fast == 1;
        if !fast {
            stage.show(Seen::Slow);
        }
        self.accounts.decided += 1;
        self.accounts.fast += u64::from(fast);
        self.accounts.put_rounds += total;
        self.accounts.put_rounds_max = self.accounts.put_rounds_max.max(total);
        self.accounts.metadata.add(decided.since(began));
        self.accounts.query.add(parts.query);
        self.accounts.transfer.add(parts.transfer);
        self.accounts.table.add(parts.table);
    }

    /// Continues after a write: its client writes again, or its object is read later.
    pub(super) fn follow<O: Observer<Self>>(
        &mut self,
        key: u64,
        near: u8,
        done: bool,
        stage: &mut Stage<'_, Self, O>,
    ) {
        let workload = &self.scenario.workload;
        if workload.back_to_back > 0 {
            if self.begun < workload.objects {
                self.begun += 1;
                self.put(key, near, stage);
            }
        } else if done && !workload.read_from.is_empty() {
            let near = pick(&workload.read_from, key);
            self.waiting += 1;
            stage.put(stage.now() + REST, Next::Get { key, near });
        }
    }

    /// Proposes the members of written fragments, if enough fragments were written.
    fn written<O: Observer<Self>>(&mut self, near: u8, data: Data, stage: &mut Stage<'_, Self, O>) {
        if self.holders.len() - data.missing < self.scenario.needed() {
            self.accounts.failed += data.members.len() as u64;
            return;
        }
        for member in data.members {
            self.propose(near, member, stage);
        }
    }
}

fn value(id: WriteId, size: u64, data: Place) -> Value {
    let put = Put { size, digest: [0; 32], data, attributes: Vec::new() };
    Value::new(id, UnixTime::default(), Change::Put(put))
}

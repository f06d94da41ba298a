//! Rows and known versions by number, and the memoized results of every computation on them.
//!
//! A state of a model holds numbers instead of rows. That keeps it small enough to visit millions
//! of states. [`step`], [`choose`] and [`judge`] run once for each different row and request, so
//! the model still checks the real code. Numbers are assigned in the order of discovery and are
//! valid within one run only.

use std::collections::BTreeMap;
use std::sync::RwLock;

use fulgurite_geo_core::{
    Ballot, Change, Choice, Coded, Command, Data, Decided, Epoch, Judgement, KnownVersions, Put,
    Quorums, Request, Row, SiteIndex, SiteState, StepResult, Value, Verdict, Version, WriteId,
    choose, judge, step,
};
use fulgurite_units::UnixTime;

pub(super) type RowId = u32;
pub(super) type KnownId = u32;
/// A value, by its index in the list of a world.
pub(super) type Val = u8;
/// A version; the first is 1.
pub(super) type Ver = u8;

/// Kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Put,
    Delete,
}

/// A classic ballot, ordered as [`Ballot`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Attempt {
    pub(super) epoch: u8,
    pub(super) round: u8,
    pub(super) agent: u8,
}

impl Attempt {
    pub(super) fn ballot(self) -> Ballot {
        Ballot {
            epoch: Epoch(u32::from(self.epoch)),
            round: u32::from(self.round),
            proposer: u128::from(self.agent) + 1,
        }
    }
}

/// A request to a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Ask {
    Read,
    Learn,
    PreAccept(Ver, Val),
    Prepare(Ver, Attempt),
    Accept(Ver, Attempt, Val),
    Restore(Ver, Attempt),
}

/// A request as it was sent. It can be delivered at any time after, and any number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SentRequest {
    pub(super) ask: Ask,
    pub(super) known: KnownId,
    pub(super) epoch: u8,
}

/// Behavior of an acceptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acceptor {
    /// As in the code.
    Step,
    /// It accepts in the fast round although it promised a later ballot.
    IgnoringPromises,
    /// It votes again without any promise.
    RestoredBare,
}

/// Rule that picks a value from promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// [`choose`]; if the sizes are unproved and two values may have been chosen, either.
    Choose,
    /// The rule of the paper: the value with the most responses; of several, any.
    MostResponses,
}

/// ValueKind a proposer may do once it has its promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    Decided,
    Forced(Val),
    Free,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) row: RowId,
    /// Whether the row changed.
    pub(super) changed: bool,
    pub(super) verdict: Verdict,
    /// A row with only the known versions of this one.
    pub(super) decided: RowId,
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) quorums: Quorums,
    pub(super) rule: Rule,
    pub(super) acceptor: Acceptor,
    pub(super) values: Vec<ValueKind>,
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    rows: Vec<Row>,
    row_ids: BTreeMap<Vec<u8>, RowId>,
    knowns: Vec<KnownVersions>,
    known_ids: BTreeMap<Vec<u8>, KnownId>,
    steps: BTreeMap<(Option<RowId>, SentRequest, bool), Answer>,
    merges: BTreeMap<(KnownId, RowId), KnownId>,
    picks: BTreeMap<(Ver, Vec<RowId>), Vec<Pick>>,
    readings: BTreeMap<(KnownId, Vec<RowId>), (KnownId, Option<Ver>)>,
}

impl Table {
    pub(super) fn new(quorums: Quorums, values: &[ValueKind]) -> Self {
        let table = Self {
            quorums,
            rule: Rule::Choose,
            acceptor: Acceptor::Step,
            values: values.to_vec(),
            inner: RwLock::default(),
        };
        assert_eq!(
            table.intern_known(&KnownVersions::default()),
            0,
            "empty known versions have number 0"
        );
        table
    }

    /// Returns a value as the code has it.
    pub(super) fn value(&self, val: Val) -> Value {
        let coded = Coded {
            data: 2,
            parity: 1,
            chunk: 1,
            parts: Vec::new(),
            sites: vec![SiteIndex(0), SiteIndex(1), SiteIndex(2)],
            written: false,
        };
        let put =
            Put { size: 1, digest: [0; 32], data: Data::Coded(coded), attributes: Vec::new() };
        let change = match self.values[usize::from(val)] {
            ValueKind::Put => Change::Put(put),
            ValueKind::Delete => Change::Delete,
        };
        Value::new(Self::id(val), UnixTime::default(), change)
    }

    pub(super) fn is_put(&self, val: Val) -> bool {
        self.values[usize::from(val)] == ValueKind::Put
    }

    pub(super) fn id(val: Val) -> WriteId {
        WriteId(u128::from(val) + 1)
    }

    pub(super) fn val(id: WriteId) -> Val {
        Val::try_from(id.0 - 1).unwrap()
    }

    pub(super) fn row(&self, id: RowId) -> Row {
        self.inner.read().unwrap().rows[id as usize].clone()
    }

    pub(super) fn known(&self, id: KnownId) -> KnownVersions {
        self.inner.read().unwrap().knowns[id as usize].clone()
    }

    /// Applies a function to known versions.
    pub(super) fn with_known<T>(&self, id: KnownId, apply: impl FnOnce(&KnownVersions) -> T) -> T {
        apply(&self.inner.read().unwrap().knowns[id as usize])
    }

    /// Applies a function to a row.
    pub(super) fn with_row<T>(&self, id: RowId, apply: impl FnOnce(&Row) -> T) -> T {
        apply(&self.inner.read().unwrap().rows[id as usize])
    }

    pub(super) fn intern_row(&self, row: &Row) -> RowId {
        self.inner.write().unwrap().intern_row(row)
    }

    pub(super) fn intern_known(&self, known: &KnownVersions) -> KnownId {
        self.inner.write().unwrap().intern_known(known)
    }

    /// Returns the known versions after learning this one.
    pub(super) fn learn(&self, known: KnownId, version: Ver, val: Val, durable: bool) -> KnownId {
        let mut known = self.known(known);
        known.learn(Version(u64::from(version)), &Decided { value: self.value(val), durable });
        self.intern_known(&known)
    }

    /// Merges what a row knows into the known versions.
    pub(super) fn merged(&self, known: KnownId, row: RowId) -> KnownId {
        if let Some(merged) = self.inner.read().unwrap().merges.get(&(known, row)) {
            return *merged;
        }
        let mut merged = self.known(known);
        merged.merge(&self.row(row).known);
        let mut inner = self.inner.write().unwrap();
        let id = inner.intern_known(&merged);
        inner.merges.insert((known, row), id);
        id
    }

    /// Applies a request to a site's row.
    pub(super) fn step(&self, row: Option<RowId>, sent: SentRequest, rebuilding: bool) -> Answer {
        if let Some(answer) = self.inner.read().unwrap().steps.get(&(row, sent, rebuilding)) {
            return *answer;
        }
        let before = row.map(|row| self.row(row));
        let stepped = self.compute_step(before.as_ref(), sent, rebuilding);
        let mut inner = self.inner.write().unwrap();
        let decided = Row { known: stepped.row.known.clone(), ..Row::default() };
        let answer = Answer {
            row: inner.intern_row(&stepped.row),
            changed: stepped.changed,
            verdict: stepped.verdict,
            decided: inner.intern_row(&decided),
        };
        inner.steps.insert((row, sent, rebuilding), answer);
        answer
    }

    fn compute_step(
        &self,
        before: Option<&Row>,
        sent: SentRequest,
        rebuilding: bool,
    ) -> StepResult {
        let version = |version: Ver| Version(u64::from(version));
        let command = match sent.ask {
            Ask::Read => Command::Read,
            Ask::Learn => Command::Learn,
            Ask::PreAccept(v, val) => {
                Command::PreAccept { version: version(v), value: self.value(val) }
            }
            Ask::Prepare(v, attempt) => {
                Command::Prepare { version: version(v), ballot: attempt.ballot() }
            }
            Ask::Accept(v, attempt, val) => Command::Accept {
                version: version(v),
                ballot: attempt.ballot(),
                value: self.value(val),
            },
            Ask::Restore(v, attempt) => {
                Command::Restore { next: version(v), ballot: attempt.ballot() }
            }
        };
        let epoch = Epoch(u32::from(sent.epoch));
        let request = Request { epoch, known: self.known(sent.known), command };
        let site_state = SiteState { epoch: Epoch(u32::from(rebuilding)), rebuilding };
        let mut before = before.cloned();
        if let (Acceptor::IgnoringPromises, Ask::PreAccept(v, _), Some(row)) =
            (self.acceptor, sent.ask, &mut before)
            && row.accepted(version(v)).is_none()
        {
            row.open.remove(&version(v));
        }
        let mut stepped = step(before.as_ref(), &request, site_state);
        if let (Acceptor::RestoredBare, Ask::Restore(..)) = (self.acceptor, sent.ask) {
            stepped.row.open.clear();
        }
        stepped
    }

    /// Returns what a proposer may do, given the rows that promised.
    pub(super) fn picks(&self, version: Ver, mut rows: Vec<RowId>) -> Vec<Pick> {
        rows.sort_unstable();
        let key = (version, rows);
        if let Some(picks) = self.inner.read().unwrap().picks.get(&key) {
            return picks.clone();
        }
        let rows: Vec<Row> = key.1.iter().map(|row| self.row(*row)).collect();
        let picks =
            self.compute_picks(Version(u64::from(version)), &rows.iter().collect::<Vec<_>>());
        self.inner.write().unwrap().picks.insert(key, picks.clone());
        picks
    }

    fn compute_picks(&self, version: Version, rows: &[&Row]) -> Vec<Pick> {
        let accepted: Vec<_> = rows.iter().filter_map(|row| row.accepted(version)).collect();
        let classic = accepted.iter().any(|accepted| !accepted.ballot.is_fast());
        if !classic && !rows.iter().any(|row| row.known.has(version)) {
            let mut counts: BTreeMap<WriteId, usize> = BTreeMap::new();
            for accepted in &accepted {
                *counts.entry(accepted.value.id).or_default() += 1;
            }
            let highest = counts.values().copied().max().unwrap_or(0);
            let threshold = match self.rule {
                Rule::Choose => self.quorums.choosable(rows.len()),
                Rule::MostResponses => highest,
            };
            let enough = counts.iter().filter(|(_, count)| **count >= threshold);
            let picks: Vec<Pick> = enough.map(|(id, _)| Pick::Forced(Self::val(*id))).collect();
            if self.rule == Rule::MostResponses && !picks.is_empty() || picks.len() > 1 {
                return picks;
            }
        }
        vec![match choose(self.quorums, version, rows) {
            Choice::Decided => Pick::Decided,
            Choice::Forced(value) => Pick::Forced(Self::val(value.id)),
            Choice::Free => Pick::Free,
        }]
    }

    /// Returns what a reader learns from rows, and the version that these rows leave open.
    pub(super) fn read(&self, known: KnownId, mut rows: Vec<RowId>) -> (KnownId, Option<Ver>) {
        rows.sort_unstable();
        let key = (known, rows);
        if let Some(reading) = self.inner.read().unwrap().readings.get(&key) {
            return *reading;
        }
        let mut known = self.known(known);
        let rows: Vec<Row> = key.1.iter().map(|row| self.row(*row)).collect();
        for row in &rows {
            known.merge(&row.known);
        }
        let rows: Vec<&Row> = rows.iter().collect();
        let open = loop {
            let version = known.last().next();
            match judge(self.quorums, version, &rows) {
                Judgement::Chosen(value) => {
                    known.learn(version, &Decided { value, durable: false });
                }
                Judgement::Nothing => break known.latest().err().map(|hole| hole.0),
                Judgement::Open => break Some(version),
            }
        };
        let open = open.map(|version| Ver::try_from(version.0).unwrap());
        let mut inner = self.inner.write().unwrap();
        let reading = (inner.intern_known(&known), open);
        inner.readings.insert(key, reading);
        reading
    }

    /// Number of different rows so far.
    pub(super) fn rows(&self) -> usize {
        self.inner.read().unwrap().rows.len()
    }
}

impl Inner {
    fn intern_row(&mut self, row: &Row) -> RowId {
        let rows = &mut self.rows;
        *self.row_ids.entry(row.encode().unwrap()).or_insert_with(|| {
            rows.push(row.clone());
            RowId::try_from(rows.len() - 1).unwrap()
        })
    }

    fn intern_known(&mut self, known: &KnownVersions) -> KnownId {
        let row = Row { known: known.clone(), ..Row::default() };
        let knowns = &mut self.knowns;
        *self.known_ids.entry(row.encode().unwrap()).or_insert_with(|| {
            knowns.push(known.clone());
            KnownId::try_from(knowns.len() - 1).unwrap()
        })
    }
}

//! Searches for an order of an object's operations that explains every answer, by values alone:
//! porcupine (Wing and Gong's search, as sped up by Lowe) on windows.
//!
//! ```text
//! a |--put 1--|   |--get 1--|      |     |--put 3--|
//! b      |--put 2------?           |         |--get 2--|    <- of put 2: seen, so it was done
//!                                  ^ no operation is running: a window ends
//! ```
//!
//! The possible states of an object at the start of a window are those at the end of the previous
//! one. A put with an unknown outcome whose value was seen was done before the first get that saw
//! it was answered. One that nobody saw, and an unknown delete, would run forever, and no window
//! would end; so these may happen at any time after their call, any number of times. That allows
//! one history too many: the same delete twice. The check of versions does not.

use std::collections::{BTreeMap, BTreeSet};

use porcupine_rs::{Model, Operation as Entry, check_operations};

use super::{Call, Moment, Operation, Precondition, Reply, Tag, by_key};

/// Size of the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SearchStats {
    pub(crate) windows: usize,
    /// Operations of the longest window.
    pub(crate) longest: usize,
}

/// Checks that each object's operations have an order that explains them.
pub(crate) fn check(history: &[Operation]) -> Result<SearchStats, String> {
    let mut stats = SearchStats::default();
    for all in by_key(history).values() {
        check_object(all, &mut stats)?;
    }
    Ok(stats)
}

/// State of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum ObjectState {
    Nothing,
    Value(Tag),
    /// A value that no get ever returns.
    Unseen,
}

/// Operations with an unknown outcome, which may happen at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct UnknownOutcomes {
    puts: Vec<Precondition>,
    deletes: bool,
}

impl UnknownOutcomes {
    fn add(&mut self, call: Call) {
        match call {
            Call::Put(_, condition) if !self.puts.contains(&condition) => self.puts.push(condition),
            Call::Put(..) | Call::Get => {}
            Call::Delete => self.deletes = true,
        }
    }
}

/// All possible states of an object at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct PossibleStates {
    states: BTreeSet<ObjectState>,
    unknown: UnknownOutcomes,
}

impl PossibleStates {
    /// Adds all states that the operations with an unknown outcome can lead to.
    fn with_unknown_outcomes(mut self) -> Self {
        let meets = |states: &BTreeSet<ObjectState>, condition: &Precondition| match condition {
            Precondition::Always => true,
            Precondition::Absent => states.contains(&ObjectState::Nothing),
            Precondition::Is(_, tag) => states.contains(&ObjectState::Value(*tag)),
        };
        if self.unknown.deletes {
            self.states.insert(ObjectState::Nothing);
        }
        if self.unknown.puts.iter().any(|condition| meets(&self.states, condition)) {
            self.states.insert(ObjectState::Unseen);
        }
        self
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A window begins.
    Begin(PossibleStates),
    /// This may happen from now on.
    AddUnknown(Call),
    Did(Call, Reply),
    /// The window ends with the object in this state.
    End(ObjectState),
}

#[derive(Clone, Debug)]
struct Object;

impl Model for Object {
    type State = PossibleStates;
    type Op = Step;
    type Metadata = ();

    fn init() -> PossibleStates {
        PossibleStates::default()
    }

    fn step(state: &PossibleStates, step: &Step) -> (bool, PossibleStates) {
        if let Step::Begin(possible) = step {
            return (true, possible.clone());
        }
        let mut possible = state.clone().with_unknown_outcomes();
        if let Step::AddUnknown(call) = step {
            possible.unknown.add(*call);
            return (true, possible);
        }
        let is_value = |tag: Tag| possible.states.contains(&ObjectState::Value(tag));
        let after = match *step {
            Step::Begin(_) | Step::AddUnknown(_) => BTreeSet::new(),
            Step::End(is) => possible.states.intersection(&BTreeSet::from([is])).copied().collect(),
            Step::Did(Call::Put(_, condition), Reply::Refused) => {
                let not = match condition {
                    Precondition::Always => return (false, possible),
                    Precondition::Absent => ObjectState::Nothing,
                    Precondition::Is(_, tag) => ObjectState::Value(tag),
                };
                possible.states.iter().copied().filter(|is| *is != not).collect()
            }
            Step::Did(Call::Put(tag, condition), _) => {
                let met = match condition {
                    Precondition::Always => true,
                    Precondition::Absent => possible.states.contains(&ObjectState::Nothing),
                    Precondition::Is(_, tag) => is_value(tag),
                };
                BTreeSet::from_iter(met.then_some(ObjectState::Value(tag)))
            }
            Step::Did(Call::Delete, Reply::Nothing) | Step::Did(Call::Get, Reply::Nothing) => {
                possible
                    .states
                    .intersection(&BTreeSet::from([ObjectState::Nothing]))
                    .copied()
                    .collect()
            }
            Step::Did(Call::Delete, _) => {
                let exists = possible.states.iter().any(|is| *is != ObjectState::Nothing);
                BTreeSet::from_iter(exists.then_some(ObjectState::Nothing))
            }
            Step::Did(Call::Get, Reply::Read(tag, _)) => {
                BTreeSet::from_iter(is_value(tag).then_some(ObjectState::Value(tag)))
            }
            Step::Did(Call::Get, _) => return (false, possible),
        };
        possible.states = after;
        (!possible.states.is_empty(), possible)
    }
}

fn check_object(all: &[Operation], stats: &mut SearchStats) -> Result<(), String> {
    let mut seen: BTreeMap<Tag, Moment> = BTreeMap::new();
    for one in all {
        if let Reply::Read(tag, _) = one.reply {
            let first = seen.entry(tag).or_insert(Moment::MAX);
            *first = one.returned.min(*first);
        }
    }
    // Operations that were done, or seen to have been; and those that may have been, after their
    // call.
    let (mut done, mut unknown) = (Vec::new(), Vec::new());
    for one in all.iter().filter(|one| one.reply != Reply::Failed) {
        match (one.reply, one.call) {
            (Reply::Unknown, Call::Get) => {}
            (Reply::Unknown, Call::Put(tag, _)) if seen.contains_key(&tag) => {
                let returned = seen.get(&tag).copied().unwrap_or(one.returned);
                if returned < one.called {
                    return Err(format!("{one:?} was seen before it was called"));
                }
                done.push(Operation { returned, ..*one });
            }
            (Reply::Unknown, Call::Put(..) | Call::Delete) => unknown.push(*one),
            _ => done.push(*one),
        }
    }
    let mut possible = PossibleStates {
        states: BTreeSet::from([ObjectState::Nothing]),
        unknown: UnknownOutcomes::default(),
    };
    let mut rest = &*done;
    while let Some(first) = rest.first() {
        let (mut end, mut length) = (first.returned, 0);
        while let Some(one) = rest.get(length).filter(|one| one.called <= end) {
            end = end.max(one.returned);
            length += 1;
        }
        let (window, tail) = rest.split_at(length);
        rest = tail;
        let (before, during): (Vec<&Operation>, Vec<&Operation>) = unknown
            .iter()
            .filter(|one| one.called <= end)
            .partition(|one| one.called < first.called);
        before.iter().for_each(|one| possible.unknown.add(one.call));
        possible.states = states_at_end(window, &during, &possible)?;
        stats.windows += 1;
        stats.longest = stats.longest.max(length);
    }
    Ok(())
}

/// Returns all possible states of an object at the end of a window.
fn states_at_end(
    window: &[Operation],
    unknown: &[&Operation],
    possible: &PossibleStates,
) -> Result<BTreeSet<ObjectState>, String> {
    let time = |moment: Moment| i64::try_from(moment).unwrap_or(i64::MAX - 2);
    let entry = |called, returned, op| Entry::<Object> {
        client_id: None,
        call_time: called,
        return_time: returned,
        op,
        metadata: None,
    };
    let did = |one: &Operation| {
        entry(time(one.called), time(one.returned), Step::Did(one.call, one.reply))
    };
    let mut entries = vec![entry(-2, -1, Step::Begin(possible.clone()))];
    entries.extend(window.iter().map(did));
    let add_unknown =
        |one: &&Operation| entry(time(one.called), time(one.called), Step::AddUnknown(one.call));
    entries.extend(unknown.iter().map(add_unknown));
    if !check_operations(&entries) {
        return Err(format!("no order explains, from {possible:?}: {window:#?}"));
    }
    let put = window.iter().filter_map(|one| match one.call {
        Call::Put(tag, _) if one.reply != Reply::Refused => Some(ObjectState::Value(tag)),
        Call::Put(..) | Call::Delete | Call::Get => None,
    });
    let mut all: BTreeSet<ObjectState> = possible.states.iter().copied().chain(put).collect();
    all.extend([ObjectState::Nothing, ObjectState::Unseen]);
    let can_be = |is: &ObjectState| {
        let mut entries = entries.clone();
        entries.push(entry(i64::MAX - 1, i64::MAX, Step::End(*is)));
        check_operations(&entries)
    };
    Ok(all.into_iter().filter(can_be).collect())
}

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

use super::{Asked, Moment, On, Operation, Tag, Told, by_key};

/// Size of the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Searched {
    pub(crate) windows: usize,
    /// Operations of the longest window.
    pub(crate) longest: usize,
}

/// Checks that each object's operations have an order that explains them.
pub(crate) fn check(history: &[Operation]) -> Result<Searched, String> {
    let mut searched = Searched::default();
    for all in by_key(history).values() {
        check_object(all, &mut searched)?;
    }
    Ok(searched)
}

/// State of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Is {
    Nothing,
    Value(Tag),
    /// A value that no get ever returns.
    Unseen,
}

/// Operations with an unknown outcome, which may happen at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Loose {
    puts: Vec<On>,
    deletes: bool,
}

impl Loose {
    fn add(&mut self, asked: Asked) {
        match asked {
            Asked::Put(_, on) if !self.puts.contains(&on) => self.puts.push(on),
            Asked::Put(..) | Asked::Get => {}
            Asked::Delete => self.deletes = true,
        }
    }
}

/// All possible states of an object at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct May {
    is: BTreeSet<Is>,
    loose: Loose,
}

impl May {
    /// Adds all states that the operations with an unknown outcome can lead to.
    fn loosened(mut self) -> Self {
        let meets = |is: &BTreeSet<Is>, on: &On| match on {
            On::Always => true,
            On::Absent => is.contains(&Is::Nothing),
            On::Is(_, tag) => is.contains(&Is::Value(*tag)),
        };
        if self.loose.deletes {
            self.is.insert(Is::Nothing);
        }
        if self.loose.puts.iter().any(|on| meets(&self.is, on)) {
            self.is.insert(Is::Unseen);
        }
        self
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A window begins.
    Begin(May),
    /// This may happen from now on.
    Loosen(Asked),
    Did(Asked, Told),
    /// The window ends with the object in this state.
    End(Is),
}

#[derive(Clone, Debug)]
struct Object;

impl Model for Object {
    type State = May;
    type Op = Step;
    type Metadata = ();

    fn init() -> May {
        May::default()
    }

    fn step(state: &May, step: &Step) -> (bool, May) {
        if let Step::Begin(may) = step {
            return (true, may.clone());
        }
        let mut may = state.clone().loosened();
        if let Step::Loosen(asked) = step {
            may.loose.add(*asked);
            return (true, may);
        }
        let is_value = |tag: Tag| may.is.contains(&Is::Value(tag));
        let after = match *step {
            Step::Begin(_) | Step::Loosen(_) => BTreeSet::new(),
            Step::End(is) => may.is.intersection(&BTreeSet::from([is])).copied().collect(),
            Step::Did(Asked::Put(_, on), Told::Refused) => {
                let not = match on {
                    On::Always => return (false, may),
                    On::Absent => Is::Nothing,
                    On::Is(_, tag) => Is::Value(tag),
                };
                may.is.iter().copied().filter(|is| *is != not).collect()
            }
            Step::Did(Asked::Put(tag, on), _) => {
                let met = match on {
                    On::Always => true,
                    On::Absent => may.is.contains(&Is::Nothing),
                    On::Is(_, tag) => is_value(tag),
                };
                BTreeSet::from_iter(met.then_some(Is::Value(tag)))
            }
            Step::Did(Asked::Delete, Told::Nothing) | Step::Did(Asked::Get, Told::Nothing) => {
                may.is.intersection(&BTreeSet::from([Is::Nothing])).copied().collect()
            }
            Step::Did(Asked::Delete, _) => {
                let there = may.is.iter().any(|is| *is != Is::Nothing);
                BTreeSet::from_iter(there.then_some(Is::Nothing))
            }
            Step::Did(Asked::Get, Told::Read(tag, _)) => {
                BTreeSet::from_iter(is_value(tag).then_some(Is::Value(tag)))
            }
            Step::Did(Asked::Get, _) => return (false, may),
        };
        may.is = after;
        (!may.is.is_empty(), may)
    }
}

fn check_object(all: &[Operation], searched: &mut Searched) -> Result<(), String> {
    let mut seen: BTreeMap<Tag, Moment> = BTreeMap::new();
    for one in all {
        if let Told::Read(tag, _) = one.told {
            let first = seen.entry(tag).or_insert(Moment::MAX);
            *first = one.returned.min(*first);
        }
    }
    // Operations that were done, or seen to have been; and those that may have been, after their
    // call.
    let (mut done, mut loose) = (Vec::new(), Vec::new());
    for one in all.iter().filter(|one| one.told != Told::Failed) {
        match (one.told, one.asked) {
            (Told::Unknown, Asked::Get) => {}
            (Told::Unknown, Asked::Put(tag, _)) if seen.contains_key(&tag) => {
                let returned = seen.get(&tag).copied().unwrap_or(one.returned);
                if returned < one.called {
                    return Err(format!("{one:?} was seen before it was called"));
                }
                done.push(Operation { returned, ..*one });
            }
            (Told::Unknown, Asked::Put(..) | Asked::Delete) => loose.push(*one),
            _ => done.push(*one),
        }
    }
    let mut may = May { is: BTreeSet::from([Is::Nothing]), loose: Loose::default() };
    let mut rest = &*done;
    while let Some(first) = rest.first() {
        let (mut end, mut length) = (first.returned, 0);
        while let Some(one) = rest.get(length).filter(|one| one.called <= end) {
            end = end.max(one.returned);
            length += 1;
        }
        let (window, behind) = rest.split_at(length);
        rest = behind;
        let (before, during): (Vec<&Operation>, Vec<&Operation>) =
            loose.iter().filter(|one| one.called <= end).partition(|one| one.called < first.called);
        before.iter().for_each(|one| may.loose.add(one.asked));
        may.is = ends(window, &during, &may)?;
        searched.windows += 1;
        searched.longest = searched.longest.max(length);
    }
    Ok(())
}

/// Returns all possible states of an object at the end of a window.
fn ends(window: &[Operation], loose: &[&Operation], may: &May) -> Result<BTreeSet<Is>, String> {
    let time = |moment: Moment| i64::try_from(moment).unwrap_or(i64::MAX - 2);
    let entry = |called, returned, op| Entry::<Object> {
        client_id: None,
        call_time: called,
        return_time: returned,
        op,
        metadata: None,
    };
    let did = |one: &Operation| {
        entry(time(one.called), time(one.returned), Step::Did(one.asked, one.told))
    };
    let mut entries = vec![entry(-2, -1, Step::Begin(may.clone()))];
    entries.extend(window.iter().map(did));
    let loosen =
        |one: &&Operation| entry(time(one.called), time(one.called), Step::Loosen(one.asked));
    entries.extend(loose.iter().map(loosen));
    if !check_operations(&entries) {
        return Err(format!("no order explains, from {may:?}: {window:#?}"));
    }
    let put = window.iter().filter_map(|one| match one.asked {
        Asked::Put(tag, _) if one.told != Told::Refused => Some(Is::Value(tag)),
        Asked::Put(..) | Asked::Delete | Asked::Get => None,
    });
    let mut all: BTreeSet<Is> = may.is.iter().copied().chain(put).collect();
    all.extend([Is::Nothing, Is::Unseen]);
    let can_be = |is: &Is| {
        let mut entries = entries.clone();
        entries.push(entry(i64::MAX - 1, i64::MAX, Step::End(*is)));
        check_operations(&entries)
    };
    Ok(all.into_iter().filter(can_be).collect())
}

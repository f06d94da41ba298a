//! What clients asked and were told, in real time, and whether an order explains it.
//!
//! ```text
//! client: Begun, the call, Ended ----> lines of a file, which outlive the client
//!                                      |
//! versions: the whole, by the numbers of versions, in one pass and any length
//! windows:  each object, between moments at which nothing was under way, by its values alone:
//!           a search for an order (porcupine), which trusts no number
//! ```
//!
//! A call without an answer may have been done at any time since, or never.

pub(crate) mod faults;
mod tests;
pub(crate) mod versions;
pub(crate) mod windows;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Which value: each put has another.
pub(crate) type Tag = u64;

/// Nanoseconds of a clock that all processes of the machine share.
pub(crate) type Moment = u64;

/// The moment.
pub(crate) fn now() -> Moment {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

/// On what condition something is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum On {
    Always,
    Absent,
    /// It is this version still, which has this value.
    Is(u64, Tag),
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Asked {
    Put(Tag, On),
    Delete,
    Get,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Told {
    /// The put is this version.
    Wrote(u64),
    /// The condition is not met.
    Refused,
    Deleted,
    /// A get: this value, which is this version.
    Read(Tag, u64),
    /// A get or a delete: there is nothing.
    Nothing,
    /// Nothing was done.
    Failed,
    /// Nobody knows.
    Unknown,
}

/// A line of a history.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Line {
    Begun { number: u64, key: u64, asked: Asked, at: Moment },
    Ended { number: u64, told: Told, at: Moment },
}

/// A call and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) client: u64,
    pub(crate) key: u64,
    pub(crate) asked: Asked,
    pub(crate) told: Told,
    pub(crate) called: Moment,
    /// The end of time for what nobody knows.
    pub(crate) returned: Moment,
}

impl Operation {
    /// The value and the version that it wrote or read, as it was told.
    fn knows(&self) -> Option<(Tag, u64)> {
        match (self.asked, self.told) {
            (Asked::Put(tag, _), Told::Wrote(version)) => Some((tag, version)),
            (Asked::Get, Told::Read(tag, version)) => Some((tag, version)),
            _ => None,
        }
    }

    fn is_delete_that_may_have_been(&self) -> bool {
        self.asked == Asked::Delete && matches!(self.told, Told::Deleted | Told::Unknown)
    }
}

/// Operations out of the lines of one client. The last line may be cut.
pub(crate) fn read(client: u64, lines: &str) -> Vec<Operation> {
    let mut operations = BTreeMap::new();
    for line in lines.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        match serde_json::from_str(line).unwrap() {
            Line::Begun { number, key, asked, at } => {
                let (told, returned) = (Told::Unknown, Moment::MAX);
                let one = Operation { client, key, asked, told, called: at, returned };
                assert!(operations.insert(number, one).is_none(), "{number} twice");
            }
            Line::Ended { number, told, at } => {
                let one = operations.get_mut(&number).unwrap();
                one.told = told;
                if told != Told::Unknown {
                    one.returned = at;
                }
            }
        }
    }
    operations.into_values().collect()
}

/// The operations of each object, as they were called.
fn by_key(history: &[Operation]) -> BTreeMap<u64, Vec<Operation>> {
    let mut keys: BTreeMap<u64, Vec<Operation>> = BTreeMap::new();
    for one in history {
        keys.entry(one.key).or_default().push(*one);
    }
    keys.values_mut().for_each(|all| all.sort_by_key(|one| (one.called, one.returned)));
    keys
}

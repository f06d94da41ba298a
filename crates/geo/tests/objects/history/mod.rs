//! Histories of client calls and answers in real time, and whether an order of operations explains
//! them.
//!
//! ```text
//! client: Begun, the call, Ended ----> lines of a file, which outlive the client
//!                                      |
//! versions: the whole history, by the numbers of versions, in one pass and of any length
//! windows:  each object, between moments without a running operation, by its values alone:
//!           a search for an order (porcupine), which ignores version numbers
//! ```
//!
//! A call without an answer may have taken effect at any time since, or never.

pub(crate) mod faults;
mod tests;
pub(crate) mod versions;
pub(crate) mod windows;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Id of a value; each put has its own.
pub(crate) type Tag = u64;

/// Nanoseconds of a clock that all processes of the machine share.
pub(crate) type Moment = u64;

/// Returns the current moment.
pub(crate) fn now() -> Moment {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

/// Condition of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Precondition {
    Always,
    Absent,
    /// The object is still this version, with this value.
    Is(u64, Tag),
}

/// A client's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Call {
    Put(Tag, Precondition),
    Delete,
    Get,
}

/// The answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The put is this version.
    Wrote(u64),
    /// The condition is not met.
    Refused,
    Deleted,
    /// A get returned this value, which is this version.
    Read(Tag, u64),
    /// A get or a delete found no object.
    Nothing,
    /// The call had no effect.
    Failed,
    /// The outcome is unknown.
    Unknown,
}

/// A line of a history.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Line {
    Begun { number: u64, key: u64, call: Call, at: Moment },
    Ended { number: u64, reply: Reply, at: Moment },
}

/// A call and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) client: u64,
    pub(crate) key: u64,
    pub(crate) call: Call,
    pub(crate) reply: Reply,
    pub(crate) called: Moment,
    /// The end of time if the outcome is unknown.
    pub(crate) returned: Moment,
}

impl Operation {
    /// Returns the value and the version that it wrote or read, by its answer.
    fn observed(&self) -> Option<(Tag, u64)> {
        match (self.call, self.reply) {
            (Call::Put(tag, _), Reply::Wrote(version)) => Some((tag, version)),
            (Call::Get, Reply::Read(tag, version)) => Some((tag, version)),
            _ => None,
        }
    }

    fn is_possible_delete(&self) -> bool {
        self.call == Call::Delete && matches!(self.reply, Reply::Deleted | Reply::Unknown)
    }
}

/// Parses the operations of one client from its lines. The last line may be truncated.
pub(crate) fn read(client: u64, lines: &str) -> Vec<Operation> {
    let mut operations = BTreeMap::new();
    for line in lines.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        match serde_json::from_str(line).unwrap() {
            Line::Begun { number, key, call, at } => {
                let (reply, returned) = (Reply::Unknown, Moment::MAX);
                let one = Operation { client, key, call, reply, called: at, returned };
                assert!(operations.insert(number, one).is_none(), "{number} twice");
            }
            Line::Ended { number, reply, at } => {
                let one = operations.get_mut(&number).unwrap();
                one.reply = reply;
                if reply != Reply::Unknown {
                    one.returned = at;
                }
            }
        }
    }
    operations.into_values().collect()
}

/// Returns the operations of each object in the order of their calls.
fn by_key(history: &[Operation]) -> BTreeMap<u64, Vec<Operation>> {
    let mut keys: BTreeMap<u64, Vec<Operation>> = BTreeMap::new();
    for one in history {
        keys.entry(one.key).or_default().push(*one);
    }
    keys.values_mut().for_each(|all| all.sort_by_key(|one| (one.called, one.returned)));
    keys
}

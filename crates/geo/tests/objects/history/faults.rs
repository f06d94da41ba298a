//! Faults planted in a correct history: the answers of a faulty store.

use super::{Call, Moment, Operation, Precondition, Reply, by_key};

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A get returns a value that was replaced before the get was called.
    Stale,
    /// A put conditional on a version that was replaced is acknowledged.
    LostUpdate,
    /// A get returns a value that was deleted before the get was called.
    Resurrected,
    /// Two gets return each other's value.
    Swapped,
    /// A get finds no object, though a put had been acknowledged and nothing deletes it.
    Vanished,
}

impl Fault {
    pub(crate) const ALL: [Self; 5] =
        [Self::Stale, Self::LostUpdate, Self::Resurrected, Self::Swapped, Self::Vanished];

    /// Returns one history with the fault for each place where it can be planted.
    pub(crate) fn plant(self, history: &[Operation]) -> Vec<Vec<Operation>> {
        let mut planted = Vec::new();
        for all in by_key(history).values() {
            match self {
                Self::Stale => stale(all, &mut planted),
                Self::LostUpdate => lost_update(all, &mut planted),
                Self::Resurrected => resurrected(all, &mut planted),
                Self::Swapped => swapped(all, &mut planted),
                Self::Vanished => vanished(all, &mut planted),
            }
        }
        planted
    }
}

/// Returns each acknowledged put of a version, with a later acknowledged put.
fn replaced(all: &[Operation]) -> impl Iterator<Item = (&Operation, &Operation)> {
    let puts = || all.iter().filter(|one| matches!(one.reply, Reply::Wrote(_)));
    puts().filter_map(move |put| Some((put, puts().find(|later| later.called > put.returned)?)))
}

fn with_operation(all: &[Operation], operation: Operation) -> Vec<Operation> {
    [all, &[operation]].concat()
}

/// Creates a get that takes no time.
fn get(key: u64, reply: Reply, moment: Moment) -> Operation {
    Operation { client: u64::MAX, key, call: Call::Get, reply, called: moment, returned: moment }
}

fn stale(all: &[Operation], planted: &mut Vec<Vec<Operation>>) {
    for (put, later) in replaced(all) {
        let Some((tag, version)) = put.observed() else { continue };
        planted
            .push(with_operation(all, get(put.key, Reply::Read(tag, version), later.returned + 1)));
    }
}

fn lost_update(all: &[Operation], planted: &mut Vec<Vec<Operation>>) {
    let known = all.iter().filter_map(Operation::observed);
    let Some((_, last)) = known.max_by_key(|(_, version)| *version) else { return };
    let ended = all.iter().map(|one| one.returned).filter(|end| *end < Moment::MAX).max();
    let after = ended.map_or(0, |end| end + 1);
    for (put, _) in replaced(all) {
        let Some((tag, version)) = put.observed() else { continue };
        let call = Call::Put(u64::MAX, Precondition::Is(version, tag));
        let reply = Reply::Wrote(last + 1);
        planted.push(with_operation(all, Operation { call, reply, ..get(put.key, reply, after) }));
    }
}

fn resurrected(all: &[Operation], planted: &mut Vec<Vec<Operation>>) {
    for delete in all.iter().filter(|one| one.reply == Reply::Deleted) {
        let known = all
            .iter()
            .filter(|one| matches!(one.reply, Reply::Wrote(_)) && one.returned < delete.called);
        let Some((tag, version)) = known.rev().find_map(Operation::observed) else { continue };
        planted.push(with_operation(
            all,
            get(delete.key, Reply::Read(tag, version), delete.returned + 1),
        ));
    }
}

fn swapped(all: &[Operation], planted: &mut Vec<Vec<Operation>>) {
    let reads: Vec<usize> =
        (0..all.len()).filter(|index| matches!(all[*index].reply, Reply::Read(..))).collect();
    for pair in reads.windows(2) {
        let [(a, first), (b, second)] =
            [pair[0], pair[1]].map(|index| (index, all[index].observed()));
        let (Some((one, v)), Some((other, w))) = (first, second) else { continue };
        // Another operation saw the value of the first version.
        let others = all.iter().enumerate().filter(|(index, _)| *index != a && *index != b);
        let is_seen = others.filter_map(|(_, one)| one.observed()).any(|(_, version)| version == v);
        if v != w && is_seen {
            let mut all = all.to_vec();
            all[a].reply = Reply::Read(other, v);
            all[b].reply = Reply::Read(one, w);
            planted.push(all);
        }
    }
}

fn vanished(all: &[Operation], planted: &mut Vec<Vec<Operation>>) {
    for put in all.iter().filter(|one| matches!(one.reply, Reply::Wrote(_))) {
        let moment = put.returned + 1;
        let may_be = |one: &Operation| {
            one.is_possible_delete() && one.called <= moment && one.returned >= put.called
        };
        if !all.iter().any(may_be) {
            planted.push(with_operation(all, get(put.key, Reply::Nothing, moment)));
        }
    }
}

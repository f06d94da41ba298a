//! Checks a whole history by its version numbers, which are the order in which an object changed.
//! It remains to check that this order agrees with time, and with the answer of each call. A
//! history of any length is checked in one pass.

use std::collections::BTreeMap;

use super::{Call, Moment, Operation, Precondition, Reply, Tag, by_key};

/// Checks that every answer was right.
pub(crate) fn check(history: &[Operation]) -> Result<(), String> {
    by_key(history).values().try_for_each(|all| Object::new(all)?.check())
}

/// The operations on one object, in the order of their calls.
struct Object<'a> {
    all: &'a [Operation],
    puts: BTreeMap<Tag, &'a Operation>,
    /// The value of each version in any answer.
    versions: BTreeMap<u64, Tag>,
    /// Moments, each with the newest version in any answer by then.
    newest: Vec<(Moment, u64)>,
    /// Ends of acknowledged deletes, each with the newest version known when it or an earlier one
    /// was called: it must not be seen any more.
    deleted: Vec<(Moment, u64)>,
    deletes: Vec<&'a Operation>,
}

impl<'a> Object<'a> {
    fn new(all: &'a [Operation]) -> Result<Self, String> {
        let mut puts = BTreeMap::new();
        for one in all {
            if let Call::Put(tag, _) = one.call
                && let Some(other) = puts.insert(tag, one)
            {
                return Err(format!("{one:?} and {other:?} put the same value"));
            }
        }
        let (mut versions, mut values) = (BTreeMap::new(), BTreeMap::new());
        for (one, (tag, version)) in all.iter().filter_map(|one| Some((one, one.observed()?))) {
            let value = versions.insert(version, tag);
            let number = values.insert(tag, version);
            if value.is_some_and(|value| value != tag)
                || number.is_some_and(|number| number != version)
            {
                return Err(format!("{one:?}, but version {version} is of {value:?}, {number:?}"));
            }
        }
        let ends = |one: &'a Operation| Some((one.returned, one.observed()?.1));
        let newest = growing(all.iter().filter_map(ends).collect());
        let ended = all.iter().filter(|one| one.reply == Reply::Deleted);
        let deleted = ended.map(|one| (one.returned, before(&newest, one.called)));
        let deleted = growing(deleted.collect());
        let deletes = all.iter().filter(|one| one.is_possible_delete()).collect();
        Ok(Self { all, puts, versions, newest, deleted, deletes })
    }

    fn check(&self) -> Result<(), String> {
        self.all.iter().try_for_each(|one| match one.reply {
            Reply::Wrote(version) => self.check_write(one, version),
            Reply::Read(tag, version) => self.check_read(one, tag, version),
            Reply::Nothing => self.check_nothing(one),
            Reply::Refused | Reply::Deleted | Reply::Failed | Reply::Unknown => Ok(()),
        })
    }

    fn check_write(&self, one: &Operation, version: u64) -> Result<(), String> {
        let known = before(&self.newest, one.called);
        if version <= known {
            return Err(format!("{one:?} comes after version {known} in time"));
        }
        let Call::Put(_, condition) = one.call else { return Err(format!("{one:?}")) };
        let last = self.versions.range(..version).next_back();
        match (condition, last) {
            // The expected version itself may come from a put without an answer.
            (Precondition::Is(expected, _), last)
                if last.is_some_and(|(last, _)| *last > expected) =>
            {
                Err(format!("{one:?} does not see {last:?}"))
            }
            (Precondition::Absent, Some((last, _))) if !self.may_be_deleted(*last, one) => {
                Err(format!("{one:?} does not see {last:?}"))
            }
            (Precondition::Always | Precondition::Absent | Precondition::Is(..), _) => Ok(()),
        }
    }

    fn check_read(&self, one: &Operation, tag: Tag, version: u64) -> Result<(), String> {
        let Some(put) = self.puts.get(&tag) else {
            return Err(format!("{one:?} reads what nobody put"));
        };
        if put.called > one.returned || matches!(put.reply, Reply::Refused | Reply::Failed) {
            return Err(format!("{one:?} reads {put:?}"));
        }
        let known = before(&self.newest, one.called);
        if version < known {
            return Err(format!("{one:?} is older than version {known}"));
        }
        let deleted = before(&self.deleted, one.called);
        if version <= deleted {
            return Err(format!("{one:?}, but version {deleted} was deleted"));
        }
        Ok(())
    }

    /// Checks an answer without an object: a delete that had begun must follow what was
    /// acknowledged.
    fn check_nothing(&self, one: &Operation) -> Result<(), String> {
        let known = before(&self.newest, one.called);
        if known > 0 && !self.may_be_deleted(known, one) {
            return Err(format!("{one:?} does not see version {known}"));
        }
        Ok(())
    }

    /// Whether a version may have been deleted by the end of an operation. The delete came after
    /// all earlier versions as well.
    fn may_be_deleted(&self, version: u64, reader: &Operation) -> bool {
        let puts = self.versions.range(..=version).filter_map(|(_, tag)| self.puts.get(tag));
        let begun = puts.map(|put| put.called).max().unwrap_or(0);
        self.deletes.iter().any(|one| one.returned > begun && one.called < reader.returned)
    }
}

/// Replaces each number by the largest one up to its moment.
fn growing(mut all: Vec<(Moment, u64)>) -> Vec<(Moment, u64)> {
    all.sort_unstable();
    let mut most = 0;
    for (_, number) in &mut all {
        most = most.max(*number);
        *number = most;
    }
    all
}

/// Returns the number at the last moment before this one.
fn before(all: &[(Moment, u64)], moment: Moment) -> u64 {
    let earlier = all.partition_point(|(time, _)| *time < moment);
    all[..earlier].last().map_or(0, |(_, number)| *number)
}

//! The platters that wait for a group, in the order in which they are due.
//!
//! Platters come in at the end, because nearly all are due after those that wait already, and leave
//! near the front: a sorted ring buffer does both without moving much. Its first entry is read at
//! each event.

use std::collections::{VecDeque, vec_deque};

use crate::control::state::{Age, PlatterKey};

/// A platter that waits, by when it is due.
type Entry = (Age, PlatterKey);

/// Platters that wait, most urgent first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waitlist {
    entries: VecDeque<Entry>,
}

impl Waitlist {
    /// Adds a platter that is not listed.
    pub(crate) fn insert(&mut self, entry: Entry) {
        if self.entries.back().is_none_or(|last| *last < entry) {
            self.entries.push_back(entry);
            return;
        }
        let at = self.entries.partition_point(|other| *other < entry);
        assert!(self.entries[at] != entry, "a platter is listed once");
        self.entries.insert(at, entry);
    }

    /// Removes a platter; returns whether it was listed.
    pub(crate) fn remove(&mut self, entry: &Entry) -> bool {
        if self.entries.front() == Some(entry) {
            self.entries.pop_front();
            return true;
        }
        let found = self.entries.binary_search(entry);
        found.is_ok_and(|at| self.entries.remove(at).is_some())
    }

    /// The most urgent entry.
    pub(crate) fn first(&self) -> Option<&Entry> {
        self.entries.front()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn iter(&self) -> vec_deque::Iter<'_, Entry> {
        self.entries.iter()
    }
}

impl<'a> IntoIterator for &'a Waitlist {
    type Item = &'a Entry;
    type IntoIter = vec_deque::Iter<'a, Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fulgurite_units::{Instant, Seed};

    use super::Waitlist;
    use crate::control::state::{Age, PlatterKey};

    #[test]
    fn waitlist_behaves_like_a_sorted_set() {
        let mut random = Seed::new(1).stream();
        let (mut waitlist, mut set) = (Waitlist::default(), BTreeSet::new());
        for sequence in 0..20_000 {
            let due = Instant::from_nanos(sequence / 2 + random.below(40));
            let key = PlatterKey(u32::try_from(random.below(8)).unwrap());
            let entry = (Age { due, sequence }, key);
            waitlist.insert(entry);
            set.insert(entry);
            while random.below(100) < 49 && !set.is_empty() {
                let at = usize::try_from(random.below(set.len() as u64)).unwrap();
                let entry = *set.iter().nth(at / (1 + at % 7)).unwrap();
                assert!(waitlist.remove(&entry) && set.remove(&entry));
                assert!(!waitlist.remove(&entry), "it is gone");
            }
            assert_eq!(waitlist.first(), set.first());
            assert_eq!((waitlist.len(), waitlist.is_empty()), (set.len(), set.is_empty()));
        }
        assert!(waitlist.iter().eq(&set));
    }
}

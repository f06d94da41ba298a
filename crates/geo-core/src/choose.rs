//! Conclusions from rows: what a proposer must propose, and what a reader may rely on.
//!
//! Both ask the same question: which values may have been chosen, given the known rows and that
//! all others may hold anything?

use std::collections::BTreeMap;

use crate::{Ballot, Quorums, Row, Value, Version, WriteId};

/// What a proposer must propose, given rows that promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A row knows the decided value.
    Decided,
    /// This value, since it may have been chosen.
    Forced(Value),
    /// Any value: none was chosen in an earlier ballot, and none can be.
    Free,
}

/// What a reader can conclude about a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// This value was chosen.
    Chosen(Value),
    /// No value had been chosen when the read began.
    Nothing,
    /// A value may have been chosen; these rows are not enough to know.
    Open,
}

/// Returns what must be proposed for a version, given the rows of all sites that promised (rule O4
/// of Fast Paxos, with thresholds for the number of known rows).
///
/// A value of a classic ballot wins over any value of the fast round, and the highest such ballot
/// wins over lower ones. A value of the fast round is forced if enough rows hold it that it may
/// have been chosen; there is at most one.
///
/// # Panics
/// If two values may have been chosen, which the sizes of [`Quorums`] rule out.
#[must_use]
pub fn choose(quorums: Quorums, version: Version, rows: &[&Row]) -> Choice {
    if rows.iter().any(|row| row.known.has(version)) {
        return Choice::Decided;
    }
    let accepted = || rows.iter().filter_map(|row| row.accepted(version));
    if let Some(highest) = accepted().max_by_key(|accepted| accepted.ballot)
        && !highest.ballot.is_fast()
    {
        return Choice::Forced(highest.value.clone());
    }
    let counts = count(accepted().map(|accepted| &accepted.value));
    let threshold = quorums.choosable(rows.len());
    let mut forced = counts.into_values().filter(|(count, _)| *count >= threshold);
    match (forced.next(), forced.next()) {
        (None, _) => Choice::Free,
        (Some((_, value)), None) => Choice::Forced(value.clone()),
        (Some(_), Some(_)) => panic!("two values of {version} may have been chosen: {quorums:?}"),
    }
}

/// Returns what a reader can conclude about a version, given the rows of some sites, read after it
/// began. They may be fewer than a promise needs.
#[must_use]
pub fn judge(quorums: Quorums, version: Version, rows: &[&Row]) -> Judgement {
    let decided = rows.iter().find_map(|row| row.known.decided.get(&version));
    if let Some(decided) = decided {
        return Judgement::Chosen(decided.value.clone());
    }
    let unread = quorums.sites() - rows.len();
    let accepted = || rows.iter().filter_map(|row| row.accepted(version));
    let mut open = false;
    for (id, (count, value)) in count(accepted().map(|accepted| &accepted.value)) {
        let votes = |wanted: &dyn Fn(Ballot) -> bool| {
            let same = |accepted: &&crate::Accepted| accepted.value.id == id;
            accepted().filter(same).filter(|accepted| wanted(accepted.ballot)).count()
        };
        let fast = votes(&Ballot::is_fast_ballot);
        let classic = count - fast;
        let ballots = accepted().filter(|a| a.value.id == id && !a.ballot.is_fast());
        let agreed = ballots.map(|a| votes(&|ballot| ballot == a.ballot)).max().unwrap_or(0);
        if fast >= quorums.fast() || agreed >= quorums.classic() {
            return Judgement::Chosen(value.clone());
        }
        let may_fast = count + unread >= quorums.fast();
        let may_classic = classic > 0 && classic + unread >= quorums.classic();
        open |= may_fast || may_classic;
    }
    // While few rows are known, the unread ones alone may have chosen a value that none of these
    // holds.
    open |= unread >= quorums.classic();
    if open { Judgement::Open } else { Judgement::Nothing }
}

impl Ballot {
    /// `is_fast` as an associated function, for counting.
    fn is_fast_ballot(ballot: Self) -> bool {
        ballot.is_fast()
    }
}

/// Counts how often each value occurs.
fn count<'a>(values: impl Iterator<Item = &'a Value>) -> BTreeMap<WriteId, (usize, &'a Value)> {
    let mut counts = BTreeMap::new();
    for value in values {
        counts.entry(value.id).or_insert((0, value)).0 += 1;
    }
    counts
}

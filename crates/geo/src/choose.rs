//! What can be concluded from rows: what a proposer must propose, and what a reader may believe.
//!
//! Both are about one question: of which value is it still possible that it was chosen, given the
//! rows at hand and that all others may hold anything?

use std::collections::BTreeMap;

use crate::{Ballot, Quorums, Row, Value, Version, WriteId};

/// What a proposer has to propose, given rows that promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A row knows what was decided.
    Decided,
    /// This one, since it may have been chosen.
    Forced(Value),
    /// Nothing was chosen in an earlier ballot, and nothing can be: anything.
    Free,
}

/// What a reader may believe of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It was decided, and this for.
    Chosen(Value),
    /// Nothing was chosen for it when the reading began.
    Nothing,
    /// Something may have been; these rows do not tell.
    Open,
}

/// What has to be proposed for a version, given the rows of all sites that promised (the rule O4 of
/// Fast Paxos, with thresholds for the number of rows at hand).
///
/// A value of a classic ballot wins over all of the fast round: the highest such ballot's. Of the
/// fast round a value is forced when it is on so many rows that it may have been chosen; two cannot
/// be.
///
/// # Panics
/// When two values may have been chosen, which the sizes of [`Quorums`] rule out.
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

/// What a reader may believe of a version, given rows of some sites, read after it began. They need
/// not be as many as are needed to promise.
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
        let of = |wanted: &dyn Fn(Ballot) -> bool| {
            let same = |accepted: &&crate::Accepted| accepted.value.id == id;
            accepted().filter(same).filter(|accepted| wanted(accepted.ballot)).count()
        };
        let fast = of(&Ballot::is_fast_ballot);
        let classic = count - fast;
        let ballots = accepted().filter(|a| a.value.id == id && !a.ballot.is_fast());
        let agreed = ballots.map(|a| of(&|ballot| ballot == a.ballot)).max().unwrap_or(0);
        if fast >= quorums.fast() || agreed >= quorums.classic() {
            return Judgement::Chosen(value.clone());
        }
        let may_fast = count + unread >= quorums.fast();
        let may_classic = classic > 0 && classic + unread >= quorums.classic();
        open |= may_fast || may_classic;
    }
    // What no row at hand holds may have been chosen by the others alone, until enough are at hand.
    open |= unread >= quorums.classic();
    if open { Judgement::Open } else { Judgement::Nothing }
}

impl Ballot {
    /// As a function, for counting.
    fn is_fast_ballot(ballot: Self) -> bool {
        ballot.is_fast()
    }
}

/// How often each value occurs.
fn count<'a>(values: impl Iterator<Item = &'a Value>) -> BTreeMap<WriteId, (usize, &'a Value)> {
    let mut counts = BTreeMap::new();
    for value in values {
        counts.entry(value.id).or_insert((0, value)).0 += 1;
    }
    counts
}

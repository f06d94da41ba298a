//! A site that lost its rows votes again only if it knows every version before the one that others
//! promised for: it could help to choose anything for a version that it does not know.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_geo_core::{
    Ask, Ballot, Change, Choice, Command, Decided, Epoch, Event, Goal, KnownVersions, Outcome,
    Proposer, QuorumRule, Quorums, Request, Row, SiteIndex, SiteState, Terms, Value, Verdict,
    Version, WriteId, choose, step,
};
use fulgurite_units::{Controller, Duration, Instant, Outbox, Seed, UnixTime};

const VOTING: SiteState = SiteState { epoch: Epoch(1), rebuilding: false };
const REBUILDING: SiteState = SiteState { epoch: Epoch(1), rebuilding: true };

fn value(id: u128) -> Value {
    Value::new(WriteId(id), UnixTime::default(), Change::Delete)
}

fn ballot(round: u32) -> Ballot {
    Ballot { epoch: Epoch(1), round, proposer: 1 }
}

fn known(versions: &[u64]) -> KnownVersions {
    let mut known = KnownVersions::default();
    for version in versions {
        let value = value(u128::from(*version));
        known.learn(Version(*version), &Decided { value, durable: true });
    }
    known
}

fn ask(
    row: Option<&Row>,
    known: KnownVersions,
    command: Command,
    site_state: SiteState,
) -> (Row, Verdict) {
    let request = Request { epoch: Epoch(1), known, command };
    let stepped = step(row, &request, site_state);
    (stepped.row, stepped.verdict)
}

/// Sites A and B chose a value for version 1, which C never learned; all know version 2. A is lost,
/// and B and C promised for version 3.
#[test]
fn row_with_a_hole_does_not_vote_again() {
    let restore = || Command::Restore { next: Version(3), ballot: ballot(1) };
    let (row, verdict) = ask(None, known(&[2]), restore(), REBUILDING);
    assert_eq!((verdict, row.silent), (Verdict::Rejected, true));
    // Otherwise A and C would choose another value for version 1.
    let prepare = || Command::Prepare { version: Version(1), ballot: ballot(2) };
    let behind = Row { known: known(&[2]), ..Row::default() };
    let (behind, _) = ask(Some(&behind), KnownVersions::default(), prepare(), VOTING);
    let (row, verdict) = ask(Some(&row), KnownVersions::default(), prepare(), VOTING);
    assert_eq!(verdict, Verdict::Forgotten);
    let quorums = Quorums::new(3, QuorumRule::Majority).unwrap();
    assert_eq!(choose(quorums, Version(1), &[&row, &behind]), Choice::Free);

    let (row, verdict) = ask(Some(&row), known(&[1]), restore(), REBUILDING);
    assert_eq!((verdict, row.silent), (Verdict::Ok, false));
    let (_, verdict) = ask(Some(&row), KnownVersions::default(), prepare(), REBUILDING);
    assert_eq!(verdict, Verdict::Decided);
}

/// A site that collects promises first fills the holes that all rows at hand have.
#[test]
fn holes_are_filled_before_promises_are_requested() {
    let accept = Command::Accept {
        version: Version(1),
        ballot: Ballot { epoch: Epoch(0), ..ballot(1) },
        value: value(1),
    };
    let (with, _) = ask(None, KnownVersions::default(), accept, VOTING);
    let (with, _) = ask(Some(&with), known(&[2]), Command::Learn, VOTING);
    let without = Row { known: known(&[2]), ..Row::default() };
    let mut rows = BTreeMap::from([(SiteIndex(1), with), (SiteIndex(2), without)]);
    let terms = Terms {
        quorums: Quorums::new(3, QuorumRule::Majority).unwrap(),
        epoch: Epoch(1),
        voters: vec![SiteIndex(1), SiteIndex(2)],
        down: BTreeSet::new(),
        silent: BTreeSet::new(),
        fast: true,
        round: Duration::from_secs(1),
        backoff: Duration::from_millis(10),
        patience: Duration::from_secs(60),
    };
    let mut proposer = Proposer::new(terms, Goal::Promise, None, Seed::new(1).stream());
    let mut out = Outbox::default();
    proposer.step(Instant::default(), Event::Begin, &mut out);
    loop {
        let requests: Vec<Ask> = out.drain().collect();
        if requests.is_empty() {
            break;
        }
        for Ask { site, call, request } in requests {
            let stepped = step(rows.get(&site), &request, VOTING);
            rows.insert(site, stepped.row.clone());
            let answer = Some((stepped.verdict, stepped.row));
            proposer.step(Instant::default(), Event::Answered { site, call, answer }, &mut out);
        }
    }
    let Some(Outcome::Promised(Version(3), _)) = proposer.outcome() else {
        panic!("{:?}", proposer.outcome());
    };
    assert_eq!(*proposer.known(), known(&[1, 2]));
}

//! Properties of all sizes, rows and orders, tested on many of them.

use std::collections::BTreeMap;

use fulgurite_geo_core::limits::VOTING_SITES_MAX;
use fulgurite_geo_core::{
    Accepted, Ballot, Change, Choice, Command, Decided, Epoch, Error, Instance, Judgement,
    KnownVersions, QuorumRule, Quorums, Request, Row, SiteState, Value, Verdict, Version, WriteId,
    choose, judge, step,
};
use fulgurite_units::UnixTime;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

/// Number of versions in a test.
const VERSIONS: u64 = 6;
const STANDING: SiteState = SiteState { epoch: Epoch(1), rebuilding: false };

/// Returns the value decided for a version, the same for all.
fn decided_value(version: u64) -> Value {
    Value::new(WriteId(u128::from(version)), UnixTime::default(), Change::Delete)
}

fn some_value() -> impl Strategy<Value = Value> {
    let change = prop_oneof![Just(Change::Noop), Just(Change::Delete)];
    (101_u128..104, change)
        .prop_map(|(id, change)| Value::new(WriteId(id), UnixTime::default(), change))
}

fn some_ballot() -> impl Strategy<Value = Ballot> {
    (1_u32..3, 1_u32..4, 1_u128..4).prop_map(|(epoch, round, proposer)| Ballot {
        epoch: Epoch(epoch),
        round,
        proposer,
    })
}

/// Generates the known versions of an object whose first versions are gone: each of those may be
/// marked as gone, and none of the others is.
fn known_of(gone: u64) -> impl Strategy<Value = KnownVersions> {
    let versions = btree_map(1..=VERSIONS, (any::<bool>(), any::<bool>()), 0..6);
    versions.prop_map(move |versions| {
        let mut known = KnownVersions::default();
        for (version, (durable, marked)) in versions {
            let value = decided_value(version);
            known.learn(Version(version), &Decided { value, durable });
            if marked && version <= gone {
                known.mark_gone(Version(version));
            }
        }
        known
    })
}

fn some_known() -> impl Strategy<Value = KnownVersions> {
    (0..=VERSIONS).prop_flat_map(known_of)
}

/// Generates what three nodes know of one object.
fn three_of_one() -> impl Strategy<Value = [KnownVersions; 3]> {
    (0..=VERSIONS).prop_flat_map(|gone| [known_of(gone), known_of(gone), known_of(gone)])
}

fn some_instance() -> impl Strategy<Value = Instance> {
    let ballot = prop_oneof![Just(Ballot::FAST), some_ballot()];
    (ballot, proptest::option::of(some_value()), proptest::option::of(some_ballot())).prop_map(
        |(ballot, value, promised)| {
            let accepted = value.map(|value| Accepted { ballot, value });
            let seen = accepted.as_ref().map(|_| ballot).max(promised);
            Instance { seen, accepted }
        },
    )
}

fn some_row() -> impl Strategy<Value = Row> {
    let open = btree_map((1..=VERSIONS).prop_map(Version), some_instance(), 0..4);
    (some_known(), open, any::<bool>(), any::<u128>()).prop_map(
        |(known, mut open, silent, nonce)| {
            // A row that does not vote has nothing open.
            open.retain(|version, _| !silent && !known.has(*version));
            Row { known, open, silent, nonce }
        },
    )
}

fn some_command() -> impl Strategy<Value = Command> {
    let version = || (1..=VERSIONS).prop_map(Version);
    prop_oneof![
        Just(Command::Read),
        Just(Command::Learn),
        (version(), some_value())
            .prop_map(|(version, value)| Command::PreAccept { version, value }),
        (version(), some_ballot())
            .prop_map(|(version, ballot)| Command::Prepare { version, ballot }),
        (version(), some_ballot(), some_value())
            .prop_map(|(version, ballot, value)| Command::Accept { version, ballot, value }),
        (version(), some_ballot()).prop_map(|(next, ballot)| Command::Restore { next, ballot }),
    ]
}

fn merged(one: &KnownVersions, other: &KnownVersions) -> KnownVersions {
    let mut merged = one.clone();
    merged.merge(other);
    merged
}

/// Whether both hold the same decisions, gone marks included.
fn is_same(one: &KnownVersions, other: &KnownVersions) -> bool {
    let kind = |known: &KnownVersions| -> Vec<bool> {
        known.decided.values().map(|decided| decided.value.is_gone()).collect()
    };
    one == other && kind(one) == kind(other)
}

/// Whether any two sets of size `fast` and one of size `promise`, of the first `sites`, have a site
/// in common.
fn meet(sites: usize, promise: usize, fast: usize) -> bool {
    let of = |size: usize| (0_u32..1 << sites).filter(move |set| set.count_ones() as usize == size);
    of(fast).all(|one| of(fast).all(|two| of(promise).all(|three| one & two & three != 0)))
}

#[test]
fn sizes_meet_as_they_must_and_others_are_refused() {
    for sites in 3..=VOTING_SITES_MAX {
        for sizes in [QuorumRule::Majority, QuorumRule::Balanced, QuorumRule::Flexible] {
            let quorums = Quorums::new(sites, sizes).unwrap();
            assert!(quorums.promise() + quorums.classic() > sites);
            assert!(quorums.promise() + 2 * quorums.fast() > 2 * sites);
            assert!(quorums.read() + quorums.classic() > sites);
        }
        for promise in 0..=sites + 1 {
            for classic in 0..=sites + 1 {
                for fast in 0..=sites + 1 {
                    let within = promise <= sites && (1..=fast).contains(&classic) && fast <= sites;
                    let right = promise + classic > sites && promise + 2 * fast > 2 * sites;
                    let quorums = Quorums::of(sites, promise, classic, fast);
                    assert_eq!(quorums.is_ok(), within && right, "{promise} {classic} {fast}");
                }
            }
        }
    }
    for sites in [0, 1, 2, VOTING_SITES_MAX + 1] {
        assert_eq!(Quorums::new(sites, QuorumRule::Majority), Err(Error::Sites { sites }));
    }
}

/// Checks the second inequality by counting all sets of few sites.
#[test]
fn the_inequality_of_fast_rounds_says_that_sets_meet() {
    for sites in 3..=5 {
        for (promise, fast) in (1..=sites).flat_map(|one| (1..=sites).map(move |two| (one, two))) {
            assert_eq!(meet(sites, promise, fast), promise + 2 * fast > 2 * sites);
        }
    }
}

/// At most one value can look as if the fast round had chosen it.
#[test]
fn two_values_are_never_choosable() {
    for sites in 3..=VOTING_SITES_MAX {
        for sizes in [QuorumRule::Majority, QuorumRule::Balanced, QuorumRule::Flexible] {
            let quorums = Quorums::new(sites, sizes).unwrap();
            for seen in quorums.promise()..=sites {
                assert!(2 * quorums.choosable(seen) > seen, "{sites} {sizes:?} {seen}");
            }
        }
    }
}

proptest! {
    #[test]
    fn a_command_told_twice_is_told_once(
        row in some_row(), known in some_known(), command in some_command(),
        epoch in 0_u32..3, rebuilding in any::<bool>(),
    ) {
        let standing = SiteState { rebuilding, ..STANDING };
        let request = Request { epoch: Epoch(epoch), known, command };
        let once = step(Some(&row), &request, standing);
        let twice = step(Some(&once.row), &request, standing);
        prop_assert_eq!(&twice.row, &once.row);
        prop_assert_eq!(twice.verdict, once.verdict);
        prop_assert!(!twice.changed);
        if !once.changed {
            prop_assert_eq!(&once.row, &row);
        }
    }

    #[test]
    fn what_is_promised_never_sinks_and_what_is_decided_stays(
        row in some_row(), known in some_known(), command in some_command(),
    ) {
        let request = Request { epoch: Epoch(1), known, command };
        let after = step(Some(&row), &request, STANDING).row;
        for version in (1..=VERSIONS).map(Version) {
            prop_assert!(!row.known.has(version) || after.known.has(version));
            prop_assert!(after.known.has(version) || after.seen(version) >= row.seen(version));
        }
        prop_assert!(after.open.keys().all(|version| !after.known.has(*version)));
    }

    #[test]
    fn what_is_told_in_any_order_is_known([one, two, three] in three_of_one()) {
        let there = merged(&merged(&one, &two), &three);
        let back = merged(&three, &merged(&two, &one));
        prop_assert!(is_same(&merged(&one, &two), &merged(&two, &one)), "not commutative");
        prop_assert!(is_same(&there, &merged(&one, &merged(&two, &three))), "not associative");
        prop_assert!(is_same(&there, &back), "{:?} {:?}", there, back);
        let mut again = there.clone();
        for known in [&one, &two, &three] {
            prop_assert!(!again.merge(known), "told twice, {:?} is news to {:?}", known, there);
            prop_assert_eq!(&again, &there);
        }
    }

    #[test]
    fn a_row_is_kept_as_it_is(row in some_row()) {
        let bytes = row.encode().unwrap();
        let back = Row::decode(&bytes).unwrap();
        prop_assert_eq!(back.encode().unwrap(), bytes);
        prop_assert_eq!(back, row);
    }

    #[test]
    fn a_damaged_row_is_refused(row in some_row(), extra in any::<u8>()) {
        let bytes = row.encode().unwrap();
        for at in 0..bytes.len() {
            prop_assert!(Row::decode(&bytes[..at]).is_err(), "cut at {}", at);
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                prop_assert!(Row::decode(&damaged).is_err(), "bit {} of byte {}", bit, at);
            }
        }
        prop_assert!(Row::decode(&[bytes, vec![extra]].concat()).is_err());
    }

    /// Rows that can exist together at one moment: each site accepted what it was asked in a fast
    /// round, and perhaps in classic rounds that followed the protocol.
    #[test]
    fn more_rows_never_turn_a_certain_answer(
        sites in 3_usize..8, questions in vec((0_u8..6, 0_u8..8, 0_u8..3), 0..40),
        order in Just((0..8).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let quorums = Quorums::new(sites, QuorumRule::Majority).unwrap();
        let rows = history(quorums, &questions);
        let order: Vec<usize> = order.into_iter().filter(|site| *site < sites).collect();
        let mut certain = None;
        for read in 1..=sites {
            let rows: Vec<&Row> = order[..read].iter().map(|site| &rows[*site]).collect();
            let judgement = judge(quorums, Version(1), &rows);
            match &certain {
                Some(before) => prop_assert_eq!(&judgement, before, "with {} rows", read),
                None if judgement != Judgement::Open => certain = Some(judgement),
                None => {}
            }
        }
        prop_assert!(read_all(quorums, &rows).is_none_or(|value| {
            certain == Some(Judgement::Chosen(value))
        }), "what is chosen in sight of all rows is not told");
    }
}

/// Returns the value that enough of these rows accepted in one ballot.
fn read_all(quorums: Quorums, rows: &[Row]) -> Option<Value> {
    let accepted = || rows.iter().filter_map(|row| row.accepted(Version(1)));
    accepted()
        .find(|one| {
            let same = accepted().filter(|other| *other == *one).count();
            let fast = one.ballot.is_fast();
            same >= if fast { quorums.fast() } else { quorums.classic() }
        })
        .map(|accepted| accepted.value.clone())
}

/// Returns the rows after some requests, each to one site. Ballots propose what the promises force.
fn history(quorums: Quorums, questions: &[(u8, u8, u8)]) -> Vec<Row> {
    let version = Version(1);
    let value = |id: u8| Value::new(WriteId(u128::from(id) + 1), UnixTime::default(), Change::Noop);
    let ballot = |id: u8| Ballot { epoch: Epoch(1), round: u32::from(id) + 1, proposer: 1 };
    let mut rows = vec![Row::default(); quorums.sites()];
    let mut promises: BTreeMap<u8, BTreeMap<usize, Row>> = BTreeMap::new();
    let mut proposals: BTreeMap<u8, Value> = BTreeMap::new();
    for (kind, site, id) in questions {
        let site = usize::from(*site) % rows.len();
        let command = match kind {
            0 | 1 => Command::PreAccept { version, value: value(*id) },
            2 | 3 => Command::Prepare { version, ballot: ballot(*id) },
            _ => {
                let promised = promises.get(id).filter(|rows| rows.len() >= quorums.promise());
                let proposal = promised.map(|rows| {
                    match choose(quorums, version, &rows.values().collect::<Vec<_>>()) {
                        Choice::Forced(value) => value,
                        Choice::Free | Choice::Decided => value(*id + 10),
                    }
                });
                let Some(value) = proposals.get(id).cloned().or(proposal) else { continue };
                proposals.insert(*id, value.clone());
                Command::Accept { version, ballot: ballot(*id), value }
            }
        };
        let prepares = matches!(command, Command::Prepare { .. });
        let request = Request { epoch: Epoch(1), known: KnownVersions::default(), command };
        let stepped = step(Some(&rows[site]), &request, STANDING);
        rows[site] = stepped.row.clone();
        if prepares && stepped.verdict == Verdict::Ok {
            promises.entry(*id).or_default().entry(site).or_insert(stepped.row);
        }
    }
    rows
}

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
const SITE_STATE: SiteState = SiteState { epoch: Epoch(1), rebuilding: false };

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

/// Generates the known versions of an object whose first versions are gone. Only those may be
/// marked as gone, and need not be.
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
fn intersect(sites: usize, promise: usize, fast: usize) -> bool {
    let sets =
        |size: usize| (0_u32..1 << sites).filter(move |set| set.count_ones() as usize == size);
    sets(fast).all(|one| sets(fast).all(|two| sets(promise).all(|three| one & two & three != 0)))
}

#[test]
fn quorum_sizes_intersect_and_others_are_rejected() {
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
                    let quorums = Quorums::from_sizes(sites, promise, classic, fast);
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
fn fast_inequality_means_quorums_intersect() {
    for sites in 3..=5 {
        for (promise, fast) in (1..=sites).flat_map(|one| (1..=sites).map(move |two| (one, two))) {
            assert_eq!(intersect(sites, promise, fast), promise + 2 * fast > 2 * sites);
        }
    }
}

/// At most one value can look as if the fast round had chosen it.
#[test]
fn at_most_one_value_is_choosable() {
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
    fn repeated_command_is_idempotent(
        row in some_row(), known in some_known(), command in some_command(),
        epoch in 0_u32..3, rebuilding in any::<bool>(),
    ) {
        let site_state = SiteState { rebuilding, ..SITE_STATE };
        let request = Request { epoch: Epoch(epoch), known, command };
        let once = step(Some(&row), &request, site_state);
        let twice = step(Some(&once.row), &request, site_state);
        prop_assert_eq!(&twice.row, &once.row);
        prop_assert_eq!(twice.verdict, once.verdict);
        prop_assert!(!twice.changed);
        if !once.changed {
            prop_assert_eq!(&once.row, &row);
        }
    }

    #[test]
    fn promises_never_decrease_and_decisions_stay(
        row in some_row(), known in some_known(), command in some_command(),
    ) {
        let request = Request { epoch: Epoch(1), known, command };
        let after = step(Some(&row), &request, SITE_STATE).row;
        for version in (1..=VERSIONS).map(Version) {
            prop_assert!(!row.known.has(version) || after.known.has(version));
            prop_assert!(after.known.has(version) || after.seen(version) >= row.seen(version));
        }
        prop_assert!(after.open.keys().all(|version| !after.known.has(*version)));
    }

    #[test]
    fn merge_order_does_not_matter([one, two, three] in three_of_one()) {
        let forth = merged(&merged(&one, &two), &three);
        let back = merged(&three, &merged(&two, &one));
        prop_assert!(is_same(&merged(&one, &two), &merged(&two, &one)), "not commutative");
        prop_assert!(is_same(&forth, &merged(&one, &merged(&two, &three))), "not associative");
        prop_assert!(is_same(&forth, &back), "{:?} {:?}", forth, back);
        let mut again = forth.clone();
        for known in [&one, &two, &three] {
            prop_assert!(!again.merge(known), "merging {:?} twice changes {:?}", known, forth);
            prop_assert_eq!(&again, &forth);
        }
    }

    #[test]
    fn row_round_trips(row in some_row()) {
        let bytes = row.encode().unwrap();
        let back = Row::decode(&bytes).unwrap();
        prop_assert_eq!(back.encode().unwrap(), bytes);
        prop_assert_eq!(back, row);
    }

    #[test]
    fn damaged_row_is_rejected(row in some_row(), extra in any::<u8>()) {
        let bytes = row.encode().unwrap();
        for index in 0..bytes.len() {
            prop_assert!(Row::decode(&bytes[..index]).is_err(), "cut at {}", index);
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[index] ^= 1 << bit;
                prop_assert!(Row::decode(&damaged).is_err(), "bit {} of byte {}", bit, index);
            }
        }
        prop_assert!(Row::decode(&[bytes, vec![extra]].concat()).is_err());
    }

    /// Rows that can exist together at one moment: each site accepted what it was sent in a fast
    /// round, and perhaps in classic rounds that followed the protocol.
    #[test]
    fn more_rows_never_change_a_certain_answer(
        sites in 3_usize..8, requests in vec((0_u8..6, 0_u8..8, 0_u8..3), 0..40),
        order in Just((0..8).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let quorums = Quorums::new(sites, QuorumRule::Majority).unwrap();
        let rows = history(quorums, &requests);
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
        }), "a value chosen by these rows is not reported");
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
fn history(quorums: Quorums, requests: &[(u8, u8, u8)]) -> Vec<Row> {
    let version = Version(1);
    let value = |id: u8| Value::new(WriteId(u128::from(id) + 1), UnixTime::default(), Change::Noop);
    let ballot = |id: u8| Ballot { epoch: Epoch(1), round: u32::from(id) + 1, proposer: 1 };
    let mut rows = vec![Row::default(); quorums.sites()];
    let mut promises: BTreeMap<u8, BTreeMap<usize, Row>> = BTreeMap::new();
    let mut proposals: BTreeMap<u8, Value> = BTreeMap::new();
    for (kind, site, id) in requests {
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
        let stepped = step(Some(&rows[site]), &request, SITE_STATE);
        rows[site] = stepped.row.clone();
        if prepares && stepped.verdict == Verdict::Ok {
            promises.entry(*id).or_default().entry(site).or_insert(stepped.row);
        }
    }
    rows
}

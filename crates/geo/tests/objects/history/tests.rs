//! Tests of the checks, with correct and incorrect histories.

use std::collections::BTreeMap;

use fulgurite_units::{RandomStream, Seed};

use super::faults::Fault;
use super::{Call, Line, Moment, Operation, Precondition, Reply, read, versions, windows};

/// Creates an operation on the one object: its call, its answer, and when they happened.
fn operation(call: Call, reply: Reply, (called, returned): (Moment, Moment)) -> Operation {
    let returned = if reply == Reply::Unknown { Moment::MAX } else { returned };
    Operation { client: 0, key: 0, call, reply, called, returned }
}

fn put(tag: u64, version: u64, times: (Moment, Moment)) -> Operation {
    operation(Call::Put(tag, Precondition::Always), Reply::Wrote(version), times)
}

fn get(tag: u64, version: u64, times: (Moment, Moment)) -> Operation {
    operation(Call::Get, Reply::Read(tag, version), times)
}

fn nothing(times: (Moment, Moment)) -> Operation {
    operation(Call::Get, Reply::Nothing, times)
}

fn deleted(times: (Moment, Moment)) -> Operation {
    operation(Call::Delete, Reply::Deleted, times)
}

/// Compares the verdicts of both checks on a history: by versions, and by windows.
#[track_caller]
fn check(history: &[Operation], expected: (bool, bool)) {
    let (whole, search) = (versions::check(history), windows::check(history));
    assert_eq!((whole.is_ok(), search.is_ok()), expected, "{whole:?} {search:?} {history:#?}");
}

const RIGHT: (bool, bool) = (true, true);
const WRONG: (bool, bool) = (false, false);

#[test]
fn linearizable_histories_pass() {
    check(&[], RIGHT);
    check(&[nothing((0, 1)), put(1, 1, (2, 5)), get(1, 1, (3, 4)), get(1, 1, (6, 7))], RIGHT);
    // Two concurrent puts: either may be the last.
    let both = [put(1, 2, (0, 9)), put(2, 1, (1, 8))];
    check(&[both[0], both[1], get(1, 2, (10, 11))], RIGHT);
    // A delete concurrent with a get, which sees it or does not.
    let put_and_delete = [put(1, 1, (0, 1)), deleted((2, 9))];
    check(&[put_and_delete[0], put_and_delete[1], get(1, 1, (3, 4)), nothing((5, 6))], RIGHT);
    check(&[put_and_delete[0], put_and_delete[1], nothing((10, 11))], RIGHT);
}

#[test]
fn unknown_outcome_may_apply_late_or_never() {
    let unknown = operation(Call::Put(2, Precondition::Always), Reply::Unknown, (2, 3));
    let first = put(1, 1, (0, 1));
    check(&[first, unknown, get(1, 1, (4, 5))], RIGHT);
    check(&[first, unknown, get(1, 1, (4, 5)), get(2, 2, (6, 7))], RIGHT);
    // Seen, and then no longer.
    check(&[first, unknown, get(2, 2, (4, 5)), get(1, 1, (6, 7))], WRONG);
    let unknown = operation(Call::Delete, Reply::Unknown, (2, 3));
    check(&[first, unknown, get(1, 1, (4, 5)), nothing((6, 7))], RIGHT);
    check(&[first, unknown, nothing((4, 5)), get(1, 1, (6, 7))], (true, false));
    // Not seen, but it blocks another.
    let unknown = operation(Call::Put(2, Precondition::Absent), Reply::Unknown, (0, 1));
    let refused = operation(Call::Put(3, Precondition::Absent), Reply::Refused, (4, 5));
    check(&[unknown, nothing((2, 3)), refused], RIGHT);
    check(&[nothing((2, 3)), refused], (true, false));
    // A failed put had no effect.
    let failed = operation(Call::Put(2, Precondition::Always), Reply::Failed, (2, 3));
    check(&[first, failed, get(1, 1, (4, 5))], RIGHT);
    check(&[first, failed, get(2, 2, (4, 5))], WRONG);
}

#[test]
fn stale_reads_are_rejected() {
    let puts = [put(1, 1, (0, 1)), put(2, 2, (2, 3))];
    check(&[puts[0], puts[1], get(1, 1, (4, 5))], WRONG);
    // A get saw the second put while it ran: a later get must, too.
    let puts = [put(1, 1, (0, 1)), put(2, 2, (2, 9))];
    check(&[puts[0], puts[1], get(2, 2, (3, 4)), get(1, 1, (5, 6))], WRONG);
    check(&[puts[0], nothing((2, 3))], WRONG);
    check(&[get(1, 1, (0, 1)), put(1, 1, (2, 3))], WRONG);
}

#[test]
fn lost_updates_are_rejected() {
    let first = put(1, 1, (0, 1));
    let update = |tag, version, times| {
        operation(Call::Put(tag, Precondition::Is(1, 1)), Reply::Wrote(version), times)
    };
    check(&[first, update(2, 2, (2, 5)), get(2, 2, (6, 7))], RIGHT);
    check(&[first, update(2, 2, (2, 5)), update(3, 3, (3, 6))], WRONG);
    let create = |tag, version, times| {
        operation(Call::Put(tag, Precondition::Absent), Reply::Wrote(version), times)
    };
    check(&[first, create(2, 2, (2, 3))], WRONG);
    check(&[first, deleted((2, 3)), create(2, 3, (4, 5)), get(2, 3, (6, 7))], RIGHT);
    let refused = operation(Call::Put(2, Precondition::Is(1, 1)), Reply::Refused, (2, 3));
    check(&[first, refused], (true, false));
}

#[test]
fn resurrected_and_swapped_values_are_rejected() {
    let put_and_delete = [put(1, 1, (0, 1)), deleted((2, 3))];
    check(&[put_and_delete[0], put_and_delete[1], get(1, 1, (4, 5))], WRONG);
    check(
        &[
            put_and_delete[0],
            put_and_delete[1],
            nothing((4, 5)),
            put(2, 3, (6, 7)),
            get(1, 1, (8, 9)),
        ],
        WRONG,
    );
    let puts = [put(1, 1, (0, 1)), put(2, 2, (2, 3))];
    check(&[puts[0], puts[1], get(1, 2, (4, 5))], WRONG);
    // The values are in order, but do not match the versions stated.
    check(&[puts[0], puts[1], get(2, 3, (4, 5))], (false, true));
    check(&[put(1, 2, (0, 1)), put(2, 1, (2, 3))], (false, true));
}

#[test]
fn objects_and_clients_are_checked_separately() {
    let with_key = |key, one| Operation { key, ..one };
    check(&[with_key(0, put(1, 1, (0, 1))), with_key(1, nothing((2, 3)))], RIGHT);
    let begun = Line::Begun { number: 0, key: 3, call: Call::Delete, at: 5 };
    let line = serde_json::to_string(&begun).unwrap();
    // It was killed while it logged the end of the call.
    let all = read(7, &format!("{line}\n{{\"Ended\":"));
    let expected =
        Operation { client: 7, key: 3, ..operation(Call::Delete, Reply::Unknown, (5, 0)) };
    assert_eq!(all, [expected]);
}

/// Generates a correct history of an object's clients: each call takes effect at a moment between
/// its call and its answer or, if the answer is lost, at any time since or never.
fn correct_history(random: &mut RandomStream) -> Vec<Operation> {
    let mut calls = Vec::new();
    for tag in 1..=10 + random.below(30) {
        let called = random.below(400);
        let returned = called + 1 + random.below(60);
        let is_lost = random.below(8) == 0;
        let latest = if is_lost { 200 } else { returned - called };
        let effect = called + random.below(latest);
        calls.push((effect, tag, called, (!is_lost).then_some(returned)));
    }
    calls.sort_unstable();
    let (mut current, mut version) = (None, 0);
    let mut history: Vec<Operation> = Vec::new();
    let mut write = |current: &mut Option<(u64, u64)>, tag: Option<u64>| {
        version += 1;
        *current = tag.map(|tag| (version, tag));
        Reply::Wrote(version)
    };
    for (_, tag, called, returned) in calls {
        let condition = match random.below(3) {
            0 => Precondition::Always,
            1 => Precondition::Absent,
            _ => {
                // Pick a version answered by then, most often the last.
                let answered = history.iter().filter(|one| one.returned < called);
                let known = answered
                    .rev()
                    .filter_map(Operation::observed)
                    .nth(usize::from(random.below(2) == 0));
                known.map_or(Precondition::Always, |(tag, version)| Precondition::Is(version, tag))
            }
        };
        let (call, reply) = match random.below(5) {
            0 if current.is_none() => (Call::Delete, Reply::Nothing),
            0 => {
                write(&mut current, None);
                (Call::Delete, Reply::Deleted)
            }
            1 | 2 => (
                Call::Get,
                current.map_or(Reply::Nothing, |(version, tag)| Reply::Read(tag, version)),
            ),
            _ => {
                let met = match condition {
                    Precondition::Always => true,
                    Precondition::Absent => current.is_none(),
                    Precondition::Is(version, tag) => current == Some((version, tag)),
                };
                let reply = if met { write(&mut current, Some(tag)) } else { Reply::Refused };
                (Call::Put(tag, condition), reply)
            }
        };
        let reply = if returned.is_some() { reply } else { Reply::Unknown };
        history.push(operation(call, reply, (called, returned.unwrap_or(0))));
    }
    history
}

#[test]
fn both_checks_pass_correct_histories_and_detect_faults() {
    let mut detected = BTreeMap::new();
    for seed in 0..300 {
        let history = correct_history(&mut Seed::new(seed).stream());
        versions::check(&history).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        windows::check(&history).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        for fault in Fault::ALL {
            for planted in fault.plant(&history).into_iter().take(3) {
                assert!(versions::check(&planted).is_err(), "seed {seed}: {fault:?} {planted:#?}");
                let searched = windows::check(&planted);
                // A swap can be correct by values alone.
                let must = fault != Fault::Swapped;
                assert!(!must || searched.is_err(), "seed {seed}: {fault:?} {planted:#?}");
                let all: &mut usize = detected.entry(format!("{fault:?}")).or_default();
                *all += usize::from(searched.is_err());
            }
        }
    }
    println!("{detected:?}");
    assert!(detected.len() == Fault::ALL.len() && detected.values().all(|count| *count > 50));
}

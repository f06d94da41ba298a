//! Tests the verification schedule with a manual clock that counts days.

use proptest::prelude::*;

use super::*;

const DAY_MS: u64 = 86_400_000;
/// When the racks of these tests were created.
const MADE: u64 = 1000 * DAY_MS;

fn day(days: u64) -> UnixTime {
    UnixTime::from_millis(MADE + days * DAY_MS)
}

fn group(number: u32) -> GroupId {
    GroupId::new(number)
}

fn blob(number: u8) -> BlobId {
    BlobId::from_bytes([number; 16])
}

/// Creates the schedule of groups that alternate between two classes, from rows of the index.
fn scrubs(rows: impl IntoIterator<Item = ScrubRow>) -> Scrubs {
    let groups = (0..).zip(rows).map(|(number, row)| (group(number), number % 2, row));
    Scrubs::new(ScrubPolicy::default(), groups)
}

fn new() -> ScrubRow {
    ScrubRow { since_ms: MADE, ..ScrubRow::default() }
}

fn whole(days: u64) -> ScrubRow {
    ScrubRow { whole_ms: Some(day(days).as_millis()), ..new() }
}

fn none(_: GroupId) -> bool {
    false
}

#[test]
fn spinning_group_is_due_earlier_than_standby_group() {
    let mut scrubs = scrubs([whole(0), whole(0)]);
    assert_eq!(scrubs.begin(day(14), |_| true), []);
    assert_eq!(scrubs.begin(day(15), none), []);
    assert_eq!(scrubs.begin(day(16), |id| id == group(1)), [(group(1), None)]);
    assert_eq!(scrubs.begin(day(16), |_| true), [(group(0), None)], "a group of another class");
    scrubs.record_end(group(1), &Piece::UpTo(blob(4)), day(16));
    scrubs.record_end(group(0), &Piece::Whole, day(16));
    assert_eq!(scrubs.status(group(0)), (Some(day(16)), false));
    assert_eq!(scrubs.begin(day(16), none), [], "it is in standby again, so it is not due");
    assert_eq!(scrubs.status(group(1)), (Some(day(0)), true));
    let three_quarters = UnixTime::from_millis(day(22).as_millis() + DAY_MS / 2);
    assert_eq!(scrubs.deadline(), Some(three_quarters));
    assert_eq!(scrubs.begin(day(22), none), []);
    assert_eq!(
        scrubs.begin(three_quarters, none),
        [(group(1), Some(blob(4)))],
        "it resumes at its cursor"
    );
}

#[test]
fn one_group_per_class_is_verified_oldest_first() {
    let mut scrubs = scrubs([whole(5), whole(4), whole(3), whole(6)]);
    assert_eq!(scrubs.begin(day(30), none), [(group(2), None), (group(1), None)]);
    assert_eq!(scrubs.begin(day(30), none), []);
    scrubs.record_end(group(2), &Piece::UpTo(blob(1)), day(30));
    assert_eq!(scrubs.begin(day(30), none), [(group(2), Some(blob(1)))]);
    scrubs.record_end(group(2), &Piece::Whole, day(31));
    assert_eq!(scrubs.begin(day(31), none), [(group(0), None)]);
}

#[test]
fn failed_group_backs_off_while_others_continue() {
    let mut scrubs = scrubs([whole(0), new(), whole(1)]);
    assert!(scrubs.begin(day(25), none).contains(&(group(0), None)));
    scrubs.record_end(group(0), &Piece::Failed, day(25));
    assert!(scrubs.begin(day(25), none).contains(&(group(2), None)));
    scrubs.record_end(group(2), &Piece::Whole, day(25));
    let again = UnixTime::from_millis(day(25).as_millis() + 3_600_000);
    assert_eq!(scrubs.begin(again, none), [(group(0), None)]);
}

#[test]
fn group_with_a_given_up_disk_is_verified_at_once() {
    let mut scrubs = scrubs([whole(0), ScrubRow { is_asked: true, ..whole(0) }]);
    assert_eq!(scrubs.begin(day(0), none), [(group(1), None)]);
    scrubs.record_end(group(1), &Piece::Whole, day(0));
    assert_eq!(scrubs.begin(day(0), none), []);
}

#[test]
fn clock_set_back_delays_by_at_most_one_interval() {
    let mut scrubs = scrubs([whole(5000)]);
    assert_eq!(scrubs.begin(day(10), none), []);
    assert_eq!(scrubs.begin(day(40), none), [(group(0), None)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever spins, and however often pieces fail, no group exceeds its interval, provided that
    /// a day is enough for a piece and a group has at most three of them.
    #[test]
    fn each_group_is_verified_once_in_each_interval(
        count in 1_u32..12, seed in any::<u64>(), fails in 0_u64..4,
    ) {
        let mut scrubs = scrubs((0..count).map(|_| new()));
        let mut stream = fulgurite_units::Seed::new(seed).stream();
        let mut pieces = [0; 12];
        let mut whole_at = [MADE; 12];
        // A few hours of each day, for half a year.
        for hour in 0..180 * 24 {
            let now = UnixTime::from_millis(MADE + hour * 3_600_000);
            let spins: Vec<bool> = (0..count).map(|_| stream.below(50) == 0).collect();
            for (group, _) in scrubs.begin(now, |group| spins[group.as_usize()]) {
                let at = group.as_usize();
                pieces[at] += 1;
                let piece = match (stream.below(10) < fails, pieces[at]) {
                    (true, _) => Piece::Failed,
                    (false, ..3) => Piece::UpTo(blob(1)),
                    (false, _) => Piece::Whole,
                };
                if piece == Piece::Whole {
                    (pieces[at], whole_at[at]) = (0, now.as_millis());
                }
                scrubs.record_end(group, &piece, now);
            }
            for &at in &whole_at[..count as usize] {
                prop_assert!(now.as_millis() - at <= 30 * DAY_MS, "{} days", hour / 24);
            }
        }
    }
}

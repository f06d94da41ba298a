//! Tests the ledger of spin-ups.

use fulgurite_units::UnixTime;
use proptest::prelude::*;

use super::{hour, place, spin_up};
use crate::limits::RECENT_SPIN_UPS_MAX;
use crate::{Cause, CauseKind, GroupId, Ledger, SpinUp};

#[test]
fn spin_ups_are_counted_by_cause() {
    let mut ledger = Ledger::new();
    ledger.record(spin_up(hour(0), &[1, 2], Cause::Request(7)));
    ledger.record(spin_up(hour(1), &[2], Cause::External));
    ledger.record(spin_up(hour(2), &[2, 3], Cause::Rebuild));
    let lifetime_count: Vec<_> =
        ledger.places().map(|(place, of)| (place.get(), of.lifetime_count())).collect();
    assert_eq!(lifetime_count, [(1, 1), (2, 3), (3, 1)]);
    assert_eq!(ledger.disk_totals(place(2)).unwrap().last(), Some((hour(2), Cause::Rebuild)));
    assert_eq!(ledger.disk_totals(place(1)).unwrap().count(CauseKind::Request), 1);
    assert_eq!(
        ledger.group_totals(GroupId::new(0)).unwrap().lifetime_count(),
        3,
        "a group spin-up counts once"
    );
    let counts: Vec<_> = CauseKind::ALL.into_iter().map(|kind| ledger.spin_ups_by(kind)).collect();
    assert_eq!(counts, [2, 0, 0, 2, 0, 0, 1, 0]);
    let recent: Vec<_> = ledger.recent().map(|spin_up| spin_up.cause).collect();
    assert_eq!(recent, [Cause::Rebuild, Cause::External, Cause::Request(7)]);
}

#[test]
fn recent_spin_ups_are_bounded() {
    let mut ledger = Ledger::new();
    for number in 0..RECENT_SPIN_UPS_MAX as u64 + 10 {
        ledger.record(spin_up(hour(0), &[1], Cause::Request(number)));
    }
    assert_eq!(ledger.recent().count(), RECENT_SPIN_UPS_MAX);
    let latest = ledger.recent().next().unwrap().cause;
    assert_eq!(latest, Cause::Request(RECENT_SPIN_UPS_MAX as u64 + 9));
    assert_eq!(
        ledger.disk_totals(place(1)).unwrap().lifetime_count(),
        RECENT_SPIN_UPS_MAX as u64 + 10
    );
}

#[test]
fn day_counts_whole_hours_and_one_more() {
    let mut ledger = Ledger::new();
    for at in [hour(0), hour(0), hour(3), hour(30)] {
        ledger.record(spin_up(at, &[1], Cause::Write(0)));
    }
    let totals = ledger.disk_totals(place(1)).unwrap();
    assert_eq!(totals.day(hour(30)), 1, "hours older than 25 are dropped");
    assert_eq!((totals.day(hour(54)), totals.day(hour(55))), (1, 0));
    assert_eq!(totals.lifetime_count(), 4);
}

proptest! {
    /// No window of 24 hours has more spin-ups than the reported day, so that a budget errs on the
    /// safe side.
    #[test]
    fn day_counts_no_less_than_any_24_hours(
        steps in prop::collection::vec(0..7_200_000u64, 1..200)
    ) {
        let (mut ledger, mut now, mut times) = (Ledger::new(), hour(0), Vec::new());
        for step in steps {
            now = UnixTime::from_millis(now.as_millis() + step);
            let places = vec![place(1)];
            ledger.record(SpinUp { at: now, group: None, places, cause: Cause::Write(0) });
            times.push(now.as_millis());
            let since = now.as_millis() - 24 * 3_600_000;
            let count = times.iter().filter(|at| **at > since).count() as u64;
            prop_assert!(ledger.disk_totals(place(1)).unwrap().day(now) >= count);
        }
    }
}

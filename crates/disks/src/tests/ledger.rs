//! Who woke what, and what budgets say to that.

use fulgurite_units::UnixTime;
use proptest::prelude::*;

use super::{hour, place, wake};
use crate::limits::WAKES_KEPT;
use crate::{Binding, Budget, Cause, CauseKind, GroupId, Ledger, Verdict, Wake};

const DAILY: Budget = Budget {
    disk_spinups_per_day: Some(3),
    group_spinups_per_day: None,
    disk_spinups_per_life: None,
    binding: Binding::Background,
};

#[test]
fn each_spin_up_has_a_cause_and_is_found_by_it() {
    let mut ledger = Ledger::new();
    ledger.note(wake(hour(0), &[1, 2], Cause::Request(7)));
    ledger.note(wake(hour(1), &[2], Cause::Foreign));
    ledger.note(wake(hour(2), &[2, 3], Cause::Rebuild));
    let life: Vec<_> = ledger.places().map(|(place, of)| (place.get(), of.life())).collect();
    assert_eq!(life, [(1, 1), (2, 3), (3, 1)]);
    assert_eq!(ledger.of(place(2)).unwrap().last(), Some((hour(2), Cause::Rebuild)));
    assert_eq!(ledger.of(place(1)).unwrap().by(CauseKind::Request), 1);
    assert_eq!(ledger.of_group(GroupId::new(0)).unwrap().life(), 3, "a group is woken as one");
    let by: Vec<_> = CauseKind::ALL.into_iter().map(|kind| ledger.spin_ups_by(kind)).collect();
    assert_eq!(by, [2, 0, 0, 2, 0, 0, 1]);
    let recent: Vec<_> = ledger.recent().map(|wake| wake.cause).collect();
    assert_eq!(recent, [Cause::Rebuild, Cause::Foreign, Cause::Request(7)]);
}

#[test]
fn no_more_wakes_are_kept_than_the_limit() {
    let mut ledger = Ledger::new();
    for number in 0..WAKES_KEPT as u64 + 10 {
        ledger.note(wake(hour(0), &[1], Cause::Request(number)));
    }
    assert_eq!(ledger.recent().count(), WAKES_KEPT);
    let latest = ledger.recent().next().unwrap().cause;
    assert_eq!(latest, Cause::Request(WAKES_KEPT as u64 + 9));
    assert_eq!(ledger.of(place(1)).unwrap().life(), WAKES_KEPT as u64 + 10);
}

#[test]
fn what_can_wait_waits_and_customers_go_on() {
    let mut ledger = Ledger::new();
    let ask = |ledger: &Ledger, budget: &Budget, now, cause| {
        ledger.ask(budget, now, Some(GroupId::new(0)), &[place(1), place(2)], cause)
    };
    for _ in 0..3 {
        assert_eq!(ask(&ledger, &DAILY, hour(5), Cause::Scrub), Verdict::Within);
        ledger.note(wake(hour(5), &[2], Cause::Request(0)));
    }
    let wait = Verdict::Wait { until: Some(at_the_hour(hour(5), 25)) };
    for cause in [Cause::Scrub, Cause::Write(1), Cause::Delete(1)] {
        assert_eq!(ask(&ledger, &DAILY, hour(6), cause), wait);
    }
    for cause in [Cause::Request(1), Cause::Rebuild, Cause::Init, Cause::Foreign] {
        assert_eq!(ask(&ledger, &DAILY, hour(6), cause), Verdict::Over);
    }
    let customers = Budget { binding: Binding::Customers, ..DAILY };
    assert_eq!(ask(&ledger, &customers, hour(6), Cause::Request(1)), wait);
    assert_eq!(ask(&ledger, &customers, hour(6), Cause::Rebuild), Verdict::Over);
    assert_eq!(ask(&ledger, &DAILY, at_the_hour(hour(5), 25), Cause::Scrub), Verdict::Within);
    assert_eq!(ask(&ledger, &Budget::default(), hour(6), Cause::Scrub), Verdict::Within);

    let life = Budget { disk_spinups_per_life: Some(3), ..Budget::default() };
    let spent = ask(&ledger, &life, hour(999), Cause::Scrub);
    assert_eq!(spent, Verdict::Wait { until: None });
    assert_eq!(ask(&ledger, &life, hour(999), Cause::Request(1)), Verdict::Over);
    ledger.replaced(place(2));
    assert_eq!(ask(&ledger, &life, hour(999), Cause::Scrub), Verdict::Within);

    let group = Budget { group_spinups_per_day: Some(2), ..Budget::default() };
    assert!(!ask(&ledger, &group, hour(6), Cause::Scrub).may_wake());
}

#[test]
fn a_budget_of_none_has_no_room_at_any_time() {
    let none = Budget { disk_spinups_per_day: Some(0), ..DAILY };
    let mut ledger = Ledger::new();
    let ask = |ledger: &Ledger, at| ledger.ask(&none, at, None, &[place(1)], Cause::Scrub);
    // What was never woken has no totals to look at, and a limit of none all the same.
    assert!(!ask(&ledger, hour(1)).may_wake());
    ledger.note(wake(hour(0), &[1], Cause::Request(0)));
    for at in [hour(0), hour(100)] {
        match ask(&ledger, at) {
            Verdict::Wait { until: Some(until) } => assert!(until > at),
            other @ (Verdict::Wait { until: None } | Verdict::Within | Verdict::Over) => {
                panic!("{other:?}")
            }
        }
    }
}

fn at_the_hour(from: UnixTime, hours: u64) -> UnixTime {
    UnixTime::from_millis((from.as_millis() / 3_600_000 + hours) * 3_600_000)
}

proptest! {
    /// Whoever wakes a disk only when the budget lets it never has more in any 24 hours, and is let
    /// in at the moment that it was told.
    #[test]
    fn no_day_has_more_than_its_budget(
        per_day in 1..6u32,
        steps in prop::collection::vec(0..7_200_000u64, 1..200)
    ) {
        let budget = Budget { disk_spinups_per_day: Some(per_day), ..Budget::default() };
        let (mut ledger, mut now, mut woken) = (Ledger::new(), hour(0), Vec::new());
        for step in steps {
            now = UnixTime::from_millis(now.as_millis() + step);
            let ask = |ledger: &Ledger, at| {
                ledger.ask(&budget, at, None, &[place(1)], Cause::Write(0))
            };
            match ask(&ledger, now) {
                Verdict::Within => {
                    let places = vec![place(1)];
                    ledger.note(Wake { at: now, group: None, places, cause: Cause::Write(0) });
                    woken.push(now.as_millis());
                }
                Verdict::Wait { until } => {
                    let until = until.unwrap();
                    prop_assert!(until > now);
                    prop_assert_eq!(ask(&ledger, until), Verdict::Within);
                    let just_before = UnixTime::from_millis(until.as_millis() - 1);
                    prop_assert!(!ask(&ledger, just_before).may_wake());
                }
                Verdict::Over => prop_assert!(false, "what can wait waits"),
            }
        }
        for window in woken.windows(per_day as usize + 1) {
            prop_assert!(window[per_day as usize] - window[0] >= 24 * 3_600_000);
        }
    }
}

//! A disk's budget of spin-ups: what bypasses it, what waits for it, and for how long.

use fulgurite_units::{Duration, Instant};

use super::single::{REGION, Rig, delta};
use crate::limits::{APPLY_DELAY_MAX, IDLE};
use crate::{Event, RequestId, TomeId};

const HOUR: Duration = Duration::from_secs(3600);
const PER_DAY: u32 = 3;

/// Lets the disk go idle until it is spun down.
fn sleep(rig: &mut Rig) {
    (0..2).for_each(|_| drop(rig.pass(IDLE)));
    assert!(!rig.spinning, "the idle disk spins down");
}

/// Sends a request that cannot wait.
fn ask(rig: &mut Rig, number: u64) {
    rig.handle(Event::Scrub { request: RequestId(number) });
    assert!(rig.spinning, "request {number} is not deferred");
    sleep(rig);
}

/// Sends a change of another member, which this one applies when its disk spins.
fn send(rig: &mut Rig, version: u32) {
    let message = delta(0, version, vec![u8::try_from(version).unwrap(); 256]);
    rig.handle(Event::Received { from: TomeId::new(0), message });
}

fn applied_count(rig: &Rig) -> usize {
    let region = rig.metadata.region(REGION).unwrap();
    region.stored().filter(|(_, _, stored)| stored.is_applied).count()
}

/// Uses up the budget of a parity, and exceeds it this many times.
fn exhaust_budget(rig: &mut Rig, beyond: u32) {
    for number in 0..u64::from(PER_DAY + beyond) {
        ask(rig, number);
    }
    let spending = rig.tome.spending().unwrap();
    assert_eq!((spending.left, spending.overdrawn), (0, u64::from(beyond)));
    assert_eq!(spending.deferred_for, None, "nothing is deferred");
}

#[test]
fn exhausted_budget_defers_deltas_but_not_requests() {
    let mut rig = Rig::new(3);
    rig.tome.limit_spin_ups(PER_DAY, []);
    assert_eq!(rig.tome.spending().unwrap().left, PER_DAY);
    exhaust_budget(&mut rig, 2);
    send(&mut rig, 1);
    assert!(!rig.spinning, "it can wait");
    let begun = rig.now;
    while !rig.spinning {
        rig.pass(Duration::from_secs(60));
        let waited = rig.now.since(begun);
        if !rig.spinning {
            assert_eq!(
                rig.tome.spending().unwrap().deferred_for,
                Some(waited),
                "the age of deferred work is reported"
            );
        }
        assert!(waited <= APPLY_DELAY_MAX, "{waited:?}");
    }
    assert_eq!(
        rig.now.since(begun),
        APPLY_DELAY_MAX,
        "the longest delay allowed, since the budget is exhausted"
    );
    assert_eq!(applied_count(&rig), 1);
    let spending = rig.tome.spending().unwrap();
    assert_eq!((spending.deferred_for, spending.overdrawn), (None, 3));
}

#[test]
fn deferred_work_runs_at_next_spin_up_or_after_a_day() {
    let mut rig = Rig::new(3);
    rig.tome.limit_spin_ups(PER_DAY, []);
    exhaust_budget(&mut rig, 0);
    send(&mut rig, 1);
    assert_eq!((rig.spinning, applied_count(&rig)), (false, 0));
    ask(&mut rig, 100);
    assert_eq!(applied_count(&rig), 1, "deferred deltas are applied while the disk spins");
    assert_eq!(rig.tome.spending().unwrap().deferred_for, None);
    // The spin-ups above are now more than a day old.
    rig.pass(Duration::from_secs(24 * 3600));
    assert_eq!(rig.tome.spending().unwrap().left, PER_DAY);
    send(&mut rig, 2);
    assert!(rig.spinning, "the budget has room again");
    assert_eq!(applied_count(&rig), 2);
}

#[test]
fn spin_ups_before_a_start_count_against_the_budget() {
    let mut rig = Rig::new(3);
    rig.pass(Duration::from_secs(24 * 3600));
    sleep(&mut rig);
    let at = |hours: u64| Instant::from_nanos(rig.now.as_nanos() - HOUR.as_nanos() * hours);
    let before = [23, 20, 10, 1].map(at);
    rig.tome.limit_spin_ups(PER_DAY, before);
    assert_eq!(rig.tome.spending().unwrap().left, 0);
    send(&mut rig, 1);
    assert!(!rig.spinning);
    let mut rig = Rig::new(3);
    assert_eq!(rig.tome.spending(), None);
    for number in 0..10 {
        ask(&mut rig, number);
    }
    send(&mut rig, 1);
    assert!(rig.spinning);
}

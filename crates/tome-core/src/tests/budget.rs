//! A disk's budget of spin-ups: what bypasses it, what waits for it, and for how long.

use fulgurite_units::{Duration, Instant};

use super::single::{Desk, REGION, delta};
use crate::limits::{APPLY_DELAY_MAX, IDLE};
use crate::{Event, RequestId, TomeId};

const HOUR: Duration = Duration::from_secs(3600);
const PER_DAY: u32 = 3;

/// Lets the disk go idle until it is spun down.
fn sleep(desk: &mut Desk) {
    (0..2).for_each(|_| drop(desk.pass(IDLE)));
    assert!(!desk.turning, "nobody wants it");
}

/// Sends a request that cannot wait.
fn ask(desk: &mut Desk, number: u64) {
    desk.tell(Event::Scrub { request: RequestId(number) });
    assert!(desk.turning, "request {number} is not put off");
    sleep(desk);
}

/// Sends a change of another member, which this one applies when its disk spins.
fn send(desk: &mut Desk, version: u32) {
    let message = delta(0, version, vec![u8::try_from(version).unwrap(); 256]);
    desk.tell(Event::Received { from: TomeId::new(0), message });
}

fn folded(desk: &Desk) -> usize {
    let region = desk.metadata.region(REGION).unwrap();
    region.stored().filter(|(_, _, stored)| stored.is_folded).count()
}

/// Uses up the budget of a parity, and exceeds it this many times.
fn spent(desk: &mut Desk, beyond: u32) {
    for number in 0..u64::from(PER_DAY + beyond) {
        ask(desk, number);
    }
    let spending = desk.tome.spending().unwrap();
    assert_eq!((spending.left, spending.overdrawn), (0, u64::from(beyond)));
    assert_eq!(spending.deferred_for, None, "nothing is");
}

#[test]
fn requests_pass_a_budget_that_is_used_up_and_folding_waits_for_a_bounded_time() {
    let mut desk = Desk::new(3);
    desk.tome.limit_spin_ups(PER_DAY, []);
    assert_eq!(desk.tome.spending().unwrap().left, PER_DAY);
    spent(&mut desk, 2);
    send(&mut desk, 1);
    assert!(!desk.turning, "it can wait");
    let begun = desk.now;
    while !desk.turning {
        desk.pass(Duration::from_secs(60));
        let waited = desk.now.since(begun);
        if !desk.turning {
            assert_eq!(desk.tome.spending().unwrap().deferred_for, Some(waited), "its age is told");
        }
        assert!(waited <= APPLY_DELAY_MAX, "{waited:?}");
    }
    assert_eq!(desk.now.since(begun), APPLY_DELAY_MAX, "as long as may be, since a day had more");
    assert_eq!(folded(&desk), 1);
    let spending = desk.tome.spending().unwrap();
    assert_eq!((spending.deferred_for, spending.overdrawn), (None, 3));
}

#[test]
fn what_is_put_off_is_done_with_what_comes_first_or_when_a_day_is_over() {
    let mut desk = Desk::new(3);
    desk.tome.limit_spin_ups(PER_DAY, []);
    spent(&mut desk, 0);
    send(&mut desk, 1);
    assert_eq!((desk.turning, folded(&desk)), (false, 0));
    ask(&mut desk, 100);
    assert_eq!(folded(&desk), 1, "the disk turned anyway");
    assert_eq!(desk.tome.spending().unwrap().deferred_for, None);
    // The spin-ups above are now more than a day old.
    desk.pass(Duration::from_secs(24 * 3600));
    assert_eq!(desk.tome.spending().unwrap().left, PER_DAY);
    send(&mut desk, 2);
    assert!(desk.turning, "there is room");
    assert_eq!(folded(&desk), 2);
}

#[test]
fn wakes_of_before_a_start_count_and_without_a_budget_nothing_waits() {
    let mut desk = Desk::new(3);
    desk.pass(Duration::from_secs(24 * 3600));
    sleep(&mut desk);
    let at = |hours: u64| Instant::from_nanos(desk.now.as_nanos() - HOUR.as_nanos() * hours);
    let before = [23, 20, 10, 1].map(at);
    desk.tome.limit_spin_ups(PER_DAY, before);
    assert_eq!(desk.tome.spending().unwrap().left, 0);
    send(&mut desk, 1);
    assert!(!desk.turning);
    let mut desk = Desk::new(3);
    assert_eq!(desk.tome.spending(), None);
    for number in 0..10 {
        ask(&mut desk, number);
    }
    send(&mut desk, 1);
    assert!(desk.turning);
}

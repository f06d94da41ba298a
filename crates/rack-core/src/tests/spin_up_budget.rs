//! Tests the budget of spin-ups.

use fulgurite_units::{ByteCount, Controller as _, Duration, Instant, Outbox};
use proptest::prelude::*;

use crate::token_bucket::TokenBucket;
use crate::{
    Budget, Command, Event, GroupId, Loss, Members, Op, OpId, OpKind, Order, Part, Policy, Rack,
    presets, solve,
};

const DAY: Duration = Duration::from_secs(86_400);

fn rack(order: Order, max_spinups_per_day: u32) -> Rack {
    let shape = presets::shape("shelf").unwrap();
    let budget = Some(Budget { max_spinups_per_day });
    let policy = Policy { order, budget, ..Policy::pelican() };
    Rack::new(&shape, solve(&shape).unwrap(), policy)
}

/// Submits an operation to a rack whose disks and operations finish at once. Returns the operations
/// that ran, and whether the budget was exceeded.
fn submit(
    rack: &mut Rack,
    now: Instant,
    (id, group): (u64, u32),
    kind: OpKind,
    within: Option<u64>,
) -> (Vec<u64>, bool) {
    let op = Op {
        id: OpId::new(id),
        group: GroupId::new(group),
        kind,
        bytes: ByteCount::new(1_000_000),
        members: Members::first(4),
        enough: 0,
        due: within.map(|seconds| now + Duration::from_secs(seconds)),
    };
    run(rack, now, Event::Submit { op })
}

fn run(rack: &mut Rack, now: Instant, event: Event) -> (Vec<u64>, bool) {
    let (mut ran, mut is_overdrawn, mut events) = (Vec::new(), false, vec![event]);
    while let Some(event) = events.pop() {
        let mut out = Outbox::new();
        rack.step(now, event, &mut out);
        rack.check();
        for command in out.drain() {
            match command {
                Command::SpinUp { place, .. } => events.push(Event::Up { place }),
                Command::SpinDown { place } => events.push(Event::Down { place }),
                Command::Run { op, .. } => {
                    ran.push(op.get());
                    events.insert(0, Event::Done { op });
                }
                Command::Overdrawn { .. } => is_overdrawn = true,
                Command::Refuse { .. } | Command::Alarm { .. } => {}
            }
        }
    }
    (ran, is_overdrawn)
}

/// With 32 a day, four may come at once, one of them only for what is due soon; then one every 51
/// minutes.
#[test]
fn group_over_its_spin_up_budget_waits() {
    for order in [Order::Batches, Order::Due(crate::Due::default())] {
        let mut rack = rack(order, 32);
        let mut now = Instant::ZERO;
        // Alternates between groups 0 and 1 until one has to wait.
        for (id, group) in (0..6).zip([0, 1].into_iter().cycle()) {
            assert_eq!(submit(&mut rack, now, (id, group), OpKind::Read, None).0, [id]);
        }
        let (ran, _) = submit(&mut rack, now, (6, 0), OpKind::Read, None);
        assert_eq!(ran, [0; 0], "the fourth has to wait");
        let until = rack.over_budget_until(GroupId::new(0)).unwrap();
        assert_eq!(rack.deadline(), Some(until));
        assert_eq!(until.since(now).as_nanos(), DAY.as_nanos().div_ceil(28));
        now = until;
        assert_eq!(run(&mut rack, now, Event::Timer), (vec![6], false));
    }
}

#[test]
fn urgent_reads_use_the_reserve_and_rebuilds_exceed_it() {
    let mut rack = rack(Order::Due(crate::Due::default()), 32);
    let now = Instant::ZERO;
    for (id, group) in (0..6).zip([0, 1].into_iter().cycle()) {
        submit(&mut rack, now, (id, group), OpKind::Read, None);
    }
    assert_eq!(submit(&mut rack, now, (6, 0), OpKind::Read, Some(60)), (vec![6], false));
    assert_eq!(submit(&mut rack, now, (7, 1), OpKind::Read, Some(60)), (vec![7], false));
    assert_eq!(
        submit(&mut rack, now, (8, 0), OpKind::Read, Some(60)).0,
        [0; 0],
        "the budget is used up"
    );
    assert_eq!(submit(&mut rack, now, (9, 0), OpKind::Scrub, None).0, [0; 0]);
    assert_eq!(
        submit(&mut rack, now, (10, 0), OpKind::Rebuild, None).0,
        [0; 0],
        "the data is not endangered"
    );
    let place = rack.assignment().places(GroupId::new(0))[2];
    // A blob on the shelf can lose only one of four disks.
    let (ran, is_overdrawn) =
        run(&mut rack, now, Event::Lost { part: Part::Place(place), loss: Loss::Gone });
    assert!(ran.contains(&10) && is_overdrawn, "a rebuild of endangered data runs: {ran:?}");
    assert_eq!(rack.counters().overdrawn, 1);
}

#[test]
fn restart_does_not_reset_the_budget() {
    let mut rack = rack(Order::Due(crate::Due::default()), 32);
    let place = rack.assignment().places(GroupId::new(0))[0];
    let minutes = |count: u64| Duration::from_secs(60 * count);
    rack.record_past_spin_ups(Instant::ZERO, place, [(minutes(600), 2), (minutes(10), 4)]);
    let (ran, _) = submit(&mut rack, Instant::ZERO, (0, 0), OpKind::Read, None);
    assert_eq!(ran, [0; 0], "its group waits for the one disk");
    assert!(rack.over_budget_until(GroupId::new(0)).is_some());
    assert_eq!(submit(&mut rack, Instant::ZERO, (1, 1), OpKind::Read, None).0, [1]);
}

proptest! {
    /// Whatever the request times, no day exceeds the budget, and every wait ends.
    #[test]
    fn no_day_exceeds_the_budget(
        per_day in 1u32..300,
        gaps in prop::collection::vec(0u64..4000, 1..400),
    ) {
        let token_bucket = TokenBucket::new(Budget { max_spinups_per_day: per_day });
        let (mut full_at, mut now, mut spun_up) = (Instant::ZERO, Instant::ZERO, Vec::new());
        for gap in gaps {
            now = now + Duration::from_secs(gap);
            let allowance = token_bucket.allowance(full_at, false);
            prop_assert!(allowance.soon <= allowance.plain);
            prop_assert!(allowance.plain.since(now) <= DAY + DAY, "every wait ends");
            if allowance.soon <= now {
                token_bucket.charge(&mut full_at, now);
                spun_up.push(now);
            }
            let day = spun_up.iter().filter(|at| now.since(**at) < DAY).count();
            prop_assert!(day <= per_day as usize, "{day} of {per_day}");
        }
    }
}

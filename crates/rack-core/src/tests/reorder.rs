//! Tests the queue of batches against the paper's rule, operation by operation (section 2.2.3).

use fulgurite_units::{ByteCount, Duration, Instant};
use proptest::prelude::*;

use crate::queue::{Cost, Queue, Waiting};
use crate::{GroupId, Members, Op, OpId, OpKind};

const GB: u64 = 1_000_000_000;

/// The paper's pseudocode: operations with t and o, in bytes.
#[derive(Default)]
struct Model {
    t: u64,
    queue: Vec<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    id: u64,
    group: usize,
    cost: u64,
    t: i128,
    o: i128,
}

impl Model {
    fn insert(&mut self, id: u64, group: usize, cost: u64, u: Option<u64>) {
        self.t += cost;
        let t = i128::from(self.t);
        let mut entry = Entry { id, group, cost, t, o: t };
        let last = self.queue.iter().rposition(|of| of.group == group);
        let may = |i: &Entry| u.is_none_or(|u| i.o + i128::from(cost) - i.t <= i128::from(u));
        match last {
            Some(l) if self.queue[l + 1..].iter().all(may) => {
                let behind = &mut self.queue[l + 1..];
                behind.iter_mut().for_each(|i| i.o += i128::from(cost));
                entry.o = t - behind.iter().map(|i| i128::from(i.cost)).sum::<i128>();
                self.queue.insert(l + 1, entry);
            }
            Some(_) | None => self.queue.push(entry),
        }
    }

    fn ids(&self) -> Vec<u64> {
        self.queue.iter().map(|of| of.id).collect()
    }
}

fn waiting(id: u64, group: usize, bytes: u64) -> Waiting {
    let group = GroupId::new(u32::try_from(group).unwrap());
    let (id, bytes) = (OpId::new(id), ByteCount::new(bytes));
    let op =
        Op { id, group, kind: OpKind::Read, bytes, members: Members::NONE, enough: 0, due: None };
    Waiting { op, since: Instant::ZERO }
}

fn ids(queue: &Queue) -> Vec<u64> {
    queue.iter().map(|(_, waiting, _)| waiting.op.id.get()).collect()
}

fn cost(bytes: u64) -> Cost {
    Cost::new(ByteCount::new(bytes), Duration::from_secs(1))
}

/// A step for both: insert an operation of a group, or remove the first.
#[derive(Clone, Copy, Debug)]
enum Step {
    Insert { group: usize, gigabytes: u64 },
    Pop,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let insert =
        (0usize..5, 1u64..4).prop_map(|(group, gigabytes)| Step::Insert { group, gigabytes });
    prop::collection::vec(prop_oneof![3 => insert, 1 => Just(Step::Pop)], 1..80)
}

fn reach() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (0u64..12).prop_map(|u| Some(u * GB))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn batches_match_the_paper(steps in steps(), u in reach()) {
        let mut queue = Queue::new(5, u.map(ByteCount::new), None);
        let mut model = Model::default();
        for (id, step) in (0..).zip(steps) {
            match step {
                Step::Insert { group, gigabytes } => {
                    let bytes = gigabytes * GB;
                    queue.insert(waiting(id, group, bytes), group, cost(bytes), false);
                    model.insert(id, group, bytes, u);
                }
                Step::Pop => {
                    let (first, gone) = (model.ids().first().copied(), queue.pop());
                    prop_assert_eq!(gone.map(|gone| gone.op.id.get()), first);
                    if first.is_some() {
                        model.queue.remove(0);
                    }
                }
            }
            prop_assert_eq!(ids(&queue), model.ids());
            prop_assert_eq!(queue.len(), model.queue.len());
            prop_assert!(queue.iter().all(|(_, _, is_in_reach)| is_in_reach));
            // The model itself must stay within the bound, or the comparison would be meaningless.
            let is_kept = |entry: &Entry| u.is_none_or(|u| entry.o - entry.t <= i128::from(u));
            prop_assert!(model.queue.iter().all(is_kept));
        }
    }

    #[test]
    fn zero_reach_is_first_come_first_served(groups in prop::collection::vec(0usize..5, 1..60)) {
        let mut queue = Queue::new(5, Some(ByteCount::ZERO), None);
        for (id, group) in (0..).zip(&groups) {
            // Even an operation of no bytes must not overtake.
            queue.insert(waiting(id, *group, 0), *group, cost(0), true);
        }
        let order: Vec<u64> = std::iter::from_fn(|| queue.pop()).map(|of| of.op.id.get()).collect();
        prop_assert_eq!(order, (0..).take(groups.len()).collect::<Vec<_>>());
    }

    #[test]
    fn unbounded_reach_serves_each_group_once(groups in prop::collection::vec(0usize..5, 1..60)) {
        let mut queue = Queue::new(5, None, None);
        for (id, group) in (0..).zip(&groups) {
            queue.insert(waiting(id, *group, GB), *group, cost(GB), false);
        }
        let mut order: Vec<u32> =
            std::iter::from_fn(|| queue.pop()).map(|of| of.op.group.get()).collect();
        order.dedup();
        let mut once = order.clone();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(order.len(), once.len());
    }

    /// Rides, joins and removals in any order: nothing is lost, each group keeps its order, and
    /// nothing is pushed back too far.
    #[test]
    fn guarantees_hold_for_any_operations(
        steps in prop::collection::vec((0u8..6, 0usize..5, 1u64..4), 1..80),
        u in reach(),
        time in prop_oneof![Just(None), (0u64..12).prop_map(Some)],
    ) {
        let time = time.map(Duration::from_secs);
        let mut queue = Queue::new(5, u.map(ByteCount::new), time);
        let (mut came, mut left) = (vec![Vec::new(); 5], vec![Vec::new(); 5]);
        for (id, (action, group, gigabytes)) in (0..).zip(steps) {
            let mut goes = |waiting: Waiting| {
                left[waiting.op.group.get() as usize].push(waiting.op.id.get());
            };
            match action {
                0..=2 => {
                    let bytes = gigabytes * GB;
                    let joins = action == 2;
                    queue.insert(waiting(id, group, bytes), group, cost(bytes), joins);
                    came[group].push(id);
                }
                3 => queue.pop().into_iter().for_each(&mut goes),
                4 => queue.pop_piggyback(group, |_| true).into_iter().for_each(&mut goes),
                _ => queue.remove(group, |_| true, &mut goes),
            }
            prop_assert!(queue.iter().all(|(_, _, is_in_reach)| is_in_reach));
            let bytes: u64 = queue.iter().map(|(_, waiting, _)| waiting.op.bytes.get()).sum();
            prop_assert_eq!((queue.iter().count(), bytes), (queue.len(), queue.bytes().get()));
        }
        while let Some(waiting) = queue.pop() {
            left[waiting.op.group.get() as usize].push(waiting.op.id.get());
        }
        prop_assert_eq!(came, left);
    }
}

#[test]
fn operation_joins_its_group() {
    let mut queue = Queue::new(3, Some(ByteCount::new(2 * GB)), None);
    for (id, group) in [(0, 0), (1, 1), (2, 0), (3, 2), (4, 0), (5, 0)] {
        queue.insert(waiting(id, group, GB), group, cost(GB), false);
    }
    // 2 and 4 overtake 1, which may be pushed back only twice, so 5 opens a new batch.
    assert_eq!(ids(&queue), [0, 2, 4, 1, 3, 5]);
}

#[test]
fn only_matching_operations_are_removed() {
    let mut queue = Queue::new(2, None, None);
    for (id, group) in [(0, 0), (1, 1), (2, 0), (3, 0)] {
        queue.insert(waiting(id, group, GB), group, cost(GB), false);
    }
    let mut removed = Vec::new();
    queue.remove(0, |op| op.id.get() == 2, |of| removed.push(of.op.id.get()));
    assert_eq!((removed, ids(&queue)), (vec![2], vec![0, 3, 1]));
    queue.insert(waiting(4, 0, GB), 0, cost(GB), false);
    assert_eq!(ids(&queue), [0, 3, 4, 1]);
}

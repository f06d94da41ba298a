//! Slots and partitions: every slot has one address and one group. Runs have equal weight and are
//! the paper's rectangles where the counts divide, and any number of shuttles gets its share.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{Seed, SlotIndex};
use proptest::prelude::*;

use crate::control::floor::Floor;
use crate::control::partition::Partitions;
use crate::control::{LibraryShape, Movement};

fn partition(floor: &Floor, weights: &[u64]) -> Partitions {
    Partitions::new(floor, Movement::Partitions, weights, |_| true, |_| true)
}

fn cells(floor: &Floor) -> usize {
    floor.cells_per_panel() * usize::from(floor.shape().panels)
}

fn with_shuttles(count: u16) -> LibraryShape {
    LibraryShape { drives_per_read_rack: 10, shuttles_per_panel: count, ..LibraryShape::small() }
}

/// Returns the weight of the cells of each group, and how many there are.
fn weigh(floor: &Floor, partitions: &Partitions, weights: &[u64]) -> Vec<(u64, usize)> {
    let mut sums = vec![(0, 0); partitions.groups().len()];
    let mut seen = BTreeSet::new();
    for slot in (0..floor.shape().slot_count()).map(SlotIndex::new) {
        let cell = floor.cell(slot);
        let sum = &mut sums[usize::from(partitions.group_of_slot(floor, slot))];
        if seen.insert(cell) {
            *sum = (sum.0 + weights[cell], sum.1 + 1);
        }
    }
    assert_eq!(seen.len(), weights.len(), "each cell has slots");
    sums
}

#[test]
fn partitions_are_even_for_every_shuttle_count() {
    for count in 2..=40 {
        let floor = Floor::new(&with_shuttles(count)).unwrap();
        let weights = vec![1; cells(&floor)];
        let partitions = partition(&floor, &weights);
        let sums = weigh(&floor, &partitions, &weights);
        assert_eq!(sums.len(), usize::from(count));
        let ideal = weights.len() as f64 / f64::from(count);
        // Runs are whole shelves of one side while there are enough, and otherwise equal to within
        // a cell; the two sides differ by a column at most.
        let shelf = if count / 2 <= floor.shape().shelves_per_panel * 2 {
            f64::from(floor.columns()) / 2.0
        } else {
            1.0
        };
        let column = f64::from(floor.shape().shelves_per_panel) / f64::from(count / 2);
        for (group, (sum, cells)) in sums.into_iter().enumerate() {
            assert!(cells > 0, "{count} shuttles: group {group} has nothing");
            let off = (sum as f64 - ideal).abs();
            assert!(off <= column + shelf, "{count} shuttles: {sum} cells, not {ideal}");
            assert!(!partitions.groups()[group].drives().is_empty(), "each has a drive");
        }
    }
}

#[test]
fn runs_are_rectangles_where_counts_divide() {
    for count in [2, 4, 10, 20] {
        let floor = Floor::new(&with_shuttles(count)).unwrap();
        let partitions = partition(&floor, &vec![1; cells(&floor)]);
        let columns = floor.columns() as usize;
        let mut rows = BTreeMap::<u16, BTreeMap<usize, BTreeSet<usize>>>::new();
        for slot in (0..floor.shape().slot_count()).map(SlotIndex::new) {
            let (cell, group) = (floor.cell(slot), partitions.group_of_slot(&floor, slot));
            let row = rows.entry(group).or_default().entry(cell / columns).or_default();
            row.insert(cell % columns);
        }
        for (group, rows) in rows {
            let widths: BTreeSet<_> = rows.values().collect();
            assert_eq!(widths.len(), 1, "{count} shuttles: group {group} is no rectangle");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// No run has more than its share and a quarter (up to that, shelves stay whole), a share of
    /// the heaviest column, and the heaviest cell.
    #[test]
    fn skewed_loads_are_partitioned_evenly(seed: u64, count in 2u16..=40, skew in 1u64..1000) {
        let floor = Floor::new(&with_shuttles(count)).unwrap();
        let mut random = Seed::new(seed).stream();
        let mut weights: Vec<u64> = (0..cells(&floor)).map(|_| 10 + random.below(10)).collect();
        for _ in 0..4 {
            let hot = usize::try_from(random.below(weights.len() as u64)).unwrap();
            weights[hot] *= skew;
        }
        let partitions = partition(&floor, &weights);
        let total: u64 = weights.iter().sum();
        let columns = floor.columns() as usize;
        let column = |at: usize| weights.iter().skip(at).step_by(columns).sum::<u64>();
        let heaviest = (0..columns).map(column).max().unwrap();
        let cell = *weights.iter().max().unwrap();
        let share = total / u64::from(count) + heaviest / u64::from(count / 2);
        // Runs of whole shelves are as even as shelves allow.
        let side = total * u64::from(count.div_ceil(2)) / u64::from(count) + heaviest;
        let (shelves, runs) = (u64::from(floor.shape().shelves_per_panel), u64::from(count / 2));
        let whole = if runs <= shelves { side * shelves.div_ceil(runs) / shelves } else { 0 };
        let share = share.max(whole);
        let bound = share + share / 4 + cell + 2;
        for (sum, _) in weigh(&floor, &partitions, &weights) {
            prop_assert!(sum <= bound, "{} is more than {}", sum, bound);
        }
    }

    #[test]
    fn slots_and_addresses_are_inverse(slot in 0u32..12_600) {
        let shape = LibraryShape::mdu();
        let address = shape.address(SlotIndex::new(slot)).unwrap();
        prop_assert_eq!(shape.slot(address), Some(SlotIndex::new(slot)));
    }
}

//! Table 1 with its proofs, the model families that it was chosen from, and the search against
//! brute force.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::plan::reach::Reach;
use crate::plan::{
    Assurance, BlastModel, Cell, Collision, FailureRules, LayoutError, RackFault, Refutation,
    SetShape, ZoneShape, minimum_storage_racks, platters_max, share_zone, verify_rack_count,
};

/// I + R, the overhead in percent, and the storage racks of Table 1.
const TABLE_1: [(SetShape, &str, u16); 3] = [
    (SetShape::new(12, 3), "25.0", 6),
    (SetShape::new(16, 3), "18.8", 7),
    (SetShape::new(24, 3), "12.5", 10),
];

/// Returns the racks for the three sets of Table 1.
fn table(model: &BlastModel) -> [u16; 3] {
    TABLE_1.map(|(set, ..)| {
        let count = minimum_storage_racks(set, model).unwrap();
        verify_rack_count(set, model, &count).unwrap();
        count.racks
    })
}

fn row(name: &str, model: &BlastModel) -> String {
    let racks = table(model);
    let most: Vec<String> =
        (4..=10).map(|racks| platters_max(racks, model).unwrap().to_string()).collect();
    let mark = if racks == TABLE_1.map(|row| row.2) { " <- Table 1" } else { "" };
    format!("{name}: {racks:?}, 4..=10 hold {}{mark}\n", most.join(" "))
}

fn check(rows: impl IntoIterator<Item = String>, expected: Expect) {
    expected.assert_eq(&rows.into_iter().collect::<String>());
}

#[test]
fn table_1_is_reproduced_with_proofs() {
    let model = BlastModel::silica();
    let rows = TABLE_1.map(|(set, percent, racks)| {
        let count = minimum_storage_racks(set, &model).unwrap();
        assert_eq!(count.racks, racks);
        let overhead = set.write_overhead().unwrap().get();
        assert_eq!(format!("{:.1}", overhead * 100.0), percent);
        let assurance = verify_rack_count(set, &model, &count).unwrap();
        let less = platters_max(racks - 1, &model).unwrap();
        let why = match &count.refutation {
            Refutation::Floor => "given".to_owned(),
            Refutation::Parts(parts) => format!("{} parts", parts.len()),
            Refutation::Exhausted { states, .. } => format!("{states} states"),
        };
        format!(
            "{}+{}: {racks} racks, {assurance:?} by {why}; one less holds {less}\n",
            set.information, set.redundancy
        )
    });
    check(
        rows,
        expect![[r#"
        12+3: 6 racks, Floor by given; one less holds 16
        16+3: 7 racks, Proved by 16 parts; one less holds 16
        24+3: 10 racks, Proved by 24 parts; one less holds 24
    "#]],
    );
}

#[test]
fn shuttle_failures_have_these_shapes() {
    let mut rows = Vec::new();
    for panels in [1, 2] {
        for shuttle_eighths in [4, 6] {
            for overhang_shelves in [0, 1] {
                for collision in
                    [Collision::Never, Collision::Riding, Collision::OneCrabs, Collision::BothCrab]
                {
                    let rules = FailureRules { shuttle_eighths, overhang_shelves, collision };
                    let model =
                        BlastModel { panels, shapes: rules.shapes(), ..BlastModel::silica() };
                    let name = format!(
                        "{panels} panels, {shuttle_eighths}/8 wide, +{overhang_shelves}, \
                         {collision:?}"
                    );
                    rows.push(row(&name, &model));
                }
            }
        }
    }
    check(
        rows,
        expect![[r#"
        1 panels, 4/8 wide, +0, Never: [6, 7, 11], 4..=10 hold 10 15 15 20 20 25 25
        1 panels, 4/8 wide, +0, Riding: [6, 7, 11], 4..=10 hold 10 15 15 20 20 25 25
        1 panels, 4/8 wide, +0, OneCrabs: [7, 9, 13], 4..=10 hold 8 12 12 16 16 20 20
        1 panels, 4/8 wide, +0, BothCrab: [9, 13, 17], 4..=10 hold 6 9 9 12 12 15 15
        1 panels, 4/8 wide, +1, Never: [9, 13, 17], 4..=10 hold 6 9 9 12 12 15 15
        1 panels, 4/8 wide, +1, Riding: [9, 13, 17], 4..=10 hold 6 9 9 12 12 15 15
        1 panels, 4/8 wide, +1, OneCrabs: [15, 19, 27], 4..=10 hold 4 6 6 8 8 10 10
        1 panels, 4/8 wide, +1, BothCrab: [15, 19, 27], 4..=10 hold 4 6 6 8 8 10 10
        1 panels, 6/8 wide, +0, Never: [6, 7, 11], 4..=10 hold 10 15 15 20 20 25 25
        1 panels, 6/8 wide, +0, Riding: [7, 10, 16], 4..=10 hold 10 10 10 15 15 15 20
        1 panels, 6/8 wide, +0, OneCrabs: [10, 13, 19], 4..=10 hold 8 8 8 12 12 12 16
        1 panels, 6/8 wide, +0, BothCrab: [13, 19, 25], 4..=10 hold 6 6 6 9 9 9 12
        1 panels, 6/8 wide, +1, Never: [9, 13, 17], 4..=10 hold 6 9 9 12 12 15 15
        1 panels, 6/8 wide, +1, Riding: [13, 19, 25], 4..=10 hold 6 6 6 9 9 9 12
        1 panels, 6/8 wide, +1, OneCrabs: [22, 28, 40], 4..=10 hold 4 4 4 6 6 6 8
        1 panels, 6/8 wide, +1, BothCrab: [22, 28, 40], 4..=10 hold 4 4 4 6 6 6 8
        2 panels, 4/8 wide, +0, Never: [6, 6, 6], 4..=10 hold 20 30 30 40 40 50 50
        2 panels, 4/8 wide, +0, Riding: [6, 6, 6], 4..=10 hold 20 30 30 40 40 50 50
        2 panels, 4/8 wide, +0, OneCrabs: [6, 6, 7], 4..=10 hold 16 24 24 32 32 40 40
        2 panels, 4/8 wide, +0, BothCrab: [6, 7, 9], 4..=10 hold 12 18 18 24 24 30 30
        2 panels, 4/8 wide, +1, Never: [6, 7, 9], 4..=10 hold 12 18 18 24 24 30 30
        2 panels, 4/8 wide, +1, Riding: [6, 7, 9], 4..=10 hold 12 18 18 24 24 30 30
        2 panels, 4/8 wide, +1, OneCrabs: [7, 9, 13], 4..=10 hold 8 12 12 16 16 20 20
        2 panels, 4/8 wide, +1, BothCrab: [7, 9, 13], 4..=10 hold 8 12 12 16 16 20 20
        2 panels, 6/8 wide, +0, Never: [6, 6, 6], 4..=10 hold 20 30 30 40 40 50 50
        2 panels, 6/8 wide, +0, Riding: [6, 6, 7], 4..=10 hold 20 20 20 30 30 30 40
        2 panels, 6/8 wide, +0, OneCrabs: [6, 7, 10], 4..=10 hold 16 16 16 24 24 24 32 <- Table 1
        2 panels, 6/8 wide, +0, BothCrab: [7, 10, 13], 4..=10 hold 12 12 12 18 18 18 24
        2 panels, 6/8 wide, +1, Never: [6, 7, 9], 4..=10 hold 12 18 18 24 24 30 30
        2 panels, 6/8 wide, +1, Riding: [7, 10, 13], 4..=10 hold 12 12 12 18 18 18 24
        2 panels, 6/8 wide, +1, OneCrabs: [10, 13, 19], 4..=10 hold 8 8 8 12 12 12 16
        2 panels, 6/8 wide, +1, BothCrab: [10, 13, 19], 4..=10 hold 8 8 8 12 12 12 16
    "#]],
    );
}

#[test]
fn rectangles_of_cells() {
    let mut rows = Vec::new();
    for panels in [1, 2] {
        for (racks, shelves) in (1..=4).flat_map(|r| (2..=4).map(move |s| (r, s))) {
            let model = BlastModel { panels, ..BlastModel::rectangles(racks, shelves) };
            rows.push(row(&format!("{panels} panels, {racks} racks x {shelves} shelves"), &model));
        }
    }
    check(
        rows,
        expect![[r#"
            1 panels, 1 racks x 2 shelves: [6, 6, 6], 4..=10 hold 20 25 30 35 40 45 50
            1 panels, 1 racks x 3 shelves: [6, 6, 7], 4..=10 hold 16 20 24 28 32 36 40
            1 panels, 1 racks x 4 shelves: [6, 7, 9], 4..=10 hold 12 15 18 21 24 27 30
            1 panels, 2 racks x 2 shelves: [6, 7, 11], 4..=10 hold 10 15 15 20 20 25 25
            1 panels, 2 racks x 3 shelves: [7, 9, 13], 4..=10 hold 8 12 12 16 16 20 20
            1 panels, 2 racks x 4 shelves: [9, 13, 17], 4..=10 hold 6 9 9 12 12 15 15
            1 panels, 3 racks x 2 shelves: [7, 10, 16], 4..=10 hold 10 10 10 15 15 15 20
            1 panels, 3 racks x 3 shelves: [10, 13, 19], 4..=10 hold 8 8 8 12 12 12 16
            1 panels, 3 racks x 4 shelves: [13, 19, 25], 4..=10 hold 6 6 6 9 9 9 12
            1 panels, 4 racks x 2 shelves: [9, 13, 21], 4..=10 hold 5 10 10 10 10 15 15
            1 panels, 4 racks x 3 shelves: [13, 17, 25], 4..=10 hold 4 8 8 8 8 12 12
            1 panels, 4 racks x 4 shelves: [17, 25, 33], 4..=10 hold 3 6 6 6 6 9 9
            2 panels, 1 racks x 2 shelves: [6, 6, 6], 4..=10 hold 40 50 60 70 80 90 100
            2 panels, 1 racks x 3 shelves: [6, 6, 6], 4..=10 hold 32 40 48 56 64 72 80
            2 panels, 1 racks x 4 shelves: [6, 6, 6], 4..=10 hold 24 30 36 42 48 54 60
            2 panels, 2 racks x 2 shelves: [6, 6, 6], 4..=10 hold 20 30 30 40 40 50 50
            2 panels, 2 racks x 3 shelves: [6, 6, 7], 4..=10 hold 16 24 24 32 32 40 40
            2 panels, 2 racks x 4 shelves: [6, 7, 9], 4..=10 hold 12 18 18 24 24 30 30
            2 panels, 3 racks x 2 shelves: [6, 6, 7], 4..=10 hold 20 20 20 30 30 30 40
            2 panels, 3 racks x 3 shelves: [6, 7, 10], 4..=10 hold 16 16 16 24 24 24 32 <- Table 1
            2 panels, 3 racks x 4 shelves: [7, 10, 13], 4..=10 hold 12 12 12 18 18 18 24
            2 panels, 4 racks x 2 shelves: [6, 6, 9], 4..=10 hold 10 20 20 20 20 30 30
            2 panels, 4 racks x 3 shelves: [6, 9, 13], 4..=10 hold 8 16 16 16 16 24 24
            2 panels, 4 racks x 4 shelves: [9, 13, 17], 4..=10 hold 6 12 12 12 12 18 18
        "#]],
    );
}

#[test]
fn the_fitted_failures_are_three_by_three() {
    let (fitted, square) = (BlastModel::silica(), BlastModel::rectangles(3, 3));
    let grid = fitted.grid(6);
    let cells: Vec<Cell> = (0..grid.cell_count()).map(|n| grid.cell(n).unwrap()).collect();
    let reach = Reach::new(&fitted);
    for &a in &cells {
        assert_eq!(grid.zone(a).and_then(|zone| grid.cell(zone)), Some(a));
        for &b in cells.iter().filter(|&&b| b != a) {
            assert_eq!(share_zone(&fitted, a, b), share_zone(&square, a, b), "{a:?} {b:?}");
            assert_eq!(share_zone(&fitted, a, b), reach.can_fail_together(a, b), "{a:?} {b:?}");
        }
    }
    let whole = |shape: &ZoneShape| (shape.racks(), shape.shelves());
    let largest = fitted.shapes.iter().map(ZoneShape::cells).map(BTreeSet::len).max();
    assert!(fitted.shapes.iter().map(whole).all(|(racks, shelves)| racks <= 3 && shelves <= 3));
    assert_eq!((fitted.shapes.len(), largest), (29, Some(6)));
}

#[test]
fn wrong_certificates_are_rejected() {
    let (set, model) = (SetShape::new(16, 3), BlastModel::silica());
    let right = minimum_storage_racks(set, &model).unwrap();
    let fault = |change: &dyn Fn(&mut crate::plan::RackCount)| {
        let mut count = right.clone();
        change(&mut count);
        verify_rack_count(set, &model, &count).unwrap_err()
    };
    let low = Cell { panel: 0, rack: 0, shelf: 0 };
    let beyond = *right.placement.iter().find(|cell| cell.rack == 6).unwrap();
    let next = Cell { shelf: 2, ..low };
    assert_eq!(fault(&|c| c.placement.truncate(18)), RackFault::Count { cells: 18, platters: 19 });
    assert_eq!(fault(&|c| c.racks = 6), RackFault::Outside(beyond));
    assert_eq!(fault(&|c| c.placement[1] = next), RackFault::Shared(low, next));
    assert_eq!(
        fault(&|c| c.refutation = Refutation::Floor),
        RackFault::Floor { racks: 7, floor: 6 }
    );
    let parts = |change: &dyn Fn(&mut Vec<Vec<Cell>>)| {
        fault(&|c| {
            if let Refutation::Parts(parts) = &mut c.refutation {
                change(parts);
            }
        })
    };
    assert_eq!(parts(&|p| p.resize(19, Vec::new())), RackFault::Parts { parts: 19, platters: 19 });
    assert_eq!(parts(&|p| p[0].retain(|&c| c != low)), RackFault::NotCovered(low));
    let far = Cell { shelf: 9, ..low };
    assert_eq!(parts(&|p| p[0].push(far)), RackFault::Part(low, far));
}

#[test]
fn impossible_models_are_refused() {
    let (set, model) = (SetShape::new(16, 3), BlastModel::silica());
    let wide = BlastModel { shapes: BlastModel::rectangles(6, 1).shapes, ..model.clone() };
    let error = minimum_storage_racks(set, &wide).unwrap_err();
    assert_eq!(error.to_string(), "racks of a blast zone: 6 is not in 1 to 5");
    let tall = BlastModel { shelves_per_panel: 17, ..model.clone() };
    assert!(matches!(tall.validate(), Err(LayoutError::ModelRange { value: 17, max: 16, .. })));
    let error = minimum_storage_racks(SetShape::new(400, 3), &model).unwrap_err();
    assert_eq!(error, LayoutError::NoRackCount { platters: 403, racks: 64 });
    let error = SetShape::new(3, 16).write_overhead().unwrap_err();
    assert_eq!(error, LayoutError::SetRange { information: 3, redundancy: 16 });
}

/// Returns the maximum number of cells of `left` of which no two share a zone, by trying all
/// subsets.
pub(super) fn brute_force(model: &BlastModel, left: &[Cell]) -> usize {
    let Some((&first, rest)) = left.split_first() else { return 0 };
    let free: Vec<Cell> = rest.iter().copied().filter(|&c| !share_zone(model, first, c)).collect();
    let with_first = 1 + brute_force(model, &free);
    if free.len() == rest.len() { with_first } else { with_first.max(brute_force(model, rest)) }
}

/// Generates small models with one or two shapes of up to six cells.
pub(super) fn small_models() -> impl Strategy<Value = BlastModel> {
    let shape = prop::collection::vec((0..3i32, 0..3i32), 1..6)
        .prop_map(|cells| ZoneShape::new(cells).unwrap());
    (prop::collection::btree_set(shape, 1..3), 1..3u16, 1..5u16).prop_map(
        |(shapes, panels, shelves_per_panel)| BlastModel {
            panels,
            shelves_per_panel,
            storage_racks_min: 1,
            shapes,
        },
    )
}

proptest! {
    #[test]
    fn the_search_agrees_with_brute_force(model in small_models(), racks in 1..4u16) {
        let grid = model.grid(racks);
        let cells: Vec<Cell> = (0..grid.cell_count()).filter_map(|n| grid.cell(n)).collect();
        let most = brute_force(&model, &cells);
        prop_assert_eq!(platters_max(racks, &model).unwrap(), most);
        let set = SetShape::new(u16::try_from(most).unwrap(), 1);
        let count = minimum_storage_racks(set, &model).unwrap();
        prop_assert!(count.racks > racks);
        let checked = verify_rack_count(set, &model, &count).unwrap();
        prop_assert_ne!(checked, Assurance::Floor);
    }
}

//! Platters of a set are kept apart in every library, libraries fill evenly, and impossible
//! placements are errors.

use expect_test::expect;
use fulgurite_units::SlotIndex;
use proptest::prelude::*;

use super::racks::{brute_force, small_models};
use crate::plan::{
    BlastModel, Cell, ErrorKind, FleetSlot, LayoutError, LibraryIndex, LibraryState, Violation,
    ZoneState, audit_fleet, choose_fleet, choose_zones, share_zone,
};

/// Libraries that are filled set by set.
struct Fleet {
    model: BlastModel,
    racks: u16,
    libraries: Vec<Vec<ZoneState>>,
}

impl Fleet {
    fn new(model: BlastModel, libraries: usize, racks: u16, slots: u32) -> Self {
        let zones = model.grid(racks).cell_count();
        let empty = |zone| ZoneState {
            zone,
            total: slots,
            free: slots,
            next: Some(SlotIndex::new(zone * slots)),
            holds_member: false,
        };
        let library: Vec<ZoneState> = (0..zones).map(empty).collect();
        Self { model, racks, libraries: vec![library; libraries] }
    }

    fn states(&self) -> Vec<LibraryState<'_>> {
        let state = |zones| LibraryState { racks: self.racks, zones };
        self.libraries.iter().map(Vec::as_slice).map(state).collect()
    }

    /// Places one set and audits the result.
    fn place(&mut self, platters: usize) -> Result<(), LayoutError> {
        let slots = choose_fleet(&self.model, &self.states(), platters)?;
        assert_eq!(slots.len(), platters);
        assert_eq!(audit_fleet(&self.model, &self.states(), &slots), []);
        for slot in slots {
            let zone = &mut self.libraries[slot.library.get()][slot.zone as usize];
            zone.free -= 1;
            zone.next = (zone.free > 0).then(|| SlotIndex::new(slot.slot.get() + 1));
        }
        Ok(())
    }

    /// Returns the range of used slots over zones, the range over libraries, and the sum of used
    /// slots.
    fn balance(&self) -> (u32, u32, u32) {
        let used = |zone: &ZoneState| zone.total - zone.free;
        let range = |all: &[u32]| all.iter().max().unwrap() - all.iter().min().unwrap();
        let zones: Vec<Vec<u32>> =
            self.libraries.iter().map(|zones| zones.iter().map(used).collect()).collect();
        let sums: Vec<u32> = zones.iter().map(|zones| zones.iter().sum()).collect();
        let within = zones.iter().map(|zones| range(zones)).max().unwrap();
        (within, range(&sums), sums.iter().sum())
    }

    /// Fills until no set fits. Returns the used share in percent, and the largest range over zones
    /// on the way.
    fn fill(&mut self, platters: usize) -> (u32, u32) {
        let mut widest = 0;
        while self.place(platters).is_ok() {
            widest = widest.max(self.balance().0);
        }
        let slots: u32 = self.libraries.iter().flatten().map(|zone| zone.total).sum();
        (self.balance().2 * 100 / slots, widest)
    }
}

#[test]
fn a_fleet_fills_evenly_to_the_last_set() {
    // At least as many libraries as platters: each gets at most one platter of a set.
    let mut fleet = Fleet::new(BlastModel::silica(), 24, 7, 3);
    let slots = 24 * 140 * 3;
    for placed in 1..=slots / 19 {
        fleet.place(19).unwrap();
        let (zones, libraries, used) = fleet.balance();
        assert!(zones <= 1, "zones of a library differ by {zones}");
        assert!(libraries <= 1, "libraries differ by {libraries}");
        assert_eq!(used, placed * 19);
    }
    let error = fleet.place(19).unwrap_err();
    let left = usize::try_from(slots % 19).unwrap();
    let missing = 19 - left;
    assert_eq!(
        error,
        LayoutError::TooFewPlaces { platters: 19, places: left, libraries: left, missing }
    );
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[test]
fn one_library_without_neighbors_fills_evenly() {
    let mut fleet = Fleet::new(BlastModel::one_cell(), 1, 7, 10);
    for _ in 0..140 * 10 / 19 {
        fleet.place(19).unwrap();
        assert!(fleet.balance().0 <= 1);
    }
    assert_eq!(fleet.balance().2, 140 * 10 / 19 * 19);
}

#[test]
fn fill_level_of_small_deployments() {
    let mut report = String::new();
    for (libraries, racks) in [(1, 7), (1, 8), (1, 9), (1, 10), (2, 7)] {
        let mut fleet = Fleet::new(BlastModel::silica(), libraries, racks, 8);
        let (percent, widest) = fleet.fill(19);
        report += &format!("{libraries} x {racks} racks: {percent} %, zones differ by {widest}\n");
    }
    expect![[r#"
        1 x 7 racks: 50 %, zones differ by 8
        1 x 8 racks: 78 %, zones differ by 8
        1 x 9 racks: 92 %, zones differ by 3
        1 x 10 racks: 93 %, zones differ by 3
        2 x 7 racks: 96 %, zones differ by 2
    "#]]
    .assert_eq(&report);
}

/// Returns a library with the drawn zone states.
fn library(grid_zones: u32, drawn: &[(u32, u32, bool)]) -> Vec<ZoneState> {
    let state = |(zone, &(total, free, taken)): (u32, &(u32, u32, bool))| {
        let free = free.min(total);
        let next = (free > 0).then(|| SlotIndex::new(zone * 10 + total - free));
        ZoneState { zone, total, free, next, holds_member: taken }
    };
    (0..grid_zones).zip(drawn).map(state).collect()
}

/// Returns the cells that could take a platter in addition to those taken.
fn open_cells(model: &BlastModel, library: &LibraryState<'_>) -> Vec<Cell> {
    let grid = model.grid(library.racks);
    let cell = |zone: &ZoneState| grid.cell(zone.zone).unwrap();
    let taken: Vec<Cell> =
        library.zones.iter().filter(|zone| zone.holds_member).map(cell).collect();
    let open = library.zones.iter().filter(|zone| !zone.holds_member && zone.free > 0).map(cell);
    open.filter(|&a| taken.iter().all(|&b| !share_zone(model, a, b))).collect()
}

fn zones() -> impl Strategy<Value = Vec<(u32, u32, bool)>> {
    // Few zones are taken: two that share a blast zone are left as they are.
    prop::collection::vec((1u32..4, 0u32..4, prop::bool::weighted(0.03)), 24)
}

proptest! {
    #[test]
    fn plans_pass_the_audit_and_refusals_are_correct(
        model in small_models(),
        drawn in prop::collection::vec((1..4u16, zones()), 0..4),
        platters in 0..12usize,
    ) {
        let zones: Vec<Vec<ZoneState>> = drawn
            .iter()
            .map(|(racks, zones)| library(model.grid(*racks).cell_count(), zones))
            .collect();
        let libraries: Vec<LibraryState<'_>> = drawn
            .iter()
            .zip(&zones)
            .map(|(&(racks, _), zones)| LibraryState { racks, zones })
            .collect();
        let earlier = audit_fleet(&model, &libraries, &[]);
        let most: usize =
            libraries.iter().map(|l| brute_force(&model, &open_cells(&model, l))).sum();
        match choose_fleet(&model, &libraries, platters) {
            Ok(slots) => {
                prop_assert_eq!(slots.len(), platters);
                prop_assert_eq!(audit_fleet(&model, &libraries, &slots), earlier);
            }
            Err(LayoutError::TooFewPlaces { platters: all, places, missing, .. }) => {
                prop_assert!(most < platters);
                prop_assert_eq!(all, platters);
                prop_assert!(places >= most && places + missing == platters);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn fleet_of_one_single_cell_library_matches_choose_zones(
        drawn in zones(),
        platters in 0..24usize,
    ) {
        let model = BlastModel { panels: 2, shelves_per_panel: 4, ..BlastModel::one_cell() };
        let zones = library(24, &drawn);
        let states = [LibraryState { racks: 3, zones: &zones }];
        let fleet = choose_fleet(&model, &states, platters);
        let slots = fleet.map(|slots| slots.iter().map(|slot| slot.slot).collect::<Vec<_>>());
        prop_assert_eq!(slots.ok(), choose_zones(&zones, platters).ok());
    }
}

#[test]
fn audit_finds_every_kind_of_fault() {
    let fleet = Fleet::new(BlastModel::silica(), 2, 7, 1);
    let slot = |library, zone: u32| FleetSlot {
        library: LibraryIndex::new(library),
        zone,
        slot: SlotIndex::new(zone),
    };
    let found = |slots: &[FleetSlot]| audit_fleet(&fleet.model, &fleet.states(), slots);
    let cell = |shelf| Cell { panel: 0, rack: 0, shelf };
    let (here, there) = (LibraryIndex::new(0), LibraryIndex::new(1));
    assert_eq!(found(&[slot(0, 0), slot(1, 1)]), []);
    assert_eq!(found(&[slot(2, 0)]), [Violation::NoSuchZone(slot(2, 0))]);
    assert_eq!(found(&[slot(1, 140)]), [Violation::NoSuchZone(slot(1, 140))]);
    let other = FleetSlot { slot: SlotIndex::new(7), ..slot(0, 0) };
    assert_eq!(found(&[other]), [Violation::NotFree(other)]);
    assert_eq!(
        found(&[slot(0, 0), slot(0, 2), slot(1, 0)]),
        [Violation::Shared(here, cell(0), cell(2))]
    );
    assert_eq!(found(&[slot(0, 0), slot(0, 3)]), [Violation::Unbalanced { from: here, to: there }]);
}

#[test]
fn impossible_fleets_are_refused() {
    let mut fleet = Fleet::new(BlastModel::silica(), 1, 6, 1);
    let error = choose_fleet(&fleet.model, &fleet.states(), 19).unwrap_err();
    assert_eq!(
        error.to_string(),
        "19 platters need a place each, no two in one blast zone; 1 libraries with room have 16 \
         such places, 3 too few"
    );
    assert_eq!(choose_fleet(&fleet.model, &[], 1).unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(choose_fleet(&fleet.model, &[], 0), Ok(vec![]));
    fleet.libraries[0][5].zone = 4;
    let error = choose_fleet(&fleet.model, &fleet.states(), 1).unwrap_err();
    let library = LibraryIndex::new(0);
    assert_eq!(error, LayoutError::BadZone { library, zone: 4, zones: 120 });
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

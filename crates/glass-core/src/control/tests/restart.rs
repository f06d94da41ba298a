//! A controller that restarts in mid-motion goes on from where the machines are.

use expect_test::expect;
use fulgurite_units::SlotIndex;

use super::swarm::{Run, set_up_run};
use super::twin::{Twin, platter_id};
use crate::control::{
    DriveSlot, Inventory, Library, LibraryShape, LoosePlatter, Movement, Place, Policy,
    RailPosition, ShelfIndex,
};

fn restart_everywhere(mut twin: Twin, every: u64) {
    loop {
        for _ in 0..every {
            if !twin.step() {
                return;
            }
        }
        if !twin.world.broken().is_empty() {
            // A flat battery: an inventory records no broken machines.
            continue;
        }
        let mut cut = twin.clone();
        cut.restart();
        cut.run_to_rest();
    }
}

#[test]
fn run_resumes_after_any_event() {
    let shape = LibraryShape { spare_slots_per_shelf: 2, ..LibraryShape::small() };
    let mut twin = Twin::new(&shape, 1);
    for number in 0..6 {
        let at = 5_000 * u64::from(number);
        twin.read(at, u64::from(number), number % 4, 700 * (number % 4), number);
    }
    twin.verify(0, 100, 50, 1_234, 120);
    twin.verify(10_000, 101, 51, 4_321, 40);
    restart_everywhere(twin, 1);
}

#[test]
fn random_runs_resume() {
    for seed in 0..30 {
        let batteries = seed % 3 == 0;
        let twin = set_up_run(Run { seed, instant: false, failures_per_mille: 0, batteries });
        if twin.library.policy().movement != Movement::NoShuttles {
            restart_everywhere(twin, 61);
        }
    }
}

#[test]
fn platters_return_home_after_restart_without_requests() {
    let mut twin = Twin::new(&LibraryShape::small(), 3);
    twin.read(0, 1, 7, 1_234, 0);
    while twin.world.storage.len() == 1 {
        twin.step();
    }
    twin.pending.clear();
    twin.restart();
    twin.run_to_rest();
}

#[test]
fn inventory_round_trips() {
    let mut twin = Twin::new(&LibraryShape::small(), 3);
    twin.read(0, 1, 7, 1_234, 0);
    twin.run_to_rest();
    let inventory = twin.library.inventory();
    let shape = LibraryShape::small();
    let again = Library::resume(&shape, Policy::fulgurite(), &inventory).unwrap();
    assert_eq!(again.inventory(), inventory);
    assert!(inventory.platters.is_empty(), "every platter is at home");
}

#[test]
fn impossible_inventory_is_refused() {
    let shape = LibraryShape { spare_slots_per_shelf: 1, ..LibraryShape::small() };
    let good = Library::new(&shape).unwrap().inventory();
    let loose = |number: u32, home: Option<u32>, place: Place| LoosePlatter {
        platter: platter_id(number),
        home: home.map(SlotIndex::new),
        place,
        mounted: false,
    };
    let shuttle = |index| Place::Shuttle(fulgurite_units::ShuttleIndex::new(index));
    let drive = |index, slot| Place::Drive(fulgurite_units::DriveIndex::new(index), slot);
    let wrong: [(&str, Vec<LoosePlatter>); 10] = [
        ("twice", vec![loose(1, None, shuttle(0)), loose(1, None, shuttle(1))]),
        ("one place", vec![loose(1, None, shuttle(0)), loose(2, None, shuttle(0))]),
        ("one home", vec![loose(1, Some(5), shuttle(0)), loose(2, Some(5), shuttle(1))]),
        ("no shuttle", vec![loose(1, None, shuttle(4))]),
        ("no drive", vec![loose(1, None, drive(4, DriveSlot::Second))]),
        ("new among customers", vec![loose(1, None, drive(0, DriveSlot::First))]),
        ("no spare", vec![loose(1, Some(5), Place::Storage(SlotIndex::new(6)))]),
        ("a spare home", vec![loose(1, Some(99), shuttle(0))]),
        ("no slot", vec![loose(1, Some(7_000), shuttle(0))]),
        ("ejected", vec![loose(1, None, Place::EjectBay(super::twin::panel(0)))]),
    ];
    let mut reasons = String::new();
    let mut refuse = |case: &str, inventory: &Inventory| {
        let error = Library::resume(&shape, Policy::fulgurite(), inventory).unwrap_err();
        let text = (1..4).fold(error.to_string(), |text, number| {
            text.replace(&platter_id(number).to_string(), &format!("P{number}"))
        });
        reasons += &format!("{case}: {:?}: {text}\n", error.kind());
    };
    for (case, platters) in wrong {
        refuse(case, &Inventory { platters, ..good.clone() });
    }
    let mut few = good.clone();
    few.shuttles.pop();
    refuse("a shuttle less", &few);
    let mut meeting = good.clone();
    meeting.shuttles[1] = meeting.shuttles[0];
    refuse("in each other", &meeting);
    let mut outside = good.clone();
    outside.shuttles[1].rail = RailPosition::new(99_000_000);
    refuse("beyond the rails", &outside);
    let mut above = good;
    above.shuttles[1].shelf = ShelfIndex::new(10);
    refuse("above the shelves", &above);
    expect![[r#"
        twice: Invalid: the inventory has platter P1 in two places
        one place: Invalid: the inventory has platter P2 in the place of platter P1
        one home: Conflict: slot 5 belongs to platter P1, not to P2
        no shuttle: NotFound: the inventory has platter P1 in an impossible place
        no drive: NotFound: the inventory has platter P1 in an impossible place
        new among customers: NotFound: the inventory has platter P1 in an impossible place
        no spare: NotFound: the inventory has platter P1 in an impossible place
        a spare home: Invalid: slot 99 is a spare slot and cannot be a platter's home
        no slot: NotFound: there is no slot 7000; the library has 7000
        ejected: NotFound: the inventory has platter P1 in an impossible place
        a shuttle less: Invalid: the inventory has 3 shuttles, but the library has 4
        in each other: Invalid: the inventory has shuttle 1 in the place of another
        beyond the rails: Invalid: the inventory has shuttle 1 outside its panel
        above the shelves: Invalid: the inventory has shuttle 1 outside its panel
    "#]]
    .assert_eq(&reasons);
}

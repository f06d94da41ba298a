//! Tests Pelican's groups, those of other racks, and impossible racks.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::shape::{Kind, Shape};
use crate::{Assignment, Error, GroupId, PlaceId, check, presets, solve};

/// The closed form: `h = x / 3`, `a = x % 3`, `q = (d / 2) % 2`, `i = 2 (d / 4) + d % 2`,
/// `j = (z - i - 4 a) mod 12`; class `2 h + q`, group `12 class + j`.
fn closed_form(x: u32, d: u32, z: u32) -> (u32, u32) {
    let (h, a, q) = (x / 3, x % 3, d / 2 % 2);
    let i = 2 * (d / 4) + d % 2;
    let j = (z + 24 - i - 4 * a) % 12;
    (2 * h + q, 12 * (2 * h + q) + j)
}

fn solved(name: &str) -> (Shape, Assignment) {
    let shape = presets::shape(name).unwrap();
    let assignment = solve(&shape).unwrap();
    (shape, assignment)
}

#[test]
fn pelican_groups_match_the_closed_form() {
    let (shape, assignment) = solved("pelican");
    for place in shape.places() {
        let [x, d, z] = shape.coordinates(place) else { panic!("three axes") };
        let group = assignment.slot(place).group;
        let class = assignment.class_of(group);
        assert_eq!((class.get(), group.get()), closed_form(*x, *d, *z), "place {x} {d} {z}");
    }
}

#[test]
fn pelican_assignment_is_proved() {
    let (shape, assignment) = solved("pelican");
    let proof = check(&shape, &assignment).unwrap();
    assert_eq!((proof.places, proof.groups, proof.classes), (1152, 48, 4));
    assert_eq!((proof.group_size, proof.spinning_most), ((24, 24), 96));
    let pairs = (proof.colliding_pairs, proof.disjoint_pairs, proof.partial_pairs);
    assert_eq!(pairs, (264, 864, 0));
    assert_eq!((proof.states, proof.is_enumerated), (20_736, true));
    let most: Vec<_> =
        proof.domains.iter().map(|domain| (domain.name.as_str(), domain.most)).collect();
    assert_eq!(most, [("power", 2), ("cooling", 1), ("vibration", 1)]);
    assert!(proof.domains.iter().all(|domain| domain.most_in_group == 1));
    let counts: Vec<_> = proof.domains.iter().map(|domain| domain.count).collect();
    assert_eq!(counts, [72, 96, 576]);
    let units: Vec<_> =
        proof.units.iter().map(|unit| (unit.name.as_str(), unit.in_group)).collect();
    assert_eq!(units, [("tray", (1, 1)), ("chassis", (4, 4)), ("server", (24, 24))]);
}

#[test]
fn pelican_groups_are_spread_evenly() {
    let (shape, assignment) = solved("pelican");
    for group in assignment.groups() {
        let (mut heights, mut slices) = (BTreeMap::new(), BTreeMap::new());
        for place in assignment.places(group) {
            let [x, _, z] = shape.coordinates(*place) else { panic!("three axes") };
            *heights.entry(*z).or_insert(0) += 1;
            *slices.entry(*x).or_insert(0) += 1;
        }
        assert_eq!(heights.values().collect::<BTreeSet<_>>(), BTreeSet::from([&2]));
        assert_eq!(slices.values().collect::<BTreeSet<_>>(), BTreeSet::from([&8]));
        assert_eq!((heights.len(), slices.len()), (12, 3));
        let sets: Vec<usize> = assignment.sets(group).iter().map(Vec::len).collect();
        assert_eq!(sets, [4; 6]);
    }
}

/// Trays in use over all states: from 48, each with two spinning disks, to all 72.
#[test]
fn pelican_tray_use_matches_the_calculation() {
    let (shape, assignment) = solved("pelican");
    let trays = &shape.units()[0];
    let mut in_use = BTreeSet::new();
    let halves = [[0, 12], [24, 36]];
    for [one, other] in halves {
        for (a, b) in (0..12).flat_map(|a| (0..12).map(move |b| (one + a, other + b))) {
            let places = |group| assignment.places(GroupId::new(group)).iter();
            let used: BTreeSet<u32> =
                places(a).chain(places(b)).map(|place| trays.index_of(*place)).collect();
            in_use.insert(used.len());
        }
    }
    // Halves choose freely, so the rack uses twice as many.
    assert_eq!((in_use.first(), in_use.last()), (Some(&24), Some(&36)));
}

#[test]
fn smaller_presets_are_proved() {
    let (shape, assignment) = solved("laptop");
    let proof = check(&shape, &assignment).unwrap();
    assert_eq!((proof.places, proof.groups, proof.classes), (48, 6, 2));
    assert_eq!((proof.spinning_most, proof.partial_pairs), (16, 0));
    assert_eq!(proof.units[1].in_group, (2, 2), "two disks of a group in each chassis");
    let (shape, assignment) = solved("shelf");
    let proof = check(&shape, &assignment).unwrap();
    assert_eq!((proof.places, proof.groups, proof.classes), (12, 3, 1));
    assert_eq!((proof.spinning_most, proof.colliding_pairs), (4, 3));
}

#[test]
fn shape_round_trips_through_toml() {
    for name in presets::names() {
        let shape = presets::shape(name).unwrap();
        assert_eq!(Shape::parse(&shape.to_toml()).unwrap(), shape);
    }
}

#[test]
fn assignment_round_trips_through_its_table() {
    let (shape, assignment) = solved("laptop");
    let again = Assignment::from_table(&shape, &assignment.to_table()).unwrap();
    assert_eq!(again, assignment);
}

/// Exchanging two places of different groups is always detected.
#[test]
fn wrong_assignment_is_detected() {
    let (shape, assignment) = solved("pelican");
    let mut noticed = 0;
    for other in [1, 12, 14, 145, 600, 1151] {
        let mut table = assignment.to_table();
        table.group_of.swap(0, other);
        let swapped = Assignment::from_table(&shape, &table).unwrap();
        let is_same = swapped == assignment;
        let refused = check(&shape, &swapped);
        assert_eq!(refused.is_err(), !is_same, "0 and {other}");
        noticed += usize::from(!is_same);
    }
    assert_eq!(noticed, 6);
}

fn shelf(change: impl Fn(String) -> String) -> Result<Assignment, Error> {
    solve(&Shape::parse(&change(presets::text("shelf").unwrap().to_owned()))?)
}

#[test]
fn impossible_racks_report_the_reason() {
    let message = |change: &dyn Fn(String) -> String| shelf(change).unwrap_err().to_string();
    assert_eq!(
        message(&|text| text.replace("capacity = 4", "capacity = 3")),
        "power lets 3 disks spin at once, but a group has 4; make groups smaller or the capacity \
         larger"
    );
    assert_eq!(
        message(&|text| text.replace("size = 12", "size = 13")),
        "13 places do not divide into groups of 4; change the size of groups or leave places out"
    );
    assert_eq!(
        message(&|text| text.replace("size = 4", "size = 3")),
        "groups.size is 3, but must be from 4 to 64"
    );
    assert_eq!(
        message(&|text| text.replace("key = [\"bay\"]", "key = [\"bey\"]")),
        "\"bey\" of disk is not a key; write the name of an axis, if need be with \"/ n\" or \
         \"% n\", such as \"d/2\""
    );
    assert_eq!(
        message(&|text| text.replace("spread = \"disk\"", "spread = \"drive\"")),
        "groups.spread names the failure unit \"drive\", which the shape does not have"
    );
    // Two fans with six disks each, of which one may spin.
    let fans = "\n[[domain]]\nname = \"fan\"\nkey = [\"bay/6\"]\ncapacity = 1\nkind = \"hard\"\n";
    assert_eq!(
        message(&|text| text + fans),
        "fan lets 2 disks spin at once, but a group has 4; make groups smaller or the capacity \
         larger"
    );
}

/// A rack without any regularity: missing places, power and air domains that cross.
#[test]
fn irregular_rack_is_solved_by_search() {
    let text = presets::text("shelf").unwrap();
    let places =
        (0..30).filter(|at| ![3, 11].contains(at)).map(|at| format!("[{}, {}]", at / 6, at % 6));
    let places = places.collect::<Vec<_>>().join(", ");
    let grid = "axes = [{ name = \"x\", size = 5 }, { name = \"y\", size = 6 }]";
    let air =
        "[[domain]]\nname = \"air\"\nkey = [\"y\"]\ncapacity = 1\nkind = \"hard\"\n\n[[unit]]";
    let text = text
        .replace("axes = [{ name = \"bay\", size = 12 }]", &format!("{grid}\nplaces = [{places}]"))
        .replace("key = []\ncapacity = 4", "key = [\"x\"]\ncapacity = 1")
        .replace("[[unit]]", air)
        .replace("key = [\"bay\"]", "key = [\"x\", \"y\"]");
    let shape = Shape::parse(&text).unwrap();
    let assignment = solve(&shape).unwrap();
    let proof = check(&shape, &assignment).unwrap();
    assert_eq!((proof.places, proof.groups, proof.classes), (28, 7, 1));
}

#[test]
fn soft_domains_are_exceeded_when_necessary() {
    let text = presets::text("shelf").unwrap();
    let pairs =
        "\n[[domain]]\nname = \"pair\"\nkey = [\"bay/12\"]\ncapacity = 1\nkind = \"soft\"\n";
    let shape = Shape::parse(&(text.to_owned() + pairs)).unwrap();
    let proof = check(&shape, &solve(&shape).unwrap()).unwrap();
    assert_eq!((proof.domains[1].kind, proof.domains[1].most), (Kind::Soft, 4));
}

/// A grid of any size with power along one side and air along the other.
fn any_grid() -> impl Strategy<Value = (Shape, u32)> {
    (1u32..5, 1u32..5, 1u32..5, 1u32..4, 1u32..4, 1u32..9).prop_filter_map(
        "places divide into groups",
        |(x, y, z, power, air, size)| {
            let text = format!(
                "name = \"any\"\naxes = [{{ name = \"x\", size = {x} }}, \
                 {{ name = \"y\", size = {y} }}, {{ name = \"z\", size = {z} }}]\n\
                 [groups]\nsize = {size}\nspread = \"level\"\n[code]\ndata = 1\nredundancy = 0\n\
                 [watts]\nstandby = 1.0\nspinning_up = 20.0\nactive = 6.0\n\
                 [pace]\nswitch = \"1s\"\nbytes_per_second = \"1MiB\"\n\
                 [[domain]]\nname = \"power\"\nkey = [\"x\", \"z\"]\ncapacity = {power}\n\
                 kind = \"hard\"\n[[domain]]\nname = \"air\"\nkey = [\"x\", \"y\"]\n\
                 capacity = {air}\nkind = \"hard\"\n[[unit]]\nname = \"level\"\nkey = [\"z\"]\n"
            );
            let is_whole = (x * y * z).is_multiple_of(size);
            is_whole.then(|| (Shape::parse(&text).unwrap(), size))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A solution holds in any legal state, checked by a count of its own here.
    #[test]
    fn every_solution_is_safe(
        (shape, size) in any_grid(),
        picks in prop::collection::vec(0usize..64, 64),
    ) {
        let Ok(assignment) = solve(&shape) else { return Ok(()) };
        let mut spinning: Vec<PlaceId> = Vec::new();
        for class in assignment.classes() {
            let groups = assignment.groups_of(class);
            let group = groups[picks[class.as_usize() % 64] % groups.len()];
            prop_assert_eq!(assignment.places(group).len(), size as usize);
            spinning.extend(assignment.places(group));
        }
        for domain in shape.domains() {
            let mut used = BTreeMap::new();
            for place in &spinning {
                let used = used.entry(domain.shared.index_of(*place)).or_insert(0);
                *used += 1;
                prop_assert!(*used <= domain.capacity, "{} of {}", used, domain.shared.name);
            }
        }
    }
}

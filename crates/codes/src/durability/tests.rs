//! Durability against figures computed elsewhere, and formulas against simulation.

use proptest::prelude::*;

use super::simulate::{Estimate, failure_probability};
use super::special::{ln_choose, ln_gamma};
use super::{
    LargeGroup, Overhead, Probability, SectorLoss, Track, binomial_tail, smallest_group,
    smallest_track,
};
use crate::CodeError;

fn track(information: u64, redundancy: u64) -> Track {
    Track { information, redundancy }
}

fn independent(mean: f64) -> SectorLoss {
    SectorLoss::new(mean, 0.0).expect("a chance")
}

/// splitmix64.
fn random(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[test]
fn gamma_of_integers_is_the_factorial() {
    let mut ln_factorial = 0.0;
    for n in 1..2000u32 {
        let (n, error) = (f64::from(n), ln_gamma(f64::from(n)) - ln_factorial);
        assert!(error.abs() <= 1e-14 * ln_factorial.max(1.0), "{n}: {error}");
        ln_factorial += n.ln();
    }
    assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-14);
    assert!((ln_choose(60, 30) - 118_264_581_564_861_424f64.ln()).abs() < 1e-12);
}

/// Undecodable tracks with independent sectors, to two digits (computed by another program).
#[test]
fn tracks_match_the_table() {
    let rates = [1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 1e-4];
    let table: [(u64, u64, [&str; 6]); 12] = [
        (50, 4, ["2.1e-4", "8.1e-6", "9.3e-8", "3.0e-9", "9.7e-11", "3.1e-14"]),
        (100, 8, ["1.6e-6", "4.9e-9", "1.7e-12", "3.6e-15", "7.3e-18", "3.9e-24"]),
        (100, 10, ["1.7e-8", "1.3e-11", "7.3e-16", "3.9e-19", "2.0e-22", "4.2e-30"]),
        (100, 12, ["1.4e-10", "2.6e-14", "2.3e-19", "3.1e-23", "4.0e-27", "3.4e-36"]),
        (100, 13, ["1.1e-11", "1.1e-15", "3.7e-21", "2.5e-25", "1.6e-29", "2.7e-39"]),
        (125, 10, ["1.4e-7", "1.2e-10", "7.3e-15", "4.0e-18", "2.1e-21", "4.4e-29"]),
        (150, 12, ["1.3e-8", "3.2e-12", "3.2e-17", "4.5e-21", "5.9e-25", "5.1e-34"]),
        (175, 14, ["1.2e-9", "8.2e-14", "1.4e-19", "5.2e-24", "1.7e-28", "6.0e-39"]),
        (188, 15, ["3.7e-10", "1.4e-14", "1.0e-20", "1.8e-25", "3.0e-30", "2.1e-41"]),
        (200, 16, ["1.1e-10", "2.1e-15", "6.4e-22", "5.9e-27", "5.0e-32", "7.0e-44"]),
        (225, 18, ["1.0e-11", "5.6e-17", "2.9e-24", "6.8e-30", "1.5e-35", "8.3e-49"]),
        (300, 24, ["8.1e-15", "1.0e-21", "2.7e-31", "1.1e-38", "3.7e-46", "1.4e-63"]),
    ];
    for (information, redundancy, expected) in table {
        let found = rates.map(|rate| {
            track(information, redundancy).failure_probability(independent(rate)).to_string()
        });
        assert_eq!(found, expected, "{information}+{redundancy}");
    }
}

#[test]
fn variation_between_tracks_matches_the_table() {
    let tracks = [track(100, 8), track(188, 15), track(200, 16), track(250, 20)];
    for (variation, expected) in [
        (0.1, ["5.0e-15", "5.5e-25", "2.1e-26", "5.4e-32"]),
        (0.5, ["8.9e-13", "4.3e-19", "6.3e-20", "5.4e-23"]),
        (1.0, ["5.9e-10", "2.7e-13", "1.1e-13", "4.2e-15"]),
        (2.0, ["1.1e-6", "1.0e-7", "7.9e-8", "3.5e-8"]),
    ] {
        let loss = SectorLoss::new(1e-3, variation).unwrap();
        assert_eq!(tracks.map(|track| track.failure_probability(loss).to_string()), expected);
    }
}

#[test]
fn wide_codewords_match_the_table() {
    for (information, redundancy, rate, expected) in [
        (20_000, 400, 5e-3, "8e-112"),
        (20_000, 400, 1e-2, "1e-34"),
        (20_000, 400, 1.5e-2, "1e-7"),
        (20_000, 400, 2e-2, "6e-1"),
        (10_000, 200, 1e-2, "2e-18"),
        (10_000, 200, 1.5e-2, "1e-4"),
        (32_768, 1024, 1e-2, "4e-201"),
        (32_768, 1024, 2e-2, "1e-36"),
    ] {
        let found = track(information, redundancy).failure_probability(independent(rate));
        assert_eq!(format!("{found:.0}"), expected, "{information}+{redundancy} at {rate}");
    }
}

#[test]
fn platter_sets_match_the_table() {
    for (information, expected) in [
        (12, ["1.2e-5", "1.4e-9", "1.4e-13", "1.4e-21"]),
        (16, ["3.4e-5", "3.8e-9", "3.9e-13", "3.9e-21"]),
        (24, ["1.5e-4", "1.7e-8", "1.8e-12", "1.8e-20"]),
    ] {
        let found = [1e-2, 1e-3, 1e-4, 1e-6].map(|u| binomial_tail(information + 3, u, 3).unwrap());
        assert_eq!(found.map(|chance| chance.to_string()), expected, "{information}+3");
    }
}

/// Silica section 6: 8 % and a sector loss of 1e-3 give less than 1e-24. From which track size on
/// does that hold?
#[test]
fn published_claim_holds_from_188_sectors_on() {
    let (loss, target) = (independent(1e-3), Probability::from_ln(1e-24f64.ln()));
    let eight = |is_information_only| Overhead { redundancy: 8, per: 100, is_information_only };
    assert_eq!(smallest_track(eight(true), loss, target, 1000), Some(track(188, 15)));
    assert_eq!(smallest_track(eight(false), loss, target, 1000), Some(track(173, 15)));
    assert_eq!(smallest_track(eight(true), loss, target, 150), None);
    let two = Overhead { redundancy: 2, per: 100, is_information_only: true };
    let group = smallest_group(two, independent(1e-2), target, 65_535).unwrap();
    assert!(group.failure_probability(independent(1e-2)) < target);
    assert!(
        track(group.information - 50, group.redundancy - 1).failure_probability(independent(1e-2))
            >= target
    );
    assert_eq!(smallest_group(two, independent(2e-2), target, 65_535), None, "past the cliff");
}

/// Unknown sectors that 100 tracks of 200+16 leave to their group, decoded one after the other or
/// jointly.
#[test]
fn joint_decoding_leaves_less_to_the_group() {
    for (mean, expected) in [(3e-2, ["0.56", "0.048"]), (5e-2, ["81", "9.3"])] {
        let [alone, jointly] = track(200, 16).expected_unknowns(independent(mean));
        let digits = if mean < 0.04 { [2, 3] } else { [0, 1] };
        let found = [
            format!("{:.*}", digits[0], alone * 100.0),
            format!("{:.*}", digits[1], jointly * 100.0),
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn impossible_losses_are_refused() {
    for (mean, variation) in [
        (0.0, 0.0),
        (1.0, 0.0),
        (-0.1, 0.0),
        (f64::NAN, 0.0),
        (0.1, -1.0),
        (0.1, f64::NAN),
        (0.5, 1.0),
    ] {
        assert_eq!(
            SectorLoss::new(mean, variation),
            Err(CodeError::LossRate),
            "{mean} {variation}"
        );
    }
    assert_eq!(binomial_tail(10, 2.0, 1), Err(CodeError::LossRate));
}

#[test]
fn certain_and_impossible_outcomes() {
    let loss = independent(0.3);
    assert_eq!(loss.probability_above(10, 10), Probability::ZERO);
    let some = loss.probability_above(0, 10).value();
    assert!((some - (1.0 - 0.7f64.powi(10))).abs() < 1e-12);
    assert_eq!(Probability::ZERO.to_string(), "0");
    assert_eq!(Probability::from_ln(9.96e-5f64.ln()).to_string(), "1.0e-4");
}

/// Computes the probability directly, without logarithms.
fn by_enumeration(sectors: u64, rate: f64, limit: u64) -> f64 {
    let mut chances = vec![1.0];
    for _ in 0..sectors {
        let mut next = vec![0.0; chances.len() + 1];
        for (lost, chance) in chances.iter().enumerate() {
            next[lost] += chance * (1.0 - rate);
            next[lost + 1] += chance * rate;
        }
        chances = next;
    }
    chances.iter().enumerate().filter(|(lost, _)| *lost as u64 > limit).map(|(_, c)| c).sum()
}

proptest! {
    #[test]
    fn tails_match_sums_of_terms(sectors in 1u64..60, rate in 0.001f64..0.9, limit in 0u64..60) {
        let found = independent(rate).probability_above(limit, sectors).value();
        let expected = by_enumeration(sectors, rate, limit);
        prop_assert!((found - expected).abs() <= 1e-10 * expected + 1e-300, "{found} {expected}");
    }
}

fn assert_agrees(estimate: Estimate, chance: Probability) {
    let ratio = (estimate.chance.ln() - chance.ln()).exp();
    assert!(estimate.relative_error < 0.03, "{estimate:?}");
    // Four standard errors: a given seed fails by chance once in 16,000.
    assert!((ratio - 1.0).abs() < 4.0 * estimate.relative_error, "{estimate:?}, not {chance}");
}

#[test]
fn simulation_confirms_the_sums() {
    let mut random = random(1);
    for (track, mean, variation) in [
        (track(188, 15), 1e-3, 0.0),
        (track(200, 16), 1e-3, 0.0),
        (track(100, 8), 1e-3, 0.0),
        (track(200, 16), 1e-2, 0.0),
        (track(200, 16), 1e-3, 0.1),
        (track(200, 16), 1e-3, 0.5),
        (track(200, 16), 1e-3, 1.0),
        (track(188, 15), 1e-3, 2.0),
        (track(2000, 40), 1e-2, 0.0),
    ] {
        let loss = SectorLoss::new(mean, variation).unwrap();
        let estimate = failure_probability(track, loss, 20_000, &mut random);
        assert_agrees(estimate, track.failure_probability(loss));
    }
}

/// A small large group at a rate where failures are common enough without weights.
#[test]
fn simulation_confirms_the_large_group() {
    let group =
        LargeGroup { track: track(20, 3), information_tracks: 12, redundancy_tracks: 2, span: 20 };
    let loss = SectorLoss::new(0.15, 0.4).unwrap();
    let mut random = random(2);
    let mut bits = || (random() >> 11) as f64 / (1u64 << 53) as f64;
    let (mut failures, trials) = (0u32, 20_000u32);
    let [a, b] = loss.beta_parameters().unwrap();
    for _ in 0..trials {
        let mut unknown = 0;
        for _ in 0..14 {
            // Beta(a, b) with both parameters below 30: the a-th smallest of a + b - 1 uniform
            // numbers would need integers, so this uses rejection sampling under the mode.
            let mode = (a - 1.0) / (a + b - 2.0);
            let density = |p: f64| (a - 1.0) * p.ln() + (b - 1.0) * (-p).ln_1p();
            let rate = loop {
                let p = bits();
                if p > 0.0 && bits().ln() < density(p) - density(mode) {
                    break p;
                }
            };
            let lost: Vec<bool> = (0..23).map(|_| bits() < rate).collect();
            if lost.iter().filter(|lost| **lost).count() > 3 {
                unknown += lost[..20].iter().filter(|lost| **lost).count();
            }
        }
        failures += u32::from(unknown > 40);
    }
    let found = f64::from(failures) / f64::from(trials);
    let expected = group.failure_probability(loss).value();
    let deviation = (expected * (1.0 - expected) / f64::from(trials)).sqrt();
    assert!(failures > 100, "{failures} failures are too few to see");
    assert!((found - expected).abs() < 4.0 * deviation, "{found} where {expected} is expected");
}

//! Simulated failures are repeatable, and occur at the requested rates.

use fulgurite_platter::{Faults, SeededFaults};
use fulgurite_units::{LayerIndex, PlatterId, Ratio, Seed, TrackIndex};

fn count(faults: &SeededFaults, platter: u8) -> (u32, u32) {
    let platter = PlatterId::from_bytes([platter; 16]);
    let mut sectors = 0;
    let mut tracks = 0;
    for track in (0..1000).map(TrackIndex::new) {
        let failed =
            (0..200).filter(|&layer| faults.fails(platter, track, LayerIndex::new(layer))).count();
        sectors += u32::try_from(failed).unwrap();
        tracks += u32::from(failed == 200);
    }
    (sectors, tracks)
}

#[test]
fn fault_rates_are_met_and_reproducible() {
    let ratio = |value| Ratio::new(value).unwrap();
    let none = SeededFaults::new(Seed::new(1), Ratio::ZERO, Ratio::ZERO);
    assert_eq!(count(&none, 1), (0, 0));
    let all = SeededFaults::new(Seed::new(1), ratio(1.0), Ratio::ZERO);
    assert_eq!(count(&all, 1), (200_000, 1000));
    // 200,000 draws at 0.01: 2,000 expected, standard deviation 45.
    let sectors = SeededFaults::new(Seed::new(1), ratio(0.01), Ratio::ZERO);
    let (failed, tracks) = count(&sectors, 1);
    assert!((1775..=2225).contains(&failed), "{failed}");
    assert_eq!((tracks, count(&sectors, 1).0), (0, failed));
    assert_ne!(count(&sectors, 2).0, failed);
    // 1,000 draws at 0.1: 100 expected, standard deviation 9.5.
    let tracks = SeededFaults::new(Seed::new(1), Ratio::ZERO, ratio(0.1));
    let (failed, whole) = count(&tracks, 1);
    assert!((53..=147).contains(&whole), "{whole}");
    assert_eq!(failed, whole * 200);
}

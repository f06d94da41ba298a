//! Reading a platter detects redundancy that was wrong before it was written, and never reports
//! correct redundancy, whatever sectors are lost.

use fulgurite_platter::{NoFaults, SeededFaults, TrackBuffer, VerifyReport};
use fulgurite_units::{Ratio, Seed, TrackIndex};
use proptest::prelude::*;

use crate::support::{open, single_header, tiny, user_bytes, write};

const SECTOR: usize = 2176;
const TRACK: usize = 11 * SECTOR;

fn verify(file: &Vec<u8>) -> VerifyReport {
    open(file).unwrap().verify(&NoFaults, &mut TrackBuffer::new(), &mut |_, _| {}).unwrap()
}

/// Returns a platter of four information tracks: two groups, 3 + 1 and 1 + 1 tracks.
fn platter(seed: u64) -> Vec<u8> {
    let bytes = user_bytes(60_000, seed);
    write(&single_header(&tiny(), 60_000), &bytes, 9000)
}

#[test]
fn a_wrong_sector_with_a_right_checksum_is_found() {
    // Any layer of any coded track: information, track redundancy, group redundancy.
    for track in 1..=6 {
        for layer in 0..11 {
            let mut file = platter(1);
            let sector = &mut file[track * TRACK + layer * SECTOR..][..SECTOR];
            sector[500] ^= 4;
            let checksum = fulgurite_codes::sector_checksum(&sector[..SECTOR - 32]);
            sector[SECTOR - 32..].copy_from_slice(&checksum);
            let report = verify(&file);
            assert_eq!(report.failed_sectors, 0);
            let physical_track = TrackIndex::new(u32::try_from(track).unwrap());
            assert!(report.mismatched.contains(&physical_track), "track {track}, layer {layer}");
            assert!(!report.is_readable());
        }
    }
}

#[test]
fn a_redundancy_track_of_other_data_is_found() {
    let mut file = platter(1);
    // Track 4 is the redundancy of group 0; the one of another attempt is consistent in itself.
    file[4 * TRACK..5 * TRACK].copy_from_slice(&platter(2)[4 * TRACK..5 * TRACK]);
    let report = verify(&file);
    assert_eq!(report.mismatched, [TrackIndex::new(4)]);
}

proptest! {
    #[test]
    fn losses_are_no_mismatch(seed: u64, rate in 0u32..300) {
        let file = platter(seed);
        let reader = open(&file).unwrap();
        let rate = Ratio::new(f64::from(rate) / 1000.0).unwrap();
        let faults = SeededFaults::new(Seed::new(seed), rate, Ratio::ZERO);
        let report = reader.verify(&faults, &mut TrackBuffer::new(), &mut |_, _| {}).unwrap();
        prop_assert!(report.mismatched.is_empty());
        prop_assert_eq!(verify(&file).mismatched, []);
    }
}

//! Damage up to the design limit is restored; beyond it, the error names the level that failed;
//! wrong bytes are never returned.

use fulgurite_platter::{
    CodeLevel, ErrorKind, InformationTrack, NoFaults, PlatterError, PlatterReader, SeededFaults,
    TrackBuffer, TrackRole, Verification,
};
use fulgurite_units::{Ratio, Seed, TrackIndex};
use proptest::prelude::*;

use crate::support::{
    At, archive, open, platter_id, read_all, single_header, tiny, user_bytes, write,
};

/// Draws `count` different numbers below `bound`.
fn choose(bound: usize, count: usize, stream: &mut fulgurite_units::RandomStream) -> Vec<usize> {
    let mut all: Vec<usize> = (0..bound).collect();
    for i in 0..count {
        let left = (bound - i) as u64;
        all.swap(i, i + usize::try_from(stream.below(left)).unwrap());
    }
    all.truncate(count);
    all
}

fn layer(n: usize) -> u16 {
    u16::try_from(n).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn damage_up_to_the_limits_is_restored(seed: u64, size in 1usize..=98_304) {
        let geometry = tiny();
        let bytes = user_bytes(size, seed);
        let file = write(&single_header(&geometry, size as u64), &bytes, 3000);
        let reader = open(&file).unwrap();
        let mut stream = Seed::new(seed).child(b"damage").stream();
        let mut faults = At::default();
        let sectors = usize::from(geometry.track_sectors());
        for track in 0..reader.map().tracks() {
            for failed in choose(sectors, 3, &mut stream) {
                faults.0.insert((track, layer(failed)));
            }
        }
        // One whole track of each group, information or redundancy.
        for group in 0..reader.map().groups() {
            let members: Vec<u32> = (0..reader.map().tracks())
                .filter(|&t| match reader.map().role(TrackIndex::new(t)) {
                    Some(TrackRole::Information(track)) => reader.map().group_of(track) == group,
                    Some(TrackRole::Redundancy { group: of, .. }) => of == group,
                    _ => false,
                })
                .collect();
            let lost = members[usize::try_from(stream.below(members.len() as u64)).unwrap()];
            faults.0.extend((0..sectors).map(|l| (lost, layer(l))));
        }
        prop_assert_eq!(read_all(&reader, &faults).unwrap(), bytes);
        let report = reader.verify(&faults, &mut TrackBuffer::new(), &mut |_, _| {}).unwrap();
        prop_assert!(report.is_readable());
        prop_assert_eq!(report.worst_margin, 3 - 11);
    }

    #[test]
    fn one_flipped_bit_never_gives_wrong_bytes(
        seed: u64,
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let bytes = user_bytes(60_000, seed % 3);
        let mut file = write(&single_header(&tiny(), 60_000), &bytes, 8000);
        let at = at.index(file.len());
        file[at] ^= 1 << bit;
        let reader = open(&file).unwrap();
        prop_assert_eq!(read_all(&reader, &NoFaults).unwrap(), bytes);
    }

    #[test]
    fn heavy_noise_gives_the_bytes_or_an_error(seed: u64, flips in 1usize..400) {
        let bytes = user_bytes(60_000, 1);
        let mut file = write(&single_header(&tiny(), 60_000), &bytes, 8000);
        let mut stream = Seed::new(seed).stream();
        for _ in 0..flips {
            let at = usize::try_from(stream.below(file.len() as u64)).unwrap();
            file[at] ^= 1 << stream.below(8);
        }
        match open(&file).and_then(|reader| read_all(&reader, &NoFaults)) {
            Ok(read) => prop_assert_eq!(read, bytes),
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Corrupt, "{}", error),
        }
    }

    #[test]
    fn truncation_is_reported(seed: u64, keep in any::<prop::sample::Index>()) {
        let bytes = user_bytes(40_000, seed % 3);
        let file = write(&single_header(&tiny(), 40_000), &bytes, 8000);
        let found = keep.index(file.len());
        let cut = file[..found].to_vec();
        let error = open(&cut).unwrap_err();
        prop_assert_eq!(error.kind(), ErrorKind::Corrupt);
        if let PlatterError::Truncated { platter, expected, found: left } = error {
            prop_assert_eq!((platter, expected), (platter_id(0), file.len() as u64));
            prop_assert_eq!(left, found as u64);
        } else {
            // Too short even for the header's JSON.
            prop_assert!(found < 3 * 2176, "{}", error);
        }
    }

    #[test]
    fn faults_at_the_rates_of_the_paper_are_restored(seed: u64) {
        let bytes = user_bytes(98_304, 2);
        let file = write(&single_header(&tiny(), 98_304), &bytes, 8000);
        let rate = Ratio::new(0.001).unwrap();
        let faults = SeededFaults::new(Seed::new(seed), rate, Ratio::ZERO);
        let reader = PlatterReader::open(&file, None, &faults).unwrap();
        prop_assert_eq!(read_all(&reader, &faults).unwrap(), bytes);
    }
}

/// Fails the first `sectors` sectors of a track.
fn fail(faults: &mut At, track: u32, sectors: u16) {
    faults.0.extend((0..sectors).map(|layer| (track, layer)));
}

#[test]
fn each_level_repairs_what_the_one_below_cannot() {
    let bytes = user_bytes(98_304, 3);
    let file = write(&single_header(&tiny(), 98_304), &bytes, 98_304);
    let reader = open(&file).unwrap();
    let mut buffer = TrackBuffer::new();
    let track = InformationTrack::new(4);
    let physical_track = reader.map().physical(track).get();
    for (failed, level) in [
        (0, None),
        (3, Some(CodeLevel::Track)),
        (4, Some(CodeLevel::Group)),
        (11, Some(CodeLevel::Group)),
    ] {
        let mut faults = At::default();
        fail(&mut faults, physical_track, failed);
        let report = reader.read_track(track, &faults, &mut buffer).unwrap();
        assert_eq!((report.failed, report.repaired_by), (failed, level));
        assert_eq!(report.margin, 3 - i32::from(failed));
        let start = 4 * 16_384;
        assert_eq!(buffer.sectors().collect::<Vec<_>>().concat(), bytes[start..start + 16_384]);
    }
}

#[test]
fn two_lost_tracks_of_a_group_fail_with_the_level_named() {
    let bytes = user_bytes(98_304, 3);
    let file = write(&single_header(&tiny(), 98_304), &bytes, 98_304);
    let reader = open(&file).unwrap();
    let mut faults = At::default();
    // Tracks 1 and 2 share group 0; group 1 is intact.
    fail(&mut faults, 1, 11);
    fail(&mut faults, 2, 4);
    let mut buffer = TrackBuffer::new();
    let error = reader.read_track(InformationTrack::new(0), &faults, &mut buffer).unwrap_err();
    let PlatterError::Unreadable(unreadable) = &error else { panic!("{error}") };
    assert_eq!(unreadable.level, CodeLevel::Group);
    assert_eq!((unreadable.lost, unreadable.redundancy), (6, 3));
    assert_eq!(
        error.to_string(),
        "track 0 of platter 01010101-0101-0101-0101-010101010101 is unreadable: the large-group \
         code lost 6 sectors and can restore 3"
    );
    let report = reader.verify(&faults, &mut buffer, &mut |_, _| {}).unwrap();
    assert_eq!(report.unreadable, [InformationTrack::new(0), InformationTrack::new(1)]);
    assert!(!report.is_readable());
    assert_eq!(report.failed_sectors, 15);
    // A verification that pauses after every track, each time in another drive, gives the same
    // result.
    let mut resting = Verification::begin(&reader).unwrap();
    let mut done = Vec::new();
    while resting.step(&open(&file).unwrap(), &faults, &mut TrackBuffer::new()).unwrap() {
        done.push(resting.tracks_done());
    }
    let tracks = reader.map().tracks();
    // The last track counts as done only after the two lost ones were tried with their group.
    let expected: Vec<u32> = (1..tracks).chain([tracks - 1, tracks - 1, tracks]).collect();
    assert_eq!(done, expected);
    assert_eq!(resting.finish(&reader), report);
    // The third track of this group and the other group are not affected.
    assert!(reader.read_track(InformationTrack::new(2), &faults, &mut buffer).is_ok());
    assert!(reader.read_track(InformationTrack::new(3), &faults, &mut buffer).is_ok());
}

#[test]
fn intact_columns_are_not_decoded() {
    // Two tracks lose 4 sectors each, in different columns: each column can restore its own.
    let bytes = user_bytes(98_304, 3);
    let file = write(&single_header(&tiny(), 98_304), &bytes, 98_304);
    let reader = open(&file).unwrap();
    let mut faults = At::default();
    faults.0.extend([(1, 0), (1, 1), (1, 2), (1, 8)]);
    faults.0.extend([(2, 3), (2, 4), (2, 5), (2, 8)]);
    assert_eq!(read_all(&reader, &faults).unwrap(), bytes);
}

#[test]
fn the_header_survives_in_its_replicas() {
    let bytes = user_bytes(30_000, 5);
    let file = write(&single_header(&tiny(), 30_000), &bytes, 8000);
    let image = tiny().track_image_bytes();
    let last = file.len() - 1024 - image;
    let mut front_gone = file.clone();
    front_gone[..image].fill(0);
    assert_eq!(read_all(&open(&front_gone).unwrap(), &NoFaults).unwrap(), bytes);
    let mut back_gone = file.clone();
    back_gone[last..last + image].fill(0xFF);
    assert_eq!(read_all(&open(&back_gone).unwrap(), &NoFaults).unwrap(), bytes);
    let mut both_gone = front_gone.clone();
    both_gone[last..last + image].fill(0);
    assert!(matches!(open(&both_gone), Err(PlatterError::NotAPlatter)));
    // Pages may come from both replicas.
    let mut pages = file.clone();
    pages[..2176].fill(0);
    pages[8 * 2176..image].fill(0);
    pages[last + 2176..last + 2 * 2176].fill(0);
    assert_eq!(read_all(&open(&pages).unwrap(), &NoFaults).unwrap(), bytes);
}

#[test]
fn wrong_platters_are_identified() {
    let bytes = user_bytes(30_000, 5);
    let file = write(&single_header(&tiny(), 30_000), &bytes, 8000);
    let expect = |archive, platter| PlatterReader::open(&file, Some((archive, platter)), &NoFaults);
    assert!(expect(archive(), platter_id(0)).is_ok());
    let swapped = expect(archive(), platter_id(1)).unwrap_err();
    assert!(matches!(swapped, PlatterError::WrongPlatter { .. }));
    assert_eq!(swapped.kind(), ErrorKind::Conflict);
    let other_archive = fulgurite_units::ArchiveId::from_bytes([7; 16]);
    assert!(matches!(expect(other_archive, platter_id(0)), Err(PlatterError::WrongArchive { .. })));
    let mut longer = file.clone();
    longer.push(0);
    assert!(matches!(open(&longer), Err(PlatterError::Overlong { .. })));
    let mut unsealed = file.clone();
    let end = unsealed.len();
    unsealed[end - 1024..].fill(0);
    assert!(matches!(open(&unsealed), Err(PlatterError::Unsealed { .. })));
    // Three of the four copies of the final record may be damaged.
    let mut last_copy = file.clone();
    last_copy[end - 1024..end - 256].fill(0);
    assert_eq!(read_all(&open(&last_copy).unwrap(), &NoFaults).unwrap(), bytes);
    for nothing in [Vec::new(), vec![0; 10], vec![0; 1 << 20], user_bytes(1 << 20, 1)] {
        assert!(matches!(open(&nothing), Err(PlatterError::NotAPlatter)));
    }
    let mut later = file.clone();
    later[8] = 3;
    let checksum = fulgurite_codes::sector_checksum(&later[..2176 - 32]);
    later[2176 - 32..2176].copy_from_slice(&checksum);
    later.truncate(2176);
    let error = open(&later).unwrap_err();
    assert!(matches!(error, PlatterError::UnsupportedVersion { found: 3, known: 1 }), "{error}");
}

#[test]
fn sectors_in_the_wrong_place_count_as_lost() {
    let bytes = user_bytes(98_304, 9);
    let file = write(&single_header(&tiny(), 98_304), &bytes, 8000);
    let image = tiny().track_image_bytes();
    // Two sectors of track 1 are swapped, and one comes from another generation of the same
    // platter.
    let mut mixed = file.clone();
    mixed[image..image + 2176].copy_from_slice(&file[image + 2176..image + 2 * 2176]);
    mixed[image + 2176..image + 2 * 2176].copy_from_slice(&file[image..image + 2176]);
    let mut other = single_header(&tiny(), 98_304);
    other.generation = 1;
    let other = write(&other, &user_bytes(98_304, 10), 8000);
    mixed[image + 4 * 2176..image + 5 * 2176]
        .copy_from_slice(&other[image + 4 * 2176..image + 5 * 2176]);
    let reader = open(&mixed).unwrap();
    let report =
        reader.read_track(InformationTrack::new(0), &NoFaults, &mut TrackBuffer::new()).unwrap();
    assert_eq!(report.failed, 3);
    assert_eq!(read_all(&reader, &NoFaults).unwrap(), bytes);
}

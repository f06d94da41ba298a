//! Platters of a set restore each other.

use fulgurite_platter::{
    CodeLevel, InformationTrack, Member, NoFaults, PlatterError, PlatterReader, SetDecoder,
    SetReport, TrackBuffer,
};
use proptest::prelude::*;

use crate::support::{At, open, platter_id, read_all, tiny, user_bytes, write_set};

fn members<'a>(
    readers: &'a [Option<PlatterReader<&'a Vec<u8>>>],
    lost: &[usize],
) -> Vec<Member<'a, &'a Vec<u8>>> {
    readers
        .iter()
        .enumerate()
        .map(|(position, reader)| match reader {
            _ if lost.contains(&position) => Member::Lost,
            Some(reader) => Member::Platter(reader),
            None => Member::NotWritten,
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_two_platters_of_3_plus_2_are_recovered(
        seed: u64, sizes in prop::array::uniform3(0usize..60_000), short: bool,
        lost in prop::sample::subsequence(vec![0usize, 1, 2, 3, 4], 2),
    ) {
        let platters: Vec<Option<Vec<u8>>> = sizes
            .iter()
            .enumerate()
            .map(|(i, &size)| (!short || i < 2).then(|| user_bytes(size, seed ^ i as u64)))
            .collect();
        let files = write_set(&tiny(), &platters);
        let readers: Vec<_> = files.iter().map(|f| f.as_ref().map(|f| open(f).unwrap())).collect();
        let mut out = TrackBuffer::new();
        for &wanted in lost.iter().filter(|&&p| p < 3) {
            let Some(bytes) = &platters[wanted] else { continue };
            let mut decoder = SetDecoder::new(readers[3].as_ref().unwrap().header());
            let mut recovered = Vec::new();
            for track in 0..tiny().tracks_for(bytes.len() as u64) {
                let track = InformationTrack::new(track);
                decoder
                    .recover_track(track, &members(&readers, &lost), wanted, &NoFaults, &mut out)
                    .unwrap();
                out.sectors().for_each(|sector| recovered.extend_from_slice(sector));
            }
            prop_assert!(recovered.len() >= bytes.len());
            prop_assert_eq!(&recovered[..bytes.len()], &bytes[..]);
            prop_assert!(recovered[bytes.len()..].iter().all(|&byte| byte == 0));
        }
    }
}

/// User bytes or files of the platters of a set.
type Platters = Vec<Option<Vec<u8>>>;

fn full_set() -> (Platters, Platters) {
    let platters: Platters =
        (0..3).map(|i| Some(user_bytes(50_000 + i * 1000, i as u64))).collect();
    let files = write_set(&tiny(), &platters);
    (platters, files)
}

#[test]
fn three_lost_platters_fail_with_platter_and_level_named() {
    let (_, files) = full_set();
    let readers: Vec<_> = files.iter().map(|f| Some(open(f.as_ref().unwrap()).unwrap())).collect();
    let mut decoder = SetDecoder::new(readers[0].as_ref().unwrap().header());
    let error = decoder
        .recover_track(
            InformationTrack::new(1),
            &members(&readers, &[1, 2, 4]),
            1,
            &NoFaults,
            &mut TrackBuffer::new(),
        )
        .unwrap_err();
    let PlatterError::Unreadable(unreadable) = &error else { panic!("{error}") };
    assert_eq!(unreadable.level, CodeLevel::Set);
    assert_eq!((unreadable.platter, unreadable.lost, unreadable.redundancy), (platter_id(1), 3, 2));
    assert_eq!(
        error.to_string(),
        "track 1 of platter 02020202-0202-0202-0202-020202020202 is unreadable: the cross-platter \
         code lost 3 platters and can restore 2"
    );
}

#[test]
fn damaged_members_are_restored_or_left_out() {
    let (platters, files) = full_set();
    let readers: Vec<_> = files.iter().map(|f| Some(open(f.as_ref().unwrap()).unwrap())).collect();
    let mut decoder = SetDecoder::new(readers[0].as_ref().unwrap().header());
    let mut out = TrackBuffer::new();
    let track = InformationTrack::new(0);
    // Each platter can restore a failed sector in its own track.
    let mut faults = At::default();
    faults.0.insert((1, 2));
    let report =
        decoder.recover_track(track, &members(&readers, &[0]), 0, &faults, &mut out).unwrap();
    assert_eq!(report, SetReport { track, lost: 0, used: 3 });
    let bytes = platters[0].as_ref().unwrap();
    assert_eq!(out.sectors().collect::<Vec<_>>().concat(), bytes[..16_384]);

    // Tracks that were read already serve as well as platters do.
    let mut tracks = Vec::new();
    for position in [2, 3, 4] {
        let mut buffer = TrackBuffer::new();
        readers[position].as_ref().unwrap().read_track(track, &NoFaults, &mut buffer).unwrap();
        tracks.push(buffer);
    }
    let given: Vec<Member<'_, &Vec<u8>>> = vec![
        Member::Lost,
        Member::Lost,
        Member::Track(&tracks[0]),
        Member::Track(&tracks[1]),
        Member::Track(&tracks[2]),
    ];
    decoder.recover_track(track, &given, 1, &NoFaults, &mut out).unwrap();
    let bytes = platters[1].as_ref().unwrap();
    assert_eq!(out.sectors().collect::<Vec<_>>().concat(), bytes[..16_384]);
}

#[test]
fn an_unreadable_member_counts_as_lost() {
    let (platters, mut files) = full_set();
    // Platter 1 really loses track 0 and a redundancy track of its group, not by simulation.
    let image = tiny().track_image_bytes();
    files[1].as_mut().unwrap()[image..3 * image].fill(0);
    let readers: Vec<_> = files.iter().map(|f| Some(open(f.as_ref().unwrap()).unwrap())).collect();
    assert!(read_all(readers[1].as_ref().unwrap(), &NoFaults).is_err());
    let mut decoder = SetDecoder::new(readers[4].as_ref().unwrap().header());
    let mut out = TrackBuffer::new();
    let track = InformationTrack::new(0);
    let report =
        decoder.recover_track(track, &members(&readers, &[0]), 0, &NoFaults, &mut out).unwrap();
    assert_eq!(report, SetReport { track, lost: 1, used: 3 });
    let bytes = platters[0].as_ref().unwrap();
    assert_eq!(out.sectors().collect::<Vec<_>>().concat(), bytes[..16_384]);
    let error = decoder
        .recover_track(track, &members(&readers, &[0, 2]), 0, &NoFaults, &mut out)
        .unwrap_err();
    assert!(matches!(error, PlatterError::Unreadable(u) if u.lost == 3), "{error}");
    assert!(matches!(
        decoder.recover_track(track, &members(&readers, &[]), 3, &NoFaults, &mut out),
        Err(PlatterError::SetShape { wanted: 3, .. })
    ));
}

#[test]
fn a_demo_set_survives_the_loss_of_three_platters() {
    let geometry = fulgurite_platter::Geometry::profile("demo").unwrap();
    let platters: Platters = (0..16).map(|i| Some(user_bytes(300_000 + i, i as u64))).collect();
    let files = write_set(&geometry, &platters);
    let readers: Vec<_> = files.iter().map(|f| Some(open(f.as_ref().unwrap()).unwrap())).collect();
    let mut decoder = SetDecoder::new(readers[18].as_ref().unwrap().header());
    let mut out = TrackBuffer::new();
    for (wanted, lost) in [(0, [0, 1, 2]), (7, [7, 15, 16]), (15, [15, 17, 18])] {
        let mut recovered = Vec::new();
        for track in [0, 1].map(InformationTrack::new) {
            let members = members(&readers, &lost);
            decoder.recover_track(track, &members, wanted, &NoFaults, &mut out).unwrap();
            out.sectors().for_each(|sector| recovered.extend_from_slice(sector));
        }
        let bytes = platters[wanted].as_ref().unwrap();
        assert!(recovered[..bytes.len()] == bytes[..], "platter {wanted}");
    }
    let members = members(&readers, &[0, 1, 2, 3]);
    let track = InformationTrack::new(0);
    let error = decoder.recover_track(track, &members, 0, &NoFaults, &mut out).unwrap_err();
    let PlatterError::Unreadable(unreadable) = error else { panic!("{error}") };
    assert_eq!((unreadable.lost, unreadable.redundancy), (4, 3));
}

/// A redundancy platter that was never written does not count as zeros: it is lost, and the others
/// must be enough.
#[test]
fn redundancy_that_was_not_written_is_lost() {
    let (platters, files) = full_set();
    let readers: Vec<_> = files
        .iter()
        .enumerate()
        .map(|(position, file)| (position != 3).then(|| open(file.as_ref().unwrap()).unwrap()))
        .collect();
    let mut decoder = SetDecoder::new(readers[0].as_ref().unwrap().header());
    let mut out = TrackBuffer::new();
    let track = InformationTrack::new(0);
    let given = members(&readers, &[1]);
    assert!(matches!(given[3], Member::NotWritten));
    let report = decoder.recover_track(track, &given, 1, &NoFaults, &mut out).unwrap();
    assert_eq!(report, SetReport { track, lost: 1, used: 3 });
    let bytes = platters[1].as_ref().unwrap();
    assert_eq!(out.sectors().collect::<Vec<_>>().concat(), bytes[..16_384]);
    let two = members(&readers, &[0, 1]);
    let error = decoder.recover_track(track, &two, 1, &NoFaults, &mut out).unwrap_err();
    let PlatterError::Unreadable(found) = &error else { panic!("{error}") };
    assert_eq!((found.level, found.lost, found.redundancy), (CodeLevel::Set, 3, 2));
}

/// The same with a redundancy platter that claims to be shorter than the others.
#[test]
fn redundancy_that_is_too_short_is_lost() {
    let (platters, files) = full_set();
    let short = write_set(&tiny(), &[Some(user_bytes(9_000, 0)), None, None]).swap_remove(3);
    let files: Vec<_> = (0..5).map(|at| if at == 3 { &short } else { &files[at] }).collect();
    let readers: Vec<_> = files.iter().map(|f| Some(open(f.as_ref().unwrap()).unwrap())).collect();
    let mut decoder = SetDecoder::new(readers[0].as_ref().unwrap().header());
    let mut out = TrackBuffer::new();
    let track = InformationTrack::new(2);
    let given = members(&readers, &[1]);
    decoder.recover_track(track, &given, 1, &NoFaults, &mut out).unwrap();
    let found = out.sectors().collect::<Vec<_>>().concat();
    assert_eq!(found, platters[1].as_ref().unwrap()[2 * 16_384..][..16_384]);
}

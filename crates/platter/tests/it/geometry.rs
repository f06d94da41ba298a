//! The parameters of the profiles, and addresses at the ends of platters too large to fill here.

use std::fmt::Write as _;

use expect_test::expect;
use fulgurite_platter::limits::SOFTWARE_BYTES_MAX;
use fulgurite_platter::{Blank, Geometry, InformationTrack, PlatterError, TrackRole, WriteDrive};
use fulgurite_units::{ByteCount, LayerIndex, TrackIndex, UnixTime};
use proptest::prelude::*;

use crate::support::{open, set_headers, single_header, tiny, write};

#[test]
fn sizes_of_the_profiles() {
    let mut table = String::new();
    for profile in ["sliver", "demo", "desk", "silica"] {
        let geometry = Geometry::profile(profile).unwrap();
        geometry.validate().unwrap();
        let map = geometry.map(geometry.information_tracks());
        let user = geometry.platter_user_bytes();
        #[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
        let inner = 100.0 * map.file_bytes() as f64 / user as f64 - 100.0;
        writeln!(table, "{profile}").unwrap();
        writeln!(table, "  sector image    {}", geometry.sector_image_bytes()).unwrap();
        writeln!(table, "  track image     {}", geometry.track_image_bytes()).unwrap();
        writeln!(table, "  track user      {}", geometry.track_user_bytes()).unwrap();
        writeln!(table, "  tracks          {}", map.tracks()).unwrap();
        writeln!(table, "  platter user    {user} ({})", ByteCount::new(user)).unwrap();
        writeln!(table, "  platter file    {} (+{inner:.1}%)", map.file_bytes()).unwrap();
        writeln!(table, "  set user        {}", geometry.set_user_bytes()).unwrap();
        writeln!(table, "  group columns   {}", geometry.group_columns().count()).unwrap();
        writeln!(table, "  set columns     {}", geometry.set_columns().count()).unwrap();
    }
    expect![[r#"
        sliver
          sector image    4224
          track image     63360
          track user      49152
          tracks          10
          platter user    294912 (288KiB)
          platter file    634624 (+115.2%)
          set user        1179648
          group columns   1
          set columns     1
        demo
          sector image    8320
          track image     299520
          track user      262144
          tracks          69
          platter user    16777216 (16MiB)
          platter file    20667904 (+23.2%)
          set user        268435456
          group columns   1
          set columns     1
        desk
          sector image    65664
          track image     9127296
          track user      8388608
          tracks          526
          platter user    4294967296 (4GiB)
          platter file    4800958720 (+11.8%)
          set user        68719476736
          group columns   16
          set columns     8
        silica
          sector image    102528
          track image     22146048
          track user      20480000
          tracks          122402
          platter user    2457600000000 (2.2TiB)
          platter file    2710720568320 (+10.3%)
          set user        39321600000000
          group columns   50
          set columns     13
    "#]]
    .assert_eq(&table);
}

#[test]
fn silica_addresses_its_ends() {
    let geometry = Geometry::profile("silica").unwrap();
    let size = geometry.platter_user_bytes();
    assert_eq!(size, 2_457_600_000_000);
    let first = geometry.address(0);
    assert_eq!((first.track.get(), first.layer.get(), first.byte), (0, 0, 0));
    let last = geometry.address(size - 1);
    assert_eq!(last.track, InformationTrack::new(119_999));
    assert_eq!((last.layer, last.byte), (LayerIndex::new(199), 102_399));
    let map = geometry.map(120_000);
    assert_eq!((map.groups(), map.tracks()), (400, 2 + 400 * 306));
    let physical_track = map.physical(last.track);
    assert_eq!(physical_track, TrackIndex::new(1 + 399 * 306 + 299));
    assert_eq!(map.physical_redundancy(399, 5), TrackIndex::new(400 * 306));
    assert_eq!(map.offset(physical_track), (1 + 399 * 306 + 299) * 216 * 102_528);
    assert_eq!(map.role(TrackIndex::new(400 * 306 + 1)), Some(TrackRole::Header(1)));
    assert_eq!(map.role(TrackIndex::new(400 * 306 + 2)), None);
    // The last column of the set has the remainder of 200 layers.
    assert_eq!(geometry.set_columns().last().map(|c| (c.first, c.count)), Some((192, 8)));
    assert_eq!(geometry.tracks_for(size), 120_000);
    assert_eq!(geometry.tracks_for(size - 20_480_000), 119_999);
}

proptest! {
    #[test]
    fn places_and_roles_are_inverse(profile in 0usize..4, used in any::<prop::sample::Index>()) {
        let geometry = match profile {
            0 => tiny(),
            n => Geometry::profile(["demo", "desk", "silica"][n - 1]).unwrap(),
        };
        let limit = geometry.information_tracks().min(2000);
        let map = geometry.map(u32::try_from(used.index(limit as usize + 1)).unwrap());
        let mut next = InformationTrack::new(0);
        for track in (0..map.tracks()).map(TrackIndex::new) {
            match map.role(track).unwrap() {
                TrackRole::Header(replica) => {
                    prop_assert_eq!(track.get(), if replica == 0 { 0 } else { map.tracks() - 1 });
                }
                TrackRole::Information(information) => {
                    prop_assert_eq!(information, next);
                    prop_assert_eq!(map.physical(information), track);
                    next = InformationTrack::new(next.get() + 1);
                }
                TrackRole::Redundancy { group, index } => {
                    prop_assert_eq!(map.physical_redundancy(group, index), track);
                    prop_assert_eq!(map.group_of(InformationTrack::new(next.get() - 1)), group);
                }
            }
        }
        prop_assert_eq!(next.get(), map.information_tracks());
        prop_assert_eq!(map.role(TrackIndex::new(map.tracks())), None);
    }

    #[test]
    fn addresses_follow_each_other(offset in 0u64..2_457_599_999_999) {
        let geometry = Geometry::profile("silica").unwrap();
        let linear = |offset| {
            let at = geometry.address(offset);
            u64::from(at.track.get()) * 20_480_000
                + u64::from(at.layer.get()) * 102_400
                + u64::from(at.byte)
        };
        prop_assert_eq!(linear(offset), offset);
        prop_assert_eq!(linear(offset + 1), offset + 1);
    }
}

#[test]
fn impossible_geometries_are_refused() {
    type Change = fn(&mut Geometry);
    let changes: [(Change, &str); 9] = [
        (|g| g.sector_payload_bytes = 2112, "not a multiple of 128"),
        (|g| g.sector_payload_bytes = 1 << 21, "not a multiple of 128"),
        (|g| g.sector_payload_bytes = u32::MAX, "not a multiple of 128"),
        (|g| g.track_information_sectors = u16::MAX, "a track of"),
        (|g| g.track_redundancy_sectors = 0, "track code"),
        (|g| g.group_span_sectors = 9, "a span of 9"),
        (|g| g.set_span_sectors = 0, "a span of 0"),
        (|g| g.groups = u32::MAX, "tracks is not possible"),
        (|g| g.group_information_tracks = u16::MAX, "large-group code"),
    ];
    for (change, reason) in changes {
        let mut geometry = tiny();
        change(&mut geometry);
        let error = geometry.validate().unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert!(matches!(Geometry::profile("huge"), Err(PlatterError::UnknownProfile { .. })));
    let unknown = r#"{"profile":"x","sectors":1}"#;
    assert!(serde_json::from_str::<Geometry>(unknown).is_err());
}

/// Returns the geometry with this sector payload.
fn with_payload(geometry: &Geometry, sector_payload_bytes: u32) -> Geometry {
    Geometry { sector_payload_bytes, ..geometry.clone() }
}

/// Returns the smallest sector payload that is accepted.
fn smallest_payload(geometry: &Geometry) -> u32 {
    let is_valid = |payload: &u32| with_payload(geometry, *payload).validate().is_ok();
    (128..=64 << 10).step_by(128).find(is_valid).unwrap()
}

/// Begins the platter with the longest header of this geometry.
fn write_longest(geometry: &Geometry) -> Result<(), PlatterError> {
    let full = geometry.platter_user_bytes();
    let information = usize::from(geometry.set_information_platters);
    let mut headers = set_headers(geometry, &vec![Some(full); information]);
    let mut header = headers.swap_remove(information - 1).unwrap();
    header.generation = u32::MAX;
    header.list_entries = u32::MAX;
    header.created = UnixTime::from_millis(u64::MAX);
    header.software = "x".repeat(SOFTWARE_BYTES_MAX);
    WriteDrive::new().write(Blank::new(header.platter), header, Vec::new()).map(drop)
}

#[test]
fn a_geometry_without_room_for_its_header_is_refused() {
    let error = with_payload(&tiny(), 1024).validate().unwrap_err();
    assert!(matches!(error, PlatterError::Geometry { .. }), "{error:?}");
    // The description of the format, which every header carries, still changes, so the limit is
    // computed.
    let smallest = smallest_payload(&tiny());
    let message = error.to_string();
    for words in [
        "geometry \"tiny\" is invalid: the header of a platter takes up to ",
        " sectors, and a track has 11: sector_payload_bytes is 1024 and has to be ",
        &format!(" has to be {smallest} or more, or track_information_sectors and "),
    ] {
        assert!(message.contains(words), "{message}");
    }
    // The other remedy in the message works too, and one sector fewer does not.
    let sectors = message.strip_suffix(" or more").and_then(|message| message.rsplit(' ').next());
    let sectors: u16 = sectors.unwrap().parse().unwrap();
    let with_sectors = |count: u16| Geometry {
        track_information_sectors: count - 3,
        ..with_payload(&tiny(), 1024)
    };
    with_sectors(sectors).validate().unwrap();
    assert!(with_sectors(sectors - 1).validate().is_err());
}

#[test]
fn a_geometry_that_is_valid_has_room_for_every_header() {
    for (information, redundancy) in [(8, 3), (1, 1), (40, 7), (200, 55)] {
        for (platters, more) in [(3, 2), (1, 1), (200, 55)] {
            let geometry = Geometry {
                track_information_sectors: information,
                track_redundancy_sectors: redundancy,
                set_information_platters: platters,
                set_redundancy_platters: more,
                group_span_sectors: 1,
                set_span_sectors: 1,
                ..tiny()
            };
            write_longest(&with_payload(&geometry, smallest_payload(&geometry))).unwrap();
        }
    }
}

#[test]
fn profile_with_too_long_a_name_is_refused() {
    let error = Geometry { profile: "x".repeat(2 << 20), ..tiny() }.validate().unwrap_err();
    assert!(error.to_string().contains("the name of the profile, 2097152 bytes, is too long"));
}

/// An existing platter had room for its header: a geometry that is rejected for new platters can be
/// read.
#[test]
fn a_platter_without_room_to_spare_is_read() {
    let sizes = (128..8 << 10).step_by(128);
    let tight = sizes.flat_map(|payload| (1..250).map(move |sectors| (payload, sectors)));
    let tight = tight.map(|(payload, sectors)| Geometry {
        track_information_sectors: sectors,
        group_span_sectors: 1,
        set_span_sectors: 1,
        ..with_payload(&tiny(), payload)
    });
    let drive = WriteDrive::new();
    for geometry in tight.filter(|geometry| geometry.validate().is_err()) {
        let header = single_header(&geometry, 1);
        if drive.write(Blank::new(header.platter), header.clone(), Vec::new()).is_ok() {
            let file = write(&header, &[7], 1);
            assert_eq!(*open(&file).unwrap().header(), header);
            return;
        }
    }
    panic!("no geometry has room for a short header and none for a long one");
}

//! Writers enforce their plan, and report an error when the caller or the sink violates it.

use std::io;

use expect_test::expect;
use fulgurite_platter::{
    Blank, ErrorKind, NoFaults, PlatterError, PlatterSink, TrackBuffer, WriteDrive,
};
use proptest::prelude::*;

use crate::support::{At, open, platter_id, read_all, single_header, tiny, user_bytes, write};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn output_does_not_depend_on_piece_sizes(size in 0usize..=98_304, piece in 1usize..40_000) {
        let bytes = user_bytes(size, 1);
        let header = single_header(&tiny(), size as u64);
        let file = write(&header, &bytes, piece);
        prop_assert_eq!(&file, &write(&header, &bytes, 98_304));
        let reader = open(&file).unwrap();
        prop_assert_eq!(reader.header(), &header);
        prop_assert_eq!(read_all(&reader, &NoFaults).unwrap(), bytes);
        let report = reader.verify(&NoFaults, &mut TrackBuffer::new(), &mut |_, _| {}).unwrap();
        prop_assert_eq!((report.failed_sectors, report.worst_margin), (0, 3));
        prop_assert_eq!(report.seal_matches, Some(true));
        prop_assert_eq!(report.bytes + 1024, file.len() as u64);
    }

    #[test]
    fn any_range_can_be_read(a in 0u64..=98_304, b in 0u64..=98_304) {
        let bytes = user_bytes(98_304, 1);
        let file = write(&single_header(&tiny(), 98_304), &bytes, 98_304);
        let reader = open(&file).unwrap();
        let (start, end) = (a.min(b), a.max(b));
        let mut read = Vec::new();
        reader
            .read_user(start..end, &NoFaults, &mut TrackBuffer::new(), &mut |piece| {
                read.extend_from_slice(piece);
                Ok(())
            })
            .unwrap();
        let range = usize::try_from(start).unwrap()..usize::try_from(end).unwrap();
        prop_assert_eq!(&read[..], &bytes[range]);
    }
}

#[test]
fn writer_enforces_the_planned_header() {
    let header = single_header(&tiny(), 100);
    let drive = WriteDrive::new();
    let begin = || drive.write(Blank::new(header.platter), header.clone(), Vec::new()).unwrap();
    let mut writer = begin();
    assert!(matches!(writer.write(&[0; 101]), Err(PlatterError::Overrun { planned: 100, .. })));
    writer.write(&[0; 99]).unwrap();
    assert_eq!(writer.written(), 99);
    let error = writer.finish().unwrap_err();
    assert!(matches!(error, PlatterError::Incomplete { planned: 100, written: 99, .. }));
    let wrong = drive.write(Blank::new(platter_id(3)), header.clone(), Vec::new());
    assert!(matches!(wrong, Err(PlatterError::WrongPlatter { .. })));
    let mut unlisted = header.clone();
    unlisted.members[0] = None;
    let error = drive.write(Blank::new(header.platter), unlisted, Vec::new()).unwrap_err();
    assert!(matches!(error, PlatterError::Header { .. }), "{error}");
    let mut small = header.clone();
    small.geometry.sector_payload_bytes = 512;
    let error = drive.write(Blank::new(header.platter), small, Vec::new()).unwrap_err();
    assert!(matches!(error, PlatterError::HeaderTooLong { sectors: 11, .. }), "{error}");
}

/// A sink that is full after this many bytes.
struct Full(usize);

impl PlatterSink for Full {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.0.checked_sub(bytes.len()) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => Err(io::ErrorKind::StorageFull.into()),
        }
    }
}

#[test]
fn full_sink_is_an_error_with_its_offset() {
    let header = single_header(&tiny(), 98_304);
    let image = tiny().track_image_bytes();
    for tracks in 0..10 {
        let run = || {
            let blank = Blank::new(header.platter);
            let mut writer =
                WriteDrive::new().write(blank, header.clone(), Full(tracks * image + 10))?;
            writer.write(&[7; 98_304])?;
            writer.finish().map(|_| ())
        };
        let error = run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(
            matches!(error, PlatterError::Io { offset, .. } if offset == (tracks * image) as u64),
            "{error}"
        );
    }
}

#[test]
fn the_sector_map_shows_runs_and_losses() {
    let file = write(&single_header(&tiny(), 70_000), &user_bytes(70_000, 2), 9000);
    let reader = open(&file).unwrap();
    let mut faults = At::default();
    faults.0.extend([(3, 1), (3, 2), (6, 10)]);
    let map = reader.sector_map(&faults, &mut TrackBuffer::new()).unwrap();
    expect![[r#"
        track 0: header, 11 of 11 sectors good
        track 1 to 2: information, 11 of 11 sectors good each
        track 3: information, 9 of 11 sectors good
        track 4: redundancy, 11 of 11 sectors good
        track 5: information, 11 of 11 sectors good
        track 6: information, 10 of 11 sectors good
        track 7: redundancy, 11 of 11 sectors good
        track 8: header, 11 of 11 sectors good
    "#]]
    .assert_eq(&map.to_string());
    let json = serde_json::to_string(&map.tracks[3]).unwrap();
    expect![[r#"{"track":3,"role":{"information":2},"sectors":11,"failed":2}"#]].assert_eq(&json);
}

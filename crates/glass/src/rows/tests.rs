//! Rows survive a round trip, and have the bytes of their golden files.

use std::fmt::{Debug, Write as _};

use super::*;

/// A number in which every byte differs.
const LARGE: u64 = 0x0102_0304_0506_0708;

/// A check of a row of each kind.
trait Check {
    fn row<T: Row + PartialEq + Debug>(&mut self, row: &T);
}

fn each_row(check: &mut impl Check) {
    let (id, at) = ([1; 16], UnixTime::from_millis(LARGE));
    let platter = PlatterId::from_bytes(id);
    check.row(&SetRow {
        state: SetState::Stored,
        geometry: Geometry::profile("demo").unwrap(),
        created: at,
        generation: 300,
        information: vec![platter],
        redundancy: vec![platter; 2],
        bytes: LARGE,
        redundancy_bytes: 7,
        damaged: vec![ObjectId::from_bytes(id)],
    });
    check.row(&PlatterRow {
        set: SetId::from_bytes(id),
        position: 17,
        slot: Some(300),
        data_bytes: LARGE,
        list_bytes: 4096,
        list_entries: 12,
        live_bytes: LARGE,
        unreadable_tracks: vec![300],
    });
    let margins = Some(SectorMargins { sectors: 700, least: 3, tenth: 40, median: 80 });
    check.row(&VerificationRow { at, sectors: LARGE, failed: 20, margins });
    check.row(&TrackRow(vec![200]));
    check.row(&PlanRow {
        place: 12,
        body_id: ObjectId::from_bytes(id),
        body_bytes: LARGE,
        offset: LARGE,
        body_offset: 300,
        bytes: 7,
        sealed_bytes: 300,
        crc: Some(LARGE),
    });
    check.row(&FarRow { library: "oslo".to_owned(), is_there: true, bytes: LARGE });
}

/// The bytes of each kind of row, in lines.
#[derive(Default)]
struct Golden {
    text: String,
    kinds: usize,
}

impl Check for Golden {
    fn row<T: Row + PartialEq + Debug>(&mut self, row: &T) {
        self.kinds += 1;
        let bytes = row::encode(row).unwrap();
        let name = std::any::type_name::<T>().rsplit("::").next().unwrap();
        writeln!(self.text, "{name} {}", bytes[0]).unwrap();
        for line in bytes[1..].chunks(36) {
            writeln!(self.text, "    {}", hex::encode(line)).unwrap();
        }
    }
}

/// Their bytes.
struct Samples(Vec<Vec<u8>>);

impl Check for Samples {
    fn row<T: Row + PartialEq + Debug>(&mut self, row: &T) {
        self.0.push(row::encode(row).unwrap());
    }
}

/// Returns the bytes of a row of each kind.
pub(crate) fn sample_rows() -> Vec<Vec<u8>> {
    let mut samples = Samples(Vec::new());
    each_row(&mut samples);
    samples.0
}

/// Checks that a row is decoded from its bytes, and not from fewer.
struct Returns;

impl Check for Returns {
    fn row<T: Row + PartialEq + Debug>(&mut self, row: &T) {
        let bytes = row::encode(row).unwrap();
        assert_eq!(row::decode::<T>(SETS, &bytes).unwrap(), *row);
        for cut in 0..bytes.len() {
            assert!(row::decode::<T>(SETS, &bytes[..cut]).is_err(), "{cut} of {}", bytes.len());
        }
    }
}

#[test]
fn rows_have_golden_bytes_and_round_trip() {
    each_row(&mut Returns);
    let mut golden = Golden::default();
    each_row(&mut golden);
    let declared = include_str!("../rows.rs").matches("\nimpl Row for ").count();
    assert_eq!(golden.kinds, declared, "each kind of row has golden bytes");
    expect_test::expect_file!["bytes.txt"].assert_eq(&golden.text);
}

#[test]
fn set_states_are_ordered() {
    let states = [
        SetState::Planned,
        SetState::Written,
        SetState::Verified,
        SetState::Stored,
        SetState::Released,
    ];
    assert!(states.is_sorted());
}

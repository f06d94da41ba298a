//! The arithmetic of the paper, and addresses converted both ways.

use fulgurite_units::{ByteCount, ErrorKind};
use proptest::prelude::*;

use super::split;
use crate::layout::{overhead, paper_metadata_bytes, user_bytes};
use crate::{CodeParams, InSegment, Layout, Offset, Parts, TomeError};

const TB: ByteCount = ByteCount::new(1_000_000_000_000);

fn parts(segment: CodeParams) -> Parts {
    Parts { block: ByteCount::kib(128), segment, segments: 4, regions: 3, spares: 100 }
}

#[test]
fn two_levels_of_parity_cost_a_quarter() {
    let group = split("13+3");
    assert!((overhead(split("62+2"), group) - 0.2705).abs() < 5e-5);
    let user = user_bytes(TB, split("62+2"), group).get();
    assert_eq!(user / 100_000_000, 7871, "787.1 GB a TB");
    let user = user_bytes(TB, split("61+3"), group).get();
    assert_eq!(user / 1_000_000_000, 774, "774 GB a TB");
}

#[test]
fn paper_needs_96_mib_of_nvram_per_tib() {
    let disk = ByteCount::gib(1024);
    assert_eq!(paper_metadata_bytes(disk, ByteCount::kib(128)), ByteCount::mib(96));
    // Ours also has the nodes of the tree and the physical blocks: twice that.
    let whole = Layout::new(Parts { segments: 1024, regions: 128, ..parts(split("62+2")) });
    let whole = whole.unwrap();
    assert_eq!(whole.blocks() * whole.block_bytes(), disk.get());
    assert_eq!(whole.metadata_bytes(), ByteCount::mib(192));
}

#[test]
fn impossible_layouts_are_refused() {
    let fails = |parts: Parts, field: &str| match Layout::new(parts) {
        Err(TomeError::Range { field: found, .. }) => assert_eq!(found, field),
        other => panic!("{other:?}"),
    };
    let good = parts(split("62+2"));
    fails(Parts { segments: 0, ..good }, "segments of a region");
    fails(Parts { regions: 0, ..good }, "regions");
    fails(Parts { regions: u32::MAX, ..good }, "regions");
    fails(Parts { spares: 2, ..good }, "spare physical blocks");
    fails(Parts { block: ByteCount::new(128), ..good }, "bytes of a block");
    let uneven = Layout::new(Parts { block: ByteCount::new(1000), ..good });
    assert_eq!(uneven, Err(TomeError::BlockBytes { bytes: 1000 }));
    assert_eq!(TomeError::BlockBytes { bytes: 1000 }.kind(), ErrorKind::Invalid);
}

#[test]
fn code_params_round_trip_as_text() {
    for text in ["62+2", "61+3", "63+1", "13+3", "3+2", "239+16"] {
        assert_eq!(split(text).to_string(), text);
    }
    for text in ["", "62", "62+", "+2", "62-2", "62+2+1"] {
        assert_eq!(
            text.parse::<CodeParams>(),
            Err(TomeError::CodeParams { text: text.to_owned() })
        );
    }
    for text in ["0+1", "1+0", "250+6", "10+17"] {
        assert!(matches!(text.parse::<CodeParams>(), Err(TomeError::Range { .. })), "{text}");
    }
    assert_eq!(split("47+3").for_group(), Ok(split("47+3")));
    assert!(split("48+3").for_group().is_err(), "a group has at most 50 members");
}

proptest! {
    #[test]
    fn addresses_round_trip(segment in 0u32..4, position in 0u32..64, number in 0u32..248) {
        let layout = Layout::new(parts(split("62+2"))).unwrap();
        let at = InSegment { segment, position };
        let offset = layout.offset(at);
        prop_assert_eq!(layout.in_segment(offset), Ok(at));
        prop_assert_eq!(layout.is_parity(offset), position >= 62);
        prop_assert!(layout.segment_offsets(segment).any(|other| other == offset));
        let data = layout.data_offset(number);
        prop_assert!(!layout.is_parity(data));
        let at = layout.in_segment(data).unwrap();
        prop_assert_eq!(at.segment * 62 + at.position, number);
        let beyond = Offset::new(layout.region_blocks() + number);
        prop_assert!(layout.in_segment(beyond).is_err());
    }
}

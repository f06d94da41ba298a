//! Segments lose blocks and rebuild them; parity signatures are the parity of signatures.

use fulgurite_codes::{Signature, signature};
use fulgurite_units::{ErrorKind, Seed};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;

use super::{block, split, xor};
use crate::segment::SegmentCode;
use crate::{CodeParams, TomeError};

const BYTES: usize = 512;

/// Returns all blocks of a segment, and their signatures.
fn filled(split: CodeParams, seed: u64) -> (SegmentCode, Vec<Vec<u8>>, Vec<Signature>) {
    let mut stream = Seed::new(seed).stream();
    let code = SegmentCode::new(split).unwrap();
    let mut blocks: Vec<Vec<u8>> = (0..split.data()).map(|_| block(BYTES, &mut stream)).collect();
    let parity = code.fill(&blocks).unwrap();
    blocks.extend(parity);
    let signatures = blocks.iter().map(|bytes| signature(bytes)).collect();
    (code, blocks, signatures)
}

#[test]
fn signatures_of_parity_are_the_parity_of_signatures() {
    for text in ["62+2", "61+3", "63+1", "13+3", "3+2"] {
        let split = split(text);
        let (_, _, signatures) = filled(split, 1);
        let (data, parity) = signatures.split_at(split.data() as usize);
        for (j, parity) in parity.iter().enumerate() {
            let terms = data.iter().enumerate().map(|(i, s)| s.scale8(split.coefficient(j, i)));
            let sum = terms.fold(Signature::ZERO, |sum, term| sum ^ term);
            assert_eq!(sum, *parity, "parity {j} of {text}");
            assert_ne!(sum, Signature::ZERO);
        }
    }
}

#[test]
fn one_bad_block_beyond_parity_is_reported() {
    let (code, good, signatures) = filled(split("62+2"), 2);
    let mut blocks: Vec<Option<Vec<u8>>> = good.into_iter().map(Some).collect();
    blocks[3] = None;
    blocks[9].as_mut().unwrap()[77] ^= 1;
    blocks[63] = None;
    assert_eq!(SegmentCode::bad(&blocks, &signatures), [3, 9, 63]);
    let before = blocks.clone();
    let lost = code.rebuild(&mut blocks, &signatures).unwrap_err();
    assert_eq!(lost, TomeError::SegmentLost { bad: 3, parity: 2 });
    assert_eq!(lost.kind(), ErrorKind::Corrupt);
    assert_eq!(blocks, before);
}

#[test]
fn rebuild_from_mismatched_signatures_fails() {
    let (code, good, mut signatures) = filled(split("6+2"), 3);
    let mut blocks: Vec<Option<Vec<u8>>> = good.into_iter().map(Some).collect();
    signatures[2] ^= Signature([1; 8]);
    let unlike = code.rebuild(&mut blocks, &signatures).unwrap_err();
    assert!(matches!(unlike, TomeError::SignatureMismatch { .. }), "{unlike}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn blocks_up_to_parity_are_rebuilt(
        lost in subsequence((0usize..64).collect::<Vec<_>>(), 0..=3),
        silent: bool,
        seed: u64,
    ) {
        let (code, good, signatures) = filled(split("61+3"), seed);
        let mut blocks: Vec<Option<Vec<u8>>> = good.iter().cloned().map(Some).collect();
        for &position in &lost {
            blocks[position] =
                silent.then(|| good[position].iter().map(|byte| byte ^ 0x40).collect());
        }
        prop_assert_eq!(&code.rebuild(&mut blocks, &signatures).unwrap(), &lost);
        prop_assert_eq!(blocks, good.into_iter().map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn delta_updates_segment_parity(
        position in 0usize..6,
        new in vec(any::<u8>(), BYTES),
        seed: u64,
    ) {
        let (code, mut blocks, _) = filled(split("6+2"), seed);
        let mut parity = blocks.split_off(6);
        code.delta(position, &xor(&blocks[position], &new), &mut parity).unwrap();
        blocks[position] = new;
        prop_assert_eq!(parity, code.fill(&blocks).unwrap());
    }
}

//! Every kernel against products of single elements.

use proptest::prelude::*;

use super::{
    BLOCK, Direction, Factor, Kernel, LEAF_SHARDS, LeafTwiddles, Sources, Twiddles, zeros,
};
use crate::Isa;
use crate::field::gf16::{self, Element};
use crate::large::definition::symbol;
use crate::large::tests::shards;

/// Multiplies and adds symbol by symbol.
fn add_product(to: &mut [u8], factor: Element, from: &[u8]) {
    for index in 0..to.len() / 2 {
        let product = gf16::mul(factor, symbol(from, index));
        let place = index / 64 * 128 + index % 64;
        to[place] ^= product[0];
        to[place + 64] ^= product[1];
    }
}

fn pass(direction: Direction, levels: u32, factors: &[Element], shards: &mut [Vec<u8>]) {
    for step in 0..levels {
        let level = if direction == Direction::Inverse { step } else { levels - 1 - step };
        let first = (1 << levels) - (1 << (levels - level));
        for a in (0..1usize << levels).filter(|a| a >> level & 1 == 0) {
            let (front, back) = shards.split_at_mut(a + (1 << level));
            let (a, b, factor) = (&mut front[a], &mut back[0], factors[first + (a >> (level + 1))]);
            if direction == Direction::Inverse {
                add_product(b, [1, 0], a);
            }
            add_product(a, factor, b);
            if direction == Direction::Forward {
                add_product(b, [1, 0], a);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn passes_match_single_butterflies(
        levels in 1u32..=3, full in 0u32..=3, blocks in 1usize..4, add: bool, inverse: bool,
        seed: u64, mut factors: [Element; 7],
    ) {
        let count = 1usize << levels;
        for (index, factor) in factors.iter_mut().enumerate() {
            if count - (count >> full.min(levels)) <= index {
                factor[1] = 0;
            }
        }
        let direction = if inverse { Direction::Inverse } else { Direction::Forward };
        let full = full.min(levels);
        let twiddles = Twiddles { levels, full, factors: factors.map(Factor::new) };
        let given = shards(count, blocks * BLOCK, seed);
        let mut expected = given.clone();
        pass(direction, levels, &factors, &mut expected);
        for isa in Isa::supported() {
            let kernel = Kernel::new(isa);
            let mut in_place = given.concat();
            kernel.pass(direction, &twiddles, &mut in_place);
            prop_assert_eq!(&in_place, &expected.concat(), "{:?}", isa);
            let from = std::array::from_fn(|i| &given[i % count][..]);
            let before = shards(1, given.concat().len(), seed ^ 1).concat();
            let mut to = before.clone();
            kernel.pass_from(direction, &twiddles, from, &mut to, add, Some(from));
            for ((to, before), expected) in to.iter().zip(before).zip(expected.concat()) {
                prop_assert_eq!(*to, expected ^ if add { before } else { 0 }, "{:?}", isa);
            }
        }
    }

    /// A leaf against its levels, each done as a pass of single elements.
    #[test]
    fn leaves_match_consecutive_passes(
        levels in 4u32..=6, full in 0u32..=6, blocks in 1usize..4, add: bool, given: u64,
        seed: u64,
    ) {
        let (count, bytes, full) = (1usize << levels, blocks * BLOCK, full.min(levels));
        let mut factors = [[0; 2]; LEAF_SHARDS - 1];
        for (index, pair) in shards(1, 2 * (count - 1), seed ^ 2)[0].chunks(2).enumerate() {
            let is_full = index < count - (count >> full);
            factors[index] = [pair[0], if is_full { pair[1] } else { 0 }];
        }
        let values = shards(count, bytes, seed);
        let mut sources = Sources::zeros(bytes);
        let mut expected = vec![zeros(bytes).to_vec(); count];
        for (place, value) in values.iter().enumerate().filter(|(i, _)| given >> i & 1 == 1) {
            sources.put(place, value);
            expected[place].clone_from(value);
        }
        for level in 0..levels {
            for a in (0..count).filter(|a| a >> level & 1 == 0) {
                let factor = factors[count - (count >> level) + (a >> (level + 1))];
                let (front, back) = expected.split_at_mut(a + (1 << level));
                add_product(&mut back[0], [1, 0], &front[a]);
                add_product(&mut front[a], factor, &back[0]);
            }
        }
        let twiddles = LeafTwiddles { levels, full, factors: factors.map(Factor::new) };
        let before = shards(1, count * bytes, seed ^ 1).concat();
        for isa in Isa::supported() {
            let mut to = before.clone();
            Kernel::new(isa).leaf(&twiddles, &sources, &mut to, add, &sources);
            for ((to, before), expected) in to.iter().zip(&before).zip(expected.concat()) {
                prop_assert_eq!(*to, expected ^ if add { *before } else { 0 }, "{:?}", isa);
            }
        }
    }

    #[test]
    fn combinations_match_sums_of_products(
        rows in 1usize..11, columns in 0usize..7, blocks in 1usize..4, seed: u64,
    ) {
        let bytes = blocks * BLOCK;
        let elements: Vec<Element> = shards(1, 2 * rows * columns, seed ^ 2)[0]
            .as_chunks::<2>().0.to_vec();
        let factors: Vec<Factor> = elements.iter().map(|e| Factor::new(*e)).collect();
        let from = shards(columns, bytes, seed);
        let before = shards(rows, bytes, seed ^ 1);
        let mut expected = before.clone();
        for (row, to) in expected.iter_mut().enumerate() {
            for (column, from) in from.iter().enumerate() {
                add_product(to, elements[row * columns + column], from);
            }
        }
        let from: Vec<&[u8]> = from.iter().map(Vec::as_slice).collect();
        for isa in Isa::supported() {
            let mut to = before.concat();
            Kernel::new(isa).combine(&factors, &from, &mut to, bytes);
            prop_assert_eq!(&to, &expected.concat(), "{:?}", isa);
        }
    }
}

#[test]
fn every_byte_product_is_correct_at_every_level() {
    // One block has 64 elements: four blocks hold every byte value in both planes.
    let given: Vec<u8> = (0..=255u8).flat_map(|b| [b, b ^ 0x5a]).collect();
    let planes: Vec<u8> = given
        .chunks(BLOCK)
        .flat_map(|pairs| {
            let (low, high) = (pairs.iter().step_by(2), pairs.iter().skip(1).step_by(2));
            low.chain(high).copied()
        })
        .collect();
    for isa in Isa::supported() {
        let kernel = Kernel::new(isa);
        for c in 0..=255u8 {
            for factor in [[c, 0], [0, c], [c, c ^ 0xc3]] {
                let mut expected = vec![0; planes.len()];
                add_product(&mut expected, factor, &planes);
                let mut to = vec![0; planes.len()];
                kernel.combine(&[Factor::new(factor)], &[&planes], &mut to, planes.len());
                assert_eq!(to, expected, "{factor:?} {isa:?}");
            }
        }
    }
}

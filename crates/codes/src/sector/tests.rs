//! Sectors survive a round trip, and bytes that are not the sector's are never returned.

use proptest::prelude::*;

use super::{Failure, SectorCodec, SectorFormat};
use crate::ldpc::{Block, Rate};
use crate::symbols::{Alphabet, Axis, DemapMethod, Demapper};
use crate::{CodeError, signature};

fn format(bits: usize, payload_bytes: usize) -> SectorFormat {
    SectorFormat {
        rate: Rate::ALL[2],
        block: Block::Bits16k,
        alphabet: Alphabet::new(Axis::Circular { bits }).unwrap(),
        payload_bytes,
        header_bytes: 24,
        row_voxels: 150,
    }
}

/// splitmix64.
fn random(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

fn bytes(length: usize, random: &mut impl FnMut() -> u64) -> Vec<u8> {
    (0..length).map(|_| random().to_le_bytes()[0]).collect()
}

/// Returns confident soft bits of symbols.
fn read(codec: &SectorCodec, symbols: &[u8]) -> Vec<i8> {
    let alphabet = &codec.format().alphabet;
    let bits = |symbol: &u8| {
        let label = alphabet.label(*symbol);
        (0..alphabet.bits()).map(move |bit| if label >> bit & 1 == 1 { -12 } else { 12 })
    };
    symbols.iter().flat_map(bits).collect()
}

struct Written {
    codec: SectorCodec,
    header: Vec<u8>,
    payload: Vec<u8>,
    symbols: Vec<u8>,
}

fn write(format: SectorFormat, seed: u64) -> Written {
    let mut random = random(seed);
    let mut codec = SectorCodec::new(format).unwrap();
    let header = bytes(codec.format().header_bytes, &mut random);
    let payload = bytes(codec.format().payload_bytes, &mut random);
    let mut symbols = vec![0; codec.voxels()];
    let sign = codec.encode(&header, &payload, &mut symbols).unwrap();
    assert_eq!(sign, signature(&payload));
    Written { codec, header, payload, symbols }
}

#[test]
fn sectors_round_trip_in_every_code_and_alphabet() {
    for rate in Rate::ALL {
        for (block, payload) in [(Block::Bits16k, 9000), (Block::Bits64k, 10_000)] {
            for bits in [1, 3, 4, 8] {
                let format = SectorFormat { rate, block, ..format(bits, payload) };
                let Written { mut codec, header, payload, symbols } = write(format, 7);
                let soft = read(&codec, &symbols);
                let decoded = codec.decode(&header, &soft).unwrap();
                assert_eq!(decoded.payload, Some(&payload[..]));
                assert_eq!(decoded.header, Some(&header[..]));
                let report = decoded.report;
                assert_eq!(
                    (report.failure, report.corrected_bits, report.iterations),
                    (None, 0, 0)
                );
                assert_eq!(report.payload_signature, Some(signature(&payload)));
                assert!((report.margin - 1.0).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn errors_and_unread_voxels_are_corrected_and_counted() {
    let Written { mut codec, header, payload, symbols } = write(format(3, 20_000), 1);
    let mut soft = read(&codec, &symbols);
    let mut random = random(2);
    let (mut wrong, mut unread) = (0, 0);
    for soft in &mut soft {
        match random() % 250 {
            0 => (*soft, wrong) = (-*soft / 4, wrong + 1),
            1 | 2 => (*soft, unread) = (0, unread + 1),
            _ => {}
        }
    }
    let decoded = codec.decode(&header, &soft).unwrap();
    assert_eq!(decoded.payload, Some(&payload[..]));
    let report = decoded.report;
    // The last voxel of a codeword may have bits that belong to no codeword.
    let spare = report.codewords * 3;
    assert!(report.corrected_bits >= wrong - spare, "{report:?}, {wrong} wrong");
    assert!(report.erased_bits.abs_diff(unread) <= spare, "{report:?}, {unread} unread");
    assert!(report.iterations_max > 0 && report.iterations_mean() > 0.0);
    assert!(report.margin > 0.3 && report.margin < 1.0, "{report:?}");
}

#[test]
fn local_damage_is_shared_by_all_codewords() {
    let Written { mut codec, header, payload, symbols } = write(format(3, 30_000), 3);
    let mut soft = read(&codec, &symbols);
    // A square of 40 x 40 of 89,539 voxels. In a single codeword of 5,267 voxels, this would be 30
    // %, too much for it.
    for voxel in (200..240).flat_map(|row| (50..90).map(move |column| row * 150 + column)) {
        soft.get_mut(voxel * 3..voxel * 3 + 3).unwrap_or_default().fill(0);
    }
    let decoded = codec.decode(&header, &soft).unwrap();
    assert_eq!(decoded.payload, Some(&payload[..]), "{:?}", decoded.report);
}

#[test]
fn undecodable_sectors_give_a_reason_and_no_bytes() {
    let Written { mut codec, header, symbols, .. } = write(format(3, 5000), 4);
    let mut soft = read(&codec, &symbols);
    let mut random = random(5);
    soft.iter_mut().filter(|_| random().is_multiple_of(4)).for_each(|soft| *soft = -*soft);
    let decoded = codec.decode(&header, &soft).unwrap();
    let codewords = decoded.report.codewords;
    assert_eq!(decoded.report.failure, Some(Failure::Codewords { first: 0, count: codewords }));
    assert_eq!((decoded.payload, decoded.header), (None, None));
    assert!(decoded.report.margin <= 0.0);
}

/// Zeros are codewords: a sector that was never written, or could not be read at all, converges.
#[test]
fn blank_sectors_are_rejected() {
    let mut codec = SectorCodec::new(format(3, 5000)).unwrap();
    for soft in [0, 31] {
        let soft = vec![soft; codec.voxels() * 3];
        let decoded = codec.decode(&[0; 24], &soft).unwrap();
        assert_eq!(decoded.report.failure, Some(Failure::Signature));
        assert_eq!((decoded.payload, decoded.header), (None, None));
    }
}

/// Codewords of two intact sectors, mixed: each converges, but the signature does not match.
#[test]
fn codewords_of_another_sector_are_rejected() {
    let one = write(format(3, 5000), 8);
    let Written { mut codec, header, symbols, .. } = write(format(3, 5000), 9);
    let mut mixed = symbols;
    let codewords = codec.codewords();
    assert!(codewords > 1);
    let map = crate::symbols::Interleaver::new(codewords, codec.voxels() / codewords, 150).unwrap();
    for (voxel, symbol) in
        mixed.iter_mut().enumerate().filter(|(voxel, _)| map.locate(*voxel).0 == 0)
    {
        *symbol = one.symbols[voxel];
    }
    let soft = read(&codec, &mixed);
    let decoded = codec.decode(&header, &soft).unwrap();
    assert_eq!(decoded.report.failure, Some(Failure::Signature));
    assert_eq!((decoded.payload, decoded.header), (None, None));
}

#[test]
fn another_sector_is_identified_by_its_header() {
    let Written { mut codec, header, symbols, .. } = write(format(4, 5000), 6);
    let soft = read(&codec, &symbols);
    let mut expected = header.clone();
    expected[3] ^= 1;
    let decoded = codec.decode(&expected, &soft).unwrap();
    assert_eq!(decoded.report.failure, Some(Failure::Header));
    assert_eq!((decoded.payload, decoded.header), (None, Some(&header[..])));
}

#[test]
fn probabilities_decode_like_soft_bits() {
    let Written { mut codec, header, payload, symbols } = write(format(3, 5000), 10);
    let demapper = Demapper::new(&codec.format().alphabet, DemapMethod::MaxLog, 2.0).unwrap();
    let mut random = random(11);
    let mut probabilities = Vec::new();
    for symbol in &symbols {
        let mut distribution = [0.02f32; 8];
        // One voxel in 80 looks like its neighbor.
        let seen = if random().is_multiple_of(80) { (symbol + 1) % 8 } else { *symbol };
        distribution[usize::from(seen)] += 0.6;
        distribution[usize::from(*symbol)] += 0.2;
        probabilities.extend(distribution);
    }
    let decoded = codec.decode_probabilities(&header, &probabilities, &demapper).unwrap();
    assert_eq!(decoded.payload, Some(&payload[..]));
    assert!(decoded.report.corrected_bits > 0);
    let short = codec.decode_probabilities(&header, &probabilities[8..], &demapper);
    assert!(matches!(short, Err(CodeError::WordLength { .. })));
}

#[test]
fn wrong_arguments_are_refused() {
    for (payload_bytes, header_bytes, row_voxels) in
        [(0, 1, 1), (1, 1, 0), (usize::MAX, 1, 1), (1, usize::MAX, 1)]
    {
        let format = SectorFormat { payload_bytes, header_bytes, row_voxels, ..format(3, 1) };
        let refused = SectorCodec::new(format).err();
        let (payload, header, row) = (payload_bytes, header_bytes, row_voxels);
        assert_eq!(refused, Some(CodeError::SectorShape { payload, header, row }));
    }
    let mut codec = SectorCodec::new(format(3, 100)).unwrap();
    let voxels = codec.voxels();
    let mut symbols = vec![0; voxels];
    assert!(codec.encode(&[0; 23], &[0; 100], &mut symbols).is_err());
    assert!(codec.encode(&[0; 24], &[0; 99], &mut symbols).is_err());
    assert!(codec.encode(&[0; 24], &[0; 100], &mut symbols[1..]).is_err());
    assert!(codec.decode(&[0; 23], &vec![0; voxels * 3]).is_err());
    assert!(codec.decode(&[0; 24], &vec![0; voxels * 3 - 1]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_shape_round_trips(
        payload_bytes in 1usize..9000, header_bytes in 0usize..300, row_voxels in 1usize..400,
        bits in 1usize..=8, seed: u64,
    ) {
        let format = SectorFormat { payload_bytes, header_bytes, row_voxels, ..format(bits, 1) };
        let Written { mut codec, header, payload, symbols } = write(format, seed);
        let soft = read(&codec, &symbols);
        let decoded = codec.decode(&header, &soft).unwrap();
        prop_assert_eq!(decoded.payload, Some(&payload[..]));
    }
}

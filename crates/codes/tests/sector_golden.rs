//! One whole sector as written, byte for byte. A change of signature, framing, code, interleaver or
//! labels makes existing glass unreadable, and fails this test.
//!
//! `golden/sector.txt` has a digit for each voxel: its symbol, of 8. The payload and the header are
//! formulas that another implementation can repeat.

use fulgurite_codes::ldpc::{Block, Rate};
use fulgurite_codes::sector::{SectorCodec, SectorFormat};
use fulgurite_codes::signature;
use fulgurite_codes::symbols::{Alphabet, Axis};

const GOLDEN: &str = include_str!("golden/sector.txt");

fn codec() -> SectorCodec {
    let format = SectorFormat {
        rate: Rate::R9of10,
        block: Block::Bits16k,
        alphabet: Alphabet::new(Axis::Circular { bits: 3 }).expect("an alphabet of 8"),
        payload_bytes: 3000,
        header_bytes: 32,
        row_voxels: 96,
    };
    SectorCodec::new(format).expect("a format of sectors")
}

fn bytes(count: usize, seed: usize) -> Vec<u8> {
    (0..count).map(|i| ((i * i * 31 + i * 7 + seed) / 5).to_le_bytes()[0]).collect()
}

/// Returns the symbols of the golden file.
fn golden_symbols() -> Vec<u8> {
    GOLDEN.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect()
}

/// Returns the soft bits of symbols.
fn read(symbols: &[u8]) -> Vec<i8> {
    let alphabet = Alphabet::new(Axis::Circular { bits: 3 }).expect("an alphabet of 8");
    let bits = |symbol: &u8| {
        let label = alphabet.label(*symbol);
        (0..3).map(move |bit| if label >> bit & 1 == 1 { -12 } else { 12 })
    };
    symbols.iter().flat_map(bits).collect()
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

#[test]
fn sector_encoding_matches_the_golden_file() {
    let mut codec = codec();
    let mut symbols = vec![0; codec.voxels()];
    let payload = bytes(3000, 3);
    let sign = codec.encode(&bytes(32, 8), &payload, &mut symbols).unwrap();
    assert_eq!(sign, signature(&payload));
    let lines: Vec<String> = symbols
        .chunks(96)
        .map(|row| row.iter().map(|symbol| char::from(b'0' + symbol)).collect())
        .collect();
    assert_eq!(lines.join("\n") + "\n", GOLDEN);
}

#[test]
fn golden_sector_is_decoded() {
    let (mut codec, payload) = (codec(), bytes(3000, 3));
    let mut soft = read(&golden_symbols());
    // One bit in a hundred weakly wrong, three not read, the same ones each time.
    let mut random = random(26);
    for soft in &mut soft {
        match random() % 100 {
            0 => *soft = -*soft / 4,
            1..=3 => *soft = 0,
            _ => {}
        }
    }
    let decoded = codec.decode(&bytes(32, 8), &soft).unwrap();
    assert_eq!(decoded.payload, Some(&payload[..]));
    let report = decoded.report;
    assert_eq!(report.failure, None);
    assert_eq!(report.payload_signature, Some(signature(&payload)));
    assert!(report.corrected_bits > 200 && report.erased_bits > 600, "{report:?}");
}

#[test]
fn missing_symbols_or_another_header_are_rejected() {
    let mut codec = codec();
    let soft = read(&golden_symbols());
    assert!(codec.decode(&bytes(32, 8), &soft[3..]).is_err());
    let other = codec.decode(&bytes(32, 20), &soft).unwrap();
    assert_eq!(other.payload, None);
}

//! The codes as a whole: tables, forms, golden words, and the decoder against its reference.

use proptest::prelude::*;

use super::calibrate::{UNITS_PER_LLR, fit_temperature};
use super::decode::{Effort, is_codeword};
use super::density::{Degrees, Density};
use super::random::Random;
use super::reference::sum_product;
use super::simulate::{Simulator, wilson_interval};
use super::*;
use crate::{CodeError, Isa};

fn all() -> impl Iterator<Item = (Rate, Block, Code)> {
    let names = Block::ALL.into_iter().flat_map(|block| Rate::ALL.map(|rate| (rate, block)));
    names.map(|(rate, block)| (rate, block, Code::standard(rate, block)))
}

/// Returns a code small enough for slow tests: 1536 bits, rate 3/4.
fn small() -> Code {
    let design = Design { circulant: 64, rows: 6, columns: 24, heavy: 6, seed: 3 };
    Code::new(design.build().unwrap()).unwrap()
}

#[test]
fn standard_tables_have_the_documented_properties() {
    for (rate, block, code) in all() {
        let name = format!("{block:?} {rate:?}");
        let nominal: f64 = rate.name().parse().unwrap();
        assert!((code.rate() - nominal).abs() < 1e-3, "{name} has rate {}", code.rate());
        let bits = if block == Block::Bits16k { 16_384 } else { 65_536 };
        assert!(code.bits().abs_diff(bits) < bits / 50, "{name} has {} bits", code.bits());
        assert!(code.matrix().circulant().is_multiple_of(64));
        let weights: Vec<usize> = code.matrix().columns().iter().map(Vec::len).collect();
        assert!(weights.iter().all(|weight| (2..=4).contains(weight)), "{name}");
        let twos = weights.iter().filter(|&&weight| weight == 2).count();
        assert_eq!(twos, code.matrix().rows() - 1, "{name}: the staircase alone has weight 2");
        assert_eq!(BaseMatrix::parse(&code.matrix().to_text()).unwrap(), *code.matrix());
    }
}

#[test]
fn girths_are_as_documented() {
    let girths: Vec<(usize, usize)> = all()
        .map(|(.., code)| Girth::compute(code.matrix()))
        .map(|g| (g.length, g.cycles))
        .collect();
    let documented = [
        (8, 162_560),
        (8, 919_872),
        (6, 2_944),
        (6, 111_168),
        (6, 312_128),
        (8, 26_880),
        (8, 464_128),
        (8, 1_895_168),
        (6, 10_752),
        (6, 102_912),
    ];
    assert_eq!(girths, documented);
}

#[test]
fn short_cycles_are_found() {
    // Two columns in two rows: differences 1 and 1 form a cycle of 4, 1 and 33 one of 8 (twice the
    // difference of 32 is a full turn of 64), 1 and 3 none up to 8.
    let compute = |second| {
        let column = |shift| vec![Entry { row: 0, shift: 0 }, Entry { row: 1, shift }];
        let matrix = BaseMatrix::new(64, 2, vec![column(1), column(second), vec![]]).unwrap();
        Girth::compute(&matrix)
    };
    assert_eq!(compute(1), Girth { length: 4, cycles: 64 });
    assert_eq!(compute(33), Girth { length: 8, cycles: 32 });
    assert_eq!(compute(3), Girth { length: 10, cycles: 0 });
}

#[test]
fn ranks_are_full() {
    // Elimination takes long for the long codes; their parity part has the same form.
    for rate in [Rate::R9of10, Rate::R19of20] {
        let code = Code::standard(rate, Block::Bits16k);
        assert_eq!(code.matrix().rank(), code.parity_bits(), "{rate:?}");
    }
    assert_eq!(small().matrix().rank(), small().parity_bits());
}

#[test]
fn construction_reproduces_the_tables() {
    // The other rates take longer; the example builds them the same way.
    for rate in [Rate::R5of6, Rate::R7of8] {
        for block in Block::ALL {
            let matrix = Design::standard(rate, block).build().unwrap();
            assert_eq!(matrix, *Code::standard(rate, block).matrix(), "{rate:?} {block:?}");
        }
    }
}

#[test]
fn limits_match_density_evolution() {
    for rate in [Rate::R5of6, Rate::R9of10] {
        let degrees = Degrees::compute(Code::standard(rate, Block::Bits16k).matrix());
        let erasures = |share: f64| {
            let mut density = Density::empty();
            density.add(31, 1.0 - share);
            density.add(0, share);
            density
        };
        let thresholds = rate.thresholds();
        assert!(degrees.converges(&erasures(thresholds.erasures * 0.98)), "{rate:?}");
        assert!(!degrees.converges(&erasures(thresholds.erasures * 1.02)), "{rate:?}");
        // With Gray labels, a wrong voxel has nearly one wrong bit of three.
        let voxels = |share: f64| VoxelChannel::new(3, 3.0 * share, UNITS_PER_LLR).density();
        assert!(degrees.converges(&voxels(thresholds.errors * 0.97)), "{rate:?}");
        assert!(!degrees.converges(&voxels(thresholds.errors * 1.03)), "{rate:?}");
    }
}

#[test]
fn margins_go_from_clean_to_the_limit() {
    let thresholds = Rate::R9of10.thresholds();
    let margin = |corrected, erased| {
        let outcome = Outcome { converged: true, iterations: 1, corrected, erased };
        thresholds.margin(&outcome, 10_000)
    };
    assert!((margin(0, 0) - 1.0).abs() < 1e-9);
    assert!(margin(107, 0) > 0.49 && margin(107, 0) < 0.51);
    assert!(margin(107, 415).abs() < 0.01);
    assert!(margin(300, 0) < 0.0);
}

/// Encodes and decodes bytes and soft bits given by formulas that other implementations can repeat.
fn golden(block: Block) -> String {
    let code = Code::standard(Rate::R9of10, block);
    let information: Vec<u8> = (0..code.information_bits() / 8)
        .map(|i| ((i * i * 31 + i * 7 + 3) / 5).to_le_bytes()[0])
        .collect();
    let mut word = information.clone();
    word.resize(code.bits() / 8, 0);
    Encoder::new(&code).encode(&information, &mut word[information.len()..]).unwrap();
    // Every 127th bit is weakly wrong, every 97th erased.
    let soft: Vec<i8> = (0..code.bits())
        .map(|i| {
            let right = if word[i / 8] >> (i % 8) & 1 == 0 { 1 } else { -1 };
            let strength = if i % 97 == 0 { 0 } else { 5 + i8::try_from(i % 13).unwrap() };
            if i % 127 == 0 { -right * 4 } else { right * strength }
        })
        .collect();
    let mut read = vec![0; word.len()];
    let outcome = Decoder::new(&code).decode(&soft, Effort::default(), &mut read).unwrap();
    assert_eq!(read, word);
    let parity = &word[information.len()..];
    let hex: Vec<String> = parity
        .chunks(32)
        .map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect();
    format!(
        "corrected {} erased {} iterations {}\n{}\n",
        outcome.corrected,
        outcome.erased,
        outcome.iterations,
        hex.join("\n")
    )
}

#[test]
fn golden_words_do_not_change() {
    assert_eq!(golden(Block::Bits16k), include_str!("golden/16k.txt"));
    assert_eq!(golden(Block::Bits64k), include_str!("golden/64k.txt"));
}

#[test]
fn encoders_agree_at_all_levels_and_sizes() {
    let mut random = Random::new(5);
    for circulant in [64, 128, 256, 512, 1024] {
        let design = Design { circulant, rows: 4, columns: 9, heavy: 2, seed: 1 };
        let code = Code::new(design.build().unwrap()).unwrap();
        let information: Vec<u8> =
            (0..code.information_bits() / 8).map(|_| random.bits().to_le_bytes()[0]).collect();
        let parities: Vec<Vec<u8>> = Isa::supported()
            .map(|isa| {
                let mut parity = vec![0; code.parity_bits() / 8];
                Encoder::with_isa(&code, isa).encode(&information, &mut parity).unwrap();
                parity
            })
            .collect();
        assert!(parities.windows(2).all(|pair| pair[0] == pair[1]), "{circulant}");
        let mut word = [&information[..], &parities[0]].concat();
        assert!(is_codeword(&code, &word).unwrap(), "{circulant}");
        // Every bit matters: each column has at least two checks.
        let place = random.below(code.bits());
        word[place / 8] ^= 1 << (place % 8);
        assert!(!is_codeword(&code, &word).unwrap(), "{circulant}");
    }
}

#[test]
fn wrong_lengths_are_refused() {
    let code = small();
    let (bits, bytes) = (code.bits(), code.bits() / 8);
    let mut decoder = Decoder::new(&code);
    for (soft, word) in [(bits - 1, bytes), (bits + 64, bytes), (bits, bytes - 1), (0, bytes)] {
        let result = decoder.decode(&vec![1; soft], Effort::default(), &mut vec![0; word]);
        assert!(matches!(result, Err(CodeError::WordLength { .. })), "{soft} {word}");
    }
    let mut encoder = Encoder::new(&code);
    let (information, parity) = (code.information_bits() / 8, code.parity_bits() / 8);
    for (from, to) in [(information - 1, parity), (information, parity + 1), (0, 0)] {
        let result = encoder.encode(&vec![0; from], &mut vec![0; to]);
        assert!(matches!(result, Err(CodeError::WordLength { .. })), "{from} {to}");
    }
    assert!(matches!(is_codeword(&code, &[]), Err(CodeError::WordLength { .. })));
    assert!(matches!(sum_product(&code, &[], 1), Err(CodeError::WordLength { .. })));
}

#[test]
fn unencodable_matrices_are_refused() {
    let good = small().matrix().clone();
    type Change<'a> = &'a dyn Fn(&mut Vec<Vec<Entry>>);
    let with = |change: Change<'_>| {
        let mut columns = good.columns().to_vec();
        change(&mut columns);
        BaseMatrix::new(64, 6, columns).and_then(Code::new)
    };
    assert!(with(&|_| ()).is_ok());
    let bad: [Change<'_>; 6] = [
        &|columns| columns[20][0].shift = 1,
        &|columns| columns[18].truncate(2),
        &|columns| columns[18][1].shift = 5,
        &|columns| columns[0].clear(),
        &|columns| columns[0] = (0..5).map(|row| Entry { row, shift: row }).collect(),
        &|columns| columns[0][0].row = 6,
    ];
    for change in bad {
        assert!(matches!(with(change), Err(CodeError::BaseMatrix { .. })));
    }
    for (rows, columns, heavy) in [(3, 20, 0), (6, 6, 0), (6, 20, 15)] {
        let design = Design { circulant: 64, rows, columns, heavy, seed: 0 };
        assert!(matches!(design.build(), Err(CodeError::BaseMatrix { .. })));
    }
    for circulant in [0, 32, 96, 2048] {
        let design = Design { circulant, rows: 6, columns: 20, heavy: 0, seed: 0 };
        assert!(matches!(design.build(), Err(CodeError::BaseMatrix { .. })));
    }
}

#[test]
fn reference_decoder_is_not_much_better() {
    // Integers and min-sum cost a few hundredths of a decibel, and keep the waterfall region.
    let code = small();
    let channel = VoxelChannel::new(3, 0.15, UNITS_PER_LLR);
    let frames = simulate::sample(&code, &channel, 9, 150);
    let mut decoder = Decoder::new(&code);
    let mut word = vec![0; code.bits() / 8];
    let (mut failed, mut reference_failed) = (0, 0);
    for soft in &frames {
        let outcome = decoder.decode(soft, Effort::default(), &mut word).unwrap();
        failed += usize::from(!outcome.converged);
        let ratios: Vec<f64> = soft.iter().map(|&soft| f64::from(soft) / UNITS_PER_LLR).collect();
        let (reference, converged) = sum_product(&code, &ratios, 30).unwrap();
        reference_failed += usize::from(!converged);
        if converged && outcome.converged {
            assert_eq!(reference, word);
        }
    }
    assert!(
        reference_failed > 5 && reference_failed < 100,
        "the reference failed {reference_failed} of 150 frames"
    );
    assert!(
        failed <= reference_failed + 20,
        "ours failed {failed}, the reference {reference_failed} of 150 frames"
    );
}

#[test]
fn simulations_repeat_and_add_up() {
    let code = Code::standard(Rate::R9of10, Block::Bits16k);
    let channel = VoxelChannel::new(3, 0.05, UNITS_PER_LLR);
    let mut simulator = Simulator::new(&code, channel, Effort::default());
    let first = simulator.run(1, 20);
    assert_eq!(simulator.run(1, 20), first);
    let mut sum = simulator.run(2, 20);
    assert_ne!(sum, first);
    sum.add(&first);
    assert_eq!((sum.frames, sum.failures, sum.bit_errors), (40, 0, 0));
    // 222 thousand voxels: the standard error of the rate is 0.0005, a quarter of the tolerance.
    let rate = sum.symbol_errors as f64 / sum.symbols as f64;
    assert!((rate - 0.05).abs() < 0.002, "{rate}");
    // Far above the threshold all words fail, and none is reported as converged.
    let mut simulator =
        Simulator::new(&code, VoxelChannel::new(4, 0.2, UNITS_PER_LLR), Effort::default());
    let lost = simulator.run(1, 5);
    assert_eq!((lost.failures, lost.undetected), (5, 0));
}

#[test]
fn confidence_intervals_have_their_coverage() {
    let [low, share, high] = wilson_interval(10, 1000);
    assert!((share - 0.01).abs() < 1e-9);
    assert!(low < 0.0055 && low > 0.0054 && high > 0.0182 && high < 0.0184);
    let [low_of_none, _, high_of_none] = wilson_interval(0, 0);
    assert!(low_of_none < 1e-9 && high_of_none > 1.0 - 1e-9);
    let [low, _, high] = wilson_interval(0, 1000);
    assert!(low < 1e-9 && high > 0.0038 && high < 0.0039);
}

#[test]
fn temperature_fit_recovers_the_scale() {
    // Ratios of a Gaussian channel, overconfident by a factor of three.
    let mut random = Random::new(3);
    let known: Vec<(f32, bool)> = (0..20_000)
        .map(|_| {
            let bit = random.bits() & 1 == 1;
            // The sum of twelve uniform numbers has variance 1.
            let noise: f32 = (0..12).map(|_| random.below(1 << 20) as f32).sum();
            let noise = noise / (1 << 20) as f32 - 6.0;
            let sent = if bit { -1.0 } else { 1.0 };
            (6.0 * (sent + noise), bit)
        })
        .collect();
    let factor = fit_temperature(&known).unwrap();
    assert!((factor - 1.0 / 3.0).abs() < 0.02, "{factor}");
    assert_eq!(fit_temperature(&[]), None);
    assert_eq!(fit_temperature(&[(1.0, false), (2.0, false)]), None);
    assert_eq!(fit_temperature(&[(1.0, true), (2.0, true)]), None);
}

#[test]
fn alist_counts_agree() {
    let code = small();
    let text = code.matrix().to_alist();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("1536 384"));
    assert_eq!(text.lines().count(), 4 + 1536 + 384);
    let ones = text.lines().skip(4).take(1536).flat_map(|line| line.split(' '));
    assert_eq!(ones.filter(|&check| check != "0").count(), code.matrix().edges());
}

proptest! {
    #[test]
    fn damaged_tables_are_errors(place in 0usize..2000, byte in 0u8..128) {
        let mut text = small().matrix().to_text().into_bytes();
        let place = place % text.len();
        text[place] = byte;
        let text = String::from_utf8(text).unwrap();
        // Either an error or a matrix, never a panic; a matrix survives a round trip.
        if let Ok(matrix) = BaseMatrix::parse(&text) {
            prop_assert_eq!(BaseMatrix::parse(&matrix.to_text()).unwrap(), matrix);
        }
    }
}

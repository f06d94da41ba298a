//! Tests of drawn probabilities: the collected statistics are reproduced, for good sectors and bad
//! ones.

use fulgurite_platter::channel::Channel;
use fulgurite_platter::{SectorExtent, SectorReading};
use fulgurite_units::{LayerIndex, PlatterId, TrackIndex};

use super::*;
use crate::voxels::margin;
use crate::{Scores, SoftReader};

/// Returns probabilities of a sector with this symbol error rate, and calibrated to it.
fn decoded(medium: Medium, symbols: &[u8], rate: f64, seed: u64) -> SymbolProbabilities {
    let count = medium.symbols();
    let mut stream = Seed::new(seed).stream();
    let mut logarithms = Vec::new();
    for own in symbols {
        // Twice as many symbols are doubtful as are wrong.
        let is_doubtful = stream.unit() < 2.0 * rate;
        let is_wrong = is_doubtful && stream.unit() < 0.5;
        let (first, second) =
            if is_wrong { ((own + 1) % count, *own) } else { (*own, (own + 1) % count) };
        let gap = if is_doubtful { 0.2 } else { 12.0 };
        logarithms.extend((0..count).map(|symbol| {
            if symbol == first {
                0.0
            } else if symbol == second {
                -gap
            } else {
                -14.0
            }
        }));
    }
    SymbolProbabilities::normalized(usize::from(count), logarithms)
}

fn drawn_symbols(medium: Medium, count: usize, seed: u64) -> Vec<u8> {
    let mut stream = Seed::new(seed).child(b"symbols").stream();
    let symbol_count = u64::from(medium.symbols());
    (0..count).map(|_| u8::try_from(stream.below(symbol_count)).unwrap()).collect()
}

/// Returns statistics of 64 sectors with error rates from 0.1 % to 6.4 %, and their scores.
fn statistics(medium: Medium, shares: Shares) -> (SoftStatistics, Scores) {
    statistics_in_steps(medium, shares, 0.001)
}

/// Returns the same for sectors whose error rates are multiples of a step.
fn statistics_in_steps(medium: Medium, shares: Shares, step: f64) -> (SoftStatistics, Scores) {
    let shape = SectorShape::new(64, 64).unwrap();
    let mut fit = SoftFit::new(medium);
    let mut scores = Scores::default();
    for number in 1..=64u32 {
        let symbols = drawn_symbols(medium, shape.voxels(), number.into());
        let found = decoded(medium, &symbols, step * f64::from(number), number.into());
        let score = Score::new(medium, shape, &found, &symbols);
        fit.add(shape, &found, &symbols, &score);
        scores.0.push(score);
    }
    let none = Interval { value: 0.0, low: 0.0, high: 0.0 };
    let about = Provenance {
        preset: "test".to_owned(),
        decoder: "test".to_owned(),
        seed: 1,
        side: 64,
        shares,
        measured: [none; 3],
        rate: Rate::R9of10,
        sector_bytes: 1024,
    };
    (fit.finish(about).unwrap(), scores)
}

const NO_SHARES: Shares = Shares { drive: 0.0, platter: 0.0 };

#[test]
fn drawn_voxels_match_the_statistics() {
    for preset in ["nominal", "phase"] {
        let medium = Channel::preset(preset).unwrap().medium;
        let (statistics, scores) = statistics(medium, NO_SHARES);
        let again = SoftStatistics::from_json(&statistics.to_json()).unwrap();
        let is_same = |(a, b): (&Bin, &Bin)| {
            (a.unsure - b.unsure).abs() < 1e-12
                && (&a.voxels, &a.symbols) == (&b.voxels, &b.symbols)
        };
        assert!(
            again.bins.iter().zip(&statistics.bins).all(is_same),
            "statistics round-trip through the file"
        );
        let channel = SoftChannel::new(&again).unwrap();
        let mut soft = Vec::new();
        let (mut errors, mut bits, mut worst) = (0.0, 0.0, 0.0f64);
        let sectors = 512;
        for number in 0..sectors {
            let symbols = drawn_symbols(medium, 4096, 1000 + number);
            let quality = (number as f64 + 0.5) / sectors as f64;
            let drawn = channel.draw(quality, &symbols, &Seed::new(number), &mut soft);
            assert_eq!(soft.len(), symbols.len() * usize::from(medium.bits()));
            errors += drawn.symbol_error_rate / sectors as f64;
            bits += drawn.information / sectors as f64;
            worst = worst.max(drawn.symbol_error_rate);
        }
        let (ser, _) = scores.mean(|score| score.symbol_error_rate);
        let (information, _) = scores.mean(|score| score.information);
        assert!((errors / ser - 1.0).abs() < 0.03, "{preset}: {errors} for {ser}");
        let (lost, expected) =
            (f64::from(medium.bits()) - bits, f64::from(medium.bits()) - information);
        assert!((lost / expected - 1.0).abs() < 0.04, "{preset}: {lost} bits lost for {expected}");
        assert!((0.05..0.08).contains(&worst), "the worst sector is as bad as measured: {worst}");
    }
}

/// Soft bits match the true label, and are wrong where the symbol is.
#[test]
fn soft_bits_match_the_symbol() {
    let medium = Channel::nominal().medium;
    let (statistics, _) = statistics(medium, NO_SHARES);
    let channel = SoftChannel::new(&statistics).unwrap();
    let labels = alphabet(medium);
    let symbols = drawn_symbols(medium, 20_000, 5);
    let mut soft = Vec::new();
    let drawn = channel.draw(0.5, &symbols, &Seed::new(5), &mut soft);
    let wrong = symbols.iter().zip(soft.as_chunks::<3>().0).filter(|(own, soft)| {
        let label = labels.label(**own);
        (0..3).any(|bit| (label >> bit & 1 == 1) != (soft[bit] < 0))
    });
    let rate = wrong.count() as f64 / symbols.len() as f64;
    assert!((rate / drawn.symbol_error_rate - 1.0).abs() < 0.05, "{rate} {drawn:?}");
}

/// The quality of one drive's sectors is correlated as the shares say.
#[test]
fn quality_is_uniform_and_shared_by_drives() {
    let medium = Channel::nominal().medium;
    let (statistics, _) = statistics(medium, Shares { drive: 0.5, platter: 0.25 });
    let channel = SoftChannel::new(&statistics).unwrap();
    let quality = |drive: u64, platter: u64, read: u64| {
        channel.quality(&Seed::new(drive), &Seed::new(1000 + platter), &Seed::new(2000 + read))
    };
    let all: Vec<f64> = (0..4000).map(|n| quality(n, n, n)).collect();
    let mean = all.iter().sum::<f64>() / 4000.0;
    let below_tenth = all.iter().filter(|quality| **quality < 0.1).count();
    assert!((mean - 0.5).abs() < 0.02 && (330..470).contains(&below_tenth), "{mean} {below_tenth}");
    let spread = |values: Vec<f64>| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
    };
    let of_drive = (0..40).map(|drive| spread((0..100).map(|n| quality(drive, n, n)).collect()));
    let within = of_drive.sum::<f64>() / 40.0;
    let ratio = within / spread(all);
    assert!((0.35..0.65).contains(&ratio), "half of the spread is left within a drive: {ratio}");
}

/// Drawn outcomes are lost as often as decoded sectors, on the same platters, and the others have
/// the same margins.
#[test]
fn outcomes_match_decoded_sectors() {
    let medium = Channel::nominal().medium;
    let (statistics, _) = statistics_in_steps(medium, NO_SHARES, 0.006);
    let seed = Seed::new(7);
    let mut soft = SoftReader::new(&statistics, Rate::R9of10, seed, 1).unwrap();
    let outcomes = OutcomeReader::new(&statistics, seed, 1).unwrap();
    let bytes = vec![0xA5; 1024];
    let (mut lost, mut margins, mut differ) = ([0u32; 2], [0u32; 2], 0);
    let sectors = 1500;
    let at = |number: u32| SectorExtent {
        platter: PlatterId::from_bytes(u128::from(number).to_le_bytes()),
        track: TrackIndex::new(0),
        first: LayerIndex::new(0),
        sector_bytes: bytes.len(),
    };
    for number in 0..sectors {
        let at = at(number);
        let (_, report, read) = soft.sector(at, 0, &bytes, 0, number.into(), 0).unwrap();
        let decoded = read.map(|_| margin(&report));
        let drawn = match outcomes.sector(at, 0, 0, number.into(), 0) {
            SectorReading::Lost => None,
            SectorReading::Read { margin } => margin,
        };
        for (source, reading) in [decoded, drawn].into_iter().enumerate() {
            lost[source] += u32::from(reading.is_none());
            margins[source] += u32::from(reading.unwrap_or(0));
        }
        differ += u32::from(decoded.is_none() != drawn.is_none());
    }
    let [decoded, drawn] = lost.map(|lost| f64::from(lost) / f64::from(sectors));
    assert!((0.2..0.8).contains(&decoded), "{decoded} of the sectors are lost");
    assert!((decoded - drawn).abs() < 0.02, "{decoded} and {drawn} are lost");
    assert!(f64::from(differ) < 0.05 * f64::from(sectors), "{differ} are read by one only");
    let mean = |source: usize| f64::from(margins[source]) / f64::from(sectors - lost[source]);
    assert!((mean(0) - mean(1)).abs() < 1.5, "margins {} and {}", mean(0), mean(1));
    // Each retry takes different images.
    let again = OutcomeReader::new(&statistics, seed, 3).unwrap();
    let is_lost = |reader: &OutcomeReader, number: u32| {
        reader.read(at(number), 1, 0, number.into())[0] == SectorReading::Lost
    };
    let three = (0..sectors).filter(|number| is_lost(&again, *number)).count();
    let expected = decoded.powi(3) * f64::from(sectors);
    assert!((three as f64 - expected).abs() < 0.3 * expected + 10.0, "{three} for {expected}");
}

#[test]
fn damaged_statistics_are_refused() {
    let medium = Channel::nominal().medium;
    let (statistics, _) = statistics(medium, NO_SHARES);
    let text = statistics.to_json();
    let refused = |text: &str| match SoftStatistics::from_json(text) {
        Err(DecodeError::Fit { reason }) => reason,
        other => panic!("{other:?}"),
    };
    assert!(refused("{}").contains("missing field"));
    assert!(refused(&text.replace("statistics 2", "statistics 9")).contains("statistics 9"));
    let more = text.replacen("\"unsure_voxels\":", "\"unsure_voxels\":9", 1);
    assert!(refused(&more).contains("incomplete"));
    let few = SoftFit::new(medium).finish(Provenance {
        preset: String::new(),
        decoder: String::new(),
        seed: 0,
        side: 0,
        shares: NO_SHARES,
        measured: [Interval { value: 0.0, low: 0.0, high: 0.0 }; 3],
        rate: Rate::R9of10,
        sector_bytes: 1024,
    });
    assert!(matches!(few, Err(DecodeError::Fit { .. })));
}

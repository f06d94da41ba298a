//! Tests of the decoders: known symbols through known channels.

mod bytes;
mod voxels;

use fulgurite_platter::channel::{
    Channel, Neighbor, ReadFaults, ReadHead, ReadSeeds, SectorImages, SectorShape, WriteFaults,
};
use fulgurite_units::Seed;

use crate::{
    DecodeError, Decoder, Demapper, Displacement, FlatImages, FrontEnd, LinearFit, Matched, Score,
    Scores, SymbolProbabilities, registered,
};

pub(crate) type LabeledSector = (SectorImages, Vec<u8>);

pub(crate) fn shape(side: u16) -> SectorShape {
    SectorShape::new(side, side).unwrap()
}

pub(crate) fn sector(channel: &Channel, shape: SectorShape, number: u64) -> LabeledSector {
    let seed = Seed::new(number);
    let mut stream = seed.child(b"symbols").stream();
    let most = u64::from(channel.medium.symbols());
    let mut symbols = || -> Vec<u8> {
        (0..shape.voxels()).map(|_| u8::try_from(stream.below(most)).unwrap()).collect()
    };
    let (own, other) = (symbols(), symbols());
    let neighbors = [Neighbor { distance: 1, symbols: &other }];
    let written = channel.write(shape, &own, &seed, &WriteFaults::default()).unwrap();
    let mut head = ReadHead::new(channel, shape, seed.child(b"drive")).unwrap();
    let seeds = ReadSeeds { platter: seed, track: seed, read: seed };
    (head.read(&written, &neighbors, &seeds, &ReadFaults::default()), own)
}

pub(crate) fn known(
    sectors: &[LabeledSector],
) -> impl Iterator<Item = (&SectorImages, &[u8])> + Clone {
    sectors.iter().map(|(images, symbols)| (images, &symbols[..]))
}

pub(crate) fn scores(
    channel: &Channel,
    decoder: &mut dyn Decoder,
    test: &[LabeledSector],
) -> Scores {
    let score = |(images, symbols): &LabeledSector| {
        let side = u16::try_from(images.rows / usize::from(channel.optics.pixels_per_pitch));
        let shape = shape(side.unwrap());
        let found = decoder.decode(images, shape).unwrap();
        Score::new(channel.medium, shape, &found, symbols)
    };
    Scores(test.iter().map(score).collect())
}

pub(crate) fn errors(scores: &Scores) -> f64 {
    scores.mean(|score| score.symbol_error_rate).0
}

/// Each decoder is better than the one before it, and the linear one reads the easy presets.
#[test]
fn decoders_read_what_was_written() {
    for (preset, most, gain) in [("easy", 0.05, 0.5), ("phase", 0.1, 0.7)] {
        let channel = Channel::preset(preset).unwrap();
        let shape = shape(64);
        let train: Vec<LabeledSector> = (0..10).map(|i| sector(&channel, shape, i)).collect();
        let test: Vec<LabeledSector> = (100..108).map(|i| sector(&channel, shape, i)).collect();
        let medium = channel.medium;
        let mut matched = Matched::fit(medium, 3, true, shape, known(&train)).unwrap();
        let mut fit = LinearFit::new(medium, 3, true, shape);
        known(&train).for_each(|(images, symbols)| fit.add(images, symbols).unwrap());
        let (mut linear, mut refit) = fit.finish(known(&train)).unwrap();
        let by_matched = scores(&channel, &mut matched, &test);
        let by_linear = scores(&channel, &mut linear, &test);
        let by_refit = scores(&channel, &mut refit, &test[..2]);
        let found = [errors(&by_matched), errors(&by_linear), errors(&by_refit)];
        assert!(found[1] < most && found[1] < gain * found[0], "{preset}: {found:?}");
        assert!(found[2] < most, "{preset}: {found:?}");
        let bits = f64::from(medium.bits());
        let information = by_linear.mean(|score| score.information).0;
        assert!(information > 0.85 * bits && information < bits, "{preset}: {information}");
    }
}

/// A shift of all images is found, and twice the shift is found as twice.
#[test]
fn registration_finds_voxel_positions() {
    let mut channel = Channel::preset("easy").unwrap();
    channel.stage.shift_px = 0.3;
    channel.stage.warp_px = 0.0;
    channel.stage.state_px = 0.0;
    channel.voxels.line_position = 0.0;
    channel.shares.drive = 0.0;
    channel.shares.platter = 0.0;
    let shape = shape(64);
    let mut still = channel.clone();
    still.stage.shift_px = 0.0;
    let found = |channel: &Channel, number: u64| {
        let (images, _) = sector(channel, shape, number);
        let displacement = Displacement::find(&FlatImages::new(&images, 3), shape);
        displacement.voxel(32, 32)
    };
    let mut spread = 0.0f32;
    for number in 0..6 {
        // The same draw at half the amplitude: shifts are proportional.
        let mut half = channel.clone();
        half.stage.shift_px = 0.15;
        let (none, some, more) =
            (found(&still, number), found(&half, number), found(&channel, number));
        for axis in 0..2 {
            // The contribution of a sector's own symbols to the tone is the same in all three.
            assert!(none[axis].abs() < 0.2, "{none:?}");
            let [some, more] = [some, more].map(|shift| shift[axis] - none[axis]);
            assert!((more - 2.0 * some).abs() < 0.1, "{some} {more}");
            spread = spread.max(more.abs());
        }
    }
    assert!(spread > 0.4, "{spread}");
}

/// Sectors that are rotated and scaled by more than half a pitch at their corners are read as well
/// as others.
#[test]
fn registration_follows_rotation_and_scale() {
    let shape = shape(128);
    let mut channel = Channel::preset("easy").unwrap();
    channel.optics.focus_um = 0.0;
    let train: Vec<LabeledSector> = (0..6).map(|i| sector(&channel, shape, i)).collect();
    let mut fit = LinearFit::new(channel.medium, 3, true, shape);
    known(&train).for_each(|(images, symbols)| fit.add(images, symbols).unwrap());
    let (mut linear, _) = fit.finish(known(&train)).unwrap();
    let mut errors_at = |warp_px: f64| {
        channel.stage.warp_px = warp_px;
        let test: Vec<LabeledSector> = (100..106).map(|i| sector(&channel, shape, i)).collect();
        errors(&scores(&channel, &mut linear, &test))
    };
    let found = [errors_at(0.35), errors_at(0.9)];
    assert!(found[1] < 1.5 * found[0] + 1e-3, "{found:?}");
}

/// Buffers reused from other sectors have no effect.
#[test]
fn decoders_keep_no_state_between_sectors() {
    let channel = Channel::preset("easy").unwrap();
    let train: Vec<LabeledSector> = (0..4).map(|i| sector(&channel, shape(64), i)).collect();
    let mut fit = LinearFit::new(channel.medium, 3, true, shape(64));
    known(&train).for_each(|(images, symbols)| fit.add(images, symbols).unwrap());
    let (fresh, _) = fit.finish(known(&train)).unwrap();
    let mut used = fresh.clone();
    let mut front = FrontEnd::new();
    for (side, number) in [(64, 10), (32, 11), (96, 12), (64, 10)] {
        let (images, _) = sector(&channel, shape(side), number);
        let expected = fresh.clone().decode(&images, shape(side)).unwrap();
        assert_eq!(used.decode(&images, shape(side)).unwrap(), expected, "{side} {number}");
        let kept = front.registered(&images, shape(side), channel.medium, 3).unwrap();
        assert_eq!(kept, registered(&images, shape(side), channel.medium, 3).unwrap());
    }
}

#[test]
fn demapper_matches_its_gaussians() {
    let medium = fulgurite_platter::channel::Medium::Birefringent;
    let demapper = Demapper::isotropic(medium, 0.02).unwrap();
    let found = demapper.probabilities(&[[1.0, 0.0], [0.0, 1.0], [-0.9, 0.1]]);
    assert_eq!([0, 1, 2].map(|i| found.likeliest(i)), [0, 2, 4]);
    for voxel in 0..3 {
        let sum: f32 = found.voxel(voxel).iter().map(|logarithm| logarithm.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-5);
    }
    // Neighboring clouds are 2 sin(pi / 8) apart: the density ratio is exp(-d^2 / 2 variance).
    let ratio = f64::from(found.voxel(0)[1] - found.voxel(0)[0]);
    let distance = (std::f64::consts::PI / 8.0).sin() * 2.0;
    assert!((ratio + distance * distance / 0.04).abs() < 1e-3, "{ratio}");
    let few = Demapper::fit(medium, &[[0.0, 0.0]; 8], &[0, 1, 2, 3, 4, 5, 6, 7]).unwrap_err();
    assert_eq!(few.to_string(), "cannot fit a decoder: symbol 0 was seen 1 times; 16 are needed");
}

/// Hand-computed: all certain and right, all certain and wrong by one step of the ring, and
/// uniform.
#[test]
fn scores_match_hand_computed_values() {
    let medium = fulgurite_platter::channel::Medium::Birefringent;
    let shape = shape(16);
    let sure = |symbol: usize| {
        let voxel: Vec<f32> = (0..8).map(|k| if k == symbol { 0.0 } else { -30.0 }).collect();
        SymbolProbabilities::normalized(8, voxel.repeat(256))
    };
    let right = Score::new(medium, shape, &sure(3), &[3; 256]);
    assert_eq!((right.voxels, right.symbol_error_rate, right.bit_error_rate), (64, 0.0, 0.0));
    assert!((right.information - 3.0).abs() < 1e-6);
    let wrong = Score::new(medium, shape, &sure(4), &[3; 256]);
    // Gray labels of neighbors differ in one bit of three.
    assert!((wrong.bit_error_rate - 1.0 / 3.0).abs() < 1e-12);
    assert!((wrong.symbol_error_rate - 1.0).abs() < 1e-12);
    let none = SymbolProbabilities::normalized(8, vec![0.0; 8 * 256]);
    assert!(Score::new(medium, shape, &none, &[3; 256]).information.abs() < 1e-5);
    let scores = Scores(vec![right, wrong]);
    assert!((scores.quantile(0.5, |score| score.symbol_error_rate) - 0.5).abs() < 1e-12);
    let (mean, error) = scores.mean(|score| score.symbol_error_rate);
    assert!((mean - 0.5).abs() < 1e-12 && (error - 0.5).abs() < 1e-12);
}

#[test]
fn images_of_another_size_are_refused() {
    let channel = Channel::preset("easy").unwrap();
    let (images, symbols) = sector(&channel, shape(32), 1);
    let mut fit = LinearFit::new(channel.medium, 3, true, shape(64));
    let error = fit.add(&images, &symbols).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the images are 4 of 96 x 96 pixels (36864 in all); a sector of 64 x 64 voxels has 4 of \
         192 x 192"
    );
    let mut torn = images.clone();
    torn.pixels.pop();
    let mut same = LinearFit::new(channel.medium, 3, true, shape(32));
    assert!(matches!(same.add(&torn, &symbols), Err(DecodeError::Images { .. })));
    assert!(matches!(same.finish(known(&[])), Err(DecodeError::Fit { .. })));
}

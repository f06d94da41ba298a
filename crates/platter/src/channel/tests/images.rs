//! Whole images: noise, symmetries, damage.

use expect_test::expect;

use super::super::{
    Channel, Disc, Dust, Medium, Neighbor, Orientation, ReadFaults, ReadHead, Scratch,
    SectorImages, WriteFaults,
};
use super::{clean, moments, near, read, seeds, shape, symbols, written};
use fulgurite_units::Seed;

fn pixels(images: &SectorImages, index: usize) -> impl Iterator<Item = f64> + '_ {
    images.image(index).iter().map(|pixel| f64::from(*pixel))
}

#[test]
fn noise_of_an_empty_sector_matches_its_electrons() {
    for (electrons, read_noise, bits) in [(900.0, 4.0, 8), (900.0, 4.0, 12), (100.0, 8.0, 12)] {
        let mut channel = clean();
        channel.camera.electrons = electrons;
        channel.camera.read_electrons = read_noise;
        channel.camera.bits = bits;
        let shape = shape(128);
        let lost = WriteFaults { lost_layer: true, ..WriteFaults::default() };
        let sector = channel.write(shape, &vec![0; 16_384], &Seed::new(1), &lost).unwrap();
        let images = read(&channel, &sector, &[], &ReadFaults::default());
        let gain = (f64::from((1u32 << bits) - 1)) / (2.5 * electrons);
        let count = f64::from(4 * 9 * 16_384);
        let (mean, variance) = moments((0..4).flat_map(|k| pixels(&images, k)));
        let expected = gain * gain * (electrons + read_noise * read_noise) + 1.0 / 12.0;
        near(mean, gain * electrons, 4.0 * (expected / count).sqrt());
        near(variance, expected, 5.0 * expected * (2.0 / count).sqrt() + 0.001 * expected);
        // The third moment of a Poisson number is its mean.
        let third = moments((0..4).flat_map(|k| pixels(&images, k)).map(|v| (v - mean).powi(3))).0;
        let error = 5.0 * (15.0 * expected.powi(3) / count).sqrt();
        near(third, gain.powi(3) * electrons, error);
    }
}

/// Rotating the sample by 45 degrees shifts every symbol by two and every image by one state.
#[test]
fn the_azimuth_has_no_preferred_direction() {
    let mut channel = clean();
    channel.voxels.memory_azimuth = 0.25;
    channel.voxels.memory_retardance = 0.25;
    channel.optics.halo = 0.06;
    channel.optics.layers = 1;
    let shape = shape(32);
    let (own, other) = (symbols(&channel, shape, 1), symbols(&channel, shape, 2));
    let turned = |symbols: &[u8]| symbols.iter().map(|s| (s + 2) % 8).collect::<Vec<u8>>();
    let images = |own: &[u8], other: &[u8]| {
        let sector = written(&channel, shape, own);
        let neighbors = [Neighbor { distance: 1, symbols: other }];
        read(&channel, &sector, &neighbors, &ReadFaults::default())
    };
    let first = images(&own, &other);
    let second = images(&turned(&own), &turned(&other));
    for k in 0..4 {
        // 10^6 electrons correspond to 4095 / 2.5 pixel values, with a noise of 1.6.
        let differences = pixels(&first, k).zip(pixels(&second, (k + 1) % 4)).map(|(a, b)| a - b);
        let (mean, variance) = moments(differences);
        near(mean, 0.0, 0.1);
        near(variance.sqrt(), 2.0f64.sqrt() * 1.64, 0.3);
    }
    let spread = moments(pixels(&first, 0)).1.sqrt();
    assert!(spread > 200.0, "there is a signal: {spread}");
}

#[test]
fn misoriented_platter_is_seen_mirrored() {
    let channel = clean();
    let shape = shape(32);
    let sector = written(&channel, shape, &symbols(&channel, shape, 1));
    let lying = |placement| {
        read(&channel, &sector, &[], &ReadFaults { placement, ..ReadFaults::default() })
    };
    let right = lying(Orientation::Right);
    let same = |a: Vec<f64>, b: Vec<f64>| {
        let spread = moments(a.iter().zip(&b).map(|(a, b)| a - b)).1.sqrt();
        assert!(spread < 4.0, "{spread}");
    };
    let half = lying(Orientation::HalfTurn);
    let upside = lying(Orientation::UpsideDown);
    for k in 0..4 {
        let mut reversed: Vec<f64> = pixels(&half, k).collect();
        reversed.reverse();
        same(pixels(&right, k).collect(), reversed);
        // The first and the third state see sin 2 phi, which changes its sign.
        let other = [2, 1, 0, 3][k];
        let rows: Vec<f64> = pixels(&upside, other).collect();
        let flipped = rows.chunks(96).rev().flatten().copied().collect();
        same(pixels(&right, k).collect(), flipped);
    }
}

#[test]
fn surface_and_drive_damage_is_where_it_was_injected() {
    let channel = clean();
    let shape = shape(64);
    let lost = WriteFaults { lost_layer: true, ..WriteFaults::default() };
    let sector = channel.write(shape, &vec![0; 4096], &Seed::new(1), &lost).unwrap();
    let region = Disc { row: 40.0, column: 10.0, radius: 3.0 };
    let faults = ReadFaults {
        scratches: vec![Scratch {
            row: 32.0,
            column: 32.0,
            angle_deg: 0.0,
            width: 1.0,
            depth: 0.5,
        }],
        dust: vec![Dust { region, depth: 0.8 }],
        dead_columns: vec![100, 9999],
        ..ReadFaults::default()
    };
    let images = read(&channel, &sector, &[], &faults);
    let at = |row: usize, column: usize| f64::from(images.image(2)[row * 192 + column]) / 1638.0;
    near(at(20, 20), 1.0, 0.01);
    // A scratch along row 32: pixel 96.
    near(at(96, 20), 0.5, 0.01);
    near(at(99, 180), 1.0 - 0.5 * (-0.5f64).exp(), 0.01);
    near(at(120, 30), 0.2, 0.01);
    near(at(120, 39), 1.0 - 0.8 * (-0.5f64).exp(), 0.01);
    assert!((0..4).all(|k| (0..192).all(|row| images.image(k)[row * 192 + 100] == 0)));
}

#[test]
fn reads_differ_in_noise_and_repeat_by_seed() {
    let channel = Channel::nominal();
    let shape = shape(32);
    let sector = written(&channel, shape, &symbols(&channel, shape, 1));
    let mut head = ReadHead::new(&channel, shape, Seed::new(5)).unwrap();
    let none = ReadFaults::default();
    let first = head.read(&sector, &[], &seeds(1), &none);
    let second = head.read(&sector, &[], &seeds(2), &none);
    assert_eq!(first, head.read(&sector, &[], &seeds(1), &none));
    assert_ne!(first, second);
    assert_eq!((first.count, first.rows, first.columns, first.bits), (4, 96, 96, 8));
    assert!(first.pixels.iter().all(|pixel| *pixel < 256));
}

/// Images are sums in a fixed order, so every instruction-set level gives the same image.
#[test]
fn images_are_the_same_on_every_machine() {
    let found = ["nominal", "phase"].map(|name| {
        let channel = Channel::preset(name).unwrap();
        let shape = shape(32);
        let sector = written(&channel, shape, &symbols(&channel, shape, 1));
        let other = symbols(&channel, shape, 2);
        let neighbors = [1, 2].map(|distance| Neighbor { distance, symbols: &other });
        let images = read(&channel, &sector, &neighbors, &ReadFaults::default());
        let bytes: Vec<u8> = images.pixels.iter().flat_map(|pixel| pixel.to_le_bytes()).collect();
        let means: Vec<String> =
            (0..images.count).map(|k| format!("{:.2}", moments(pixels(&images, k)).0)).collect();
        let hash = &blake3::hash(&bytes).to_hex()[..16];
        format!("{name} {hash}, means {}\n", means.join(" "))
    });
    expect![[r#"
        nominal 07937930b3692534, means 102.66 99.81 105.22 101.90
        phase e3dacbe9ada49c57, means 100.44
    "#]]
    .assert_eq(&found.concat());
}

/// One image of borosilicate: brighter with the level, around the mean of all levels.
#[test]
fn phase_contrast_is_brighter_at_higher_levels() {
    let mut channel = clean();
    channel.medium = Medium::Phase;
    channel.voxels.retardance_nm = 40.0;
    let shape = shape(32);
    let levels: Vec<f64> = (0..4)
        .map(|level| {
            let sector = written(&channel, shape, &vec![level; 1024]);
            let images = read(&channel, &sector, &[], &ReadFaults::default());
            assert_eq!(images.count, 1);
            moments(pixels(&images, 0)).0
        })
        .collect();
    assert!(levels.is_sorted_by(|a, b| a + 50.0 < *b), "{levels:?}");
}

//! The write process.

use expect_test::expect;
use fulgurite_units::Seed;

use super::super::write::ideal_voxel;
use super::super::{CHANNEL_PRESETS, Channel, Disc, Medium, SectorShape, WriteFaults};
use super::{clean, moments, near, shape, symbols, written};

/// Written platters depend on this: changing it changes the medium.
#[test]
fn written_sectors_are_the_same_on_every_machine() {
    let found = CHANNEL_PRESETS.map(|name| {
        let channel = Channel::preset(name).unwrap();
        let shape = shape(64);
        let sector = written(&channel, shape, &symbols(&channel, shape, 1));
        let mut hasher = blake3::Hasher::new();
        for plane in sector.field.iter().chain(&sector.offsets) {
            for value in &plane.values {
                hasher.update(&value.to_bits().to_le_bytes());
            }
        }
        format!("{name} {}\n", &hasher.finalize().to_hex()[..16])
    });
    expect![[r#"
        nominal 6282d64a2d411de5
        easy 539627ca643d2054
        dense 6282d64a2d411de5
        phase 7c4cbf9027977b8a
    "#]]
    .assert_eq(&found.concat());
}

#[test]
fn clean_voxel_has_its_azimuth_and_retardance() {
    let channel = clean();
    let shape = shape(16);
    let symbols = symbols(&channel, shape, 1);
    let sector = written(&channel, shape, &symbols);
    let amplitude = (std::f64::consts::TAU * 0.012 / 0.52).sin();
    for (i, symbol) in symbols.iter().enumerate() {
        let [re, im] = sector.voxel(i / 16, i % 16).map(f64::from);
        let double_azimuth = 2.0 * f64::from(*symbol) * std::f64::consts::PI / 8.0;
        near(re, amplitude * double_azimuth.cos(), 1e-6);
        near(im, amplitude * double_azimuth.sin(), 1e-6);
    }
}

#[test]
fn voxel_is_shifted_by_the_previous_voxel_and_line() {
    let channel = Channel::nominal();
    let turn = std::f64::consts::TAU;
    for (own, left, up) in [(0, 0, 0), (0, 2, 0), (3, 1, 7), (7, 0, 4), (5, 5, 1)] {
        let [d1, d2] = [left, up].map(|other| f64::from(i16::from(other) - i16::from(own)) / 8.0);
        let sines = (turn * d1).sin() + 0.5 * (turn * d2).sin();
        let cosines = (turn * d1).cos() + 0.5 * (turn * d2).cos();
        let (double_azimuth, level) = ideal_voxel(&channel, own, left, up);
        near(f64::from(double_azimuth) * turn, f64::from(own) / 8.0 * turn + 0.25 * sines, 1e-5);
        near(f64::from(level), 1.0 + 0.25 * cosines, 1e-6);
    }
}

#[test]
fn voxel_spread_matches_the_parameters() {
    let mut channel = clean();
    channel.voxels.retardance_spread = 0.08;
    channel.voxels.azimuth_deg = 1.5;
    channel.voxels.missing = 0.01;
    channel.voxels.position = 0.03;
    let shape = shape(512);
    let sector = written(&channel, shape, &vec![0; shape.voxels()]);
    let voxels = (0..shape.voxels()).map(|i| sector.voxel(i / 512, i % 512).map(f64::from));
    let (formed, missing): (Vec<_>, Vec<_>) = voxels.partition(|[re, im]| re.hypot(*im) > 1e-9);
    near(missing.len() as f64 / shape.voxels() as f64, 0.01, 4.0 * (0.01f64 / 262_144.0).sqrt());
    let amplitudes = formed.iter().map(|[re, im]| re.hypot(*im).asin() * 0.52 / 0.012);
    let (mean, variance) = moments(amplitudes.map(|phase| phase / std::f64::consts::TAU));
    near(mean, 1.0, 1e-3);
    near(variance.sqrt(), 0.08, 1e-3);
    let azimuths = formed.iter().map(|[re, im]| 0.5 * im.atan2(*re).to_degrees());
    let (mean, variance) = moments(azimuths);
    near(mean, 0.0, 0.02);
    near(variance.sqrt(), 1.5, 0.02);
    let (mean, variance) = moments(sector.offsets[1].values.iter().map(|v| f64::from(*v)));
    near(mean, 0.0, 3e-4);
    near(variance.sqrt(), 0.03, 3e-4);
}

#[test]
fn write_faults_affect_the_given_regions() {
    let channel = clean();
    let shape = shape(64);
    let seed = Seed::new(2);
    let dip = Disc { row: 20.0, column: 20.0, radius: 5.0 };
    let hole = Disc { row: 50.0, column: 40.0, radius: 4.0 };
    let faults =
        WriteFaults { dips: vec![(dip, 0.5)], particulates: vec![hole], lost_layer: false };
    let sector = channel.write(shape, &vec![0; 4096], &seed, &faults).unwrap();
    let whole = sector.voxel(0, 0)[0];
    near(f64::from(sector.voxel(20, 20)[0] / whole), 0.5, 0.01);
    assert!(sector.voxel(50, 40).iter().all(|part| *part == 0.0));
    let count = |of: fn(f32, f32) -> bool| {
        (0..4096).filter(|i| of(sector.voxel(i / 64, i % 64)[0], whole)).count()
    };
    // Points of a square lattice closer than 4, and than 5.
    assert_eq!(count(|v, _| v == 0.0), 45);
    assert_eq!(count(|v, whole| v > 0.0 && v < 0.9 * whole), 69);
    let lost = WriteFaults { lost_layer: true, ..WriteFaults::default() };
    let sector = channel.write(shape, &vec![3; 4096], &seed, &lost).unwrap();
    assert!((0..4096).all(|i| sector.voxel(i / 64, i % 64) == [0.0, 0.0]));
}

#[test]
fn figures_of_the_media_follow_from_published_ones() {
    for (medium, layer, area, write, share, preset) in [
        (Medium::Birefringent, 6.64, 0.242, 25.6, 0.846, "nominal"),
        (Medium::Phase, 7.75, 0.350, 18.4, 0.828, "phase"),
    ] {
        let figures = medium.figures();
        near(figures.layer_um(), layer, 0.01);
        near(figures.voxel_um2(), area, 0.001);
        near(figures.derived_write_mbit_s(), figures.write_mbit_s, 1e-9);
        assert!((figures.write_mbit_s - write).abs() < 1e-9);
        near(figures.used_share(), share, 0.001);
        // The presets' pitches are those, rounded.
        let channel = Channel::preset(preset).unwrap();
        near(channel.voxels.pitch_um.powi(2), area, 0.04 * area);
        near(channel.voxels.layer_um, layer, 0.05);
        assert_eq!(1u32 << medium.bits(), u32::from(medium.symbols()));
    }
    near(Medium::Birefringent.figures().voxels(), 1.51e13, 0.01e13);
}

#[test]
fn invalid_parameters_are_refused_by_name() {
    let mut channel = Channel::nominal();
    channel.camera.bits = 17;
    let refused = |error: crate::PlatterError| format!("{error}\n");
    let mut found = refused(channel.validate().unwrap_err());
    channel = Channel::nominal();
    channel.optics.aperture = f64::NAN;
    found += &refused(channel.validate().unwrap_err());
    found += &refused(Channel::preset("best").unwrap_err());
    let (nominal, shape) = (Channel::nominal(), shape(16));
    let write = |symbols: &[u8]| {
        nominal.write(shape, symbols, &Seed::new(1), &WriteFaults::default()).unwrap_err()
    };
    found += &refused(write(&[0; 255]));
    found += &refused(write(&[8; 256]));
    found += &refused(SectorShape::new(18, 16).unwrap_err());
    found += &refused(SectorShape::holding(0).unwrap_err());
    expect![[r#"
        channel: camera.bits is 17; it may be 4 to 16
        channel: optics.aperture is NaN; it may be 0.05 to 1.387
        channel: preset is best; it may be one of nominal, easy, dense, phase
        channel: symbols is 255 of them; it may be 256 for 16 x 16
        channel: symbols is 8 at voxel 0; it may be below 8
        channel: rows is 18; it may be a multiple of 4, 16 to 2048
        channel: voxels is 0; it may be 1 to 4194304
    "#]]
    .assert_eq(&found);
}

#[test]
fn shape_holds_the_requested_voxels() {
    for voxels in [1, 256, 257, 4096, 102_400, 304_346, 2048 * 2048] {
        let shape = SectorShape::holding(voxels).unwrap();
        assert!(shape.voxels() >= voxels, "{voxels}: {shape:?}");
        assert!(shape.voxels() <= (voxels + 8 * shape.columns()).max(256), "{voxels}: {shape:?}");
    }
}

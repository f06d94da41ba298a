//! Tests of the channel: its physics against slow references and formulas.

mod images;
mod numbers;
mod optics;
mod writing;

use fulgurite_units::Seed;

use super::{Channel, Neighbor, ReadFaults, ReadHead, ReadSeeds, SectorImages, SectorShape};
use super::{WriteFaults, WrittenSector};

fn shape(side: u16) -> SectorShape {
    SectorShape::new(side, side).unwrap()
}

fn symbols(channel: &Channel, shape: SectorShape, seed: u64) -> Vec<u8> {
    let mut stream = Seed::new(seed).stream();
    let symbol_count = u64::from(channel.medium.symbols());
    (0..shape.voxels()).map(|_| u8::try_from(stream.below(symbol_count)).unwrap()).collect()
}

/// Returns a channel without noise, errors or defects.
fn clean() -> Channel {
    let mut channel = Channel::nominal();
    let v = &mut channel.voxels;
    (v.retardance_spread, v.drift, v.azimuth_deg, v.missing) = (0.0, 0.0, 0.0, 0.0);
    (v.memory_azimuth, v.memory_retardance, v.position, v.line_position) = (0.0, 0.0, 0.0, 0.0);
    let o = &mut channel.optics;
    (o.focus_um, o.halo, o.illumination, o.layers) = (0.0, 0.0, 0.0, 0);
    let p = &mut channel.polarization;
    (p.swing_error, p.axis_error_deg, p.gain_error, p.background_rad) = (0.0, 0.0, 0.0, 0.0);
    let s = &mut channel.stage;
    (s.shift_px, s.warp_px, s.state_px) = (0.0, 0.0, 0.0);
    let d = &mut channel.defects;
    (d.dust, d.scratches, d.voids) = (0.0, 0.0, 0.0);
    let c = &mut channel.camera;
    (c.electrons, c.read_electrons, c.nonuniformity, c.bits) = (1e6, 0.0, 0.0, 12);
    channel
}

fn written(channel: &Channel, shape: SectorShape, symbols: &[u8]) -> WrittenSector {
    channel.write(shape, symbols, &Seed::new(2), &WriteFaults::default()).unwrap()
}

fn seeds(read: u64) -> ReadSeeds {
    ReadSeeds { platter: Seed::new(3), track: Seed::new(4), read: Seed::new(read) }
}

fn read(
    channel: &Channel,
    sector: &WrittenSector,
    neighbors: &[Neighbor<'_>],
    faults: &ReadFaults,
) -> SectorImages {
    let mut head = ReadHead::new(channel, sector.shape(), Seed::new(5)).unwrap();
    head.read(sector, neighbors, &seeds(6), faults)
}

/// Returns mean and variance.
fn moments(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    let mean = sum / count;
    (mean, squares / count - mean * mean)
}

#[track_caller]
fn near(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within, "{found} is not {expected} +- {within}");
}

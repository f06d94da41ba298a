//! Simulated sector failures: which sectors the medium fails to read.
//!
//! Failures are a pure function of seed and place, so a platter fails identically each time it is
//! read, and a run can be repeated from its seed. It is a cheap alternative to simulating the voxel
//! channel.

use fulgurite_units::{LayerIndex, PlatterId, Ratio, Seed, TrackIndex};

/// Decides which sectors cannot be read.
pub trait Faults: Sync {
    /// Returns whether this sector fails.
    fn fails(&self, platter: PlatterId, track: TrackIndex, layer: LayerIndex) -> bool;
}

/// A medium that never fails.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFaults;

impl Faults for NoFaults {
    fn fails(&self, _: PlatterId, _: TrackIndex, _: LayerIndex) -> bool {
        false
    }
}

/// Independent failures of sectors and of whole tracks, at given rates.
#[derive(Clone, Copy, Debug)]
pub struct SeededFaults {
    key: u64,
    sector_threshold: u64,
    track_threshold: u64,
}

impl SeededFaults {
    /// Creates faults: each sector fails with probability `sector_rate`; each track fails as a
    /// whole with probability `track_rate`.
    #[must_use]
    pub fn new(seed: Seed, sector_rate: Ratio, track_rate: Ratio) -> Self {
        Self {
            key: seed.child(b"sector faults").stream().next_u64(),
            sector_threshold: threshold(sector_rate),
            track_threshold: threshold(track_rate),
        }
    }
}

impl Faults for SeededFaults {
    fn fails(&self, platter: PlatterId, track: TrackIndex, layer: LayerIndex) -> bool {
        let id = u128::from_le_bytes(platter.to_bytes());
        #[expect(clippy::cast_possible_truncation, reason = "both halves of the id are taken")]
        let (low, high) = (id as u64, (id >> 64) as u64);
        let track_hash =
            split_mix64(split_mix64(split_mix64(self.key ^ low) ^ high) ^ u64::from(track.get()));
        // A layer is a 16-bit number: bit 16 separates the draws of sectors from those of tracks.
        split_mix64(track_hash) < self.track_threshold
            || split_mix64(track_hash ^ 1 << 16 ^ u64::from(layer.get())) < self.sector_threshold
    }
}

/// Returns the limit below which a uniform 64-bit draw falls with probability `rate`; at rate 1 one
/// draw of 2^64 is missed.
fn threshold(rate: Ratio) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a ratio is in 0..=1 and float casts saturate"
    )]
    let threshold = (rate.get() * 18_446_744_073_709_551_616.0) as u64;
    threshold
}

/// One step of SplitMix64: a fast mixing of 64 bits.
const fn split_mix64(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

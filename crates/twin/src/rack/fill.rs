//! Fills a rack until a write is rejected, and measures how full its disks are then (Pelican, OSDI
//! 2014, section 4.9).
//!
//! A blob goes to a group drawn at random, and to another one if that has no room. In its group it
//! goes to the three disks of each backplane with the most free space or, for comparison, to any 18
//! with enough.

use fulgurite_units::{ByteCount, Seed};
use serde::Deserialize;

use super::latencies::stream;
use super::shape::{DISKS, DISKS_OF_GROUP, GROUPS};
use super::workload::Sizes;
use crate::Error;
use crate::workload::{Draws, floor};

/// Disks per group and backplane.
const DISKS_OF_SET: usize = 4;
/// Stacks per blob and backplane.
const STACKS_OF_SET: usize = 3;
/// Stacks per blob.
const STACKS: usize = 18;
/// Data stacks per blob.
const DATA: u64 = 15;
/// Bytes per fragment: stacks are multiples of it.
const FRAGMENT: u64 = 128 * 1024;
/// The mean size of a disk, in bytes (section 1).
const DISK_MEAN: f64 = 4.55e12;

/// The sizes of the disks of a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskSizes {
    /// As in the paper's rack: 4.55 TB on average, few as small as 4.2.
    Mixed,
    /// All of the mean size.
    Equal,
}

/// Which disks of its group a blob goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Three of the four on each backplane, those with the most free space.
    Backplanes,
    /// Any 18 with enough free space.
    Random,
}

/// A full rack.
#[derive(Clone, Debug)]
pub(crate) struct FullRack {
    sizes: Vec<u64>,
    room: Vec<u64>,
}

impl FullRack {
    /// Fills a rack with images of virtual disks until one is rejected.
    pub(crate) fn new(sizes: DiskSizes, spread: Spread, seed: u64) -> Result<Self, Error> {
        let seed = Seed::new(seed);
        let mut draws = stream(&seed, b"disk sizes");
        let sizes: Vec<u64> = (0..DISKS).map(|_| disk_size(sizes, &mut draws)).collect();
        let mut rack = Self { room: sizes.clone(), sizes };
        let [min, max, mean] = [200_000_000, 9_000_000_000, 3_300_000_000].map(ByteCount::new);
        let blobs = Sizes::Exponential { min, max, mean }.sampler()?;
        let mut draws = stream(&seed, b"fill");
        loop {
            let blob = blobs.draw(&mut draws).get();
            let stack = blob.div_ceil(DATA * FRAGMENT) * FRAGMENT;
            if !rack.put(stack, spread, &mut draws) {
                return Ok(rack);
            }
        }
    }

    /// Returns the bytes stored over the capacity of the disks.
    pub(crate) fn utilization(&self) -> f64 {
        let (all, room): (u64, u64) = (self.sizes.iter().sum(), self.room.iter().sum());
        1.0 - to_f64(room) / to_f64(all)
    }

    /// Returns the cumulative distribution of the disks' utilization, in ascending order.
    pub(crate) fn shares(&self) -> Vec<(f64, f64)> {
        let pairs = self.sizes.iter().zip(&self.room);
        let mut full: Vec<f64> =
            pairs.map(|(size, room)| 1.0 - to_f64(*room) / to_f64(*size)).collect();
        full.sort_by(f64::total_cmp);
        let count = f64::from(DISKS);
        let mut rank = 0.0;
        full.into_iter()
            .map(|full| {
                rank += 1.0;
                (full, rank / count)
            })
            .collect()
    }

    /// Returns the mean size of a disk, in bytes.
    pub(crate) fn disk_mean(&self) -> f64 {
        to_f64(self.sizes.iter().sum()) / f64::from(DISKS)
    }

    fn put(&mut self, stack: u64, spread: Spread, draws: &mut Draws) -> bool {
        let first = draws.below(u64::from(GROUPS));
        let mut group = usize::try_from(first).unwrap_or(0);
        for _ in 0..GROUPS {
            let size = DISKS_OF_GROUP as usize;
            let disks = &mut self.room[group * size..(group + 1) * size];
            let fits = match spread {
                Spread::Backplanes => put_in_sets(disks, stack),
                Spread::Random => put_anywhere(disks, stack, draws),
            };
            if fits {
                return true;
            }
            group = (group + 1) % GROUPS as usize;
        }
        false
    }
}

fn put_in_sets(disks: &mut [u64], stack: u64) -> bool {
    let least = |set: &[u64]| (0..set.len()).min_by_key(|&at| set[at]).unwrap_or(0);
    let fits = disks
        .chunks(DISKS_OF_SET)
        .all(|set| set.iter().filter(|room| **room >= stack).count() >= STACKS_OF_SET);
    if !fits {
        return false;
    }
    for set in disks.chunks_mut(DISKS_OF_SET) {
        let left_out = least(set);
        for (at, room) in set.iter_mut().enumerate() {
            *room -= if at == left_out { 0 } else { stack };
        }
    }
    true
}

fn put_anywhere(disks: &mut [u64], stack: u64, draws: &mut Draws) -> bool {
    let mut fit = [0_usize; DISKS_OF_GROUP as usize];
    let mut count = 0;
    for (at, room) in disks.iter().enumerate() {
        if *room >= stack {
            fit[count] = at;
            count += 1;
        }
    }
    if count < STACKS {
        return false;
    }
    for drawn in 0..STACKS {
        let left = (count - drawn) as u64;
        let other = drawn + usize::try_from(draws.below(left)).unwrap_or(0);
        fit.swap(drawn, other);
        disks[fit[drawn]] -= stack;
    }
    true
}

/// Draws the size of a disk. The paper shows the distribution only as a picture. This one has its
/// mean and minimum, and the width that its utilization implies: nearly all within a few hundredths
/// of a TB.
fn disk_size(sizes: DiskSizes, draws: &mut Draws) -> u64 {
    const SMALL_SHARE: f64 = 0.01;
    match sizes {
        DiskSizes::Equal => floor(DISK_MEAN),
        DiskSizes::Mixed if draws.unit() < SMALL_SHARE => floor(4.2e12 + 0.1e12 * draws.unit()),
        DiskSizes::Mixed => floor((4.553e12 + 0.025e12 * draws.normal()).max(4.2e12)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rack is below 2^53 bytes")]
const fn to_f64(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::{put_anywhere, put_in_sets};
    use crate::rack::latencies::stream;
    use fulgurite_units::Seed;

    #[test]
    fn stack_skips_the_fullest_disk_of_each_backplane() {
        let mut disks = [10_u64; 24];
        disks[1] = 3;
        disks[23] = 9;
        assert!(put_in_sets(&mut disks, 4));
        assert_eq!(disks[..4], [6, 3, 6, 6]);
        assert_eq!(disks[20..], [6, 6, 6, 9]);
        assert_eq!(disks.iter().filter(|room| **room == 6).count(), 18);
        // Two of a set are too full: nothing is allocated on any disk.
        disks[2] = 3;
        let before = disks;
        assert!(!put_in_sets(&mut disks, 4));
        assert_eq!(disks, before);
    }

    #[test]
    fn stack_uses_18_distinct_disks_with_free_space() {
        let mut draws = stream(&Seed::new(1), b"test");
        for _ in 0..50 {
            let mut disks = [10_u64; 24];
            disks[..6].fill(1);
            assert!(put_anywhere(&mut disks, 10, &mut draws));
            assert_eq!((disks[..6].iter().sum::<u64>(), disks[6..].iter().sum::<u64>()), (6, 0));
            assert!(!put_anywhere(&mut disks, 10, &mut draws));
        }
    }
}

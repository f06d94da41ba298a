//! Density evolution: the error rate up to which a code of infinite length would decode.
//!
//! The distribution of messages is tracked through the decoder's own arithmetic (offset min-sum on
//! integers, the clipping, the channel's quantization), so that a threshold is the best that this
//! decoder can reach, not what belief propagation could. Richardson and Urbanke 2001. The random
//! signs of the codeword's bits make the channel symmetric, which does not change thresholds. It
//! leaves out cycles, the length of the code, and the order of layers, which changes the number of
//! iterations but not the result.

use super::calibrate::UNITS_PER_LLR;
use super::decode::{CHANNEL_MAX, MESSAGE_MAX, OFFSET};
use super::{BaseMatrix, Outcome, VoxelChannel};

/// Largest sum of a channel value and the messages of a bit.
const SUM_MAX: usize = 127;
/// Maximum number of iterations; a density that has not converged by then is stuck.
const ROUNDS_MAX: usize = 2000;
/// Share of wrong decisions at which a density counts as converged. Messages themselves need not
/// get there: a bit of weight 2 whose channel value is wrong with full confidence, -31, outvotes
/// one message, never two.
const CONVERGED: f64 = 1e-9;

/// A distribution over the integers `-127 ..= 127`, with 0 in the middle. Positive values are
/// correct.
#[derive(Clone, Debug, PartialEq)]
pub struct Density(Vec<f64>);

impl Density {
    /// Creates a distribution without mass.
    #[must_use]
    pub fn empty() -> Self {
        Self(vec![0.0; 2 * SUM_MAX + 1])
    }

    /// Adds mass at a channel value.
    pub fn add(&mut self, value: i8, mass: f64) {
        let value = value.clamp(-CHANNEL_MAX, CHANNEL_MAX);
        self.0[usize::from((i16::from(value) + 127).unsigned_abs())] += mass;
    }

    /// Returns the share of wrong decisions; ties count half.
    #[must_use]
    pub fn wrong(&self) -> f64 {
        self.0[..SUM_MAX].iter().sum::<f64>() + self.0[SUM_MAX] / 2.0
    }

    fn tail_masses(&self, magnitude: usize) -> (f64, f64) {
        let right = self.0[SUM_MAX + magnitude..].iter().sum();
        (right, self.0[..=SUM_MAX - magnitude].iter().sum())
    }

    fn convolve(&self, other: &Self, reach: usize) -> Self {
        let mut sum = Self::empty();
        for (i, &a) in self.0.iter().enumerate().filter(|(_, a)| **a > 0.0) {
            for j in SUM_MAX - reach..=SUM_MAX + reach {
                let place = (i + j).saturating_sub(SUM_MAX).min(2 * SUM_MAX);
                sum.0[place] += a * other.0[j];
            }
        }
        sum
    }
}

/// Decoding thresholds of a code of infinite length, by density evolution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Threshold of the share of wrong bits, for voxels of 3 bits with soft bits
    /// ([`VoxelChannel`]).
    pub errors: f64,
    /// Threshold of the share of erased bits if the others are right.
    pub erasures: f64,
}

impl Thresholds {
    /// Returns the margin that was left when a word of `bits` bits was decoded: 1 for a clean word,
    /// 0 for one at the limit. Errors and erasures each use up their share of it. Words begin to
    /// fail somewhat above 0; a word decoded below 0 was lucky, or its errors had less confidence
    /// than Gaussian ones. This is the margin by which a write is verified (Silica section 5).
    #[must_use]
    pub fn margin(&self, outcome: &Outcome, bits: usize) -> f64 {
        let share = |count: usize| count as f64 / bits as f64;
        1.0 - share(outcome.corrected) / self.errors - share(outcome.erased) / self.erasures
    }
}

/// Degree distribution: the shares of edges at bits and at checks of each degree.
#[derive(Clone, Debug, PartialEq)]
pub struct Degrees {
    bits: Vec<(usize, f64)>,
    checks: Vec<(usize, f64)>,
}

impl Degrees {
    /// Computes the degree distribution of a matrix.
    #[must_use]
    pub fn compute(matrix: &BaseMatrix) -> Self {
        let shares = |degrees: &mut dyn Iterator<Item = usize>| {
            let mut counts = std::collections::BTreeMap::new();
            let mut edges = 0;
            for degree in degrees {
                *counts.entry(degree).or_insert(0) += degree;
                edges += degree;
            }
            counts.into_iter().map(|(d, count)| (d, count as f64 / edges as f64)).collect()
        };
        Self {
            bits: shares(&mut matrix.columns().iter().map(Vec::len)),
            checks: shares(&mut matrix.row_entries().iter().map(Vec::len)),
        }
    }

    /// Computes the thresholds for errors and erasures.
    #[must_use]
    pub fn thresholds(&self) -> Thresholds {
        let voxels = |rate| VoxelChannel::new(3, rate, UNITS_PER_LLR).density();
        let erasures = self.threshold(0.3, |rate| {
            let mut density = Density::empty();
            density.add(CHANNEL_MAX, 1.0 - rate);
            density.add(0, rate);
            density
        });
        Thresholds { errors: voxels(self.threshold(0.3, voxels)).wrong(), erasures }
    }

    /// Whether decoding over a channel of this density converges to zero errors.
    #[must_use]
    pub fn converges(&self, channel: &Density) -> bool {
        let mut messages = channel.clone();
        let mut last = 1.0;
        for round in 0..ROUNDS_MAX {
            let from_checks = self.check_node_update(&messages);
            let sums = self.variable_node_update(channel, &from_checks, 0);
            messages = self.variable_node_update(channel, &from_checks, 1);
            let wrong = sums.wrong();
            if wrong < CONVERGED {
                return true;
            }
            // A density that gains less than a thousandth in fifty rounds has reached a fixed
            // point.
            if round % 50 == 49 {
                if wrong > last * 0.999 {
                    return false;
                }
                last = wrong;
            }
        }
        false
    }

    /// Returns the largest parameter below `high` whose channel converges, by 12 bisections.
    #[must_use]
    pub fn threshold(&self, high: f64, channel: impl Fn(f64) -> Density) -> f64 {
        let (mut low, mut high) = (0.0, high);
        for _ in 0..12 {
            let middle = (low + high) / 2.0;
            if self.converges(&channel(middle)) { low = middle } else { high = middle }
        }
        low
    }

    fn check_node_update(&self, messages: &Density) -> Density {
        let (cap, offset) = (usize::from(MESSAGE_MAX.unsigned_abs()), usize::from(OFFSET));
        // The smallest of several magnitudes is at least m if all are; its sign is right if an even
        // number of them is wrong. The sum and the difference of both probabilities are powers.
        let mut tails = vec![(0.0, 0.0); cap + 2];
        for (magnitude, tail) in tails.iter_mut().enumerate().take(cap + 1).skip(1) {
            let (right, wrong) = messages.tail_masses(magnitude + offset);
            for &(degree, share) in &self.checks {
                let other_edges = i32::try_from(degree - 1).unwrap_or(i32::MAX);
                let (sum, difference) =
                    ((right + wrong).powi(other_edges), (right - wrong).powi(other_edges));
                tail.0 += share * (sum + difference) / 2.0;
                tail.1 += share * (sum - difference) / 2.0;
            }
        }
        let mut density = Density::empty();
        density.0[SUM_MAX] = 1.0 - tails[1].0 - tails[1].1;
        for magnitude in 1..=cap {
            let (here, next) = (tails[magnitude], tails[magnitude + 1]);
            density.0[SUM_MAX + magnitude] = here.0 - next.0;
            density.0[SUM_MAX - magnitude] = here.1 - next.1;
        }
        density
    }

    /// Returns the density of a bit's sum of the channel value and all its check messages but
    /// `excluded`, averaged over edges.
    fn variable_node_update(
        &self,
        channel: &Density,
        from_checks: &Density,
        excluded: usize,
    ) -> Density {
        let reach = usize::from(MESSAGE_MAX.unsigned_abs());
        let mut result = Density::empty();
        let mut sum = channel.clone();
        let mut degree = excluded;
        for &(wanted, share) in &self.bits {
            while degree < wanted {
                sum = sum.convolve(from_checks, reach);
                degree += 1;
            }
            for (total, mass) in result.0.iter_mut().zip(&sum.0) {
                *total += share * mass;
            }
        }
        result
    }
}

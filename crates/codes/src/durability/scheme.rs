//! Tracks and large groups, and the sizes that they need.

use super::loss::{Probability, SectorLoss};
use super::special::{ln_choose, ln_sum};

/// The sectors of a track (Silica section 5, within-track coding).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Information sectors (I_t).
    pub information: u64,
    /// Redundancy sectors (R_t).
    pub redundancy: u64,
}

impl Track {
    /// Number of all sectors.
    #[must_use]
    pub const fn sectors(self) -> u64 {
        self.information + self.redundancy
    }

    /// Returns the probability that a track cannot be decoded by itself: more sectors are lost than
    /// it has redundancy.
    #[must_use]
    pub fn failure_probability(self, loss: SectorLoss) -> Probability {
        loss.probability_above(self.redundancy, self.sectors())
    }

    /// Returns the mean number of unknown sectors that a track leaves to the large group: without
    /// joint decoding, all lost sectors of a failed track; with joint decoding, fewer by the
    /// track's redundancy, because each redundancy sector is an equation.
    #[must_use]
    pub fn expected_unknowns(self, loss: SectorLoss) -> [f64; 2] {
        let mut unknowns = [0.0; 2];
        for lost in self.redundancy + 1..=self.sectors() {
            let probability = loss.ln_pmf(lost, self.sectors()).exp();
            unknowns[0] += probability * lost as f64;
            unknowns[1] += probability * (lost - self.redundancy) as f64;
        }
        unknowns
    }
}

/// A codeword of a large group: the same `span` sectors of each of its tracks (Silica section 5,
/// large-group coding).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeGroup {
    /// Code of a track of the group.
    pub track: Track,
    /// Information tracks (I_l).
    pub information_tracks: u64,
    /// Redundancy tracks (R_l).
    pub redundancy_tracks: u64,
    /// Sectors of each track in one codeword.
    pub span: u64,
}

impl LargeGroup {
    /// Returns an upper bound of the probability that some codeword of the group cannot be decoded:
    /// the sum, over its codewords, of the probability that failed tracks lose more of its sectors
    /// than it has redundancy. Tracks are decoded by themselves first; a failed track contributes
    /// its surviving sectors, and its own redundancy is not used.
    #[must_use]
    pub fn failure_probability(self, loss: SectorLoss) -> Probability {
        let limit = self.span * self.redundancy_tracks;
        let columns = self.track.information.div_ceil(self.span.max(1));
        let one_track = self.ln_track_loss_pmf(loss);
        let tracks = self.information_tracks + self.redundancy_tracks;
        let total = self_convolution(&one_track, tracks, limit);
        Probability::from_ln(total + (columns as f64).ln())
    }

    /// Returns ln of the probability that one track loses 0, 1, .. sectors of one codeword.
    fn ln_track_loss_pmf(self, loss: SectorLoss) -> Vec<f64> {
        let (track, span) = (self.track, self.span.min(self.track.information));
        let failed = track.failure_probability(loss).value();
        let mut terms = vec![Vec::new(); index(span) + 1];
        terms[0].push((-failed).ln_1p());
        for lost in track.redundancy + 1..=track.sectors() {
            let ln_lost = loss.ln_pmf(lost, track.sectors());
            // The lost sectors are a random subset of the track's.
            let part_min = lost.saturating_sub(track.sectors() - span);
            for part in part_min..=span.min(lost) {
                let ways = ln_choose(span, part) + ln_choose(track.sectors() - span, lost - part)
                    - ln_choose(track.sectors(), lost);
                terms[index(part)].push(ln_lost + ways);
            }
        }
        terms.iter().map(|terms| ln_sum(terms)).collect()
    }
}

/// Returns ln of the probability that `copies` independent variables, each distributed as `one`,
/// add up to more than `limit`. Convolves one variable at a time, and collects the mass beyond the
/// limit.
fn self_convolution(one: &[f64], copies: u64, limit: u64) -> f64 {
    let limit = index(limit);
    let mut within = vec![f64::NEG_INFINITY; limit + 1];
    within[0] = 0.0;
    let mut beyond = Vec::new();
    for _ in 0..copies {
        let mut next: Vec<Vec<f64>> = vec![Vec::new(); limit + 1];
        for (sum, ln_sum_chance) in within.iter().enumerate() {
            if *ln_sum_chance == f64::NEG_INFINITY {
                continue;
            }
            for (part, ln_part) in one.iter().enumerate() {
                match next.get_mut(sum + part) {
                    Some(terms) => terms.push(ln_sum_chance + ln_part),
                    None => beyond.push(ln_sum_chance + ln_part),
                }
            }
        }
        within = next.iter().map(|terms| ln_sum(terms)).collect();
        beyond = vec![ln_sum(&beyond)];
    }
    ln_sum(&beyond)
}

/// Maximum overhead of redundancy, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// Redundancy (numerator).
    pub redundancy: u64,
    /// What it is relative to (denominator).
    pub per: u64,
    /// Whether `per` counts information alone, or information and redundancy together.
    pub is_information_only: bool,
}

impl Overhead {
    /// Returns the code with the most redundancy within the overhead; `size` counts what `per`
    /// counts.
    fn code(self, size: u64) -> Track {
        let redundancy = size * self.redundancy / self.per.max(1);
        let information = if self.is_information_only { size } else { size - redundancy.min(size) };
        Track { information, redundancy }
    }
}

/// Returns the smallest track, of up to `sectors_max`, that is undecodable with a probability below
/// `target`.
#[must_use]
pub fn smallest_track(
    overhead: Overhead,
    loss: SectorLoss,
    target: Probability,
    sectors_max: u64,
) -> Option<Track> {
    let codes = (1..=sectors_max).map(|size| overhead.code(size));
    codes
        .filter(|code| code.redundancy > 0 && code.sectors() <= sectors_max)
        .find(|code| code.failure_probability(loss) < target)
}

/// Returns the smallest large group of independent sectors, of up to `sectors_max`, that is
/// undecodable with a probability below `target`; `loss` is the share of sectors lost with failed
/// tracks. Only sizes where the redundancy grows by a whole sector are tried.
#[must_use]
pub fn smallest_group(
    overhead: Overhead,
    loss: SectorLoss,
    target: Probability,
    sectors_max: u64,
) -> Option<Track> {
    // Bisection: larger groups of the same overhead are better, apart from rounding of the
    // redundancy, which these sizes avoid.
    let code =
        |redundancy: u64| overhead.code((redundancy * overhead.per).div_ceil(overhead.redundancy));
    let is_enough = |redundancy: u64| code(redundancy).failure_probability(loss) < target;
    let (mut low, mut high) = (0, sectors_max * overhead.redundancy / overhead.per.max(1));
    if overhead.redundancy == 0 || high == 0 || !is_enough(high) {
        return None;
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if is_enough(middle) { high = middle } else { low = middle }
    }
    Some(code(high))
}

fn index(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

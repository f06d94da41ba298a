//! Fidelity `soft`: probabilities of symbols are drawn from statistics of decoded images; the code
//! and everything above it is real.
//!
//! ```text
//! analog sectors --decoder--> probabilities --SoftFit--> SoftStatistics (a file)
//!                                                             |
//! quality of a sector: a normal of drive + platter + read --> bin --> voxels, one by one
//!                                                                         |
//!                                              bytes as read <--frame, LDPC'
//! ```
//!
//! A sector's quality selects the bin of sectors, from the worst to the best, that its voxels are
//! drawn from; this preserves the spread of sectors, which is what makes codewords fail. The
//! positions of errors within a sector are lost: voxels are drawn independently. The interleaver
//! spreads each codeword over the sector, so that matters little; `fulgurite lab compare`
//! measures how little. Fidelity `sector` draws the outcome of a whole sector from the same bins.

mod outcomes;

use fulgurite_codes::ldpc::Rate;
use fulgurite_codes::symbols::{DemapMethod, Demapper};
use fulgurite_platter::channel::{Medium, SectorShape, Shares};
use fulgurite_units::{RandomStream, Seed};
use serde::{Deserialize, Serialize};

pub use outcomes::OutcomeReader;
use outcomes::Outcomes;

use crate::frame::{SOFT_SCALE, alphabet, split_mix};
use crate::{DecodeError, GUARD, Score, SymbolProbabilities};

/// Sure voxels kept per bin.
const SURE_MAX: usize = 256;

/// Other voxels kept per bin, at evenly spaced ranks of their probabilities.
const UNSURE_MAX: usize = 2048;

/// A voxel is sure when its true symbol has at least this probability.
const SURE: f32 = 0.999;

/// Steps of a stored logarithm per unit.
const STEPS: f32 = 8.0;

/// Format of the file.
const FORMAT: &str = "fulgurite soft statistics 2";

/// Returns the bins' upper ends, as shares of sectors: finer towards the worst.
fn bin_edges() -> Vec<f64> {
    let tail = (5..=13).rev().map(|power| 0.5f64.powi(power));
    tail.chain((1..=16).map(|part| f64::from(part) / 16.0)).collect()
}

/// A value measured on sectors, with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A bin of sectors of similar quality.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bin {
    /// Share of sectors at or below this quality.
    until: f64,
    /// Share of voxels that are not sure.
    unsure: f64,
    /// Voxels that are not sure, then sure ones: for each, the negative logarithm of each symbol's
    /// probability in steps of an eighth; the true symbol first, for media whose symbols are
    /// equivalent.
    voxels: Vec<u8>,
    /// Number of voxels that are not sure.
    unsure_voxels: usize,
    /// True symbols of the voxels, for media whose symbols are not equivalent.
    symbols: Vec<u8>,
}

/// Statistics of a decoder on a channel: what `fulgurite lab calibrate` writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftStatistics {
    format: String,
    /// Preset of the channel.
    pub preset: String,
    /// The decoder, with its model's version.
    pub decoder: String,
    /// Seed of the sectors that the statistics were fitted to.
    pub seed: u64,
    /// Number of those sectors.
    pub sectors: usize,
    /// Side of each, in voxels.
    pub side: usize,
    medium: Medium,
    shares: Shares,
    /// Share of symbols that were not the likeliest.
    pub symbol_error_rate: Interval,
    /// Mutual information in bits a voxel.
    pub information: Interval,
    /// Share of sectors that the code could not decode.
    pub failure_rate: Interval,
    bins: Vec<Bin>,
    /// The outcomes of the sectors of each bin.
    outcomes: Vec<Outcomes>,
}

/// Collects decoded sectors.
#[derive(Debug)]
pub struct SoftFit {
    medium: Medium,
    sectors: Vec<(f64, Vec<Voxel>)>,
}

/// The negative log-probability of each symbol, and the true one.
type Voxel = ([u8; 8], u8);

impl SoftFit {
    /// Creates a fit without sectors.
    #[must_use]
    pub const fn new(medium: Medium) -> Self {
        Self { medium, sectors: Vec::new() }
    }

    /// Adds a decoded sector and its score.
    pub fn add(
        &mut self,
        shape: SectorShape,
        found: &SymbolProbabilities,
        symbols: &[u8],
        score: &Score,
    ) {
        let mut voxels = Vec::with_capacity(shape.voxels());
        for row in GUARD..shape.rows() - GUARD {
            for column in GUARD..shape.columns() - GUARD {
                let at = row * shape.columns() + column;
                voxels.push(self.voxel(found.voxel(at), symbols[at]));
            }
        }
        self.sectors.push((score.information, voxels));
    }

    fn voxel(&self, logarithms: &[f32], own: u8) -> Voxel {
        let count = logarithms.len();
        let mut steps = [u8::MAX; 8];
        for (offset, step) in steps.iter_mut().enumerate().take(count) {
            let symbol =
                if is_circular(self.medium) { (usize::from(own) + offset) % count } else { offset };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
            let value = (-logarithms[symbol] * STEPS).round().clamp(0.0, 255.0) as u8;
            *step = value;
        }
        (steps, if is_circular(self.medium) { 0 } else { own })
    }

    /// Returns the bins of all sectors, the worst first.
    fn bins(&mut self) -> Vec<Bin> {
        self.sectors.sort_by(|a, b| a.0.total_cmp(&b.0));
        let count = self.sectors.len();
        let mut bins: Vec<Bin> = Vec::new();
        let mut from = 0;
        for until in bin_edges() {
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a count"
            )]
            let to = (until * count as f64).round() as usize;
            if to > from {
                let voxels = self.sectors[from..to].iter().flat_map(|(_, voxels)| voxels);
                bins.push(Bin::new(self.medium, until, voxels.copied().collect()));
                from = to;
            }
        }
        bins
    }

    /// Returns the statistics; `about` has preset, decoder and seed, and what was measured.
    ///
    /// # Errors
    /// [`DecodeError::Fit`] when there were fewer than 32 sectors.
    pub fn finish(mut self, about: Provenance) -> Result<SoftStatistics, DecodeError> {
        let sectors = self.sectors.len();
        if sectors < 32 {
            let reason =
                format!("{sectors} sectors are too few to know their spread; 32 are needed");
            return Err(DecodeError::Fit { reason });
        }
        let bins = self.bins();
        let Provenance { preset, decoder, seed, side, shares, measured, rate, sector_bytes } =
            about;
        let [symbol_error_rate, information, failure_rate] = measured;
        let mut statistics = SoftStatistics {
            format: FORMAT.to_owned(),
            preset,
            decoder,
            seed,
            sectors,
            side,
            medium: self.medium,
            shares,
            symbol_error_rate,
            information,
            failure_rate,
            bins,
            outcomes: Vec::new(),
        };
        statistics.outcomes = outcomes::measure(&statistics, rate, sector_bytes)?;
        Ok(statistics)
    }
}

/// The provenance of statistics.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// Preset of the channel.
    pub preset: String,
    /// The decoder.
    pub decoder: String,
    /// Seed of the sectors.
    pub seed: u64,
    /// Side of the sectors, in voxels.
    pub side: usize,
    /// The drive's and the platter's shares of their spread.
    pub shares: Shares,
    /// Symbol error rate, mutual information, failure rate.
    pub measured: [Interval; 3],
    /// Rate of the sectors' code.
    pub rate: Rate,
    /// Bytes of a sector, with header and checksum.
    pub sector_bytes: usize,
}

/// Returns whether a medium's symbols are equivalent: on a circle, none is the first.
const fn is_circular(medium: Medium) -> bool {
    matches!(medium, Medium::Birefringent)
}

impl Bin {
    fn new(medium: Medium, until: f64, mut voxels: Vec<Voxel>) -> Self {
        let own =
            |voxel: &Voxel| voxel.0[usize::from(if is_circular(medium) { 0 } else { voxel.1 })];
        // A total order: the ranks do not depend on the order of the sectors.
        voxels.sort_by(|a, b| own(b).cmp(&own(a)).then_with(|| b.cmp(a)));
        let limit = -SURE.ln() * STEPS;
        let first_sure = voxels.partition_point(|voxel| f32::from(own(voxel)) > limit);
        let (unsure, sure) = voxels.split_at(first_sure);
        let pick_ranks = |from: &[Voxel], max: usize| -> Vec<Voxel> {
            let count = max.min(from.len());
            (0..count).map(|i| from[(2 * i + 1) * from.len() / (2 * count)]).collect()
        };
        let (unsure_kept, sure_kept) = (pick_ranks(unsure, UNSURE_MAX), pick_ranks(sure, SURE_MAX));
        #[expect(clippy::cast_precision_loss, reason = "a share of a count")]
        let share = unsure.len() as f64 / voxels.len().max(1) as f64;
        let symbols = usize::from(medium.symbols());
        let kept = || unsure_kept.iter().chain(&sure_kept);
        Self {
            until,
            unsure: share,
            voxels: kept().flat_map(|(steps, _)| steps[..symbols].to_vec()).collect(),
            unsure_voxels: unsure_kept.len(),
            symbols: if is_circular(medium) { Vec::new() } else { kept().map(|v| v.1).collect() },
        }
    }

    fn check(&self, medium: Medium) -> Result<(), DecodeError> {
        let count = self.voxels.len() / usize::from(medium.symbols());
        let has_symbols = is_circular(medium) || self.symbols.len() == count;
        let is_whole = self.voxels.len().is_multiple_of(usize::from(medium.symbols())) && count > 0;
        let is_share = (0.0..=1.0).contains(&self.unsure);
        let is_consistent = self.unsure_voxels <= count
            && (self.unsure_voxels > 0 || self.unsure == 0.0)
            && (self.unsure_voxels < count || self.unsure >= 1.0);
        if has_symbols && is_whole && is_share && is_consistent {
            return Ok(());
        }
        Err(DecodeError::Fit { reason: "a bin of the statistics is incomplete".to_owned() })
    }
}

impl SoftStatistics {
    /// Reads statistics as [`Self::to_json`] wrote them.
    ///
    /// # Errors
    /// [`DecodeError::Fit`] with what is wrong with them.
    pub fn from_json(text: &str) -> Result<Self, DecodeError> {
        let refuse = |reason: String| DecodeError::Fit { reason };
        let statistics: Self =
            serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
        if statistics.format != FORMAT {
            return Err(refuse(format!("format is {}, not {FORMAT}", statistics.format)));
        }
        if statistics.bins.is_empty() || !statistics.bins.is_sorted_by_key(|bin| bin.until) {
            return Err(refuse("the bins are not in order".to_owned()));
        }
        for bin in &statistics.bins {
            bin.check(statistics.medium)?;
        }
        let is_complete = statistics.outcomes.iter().all(Outcomes::is_complete);
        if !is_complete || statistics.outcomes.len() != statistics.bins.len() {
            return Err(refuse("the outcomes of sectors are incomplete".to_owned()));
        }
        Ok(statistics)
    }

    /// Formats the statistics as JSON.
    ///
    /// # Panics
    /// Never: all numbers are finite.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("statistics are JSON")
    }

    /// The medium that the statistics are for.
    #[must_use]
    pub const fn medium(&self) -> Medium {
        self.medium
    }
}

/// Draws soft bits.
#[derive(Clone, Debug)]
pub struct SoftChannel {
    shares: Shares,
    bits: usize,
    symbols: usize,
    bins: Vec<SoftBin>,
}

#[derive(Clone, Debug)]
struct SoftBin {
    until: f64,
    /// Voxels whose 32-bit random number is below this are not sure.
    unsure_below: u32,
    /// One for each true symbol.
    tables: Vec<SoftTable>,
}

/// The voxels that are drawn for one true symbol.
#[derive(Clone, Debug)]
struct SoftTable {
    unsure: Vec<SoftVoxel>,
    sure: Vec<SoftVoxel>,
}

/// The soft bits of a voxel.
#[derive(Clone, Copy, Debug)]
struct SoftVoxel {
    bits: [i8; 3],
    is_wrong: bool,
    /// Mutual information of all its bits.
    information: f32,
}

/// The result of drawing a sector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawResult {
    /// Share of symbols that are not the likeliest.
    pub symbol_error_rate: f64,
    /// Mutual information in bits a voxel.
    pub information: f64,
}

impl SoftChannel {
    /// Creates a channel from statistics.
    ///
    /// # Errors
    /// [`DecodeError::Fit`] when a demapper cannot be made.
    pub fn new(statistics: &SoftStatistics) -> Result<Self, DecodeError> {
        let medium = statistics.medium;
        let (symbols, bits) = (usize::from(medium.symbols()), usize::from(medium.bits()));
        let labels = alphabet(medium);
        let demapper = Demapper::new(&labels, DemapMethod::MaxLog, SOFT_SCALE)
            .map_err(|error| DecodeError::Fit { reason: error.to_string() })?;
        let table = |bin: &Bin, own: usize| {
            let entries = bin.voxels.chunks_exact(symbols).enumerate();
            let of_own =
                entries.filter(|(i, _)| is_circular(medium) || usize::from(bin.symbols[*i]) == own);
            let (mut unsure, mut sure) = (Vec::new(), Vec::new());
            for (i, steps) in of_own {
                let mut logarithms = vec![0.0; symbols];
                for (offset, step) in steps.iter().enumerate() {
                    let symbol =
                        if is_circular(medium) { (own + offset) % symbols } else { offset };
                    logarithms[symbol] = -f32::from(*step) / STEPS;
                }
                let mut soft = [0; 3];
                demapper
                    .logarithms(&logarithms, &mut soft[..bits])
                    .map_err(|error| DecodeError::Fit { reason: error.to_string() })?;
                let likeliest =
                    (0..symbols).max_by(|a, b| logarithms[*a].total_cmp(&logarithms[*b]));
                let voxel = SoftVoxel {
                    bits: soft,
                    is_wrong: likeliest != Some(own),
                    information: information(&logarithms, own, bits, &labels),
                };
                if i < bin.unsure_voxels { unsure.push(voxel) } else { sure.push(voxel) }
            }
            Ok(SoftTable { unsure, sure })
        };
        let bin = |bin: &Bin| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
            let unsure_below = (bin.unsure * f64::from(u32::MAX)) as u32;
            let tables =
                (0..symbols).map(|own| table(bin, own)).collect::<Result<_, DecodeError>>()?;
            Ok(SoftBin { until: bin.until, unsure_below, tables })
        };
        let bins = statistics.bins.iter().map(bin).collect::<Result<_, DecodeError>>()?;
        Ok(Self { shares: statistics.shares, bits, symbols, bins })
    }

    /// Draws the quality of a sector that this drive reads on this platter, as the share of sectors
    /// that are worse.
    #[must_use]
    pub fn quality(&self, drive: &Seed, platter: &Seed, read: &Seed) -> f64 {
        let own = 1.0 - self.shares.drive - self.shares.platter;
        let part = |share: f64, seed: &Seed, label: &[u8]| {
            share.max(0.0).sqrt() * normal(&mut seed.child(label).stream())
        };
        let quality = part(self.shares.drive, drive, b"soft quality")
            + part(self.shares.platter, platter, b"soft quality")
            + part(own, read, b"soft quality");
        normal_cdf(quality)
    }

    /// Returns the bin of a quality.
    fn bin(&self, quality: f64) -> usize {
        self.bins.partition_point(|bin| bin.until <= quality).min(self.bins.len() - 1)
    }

    /// Draws the soft bits of voxels, voxel by voxel.
    ///
    /// # Panics
    /// When a symbol is not of the medium.
    pub fn draw(
        &self,
        quality: f64,
        symbols: &[u8],
        seed: &Seed,
        soft: &mut Vec<i8>,
    ) -> DrawResult {
        let bin = &self.bins[self.bin(quality)];
        let mut state = seed.child(b"soft voxels").stream().next_u64();
        soft.clear();
        soft.reserve(symbols.len() * self.bits);
        let (mut wrong, mut information) = (0u64, 0.0f64);
        for symbols in symbols.chunks(1024) {
            let mut sum = 0.0f32;
            for own in symbols {
                let table = &bin.tables[usize::from(*own) % self.symbols];
                let draw = split_mix(&mut state);
                #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
                let (selector, rank) = (draw as u32, (draw >> 32) as u32);
                let from = if selector < bin.unsure_below { &table.unsure } else { &table.sure };
                // Multiply and shift instead of a division.
                let rank = (u64::from(rank) * from.len() as u64) >> 32;
                let voxel = from[usize::try_from(rank).unwrap_or(0)];
                soft.extend_from_slice(&voxel.bits[..self.bits]);
                wrong += u64::from(voxel.is_wrong);
                sum += voxel.information;
            }
            information += f64::from(sum);
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of voxels")]
        let (wrong, all) = (wrong as f64, symbols.len().max(1) as f64);
        DrawResult { symbol_error_rate: wrong / all, information: information / all }
    }
}

/// Computes the mutual information of a voxel in bits, as [`Score`] does.
fn information(
    logarithms: &[f32],
    own: usize,
    bits: usize,
    labels: &fulgurite_codes::symbols::Alphabet,
) -> f32 {
    let label = |symbol: usize| labels.label(u8::try_from(symbol).unwrap_or_default());
    let all: f32 = logarithms.iter().map(|value| value.exp()).sum();
    (0..bits)
        .map(|bit| {
            let same: f32 = (0..logarithms.len())
                .filter(|symbol| (label(*symbol) ^ label(own)) >> bit & 1 == 0)
                .map(|symbol| logarithms[symbol].exp())
                .sum();
            1.0 + (same / all).clamp(1e-12, 1.0).log2()
        })
        .sum()
}

/// Draws a standard normal (Box and Muller).
fn normal(stream: &mut RandomStream) -> f64 {
    let (radius, turn) = (1.0 - stream.unit(), stream.unit());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
}

/// Returns the standard normal distribution function (Abramowitz and Stegun 26.2.17: within
/// 7.5e-8).
fn normal_cdf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let poly = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = poly.iter().rev().fold(0.0, |sum, factor| (sum + factor) * t);
    let tail = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt() * sum;
    if x < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests;

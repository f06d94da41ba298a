//! Fidelity `sector`: outcomes of whole sectors, drawn from the outcomes of sectors at fidelity
//! `soft`.
//!
//! For each bin of quality, some sectors are drawn at fidelity `soft` and decoded by the real code:
//! this gives the share that is lost, and the margins of the others. A sector's quality is drawn as
//! at `soft`, from its drive, its platter and the read, so that bad sectors stay correlated; none
//! of its bits is simulated.

use std::sync::Arc;

use fulgurite_codes::ldpc::Rate;
use fulgurite_platter::{SectorExtent, SectorReading};
use fulgurite_units::{LayerIndex, PlatterId, Seed, TrackIndex};
use serde::{Deserialize, Serialize};

use super::{SoftChannel, SoftStatistics};
use crate::voxels::{margin, sector_seeds};
use crate::{DecodeError, SectorFrame};

/// Sectors drawn for each bin.
const SECTORS_PER_BIN: u32 = 512;

/// Margins kept per bin, at evenly spaced ranks.
const MARGINS_PER_BIN: usize = 64;

/// The outcomes of the sectors of one bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outcomes {
    /// Share that cannot be decoded.
    lost: f64,
    /// Margins of the others, the smallest first, in hundredths.
    margins: Vec<u8>,
}

impl Outcomes {
    /// Returns whether a bin's outcomes are complete, as [`measure`] computes them.
    pub(super) fn is_complete(&self) -> bool {
        (0.0..=1.0).contains(&self.lost) && (self.lost >= 1.0 || !self.margins.is_empty())
    }
}

/// Draws and decodes sectors of every bin.
pub(super) fn measure(
    statistics: &SoftStatistics,
    rate: Rate,
    sector_bytes: usize,
) -> Result<Vec<Outcomes>, DecodeError> {
    let channel = SoftChannel::new(statistics)?;
    let mut frame = SectorFrame::new(statistics.medium, rate, sector_bytes)?;
    let seed = Seed::new(statistics.seed).child(b"sector outcomes");
    let place = SectorExtent {
        platter: PlatterId::from_bytes([0; 16]),
        track: TrackIndex::new(0),
        first: LayerIndex::new(0),
        sector_bytes,
    };
    let mut bytes = vec![0; sector_bytes];
    let mut soft = Vec::new();
    let mut below = 0.0;
    let mut measure_bin = |until: f64| {
        let quality = f64::midpoint(below, until);
        below = until;
        let mut margins = Vec::new();
        for number in 0..SECTORS_PER_BIN {
            let seed = seed.child(&until.to_le_bytes()).child(&number.to_le_bytes());
            seed.child(b"bytes").stream().fill(&mut bytes);
            let symbols = frame.coded_symbols(&bytes, place.number(0))?;
            channel.draw(quality, symbols, &seed, &mut soft);
            let (report, read) = frame.decode_coded_soft_bits(&soft, place.number(0))?;
            if read.is_some() {
                margins.push(margin(&report));
            }
        }
        margins.sort_unstable();
        let read = margins.len();
        let kept = MARGINS_PER_BIN.min(read);
        let margins = (0..kept).map(|i| margins[(2 * i + 1) * read / (2 * kept)]).collect();
        #[expect(clippy::cast_precision_loss, reason = "hundreds")]
        let lost = 1.0 - read as f64 / f64::from(SECTORS_PER_BIN);
        Ok(Outcomes { lost, margins })
    };
    statistics.bins.iter().map(|bin| measure_bin(bin.until)).collect()
}

/// Reads sectors by drawing their outcomes.
#[derive(Clone, Debug)]
pub struct OutcomeReader {
    channel: Arc<SoftChannel>,
    outcomes: Arc<[Outcomes]>,
    seed: Seed,
    reads_max: u8,
}

impl OutcomeReader {
    /// Creates a reader from these statistics; the seed is the archive's.
    ///
    /// # Errors
    /// [`DecodeError::Fit`] when they cannot be drawn from.
    pub fn new(
        statistics: &SoftStatistics,
        seed: Seed,
        reads_max: u8,
    ) -> Result<Self, DecodeError> {
        let channel = Arc::new(SoftChannel::new(statistics)?);
        Ok(Self { channel, outcomes: statistics.outcomes.clone().into(), seed, reads_max })
    }

    /// Reads `count` neighboring sectors of a track, as [`fulgurite_platter::Medium::read`] does.
    /// `read` identifies this read.
    #[must_use]
    pub fn read(
        &self,
        at: SectorExtent,
        count: usize,
        drive: u32,
        read: u64,
    ) -> Vec<SectorReading> {
        let read_one = |number| {
            let attempt = 0..self.reads_max.max(1);
            let mut readings = attempt.map(|attempt| self.sector(at, number, drive, read, attempt));
            let found = readings.find(|reading| *reading != SectorReading::Lost);
            found.unwrap_or(SectorReading::Lost)
        };
        (0..count).map(read_one).collect()
    }

    /// Reads one sector once.
    #[must_use]
    pub fn sector(
        &self,
        at: SectorExtent,
        number: usize,
        drive: u32,
        read: u64,
        attempt: u8,
    ) -> SectorReading {
        let seeds = sector_seeds(&self.seed, at, number, drive, read, attempt);
        let quality = self.channel.quality(&seeds.drive, &seeds.platter, &seeds.read);
        let outcomes = &self.outcomes[self.channel.bin(quality)];
        let mut stream = seeds.read.child(b"sector outcome").stream();
        if stream.unit() < outcomes.lost {
            return SectorReading::Lost;
        }
        let rank = stream.below(outcomes.margins.len() as u64);
        let margin = usize::try_from(rank).ok().and_then(|rank| outcomes.margins.get(rank));
        SectorReading::Read { margin: margin.copied() }
    }
}

//! Writes, reads and decodes sectors of random drives and platters, for statistics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use fulgurite_codes::ldpc::Rate;
use fulgurite_codes::sector::Report;
use fulgurite_decode::{
    Damage, Interval, OutcomeReader, Score, SoftFit, SoftReader, SoftStatistics,
    SymbolProbabilities, VoxelMedium, VoxelReader,
};
use fulgurite_platter::channel::{Channel, SectorShape};
use fulgurite_platter::{SectorExtent, SectorReading};
use fulgurite_terminal::output::Output;
use fulgurite_terminal::progress::count_bar;
use fulgurite_units::{LayerIndex, PlatterId, Seed, TrackIndex};

use super::MakeDecoder;

/// The code rate of archives.
pub(super) const RATE: Rate = Rate::R9of10;

/// Size of a sector for tests and measurements: payload, header, checksum.
pub(super) const SECTOR_BYTES: usize = 4096 + 128;

/// The result of reading one sector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) symbol_error_rate: f64,
    /// Bits a voxel.
    pub(super) information: f64,
    pub(super) report: Report,
    /// Whether it was decoded to something other than what was written.
    pub(super) is_wrong: bool,
}

/// A sector that was decoded from its images.
struct Decoded {
    found: SymbolProbabilities,
    symbols: Vec<u8>,
    score: Score,
    report: Report,
    shape: SectorShape,
    is_wrong: bool,
}

/// The results of reading sectors.
#[derive(Clone, Debug, Default)]
pub(super) struct Reads(pub(super) Vec<Read>);

/// The sectors to read.
pub(super) struct Sample<'a> {
    pub(super) channel: &'a Channel,
    pub(super) decoder: &'a MakeDecoder,
    pub(super) seed: u64,
    pub(super) sectors: u64,
}

/// Takes a decoded sector: its shape, probabilities, symbols and score.
type Sink<'a> = dyn FnMut(SectorShape, &SymbolProbabilities, &[u8], &Score) + Send + 'a;

/// Returns the address of a sector: each is on its own platter.
fn place(number: u64) -> SectorExtent {
    SectorExtent {
        platter: PlatterId::from_bytes(u128::from(number + 1).to_le_bytes()),
        track: TrackIndex::new(1),
        first: LayerIndex::new(0),
        sector_bytes: SECTOR_BYTES,
    }
}

fn bytes(seed: &Seed, number: u64) -> Vec<u8> {
    let mut bytes = vec![0; SECTOR_BYTES];
    seed.child(b"bytes").child(&number.to_le_bytes()).stream().fill(&mut bytes);
    bytes
}

/// Returns the drive of a sector: each has its own.
fn drive(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Sample<'_> {
    /// Writes, reads and decodes every sector on all processors. Returns them in the order of their
    /// numbers; `sink` gets them as they finish.
    pub(super) fn analog(&self, out: &Output, sink: &mut Sink<'_>) -> anyhow::Result<Reads> {
        let next = AtomicU64::new(0);
        let bar = count_bar("sectors", self.sectors, out.is_json());
        let done = Mutex::new((Vec::new(), sink));
        let worker = || -> anyhow::Result<()> {
            let mut reader = VoxelReader::new(self.medium(), vec![(self.decoder)()?])?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.sectors {
                    return Ok(());
                }
                let sector = self.read(&mut reader, number)?;
                let Decoded { found, symbols, score, report, shape, is_wrong } = sector;
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                let (reads, sink) = &mut *done;
                sink(shape, &found, &symbols, &score);
                let Score { symbol_error_rate, information, .. } = score;
                let read = Read { symbol_error_rate, information, report, is_wrong };
                reads.push((number, read));
                bar.inc(1);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        std::thread::scope(|scope| -> anyhow::Result<()> {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            for worker in workers {
                worker.join().ok().context("a worker died")??;
            }
            Ok(())
        })?;
        bar.finish_and_clear();
        let (mut reads, _) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        reads.sort_by_key(|(number, _)| *number);
        Ok(Reads(reads.into_iter().map(|(_, read)| read).collect()))
    }

    fn medium(&self) -> VoxelMedium {
        VoxelMedium {
            channel: self.channel.clone(),
            rate: RATE,
            seed: Seed::new(self.seed),
            reads_max: 1,
            damage: Damage::default(),
        }
    }

    fn read(&self, reader: &mut VoxelReader, number: u64) -> anyhow::Result<Decoded> {
        let written = bytes(&Seed::new(self.seed), number);
        let (images, symbols) = reader.images(place(number), &written, 0, drive(number), number)?;
        let found = reader.decode(&images, 0)?;
        let frame = reader.frame()?;
        let shape = frame.shape();
        let score = Score::new(self.channel.medium, shape, &found, &symbols);
        let (report, bytes) = frame.decode_probabilities(&found, place(number).number(0))?;
        let is_wrong = bytes.is_some_and(|bytes| bytes != written);
        Ok(Decoded { found, symbols, score, report, shape, is_wrong })
    }

    /// Fits statistics to the sectors; returns the fit, and what was measured.
    pub(super) fn fit(&self, out: &Output) -> anyhow::Result<(SoftFit, Reads, SectorShape)> {
        let mut fit = SoftFit::new(self.channel.medium);
        let mut side = None;
        let reads = self.analog(out, &mut |shape, found, symbols, score| {
            fit.add(shape, found, symbols, score);
            side = Some(shape);
        })?;
        Ok((fit, reads, side.context("no sector was read")?))
    }
}

/// Draws sectors from statistics, on one processor.
pub(super) fn soft(statistics: &SoftStatistics, seed: u64, sectors: u64) -> anyhow::Result<Reads> {
    let seed = Seed::new(seed);
    let mut reader = SoftReader::new(statistics, RATE, seed, 1)?;
    let mut reads = Vec::new();
    let written = bytes(&seed, 0);
    for number in 0..sectors {
        let (drawn, report, bytes) =
            reader.sector(place(number), 0, &written, drive(number), number, 0)?;
        let (symbol_error_rate, information) = (drawn.symbol_error_rate, drawn.information);
        let is_wrong = bytes.is_some_and(|bytes| bytes != written);
        reads.push(Read { symbol_error_rate, information, report, is_wrong });
    }
    Ok(Reads(reads))
}

/// Draws outcomes of sectors from statistics: their margins, or `None` if they are lost.
pub(super) fn sector(
    statistics: &SoftStatistics,
    seed: u64,
    sectors: u64,
) -> anyhow::Result<Vec<Option<u8>>> {
    let reader = OutcomeReader::new(statistics, Seed::new(seed), 1)?;
    let outcome = |number| match reader.sector(place(number), 0, drive(number), number, 0) {
        SectorReading::Lost => None,
        SectorReading::Read { margin } => margin,
    };
    Ok((0..sectors).map(outcome).collect())
}

/// The normal quantile for 95 %.
const Z: f64 = 1.96;

impl Reads {
    /// Returns a mean, with its 95 % interval from the spread of sectors.
    pub(super) fn mean(&self, value: impl Fn(&Read) -> f64) -> Interval {
        mean(self.0.iter().map(&value))
    }

    /// Returns the share of sectors that satisfy a condition, with Wilson's interval.
    pub(super) fn share(&self, predicate: impl Fn(&Read) -> bool) -> Interval {
        wilson(self.0.iter().filter(|read| predicate(read)).count(), self.0.len())
    }

    /// Returns the share of sectors that could not be decoded.
    pub(super) fn failure_rate(&self) -> Interval {
        self.share(|read| read.report.failure.is_some())
    }
}

/// Returns a mean, with its 95 % interval from the spread of the values.
pub(super) fn mean(values: impl Iterator<Item = f64> + Clone) -> Interval {
    let count = as_float(values.clone().count());
    let value = values.clone().sum::<f64>() / count;
    let squares: f64 = values.map(|each| (each - value).powi(2)).sum();
    let error = (squares / (count - 1.0).max(1.0) / count).sqrt();
    Interval { value, low: value - Z * error, high: value + Z * error }
}

/// Returns Wilson's 95 % interval of a share (J. Am. Stat. Assoc. 22, 209, 1927).
pub(super) fn wilson(hits: usize, total: usize) -> Interval {
    let (hits, count) = (as_float(hits), as_float(total));
    let value = hits / count;
    let middle = (value + Z * Z / (2.0 * count)) / (1.0 + Z * Z / count);
    let half = Z / (1.0 + Z * Z / count)
        * (value * (1.0 - value) / count + Z * Z / (4.0 * count * count)).sqrt();
    Interval { value, low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
}

#[expect(clippy::cast_precision_loss, reason = "counts of sectors")]
const fn as_float(count: usize) -> f64 {
    count as f64
}

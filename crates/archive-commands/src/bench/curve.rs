//! A curve that grows by chunks: which are done, which is next, and their sums.
//!
//! ```text
//! chunk    = frames of one seed at one point; the seed follows from point and number
//! NAME.ndjson   one line a finished chunk, appended as they finish, in any order
//! ```
//!
//! A chunk's counts are a pure function of its point and number, so a stopped run can resume where
//! it was, and two runs of one point give the same counts whatever the number of threads.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use anyhow::Context as _;
use fulgurite_codes::ldpc::simulate::{Counts, wilson_interval};
use serde::{Deserialize, Serialize};

/// One finished chunk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Chunk {
    /// Target symbol error rate, in millionths.
    pub(super) ser_ppm: u32,
    /// Number of the chunk at its point.
    pub(super) number: u64,
    pub(super) frames: u64,
    pub(super) failures: u64,
    pub(super) undetected: u64,
    pub(super) bits: u64,
    pub(super) bit_errors: u64,
    pub(super) symbols: u64,
    pub(super) symbol_errors: u64,
    pub(super) iterations: u64,
}

impl Chunk {
    /// Creates the line of a chunk.
    pub(super) fn new(ser_ppm: u32, number: u64, counts: &Counts) -> Self {
        Self {
            ser_ppm,
            number,
            frames: counts.frames,
            failures: counts.failures,
            undetected: counts.undetected,
            bits: counts.bits,
            bit_errors: counts.bit_errors,
            symbols: counts.symbols,
            symbol_errors: counts.symbol_errors,
            iterations: counts.iterations,
        }
    }

    /// Returns the seed of a chunk: no two chunks of any point share one.
    pub(super) fn seed(ser_ppm: u32, number: u64) -> u64 {
        u64::from(ser_ppm) << 40 | number
    }
}

/// A point of a curve, as written to the data file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Point {
    /// Target symbol error rate, in millionths.
    pub(super) ser_ppm: u32,
    /// Measured symbol error rate.
    pub(super) ser: f64,
    pub(super) frames: u64,
    pub(super) failures: u64,
    /// Failures that the decoder did not detect.
    pub(super) undetected: u64,
    /// Frame error rate: low end, value, high end of the Wilson interval at 95 %.
    pub(super) fer: [f64; 3],
    /// Bit error rate of the information bits. It has no interval: frames are independent, but the
    /// wrong bits of a frame are not.
    pub(super) ber: f64,
    /// Mean iterations per frame.
    pub(super) iterations: f64,
    /// Information decoded at this point by one thread, in Mbit/s.
    pub(super) mbit_per_second: f64,
}

/// The chunks of one point.
#[derive(Clone, Debug, Default)]
pub(super) struct PointChunks {
    sum: Counts,
    done: std::collections::BTreeSet<u64>,
}

impl PointChunks {
    /// Adds a chunk; a duplicate is ignored.
    pub(super) fn add(&mut self, chunk: &Chunk) {
        if !self.done.insert(chunk.number) {
            return;
        }
        self.sum.add(&Counts {
            frames: chunk.frames,
            failures: chunk.failures,
            undetected: chunk.undetected,
            bits: chunk.bits,
            bit_errors: chunk.bit_errors,
            symbols: chunk.symbols,
            symbol_errors: chunk.symbol_errors,
            iterations: chunk.iterations,
        });
    }

    /// The sum of the chunks.
    pub(super) fn sum(&self) -> &Counts {
        &self.sum
    }

    /// Returns whether a chunk is done.
    pub(super) fn has(&self, number: u64) -> bool {
        self.done.contains(&number)
    }

    /// Returns the point of the curve.
    #[expect(clippy::cast_precision_loss, reason = "rates are shown with few digits")]
    pub(super) fn point(&self, ser_ppm: u32, mbit_per_second: f64) -> Point {
        let sum = &self.sum;
        let share = |events: u64, trials: u64| events as f64 / trials.max(1) as f64;
        Point {
            ser_ppm,
            ser: share(sum.symbol_errors, sum.symbols),
            frames: sum.frames,
            failures: sum.failures,
            undetected: sum.undetected,
            fer: wilson_interval(sum.failures, sum.frames),
            ber: share(sum.bit_errors, sum.bits),
            iterations: share(sum.iterations, sum.frames),
            mbit_per_second,
        }
    }
}

/// Reads the chunks of an earlier run. Ignores a truncated last line, as a crash leaves it.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Chunk>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let lines = BufReader::new(file).lines().collect::<Result<Vec<_>, _>>()?;
    let mut chunks = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(chunk) => chunks.push(chunk),
            Err(_) if index + 1 == lines.len() => {}
            Err(error) => {
                return Err(error).with_context(|| format!("{}:{}", path.display(), index + 1));
            }
        }
    }
    Ok(chunks)
}

/// Writes chunks to a new file, and returns it for appending.
pub(super) fn rewrite(path: &Path, chunks: &[Chunk]) -> anyhow::Result<File> {
    let mut file =
        File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    for chunk in chunks {
        append(&mut file, chunk)?;
    }
    Ok(file)
}

/// Appends a finished chunk.
pub(super) fn append(file: &mut File, chunk: &Chunk) -> anyhow::Result<()> {
    let line = serde_json::to_string(chunk)? + "\n";
    file.write_all(line.as_bytes()).context("cannot append a chunk")
}

#[cfg(test)]
mod tests;

//! A tape library under the same trace: the baseline that glass is compared with.
//!
//! ```text
//! slot --robot--> drive --load--> locate, read, locate, ... --rewind, unload--> --robot--> slot
//! ```
//!
//! It has its own small event loop instead of the glass library's controller. The cartridge with
//! the oldest waiting read comes next, and all its reads are served while it is mounted. Every
//! figure is a named field with its source; none is fitted to anything. Not modeled: failures,
//! writes, robots in each other's way, and cartridge exchange in one robot trip.

mod engine;

use std::ops::Range;

use fulgurite_units::{ByteCount, Duration, Instant, Seed};
use serde::{Deserialize, Serialize};

use crate::engine::histogram::Quantiles;
use crate::workload::Placement;
use crate::{Error, TraceRead};

/// Maximum number of waiting reads; a library with more is permanently overloaded.
pub const READS_WAITING_MAX: usize = 1 << 24;

/// A tape library.
///
/// Sources: (a) IBM, "Performance specifications for LTO tape drives" (TS4500 and Diamondback
/// documentation, LTO 9; TS2290 documentation, LTO 8); (b) Oracle, ACSLS administration guide,
/// appendix "Library performance" (SL8500); (c) the LTO program's cartridge specifications.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TapeLibrary {
    /// Number of drives. Chosen for the comparison.
    pub drives: u16,
    /// Number of robots, each moving one cartridge at a time. Chosen for the comparison.
    pub robots: u16,
    /// Number of cartridges with data. Chosen for the comparison.
    pub cartridges: u32,
    /// Bytes per cartridge, uncompressed: 12 TB (LTO 8), 18 TB (LTO 9). Source (c).
    pub cartridge_capacity: ByteCount,
    /// Passes over the length of the tape that fill it: 208 (LTO 8), 280 (LTO 9). Source (c): the
    /// number of tracks divided by the 32 that are read at once.
    pub wraps: u32,
    /// Bytes read per second, uncompressed: 360 MB (LTO 8), 400 MB (LTO 9). Source (a).
    pub read_rate: ByteCount,
    /// Time from slot to drive, or back: 12.5 s, the middle of the 10 to 15 s of source (b) for a
    /// library of 3,000 cells.
    pub robot_move: Duration,
    /// Time from insertion to ready, including threading: 15 s (LTO 8), 17 s (LTO 9). Source (a).
    pub load: Duration,
    /// Time to stop, change wraps and get up to speed at each locate: 5 s. Assumed: source (a) has
    /// only averages, and this is subtracted from `locate_pass`.
    pub locate_settle: Duration,
    /// Time to wind over the whole length: twice the difference of the average time from the load
    /// point to a record and `locate_settle`. Source (a): 59 s on average (LTO 8), 45 s (LTO 9).
    pub locate_pass: Duration,
    /// Time to rewind over the whole length: twice the average. Source (a): 59 s (LTO 8), 55 s (LTO
    /// 9).
    pub rewind_pass: Duration,
    /// Time from the load point to ejected: 24 s (LTO 8), 30 s (LTO 9). Source (a).
    pub unload: Duration,
    /// Additional unload time after large reads; LTO 9 rewinds once more from 5 GB on (source (a):
    /// 110 s instead of 55 s). The third rewind that the source names for "other mount activity" is
    /// omitted, in favor of tape.
    pub tension: Option<Tension>,
    /// The order in which the reads of a mounted cartridge are served.
    pub order: BatchOrder,
    /// Maximum reads per batch before other cartridges are considered again. Assumed: 1000.
    pub batch_reads_max: u32,
}

/// An additional rewind that evens out the tension of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tension {
    /// Bytes read in one mount from which it is needed.
    pub from: ByteCount,
    /// Its duration.
    pub time: Duration,
}

/// The order in which the reads of a mounted cartridge are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatchOrder {
    /// By arrival.
    Arrival,
    /// By offset, as they were written.
    Offset,
    /// Nearest along the tape first, on any wrap: a simple recommended access order.
    Nearest,
}

impl TapeLibrary {
    /// Half-height LTO 8 drives with LTO 8 cartridges.
    #[must_use]
    pub const fn lto8(drives: u16, robots: u16, cartridges: u32) -> Self {
        Self {
            drives,
            robots,
            cartridges,
            cartridge_capacity: ByteCount::new(12_000_000_000_000),
            wraps: 208,
            read_rate: ByteCount::new(360_000_000),
            robot_move: Duration::from_millis(12_500),
            load: Duration::from_secs(15),
            locate_settle: Duration::from_secs(5),
            locate_pass: Duration::from_secs(2 * (59 - 5)),
            rewind_pass: Duration::from_secs(2 * 59),
            unload: Duration::from_secs(24),
            tension: None,
            order: BatchOrder::Nearest,
            batch_reads_max: 1000,
        }
    }

    /// Full-height LTO 9 drives with LTO 9 cartridges.
    #[must_use]
    pub const fn lto9(drives: u16, robots: u16, cartridges: u32) -> Self {
        let from = ByteCount::new(5_000_000_000);
        Self {
            cartridge_capacity: ByteCount::new(18_000_000_000_000),
            wraps: 280,
            read_rate: ByteCount::new(400_000_000),
            load: Duration::from_secs(17),
            locate_pass: Duration::from_secs(2 * (45 - 5)),
            rewind_pass: Duration::from_secs(2 * 55),
            unload: Duration::from_secs(30),
            tension: Some(Tension { from, time: Duration::from_secs(55) }),
            ..Self::lto8(drives, robots, cartridges)
        }
    }

    /// Checks every parameter.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        let positive = [
            ("drives", u64::from(self.drives)),
            ("robots", u64::from(self.robots)),
            ("cartridges", u64::from(self.cartridges)),
            ("cartridge_capacity", self.cartridge_capacity.get()),
            ("wraps", u64::from(self.wraps)),
            ("read_rate", self.read_rate.get()),
            ("batch_reads_max", u64::from(self.batch_reads_max)),
        ];
        if let Some(&(field, _)) = positive.iter().find(|(_, value)| *value == 0) {
            let expected = "at least 1";
            return Err(Error::Parameter { field, value: "0".to_owned(), expected });
        }
        let times = [
            ("robot_move", self.robot_move),
            ("load", self.load),
            ("locate_settle", self.locate_settle),
            ("locate_pass", self.locate_pass),
            ("rewind_pass", self.rewind_pass),
            ("unload", self.unload),
            ("tension.time", self.tension.map_or(Duration::ZERO, |tension| tension.time)),
        ];
        let long = Duration::from_secs(86_400);
        match times.iter().find(|(_, time)| *time > long) {
            Some(&(field, time)) => {
                let expected = "at most a day";
                Err(Error::Parameter { field, value: time.to_string(), expected })
            }
            None => Ok(()),
        }
    }

    /// Serves these reads, each a contiguous range of one cartridge at a uniform offset. Reads that
    /// arrive within `measured` count.
    ///
    /// # Errors
    /// Names the first parameter that is out of range, a read that fits no cartridge, or one out of
    /// order; or reports that the library is overloaded.
    pub fn run(
        &self,
        reads: impl IntoIterator<Item = TraceRead>,
        measured: Range<Instant>,
        placement: Placement,
        seed: Seed,
    ) -> Result<TapeResult, Error> {
        self.validate()?;
        engine::run(self, reads.into_iter(), measured, placement, seed)
    }

    /// Returns how far along the tape a byte lies, from 0 at the load point to 1 at the end; wraps
    /// alternate in direction.
    fn along(&self, offset: u64) -> f64 {
        let position = offset as f64 / self.cartridge_capacity.get() as f64 * f64::from(self.wraps);
        let within = position % 2.0;
        if within <= 1.0 { within } else { 2.0 - within }
    }

    /// Returns the time to wind from one position to another.
    fn locate(&self, from: f64, to: f64) -> u64 {
        self.locate_settle.as_nanos() + part(self.locate_pass, (from - to).abs())
    }

    fn transfer(&self, size: ByteCount) -> u64 {
        let nanos = u128::from(size.get()) * 1_000_000_000 / u128::from(self.read_rate.get());
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    /// Returns the time to rewind from a position and unload.
    fn unmount(&self, from: f64, bytes_read: u64) -> u64 {
        let tension = self.tension.filter(|tension| bytes_read >= tension.from.get());
        let tension = tension.map_or(Duration::ZERO, |tension| tension.time);
        part(self.rewind_pass, from) + (self.unload + tension).as_nanos()
    }
}

/// Measurements of a tape library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TapeResult {
    /// Completion times of the measured reads in seconds: arrival to last byte.
    pub completion: Quantiles,
    /// Their bytes.
    pub bytes: u64,
    /// Shares of the drives' time until the last cartridge is back.
    pub drive_time: TapeDriveTime,
    /// Share of the robots' time.
    pub robots_busy: f64,
    /// Cartridges mounted.
    pub mounts: u64,
    /// Reads of the whole trace per mount.
    pub reads_per_mount: f64,
    /// Maximum number of waiting reads.
    pub queue_max: u64,
    /// Seconds until the last cartridge is back.
    pub makespan: f64,
    /// Hash of the run: it differs as soon as any event, its order or its time differs.
    pub hash: u64,
}

/// Shares of the drives' time; they add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TapeDriveTime {
    /// Reading.
    pub read: f64,
    /// Locating the data.
    pub locate: f64,
    /// Loading and threading.
    pub load: f64,
    /// Rewinding and unloading.
    pub unmount: f64,
    /// Waiting for a robot to bring or take a cartridge.
    pub robot: f64,
    /// Idle.
    pub idle: f64,
}

/// Returns a share, from 0 to 1, of a duration, in nanoseconds.
fn part(duration: Duration, share: f64) -> u64 {
    Duration::from_secs_f64(duration.as_secs_f64() * share).as_nanos()
}

#[cfg(test)]
mod tests;

//! A cache at a reader's site, driven by the ages at which bytes are read in a trace (Giza, section
//! 2.2): the traffic between sites that it saves, and the bytes it keeps for that.
//!
//! ```text
//!   of all bytes read   47 % within a day, 87 % within a week, 98 % within a month, all in three
//!   bytes read / bytes written   2.3
//! ```
//!
//! Nothing is known between those ages: they are drawn uniformly within the first day and
//! log-uniformly within each later span. An object is read where it was written, and all objects
//! have one size. This is a model of its own: no controller runs in it.

use fulgurite_units::Seed;
use serde::Deserialize;

use crate::workload::{Draws, exp2, ln};

/// Cumulative shares of the bytes read, and the age in days up to which they are read.
const READ_AGES: [(f64, f64); 4] = [(0.47, 1.0), (0.87, 7.0), (0.98, 30.0), (1.0, 90.0)];
/// Bytes read for each byte written.
const BYTES_READ_PER_BYTE_WRITTEN: f64 = 2.3;
/// Number of simulated objects.
const OBJECTS: u32 = 100_000;

/// A cache.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Days that it keeps something.
    pub days: f64,
    /// How it is filled.
    pub filled: CacheFill,
    /// Fragments needed to decode an object; its site has one of them.
    pub data: u8,
}

/// How a cache is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheFill {
    /// With the whole object when it is written, kept for this many days (the paper's design).
    Written,
    /// With the fragments of other sites when they are read, kept for this many days since the last
    /// read.
    Read,
}

/// What a cache achieves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheResult {
    /// Share of reads without traffic between sites.
    pub hits: f64,
    /// Bytes that reads transfer between sites for each byte written.
    pub crossed: f64,
    /// Days that a byte is kept for each byte written.
    pub kept_days: f64,
}

impl Cache {
    /// Simulates objects.
    ///
    /// # Errors
    /// When `days` is not from 0 to 90, or there are no fragments of other sites.
    pub fn simulate(&self, seed: u64) -> Result<CacheResult, String> {
        if !(self.days >= 0.0 && self.days <= 90.0) {
            return Err(format!("days is {}, but must be from 0 to 90", self.days));
        }
        if self.data < 2 {
            return Err(format!("data is {}, but must be at least 2", self.data));
        }
        let mut draws = Draws::new(&Seed::new(seed), b"ages");
        let (mut reads, mut hits, mut cached_days) = (0_u32, 0_u32, 0.0);
        let others = 1.0 - 1.0 / f64::from(self.data);
        for _ in 0..OBJECTS {
            let mut ages = ages(&mut draws);
            ages.sort_by(f64::total_cmp);
            reads += u32::try_from(ages.len()).unwrap_or(u32::MAX);
            let mut until = match self.filled {
                CacheFill::Written => self.days,
                CacheFill::Read => 0.0,
            };
            cached_days += until;
            for age in ages {
                hits += u32::from(age < until);
                if self.filled == CacheFill::Read {
                    let next = age + self.days;
                    cached_days += (next - age.max(until)) * others;
                    until = next;
                }
            }
        }
        let objects = f64::from(OBJECTS);
        Ok(CacheResult {
            hits: f64::from(hits) / f64::from(reads.max(1)),
            crossed: f64::from(reads - hits) / objects * others,
            kept_days: cached_days / objects,
        })
    }
}

/// Draws the ages at which an object is read; their number is Poisson-distributed.
fn ages(draws: &mut Draws) -> Vec<f64> {
    let mut ages = Vec::new();
    let mut left = BYTES_READ_PER_BYTE_WRITTEN;
    loop {
        left += ln(1.0 - draws.unit());
        if left < 0.0 {
            return ages;
        }
        ages.push(age(draws));
    }
}

fn age(draws: &mut Draws) -> f64 {
    let (share, inside) = (draws.unit(), draws.unit());
    let mut from = 0.0;
    for (until_share, until) in READ_AGES {
        if share < until_share {
            let even = from <= 0.0;
            let log = |x: f64| ln(x) / std::f64::consts::LN_2;
            return if even {
                inside * until
            } else {
                exp2(log(from) + inside * (log(until) - log(from)))
            };
        }
        from = until;
    }
    from
}

//! A cache at a reader's site, over the ages at which a trace says that bytes are read (Giza,
//! section 2.2): what it saves between sites, and what it keeps for that.
//!
//! ```text
//!   of all bytes read   47 % within a day, 87 % within a week, 98 % within a month, all in three
//!   bytes read / bytes written   2.3
//! ```
//!
//! Between those ages nothing is known: ages are drawn evenly within the first day and evenly in
//! their logarithm within each later span. An object is read where it was written, and objects are
//! of one size. It is a model of its own: no controller runs in it.

use fulgurite_units::Seed;
use serde::Deserialize;

use crate::workload::{Draws, exp2, ln};

/// Shares of the bytes read, and the age in days until which they are.
const AGES: [(f64, f64); 4] = [(0.47, 1.0), (0.87, 7.0), (0.98, 30.0), (1.0, 90.0)];
/// Bytes read for each byte written.
const READS: f64 = 2.3;
/// Objects that are followed.
const OBJECTS: u32 = 100_000;

/// A cache.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Days that it keeps something.
    pub days: f64,
    /// How it comes there.
    pub filled: Filled,
    /// Fragments that give an object back, of which its site has one.
    pub data: u8,
}

/// How something comes to a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filled {
    /// The whole object when it is written, for so many days (the paper's).
    Written,
    /// The fragments of other sites when they were read, for so many days since the last read.
    Read,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cached {
    /// Share of reads that cross no sites.
    pub hits: f64,
    /// Bytes that reads bring across for each byte written.
    pub crossed: f64,
    /// Days that a byte is kept for each byte written.
    pub kept_days: f64,
}

impl Cache {
    /// Follows objects.
    ///
    /// # Errors
    /// When it keeps nothing, or for ever, or there are no fragments of other sites.
    pub fn follow(&self, seed: u64) -> Result<Cached, String> {
        if !(self.days >= 0.0 && self.days <= 90.0) {
            return Err(format!("days is {}, but must be from 0 to 90", self.days));
        }
        if self.data < 2 {
            return Err(format!("data is {}, but must be at least 2", self.data));
        }
        let mut draws = Draws::new(&Seed::new(seed), b"ages");
        let (mut reads, mut hits, mut kept) = (0_u32, 0_u32, 0.0);
        let others = 1.0 - 1.0 / f64::from(self.data);
        for _ in 0..OBJECTS {
            let mut ages = ages(&mut draws);
            ages.sort_by(f64::total_cmp);
            reads += u32::try_from(ages.len()).unwrap_or(u32::MAX);
            let mut until = match self.filled {
                Filled::Written => self.days,
                Filled::Read => 0.0,
            };
            kept += until;
            for age in ages {
                hits += u32::from(age < until);
                if self.filled == Filled::Read {
                    let next = age + self.days;
                    kept += (next - age.max(until)) * others;
                    until = next;
                }
            }
        }
        let objects = f64::from(OBJECTS);
        Ok(Cached {
            hits: f64::from(hits) / f64::from(reads.max(1)),
            crossed: f64::from(reads - hits) / objects * others,
            kept_days: kept / objects,
        })
    }
}

/// Ages at which an object is read: as many as a Poisson draw says.
fn ages(draws: &mut Draws) -> Vec<f64> {
    let mut ages = Vec::new();
    let mut left = READS;
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
    for (until_share, until) in AGES {
        if share < until_share {
            let even = from <= 0.0;
            let log = |of: f64| ln(of) / std::f64::consts::LN_2;
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

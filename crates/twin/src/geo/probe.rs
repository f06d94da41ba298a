//! Numbers about several sites that need no run.

use serde::Deserialize;

use super::cache::{Cache, CacheFill, CacheResult};
use crate::experiment::{self, Bases};

/// A number to measure, once per seed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Probe {
    /// A number of a cache at a reader's site.
    Cache {
        /// The cache.
        cache: Cache,
        /// The number.
        of: CacheNumber,
    },
}

/// A number of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheNumber {
    /// Share of reads without traffic between sites.
    Hits,
    /// Bytes that reads transfer between sites for each byte written.
    Crossed,
    /// Days that a byte is kept for each byte written.
    KeptDays,
}

/// A curve that needs no run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CurveProbe {
    /// A number of a cache, over the days that it keeps things.
    Cache {
        /// How it is filled.
        filled: CacheFill,
        /// Fragments needed to decode an object.
        data: u8,
        /// Days.
        days: Vec<f64>,
        /// The number.
        of: CacheNumber,
    },
}

impl CacheNumber {
    const fn get(self, cached: &CacheResult) -> f64 {
        match self {
            Self::Hits => cached.hits,
            Self::Crossed => cached.crossed,
            Self::KeptDays => cached.kept_days,
        }
    }
}

impl experiment::Probe for Probe {
    fn measure(&self, _: &Bases, seed: u64) -> Result<f64, String> {
        match self {
            Self::Cache { cache, of } => Ok(of.get(&cache.simulate(seed)?)),
        }
    }
}

impl experiment::CurveProbe for CurveProbe {
    fn points(&self, _: &Bases) -> Result<Vec<(f64, String, f64)>, String> {
        let Self::Cache { filled, data, days, of } = self;
        let point = |day: &f64| {
            let cache = Cache { days: *day, filled: *filled, data: *data };
            Ok((*day, day.to_string(), of.get(&cache.simulate(1)?)))
        };
        days.iter().map(point).collect()
    }
}

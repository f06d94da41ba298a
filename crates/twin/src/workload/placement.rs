//! Which platters reads go to: one draw per shard, by the consumer of a trace.

use fulgurite_units::Seed;
use serde::{Deserialize, Serialize};

use super::check_range;
use super::draws::{AliasTable, Draws, power};
use crate::Error;

/// How reads spread over platters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Placement {
    /// Evenly: "we do not assume data locality" (Silica, section 7.2).
    #[default]
    Uniform,
    /// By Zipf's law over a random order of the platters (Silica, section 7.5).
    Zipf {
        /// The platter of rank r is drawn with a probability proportional to r to the power of
        /// minus this; 0.95 fits the tails of section 7.5.
        exponent: f64,
    },
}

impl Placement {
    /// Checks the exponent.
    ///
    /// # Errors
    /// When it is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        match *self {
            Self::Uniform => Ok(()),
            Self::Zipf { exponent } => {
                check_range("placement.zipf.exponent", exponent, 0.0..=10.0, "from 0 to 10")
            }
        }
    }
}

/// Draws platters, each in constant time.
#[derive(Clone, Debug)]
pub struct PlacementSampler {
    platters: u32,
    zipf: Option<AliasTable>,
    draws: Draws,
}

impl PlacementSampler {
    /// Creates a sampler over this many platters.
    ///
    /// # Errors
    /// When there are none, or the exponent is out of range.
    pub fn new(placement: Placement, platters: u32, seed: Seed) -> Result<Self, Error> {
        placement.validate()?;
        if platters == 0 {
            let expected = "at least 1";
            return Err(Error::Parameter { field: "platters", value: "0".to_owned(), expected });
        }
        let zipf = match placement {
            Placement::Uniform => None,
            Placement::Zipf { exponent } => Some(zipf(exponent, platters, &seed)),
        };
        Ok(Self { platters, zipf, draws: Draws::new(&seed, b"placement") })
    }

    /// Draws the platter of the next shard, from 0 on.
    #[inline]
    pub fn draw(&mut self) -> u32 {
        match &self.zipf {
            None => {
                let below = self.draws.below(u64::from(self.platters));
                u32::try_from(below).unwrap_or(0)
            }
            Some(table) => table.draw(self.draws.bits()),
        }
    }
}

fn zipf(exponent: f64, platters: u32, seed: &Seed) -> AliasTable {
    let mut random = Draws::new(seed, b"ranks");
    let mut weights: Vec<f64> =
        (1..=platters).map(|rank| power(f64::from(rank), -exponent)).collect();
    for last in (1..weights.len()).rev() {
        let other = usize::try_from(random.below(last as u64 + 1)).unwrap_or(0);
        weights.swap(last, other);
    }
    AliasTable::new(&weights)
}

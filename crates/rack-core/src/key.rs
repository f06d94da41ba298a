//! Keys of domains and failure units: expressions on coordinates that say which disks share one.
//!
//! A key is a list of parts such as `x`, `d/2` or `z % 4`; disks for which all parts are equal
//! share it. Not here: what is shared.

use serde::{Deserialize, Serialize};

use crate::Error;

/// An axis along which places are counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Its name, which keys use.
    pub name: String,
    /// Number of positions along it.
    pub size: u32,
}

/// One part of a key, resolved against the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    axis: usize,
    divisor: u32,
    modulus: Option<u32>,
}

impl Part {
    /// Returns the value of this part at a place.
    pub(crate) fn value_at(self, coordinates: &[u32]) -> u32 {
        let value = coordinates[self.axis] / self.divisor;
        self.modulus.map_or(value, |modulus| value % modulus)
    }

    /// Parses `axis`, `axis / n`, `axis % n` or `axis / n % n`.
    pub(crate) fn parse(text: &str, axes: &[Axis], owner: &str) -> Result<Self, Error> {
        let fail = || Error::Key { owner: owner.to_owned(), key: text.to_owned() };
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|&n| n > 0);
        let (rest, modulus) = match text.split_once('%') {
            Some((rest, modulus)) => (rest, Some(number(modulus).ok_or_else(fail)?)),
            None => (text, None),
        };
        let (name, divisor) = match rest.split_once('/') {
            Some((name, divisor)) => (name, number(divisor).ok_or_else(fail)?),
            None => (rest, 1),
        };
        let axis = axes.iter().position(|axis| axis.name == name.trim()).ok_or_else(fail)?;
        Ok(Self { axis, divisor, modulus })
    }
}

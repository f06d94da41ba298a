//! Byte counts, displayed and parsed with binary units ("64MiB").

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A number of bytes. Displayed and parsed with binary units: `512B`, `64KiB`, `4GiB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteCount(u64);

const UNITS: [(&str, u64); 6] = [
    ("PiB", 1 << 50),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

impl ByteCount {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);

    /// Creates a count of `bytes`.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Creates a count of `kib` times 1,024 bytes.
    #[must_use]
    pub const fn kib(kib: u64) -> Self {
        Self(kib << 10)
    }

    /// Creates a count of `mib` times 1,048,576 bytes.
    #[must_use]
    pub const fn mib(mib: u64) -> Self {
        Self(mib << 20)
    }

    /// Creates a count of `gib` times 1,073,741,824 bytes.
    #[must_use]
    pub const fn gib(gib: u64) -> Self {
        Self(gib << 30)
    }

    /// Returns the count as a plain integer.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for ByteCount {
    fn from(bytes: u64) -> Self {
        Self(bytes)
    }
}

impl std::ops::Add for ByteCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl std::ops::AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl std::iter::Sum for ByteCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, |sum, count| sum + count)
    }
}

impl fmt::Display for ByteCount {
    /// Exact when the count is a whole number of the largest unit it reaches, otherwise one
    /// decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) =
            UNITS.iter().copied().find(|&(_, unit)| self.0 >= unit).unwrap_or(("B", 1));
        if self.0.is_multiple_of(unit) {
            return write!(f, "{}{name}", self.0 / unit);
        }
        #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
        let value = self.0 as f64 / unit as f64;
        write!(f, "{value:.1}{name}")
    }
}

/// A byte count could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseByteCountError(String);

impl fmt::Display for ParseByteCountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is not a byte count; write a whole number and a unit, like 64MiB", self.0)
    }
}

impl std::error::Error for ParseByteCountError {}

impl FromStr for ByteCount {
    type Err = ParseByteCountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = || ParseByteCountError(text.to_owned());
        let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(digits_end);
        let number: u64 = digits.parse().map_err(|_| fail())?;
        let unit = unit.trim_start();
        let factor = if unit.is_empty() {
            1
        } else {
            UNITS.iter().find(|(name, _)| *name == unit).map(|&(_, f)| f).ok_or_else(fail)?
        };
        number.checked_mul(factor).map(Self).ok_or_else(fail)
    }
}

impl Serialize for ByteCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            // Config files show units. The count stays exact: one that would be rounded is written
            // in bytes.
            let text = self.to_string();
            let exact = text.parse() == Ok(*self);
            serializer.serialize_str(&if exact { text } else { format!("{}B", self.0) })
        } else {
            serializer.serialize_u64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for ByteCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
        } else {
            u64::deserialize(deserializer).map(Self)
        }
    }
}

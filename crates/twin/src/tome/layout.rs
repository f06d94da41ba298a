//! Storage overhead of two levels of redundancy, in closed form: nothing is simulated here.
//!
//! ```text
//!   blocks + parity blocks = a segment of one tome      regions + parity regions = a group
//!   62 + 2                                              13 + 3
//!   raw = user * 64/62 * 16/13
//! ```

use serde::{Deserialize, Serialize};

use crate::Error;

/// Maximum number of members of a code (Pergamum (FAST 2008), section 4.2: groups are not large).
const MEMBERS_MAX: u32 = 256;

/// An erasure code: numbers of data and parity blocks, or regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// Number of data members.
    pub data: u32,
    /// Number of parity members.
    pub parity: u32,
}

impl Code {
    /// Creates a code with these numbers.
    #[must_use]
    pub const fn new(data: u32, parity: u32) -> Self {
        Self { data, parity }
    }

    /// Returns the number of members.
    #[must_use]
    pub const fn members(self) -> u32 {
        self.data + self.parity
    }

    /// Returns the bytes stored per byte of data.
    #[must_use]
    pub fn expansion(self) -> f64 {
        f64::from(self.members()) / f64::from(self.data)
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// Names the field.
    pub fn validate(self, field: &'static str) -> Result<(), Error> {
        let fine = (1..=MEMBERS_MAX).contains(&self.data) && self.parity <= MEMBERS_MAX;
        if fine {
            return Ok(());
        }
        let value = format!("{} + {}", self.data, self.parity);
        Err(Error::Parameter { field, value, expected: "from 1 to 256 and from 0 to 256" })
    }
}

/// Returns the bytes stored per user byte, with the codes of a segment and of a group.
#[must_use]
pub fn expansion(segment: Code, group: Code) -> f64 {
    segment.expansion() * group.expansion()
}

/// Returns the raw bytes of disks that hold this many user bytes.
#[must_use]
pub fn raw(user: f64, segment: Code, group: Code) -> f64 {
    user * expansion(segment, group)
}

/// Returns the metadata bytes that a tome keeps for a disk of this size: a signature of 64 bits and
/// a time of 32 for each block (section 4.1).
#[must_use]
pub fn metadata_bytes(disk: f64, block: f64) -> f64 {
    disk / block * 12.0
}

/// Returns the tomes of a star of equal switches: as many leaves as a hub has ports, each with one
/// port less per hub (section 3.2).
#[must_use]
pub const fn star(ports: u32, hubs: u32) -> u32 {
    ports * ports.saturating_sub(hubs)
}

#[cfg(test)]
mod tests {
    use super::{Code, expansion, metadata_bytes, raw, star};

    const SEGMENT: Code = Code::new(62, 2);
    const GROUP: Code = Code::new(13, 3);

    fn near(ours: f64, expected: f64, within: f64) {
        assert!((ours / expected - 1.0).abs() < within, "{ours} for {expected}");
    }

    #[test]
    fn paper_layout_overhead_is_27_percent() {
        near(expansion(SEGMENT, GROUP) - 1.0, 0.2705, 1e-3);
        near(1e12 / expansion(SEGMENT, GROUP), 787.1e9, 1e-4);
        near(1e12 / expansion(Code::new(61, 3), GROUP), 774.4e9, 1e-3);
        near(raw(10e15, SEGMENT, GROUP), 12_705e12, 1e-3);
    }

    #[test]
    fn metadata_and_switch_star_sizes_match_the_paper() {
        near(metadata_bytes(1024.0_f64.powi(4), 131_072.0), 96.0 * 1_048_576.0, 1e-12);
        assert_eq!(star(48, 2), 2_208);
    }

    #[test]
    fn invalid_code_is_rejected() {
        assert!(Code::new(1, 0).validate("code").is_ok());
        let error = Code::new(0, 3).validate("code").unwrap_err().to_string();
        assert!(error.starts_with("code is 0 + 3"), "{error}");
    }
}

//! The costs of buying and running tomes (Pergamum (FAST 2008), section 5.1, tables 2 and 3):
//! prices and watts go in, dollars come out. No price is known here; all are a scenario's.
//!
//! ```text
//!   static = tomes * dollars of a tome
//!   yearly = raw TB * watts of a TB * 8,766 h / 1,000 * dollars of a kWh
//! ```

use serde::{Deserialize, Serialize};

use crate::Error;

/// Hours per year.
pub(crate) const YEAR_H: f64 = 8_766.0;

/// Price and power of a tome.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hardware {
    /// Price of a tome with its share of the network, in dollars.
    pub tome_dollars: f64,
    /// Price of energy including cooling, in dollars.
    pub kwh_dollars: f64,
    /// Power of a spinning disk, in watts (table 2).
    pub disk_w: f64,
    /// Power of the board while the disk spins (table 2).
    pub board_w: f64,
    /// Power of the metadata store while the disk spins (table 2).
    pub store_w: f64,
    /// Power of a tome with disk and processor in standby (section 1).
    pub asleep_w: f64,
    /// Mean power of a terabyte, used for the yearly price; computed from the states of tomes if
    /// omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terabyte_w: Option<f64>,
}

impl Default for Hardware {
    fn default() -> Self {
        Self {
            tome_dollars: 370.0,
            kwh_dollars: 0.2,
            disk_w: 7.5,
            board_w: 3.5,
            store_w: 0.6,
            asleep_w: 0.5,
            terabyte_w: None,
        }
    }
}

/// Cost of an archive, in dollars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Number of tomes to buy.
    pub tomes: f64,
    /// Their price.
    pub fixed: f64,
    /// Energy cost per year.
    pub yearly: f64,
}

impl Hardware {
    /// Returns the power of a tome with a spinning disk, in watts.
    #[must_use]
    pub fn active_w(&self) -> f64 {
        self.disk_w + self.board_w + self.store_w
    }

    /// Returns the mean power of a terabyte, where this share of tomes of this many terabytes
    /// spins.
    #[must_use]
    pub fn mean_terabyte_w(&self, spinning: f64, terabytes: f64) -> f64 {
        (spinning * self.active_w() + (1.0 - spinning) * self.asleep_w) / terabytes
    }

    /// Returns the cost of this many terabytes of disks, in tomes of this size.
    #[must_use]
    pub fn cost(&self, raw_terabytes: f64, terabytes: f64, spinning: f64) -> Cost {
        let tomes = (raw_terabytes / terabytes).ceil();
        let watts = self.terabyte_w.unwrap_or_else(|| self.mean_terabyte_w(spinning, terabytes));
        let yearly = energy_dollars(raw_terabytes * watts, self.kwh_dollars);
        Cost { tomes, fixed: tomes * self.tome_dollars, yearly }
    }

    /// Checks every part.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        for (field, value) in [
            ("hardware.tome_dollars", self.tome_dollars),
            ("hardware.kwh_dollars", self.kwh_dollars),
            ("hardware.disk_w", self.disk_w),
            ("hardware.board_w", self.board_w),
            ("hardware.store_w", self.store_w),
            ("hardware.asleep_w", self.asleep_w),
            ("hardware.terabyte_w", self.terabyte_w.unwrap_or(0.0)),
        ] {
            if !(0.0..=1e6).contains(&value) {
                let expected = "from 0 to 1000000";
                return Err(Error::Parameter { field, value: value.to_string(), expected });
            }
        }
        Ok(())
    }
}

/// Returns the cost of this power for a year.
#[must_use]
pub fn energy_dollars(watts: f64, kwh_dollars: f64) -> f64 {
    watts * YEAR_H / 1e3 * kwh_dollars
}

#[cfg(test)]
mod tests {
    use super::{Hardware, energy_dollars};
    use crate::tome::layout::{Code, raw};

    #[test]
    fn ten_petabytes_cost_matches_table_3() {
        let raw = raw(10e3, Code::new(62, 2), Code::new(13, 3));
        let hardware = Hardware { terabyte_w: Some(2.25), ..Hardware::default() };
        let cost = hardware.cost(raw, 1.0, 0.05);
        assert!((cost.tomes - 12_705.0).abs() < 0.5, "{cost:?}");
        assert!((cost.fixed / 4.7e6 - 1.0).abs() < 0.005, "{cost:?}");
        assert!((cost.yearly / 50e3 - 1.0).abs() < 0.01, "{cost:?}");
    }

    /// By table 2 and the half watt of section 1 a terabyte draws half of what the yearly price
    /// assumes.
    #[test]
    fn power_from_tome_states_is_half_the_yearly_price() {
        let hardware = Hardware::default();
        assert!((hardware.active_w() - 11.6).abs() < 1e-9);
        assert!((hardware.mean_terabyte_w(0.05, 1.0) - 1.055).abs() < 1e-9);
        assert!((energy_dollars(1e3, 0.2) - 1_753.2).abs() < 1e-9);
    }

    #[test]
    fn invalid_price_is_rejected() {
        let hardware = Hardware { kwh_dollars: f64::NAN, ..Hardware::default() };
        assert!(hardware.validate().unwrap_err().to_string().starts_with("hardware.kwh_dollars"));
    }
}

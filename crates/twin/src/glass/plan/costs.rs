//! Costs. Nobody sells glass libraries yet: every default is assumed, and marked so.

use fulgurite_glass_core::control::Throughput;
use serde::{Deserialize, Serialize};

use super::Candidate;
use crate::glass::energy;
use crate::glass::fleet::FleetResult;

/// Prices, powers and energies. All defaults are ASSUMED: no public figures exist. Powers and
/// energies come from the table that batteries use as well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CostTable {
    /// The currency of the prices. Assumed.
    pub currency: String,
    /// One library without racks of drives and slots: write rack, controller, rails. Assumed.
    pub library: f64,
    /// A read rack without drives. Assumed.
    pub read_rack: f64,
    /// A storage rack. Assumed.
    pub storage_rack: f64,
    /// A shuttle. Assumed.
    pub shuttle: f64,
    /// A read drive of 30 MB/s. Assumed.
    pub drive_30: f64,
    /// A read drive of 60 MB/s. Assumed.
    pub drive_60: f64,
    /// A read drive of 90 MB/s. Assumed.
    pub drive_90: f64,
    /// A read drive of 120 MB/s. Assumed.
    pub drive_120: f64,
    /// A read drive of 150 MB/s. Assumed.
    pub drive_150: f64,
    /// A read drive of 180 MB/s. Assumed.
    pub drive_180: f64,
    /// A read drive of 210 MB/s. Assumed.
    pub drive_210: f64,
    /// Years of energy to pay for. Assumed.
    pub service_years: f64,
    /// Price of a kilowatt-hour. Assumed.
    pub kwh: f64,
    /// Watts of one idle library, without drives and shuttles. Assumed.
    pub library_watts: f64,
    /// Watts of an idle drive. Assumed.
    pub drive_idle_watts: f64,
    /// Watts of a drive that reads or verifies. Assumed.
    pub drive_busy_watts: f64,
    /// Watts of an idle shuttle. Assumed.
    pub shuttle_idle_watts: f64,
    /// Joules of a start and stop of horizontal motion. Assumed.
    pub start_joules: f64,
    /// Joules of a meter of horizontal motion. Assumed.
    pub meter_joules: f64,
    /// Joules of a crab. Assumed.
    pub crab_joules: f64,
    /// Joules of a pick or place. Assumed.
    pub handling_joules: f64,
}

impl Default for CostTable {
    fn default() -> Self {
        Self {
            currency: "USD".to_owned(),
            library: 60_000.0,
            read_rack: 8_000.0,
            storage_rack: 5_000.0,
            shuttle: 6_000.0,
            drive_30: 12_000.0,
            drive_60: 15_000.0,
            drive_90: 19_000.0,
            drive_120: 24_000.0,
            drive_150: 30_000.0,
            drive_180: 37_000.0,
            drive_210: 45_000.0,
            service_years: 10.0,
            kwh: 0.12,
            library_watts: energy::LIBRARY_WATTS,
            drive_idle_watts: energy::DRIVE_IDLE_WATTS,
            drive_busy_watts: energy::DRIVE_BUSY_WATTS,
            shuttle_idle_watts: energy::SHUTTLE_IDLE_WATTS,
            start_joules: energy::START_ENERGY * energy::START_JOULES,
            meter_joules: energy::METER_ENERGY * energy::START_JOULES,
            crab_joules: energy::CRAB_ENERGY * energy::START_JOULES,
            handling_joules: energy::HANDLING_ENERGY * energy::START_JOULES,
        }
    }
}

impl CostTable {
    /// Returns the price of a drive.
    #[must_use]
    pub fn drive(&self, throughput: Throughput) -> f64 {
        match u32::from(throughput) {
            30 => self.drive_30,
            60 => self.drive_60,
            90 => self.drive_90,
            120 => self.drive_120,
            150 => self.drive_150,
            180 => self.drive_180,
            _ => self.drive_210,
        }
    }

    /// Returns the price of all machines.
    #[must_use]
    pub fn capital(&self, candidate: &Candidate) -> f64 {
        let each = self.library
            + f64::from(candidate.read_racks) * self.read_rack
            + f64::from(candidate.storage_racks) * self.storage_rack
            + f64::from(candidate.drives()) * self.drive(candidate.throughput)
            + f64::from(candidate.shuttles()) * self.shuttle;
        each * f64::from(candidate.libraries)
    }

    /// Returns the kilowatt-hours per day of idle machines.
    pub(super) fn rest_kwh_per_day(&self, candidate: &Candidate) -> f64 {
        let watts = self.library_watts
            + f64::from(candidate.drives()) * self.drive_idle_watts
            + f64::from(candidate.shuttles()) * self.shuttle_idle_watts;
        watts * f64::from(candidate.libraries) * 24.0 / 1000.0
    }

    /// Returns the kilowatt-hours per day of a run whose drives are busy for this share of their
    /// time.
    pub(super) fn kwh_per_day(&self, candidate: &Candidate, run: &FleetResult, busy: f64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts of a run are below 2^53")]
        let joules = run.starts as f64 * self.start_joules
            + run.meters * self.meter_joules
            + run.crabs as f64 * self.crab_joules
            + run.platter_operations as f64 * self.handling_joules;
        let motion = joules / 3.6e6 * 86_400.0 / run.makespan.max(1.0);
        let extra = (self.drive_busy_watts - self.drive_idle_watts).max(0.0);
        let drives = f64::from(candidate.drives()) * f64::from(candidate.libraries);
        self.rest_kwh_per_day(candidate) + motion + drives * busy * extra * 24.0 / 1000.0
    }

    /// Returns the sum of capital and the energy of all years.
    pub(super) fn total(&self, capital: f64, kwh_per_day: f64) -> f64 {
        capital + kwh_per_day * self.kwh * 365.25 * self.service_years
    }

    /// Returns a lower bound of a candidate's cost.
    pub(super) fn cost_lower_bound(&self, candidate: &Candidate) -> f64 {
        self.total(self.capital(candidate), self.rest_kwh_per_day(candidate))
    }
}

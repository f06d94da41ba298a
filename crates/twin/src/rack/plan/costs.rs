//! Costs of racks. The paper gives no prices: every default is assumed, and marked so.

use serde::{Deserialize, Serialize};

use super::{Candidate, PlanRequest};
use crate::rack::result::RunResult;
use crate::rack::scenario::Disks;
use crate::rack::shape::DISKS;

/// Prices and powers. All defaults are ASSUMED; the power of disks is the paper's (section 4.8).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CostTable {
    /// The currency of the prices. Assumed.
    pub currency: String,
    /// A rack without disks, servers, power and cooling: frame, chassis, trays, backplanes, HBAs.
    /// Assumed.
    pub rack: f64,
    /// A disk, whatever its size. Assumed.
    pub disk: f64,
    /// A terabyte of a disk's size. Assumed.
    pub disk_terabyte: f64,
    /// A server. Assumed.
    pub server: f64,
    /// 10 Gbit/s of network for a server, including its share of switches. Assumed.
    pub network_10gbps: f64,
    /// A watt of power and cooling, including the building's share. Assumed.
    pub supplied_watt: f64,
    /// Watts of a server. Assumed.
    pub server_watts: f64,
    /// Energy of the building per unit of energy of its machines. Assumed.
    pub building: f64,
    /// Years of energy to pay for. Assumed.
    pub service_years: f64,
    /// Price of a kilowatt-hour. Assumed.
    pub kwh: f64,
}

impl Default for CostTable {
    fn default() -> Self {
        Self {
            currency: "USD".to_owned(),
            rack: 25_000.0,
            disk: 40.0,
            disk_terabyte: 14.0,
            server: 6_000.0,
            network_10gbps: 400.0,
            supplied_watt: 8.0,
            server_watts: 250.0,
            building: 1.2,
            service_years: 5.0,
            kwh: 0.12,
        }
    }
}

impl CostTable {
    /// Returns the maximum power of a rack's machines, in watts, which its domains must supply.
    #[must_use]
    pub fn supplied_w(&self, candidate: &Candidate, disks: &Disks) -> f64 {
        let awake = f64::from(candidate.provision.awake());
        awake * disks.spin_up_w
            + (f64::from(DISKS) - awake) * disks.standby_w
            + f64::from(candidate.servers) * self.server_watts
    }

    /// Returns the price of all machines.
    #[must_use]
    pub fn capital(&self, candidate: &Candidate, disks: &Disks) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a disk is below 2^53 bytes")]
        let terabytes = candidate.disk.get() as f64 / 1e12;
        let each = self.rack
            + f64::from(DISKS) * (self.disk + terabytes * self.disk_terabyte)
            + f64::from(candidate.servers)
                * (self.server + f64::from(candidate.nic_gbps) / 10.0 * self.network_10gbps)
            + self.supplied_w(candidate, disks) * self.supplied_watt;
        each * f64::from(candidate.racks)
    }

    /// Returns the kilowatt-hours per day if the disks of each rack draw this many watts.
    fn kwh_per_day(&self, candidate: &Candidate, disks_w: f64) -> f64 {
        let watts = disks_w + f64::from(candidate.servers) * self.server_watts;
        watts * self.building * f64::from(candidate.racks) * 24.0 / 1000.0
    }

    /// Returns the kilowatt-hours per day of a run.
    pub(super) fn kwh_of_run(&self, candidate: &Candidate, run: &RunResult) -> f64 {
        self.kwh_per_day(candidate, run.power)
    }

    /// Returns the sum of capital and the energy of all years.
    pub(super) fn total(&self, capital: f64, kwh_per_day: f64) -> f64 {
        capital + kwh_per_day * self.kwh * 365.25 * self.service_years
    }

    /// Returns a lower bound of a candidate's cost: all of its disks in standby.
    pub(super) fn cost_lower_bound(&self, request: &PlanRequest, candidate: &Candidate) -> f64 {
        let standby = self.kwh_per_day(candidate, f64::from(DISKS) * request.disks.standby_w);
        self.total(self.capital(candidate, &request.disks), standby)
    }
}

//! The request for a plan of racks.

use fulgurite_units::{ByteCount, Duration};
use serde::Deserialize;

use super::{Candidate, CostTable, Provision};
use crate::Error;
use crate::plan::costs;
use crate::plan::sizes::{size, sizes};
use crate::rack::scenario::{Disks, Network, Scenario, SystemTag};
use crate::rack::shape::{DISKS, STACKS_OF_BLOB};
use crate::rack::workload::{Sizes, Workload, to_f64};

/// Utilization of a rack when its first write is rejected, with blobs of 0.2 to 9 GB on disks of
/// mixed sizes (section 4.9).
const FULL: f64 = 0.99386;

/// The space to search.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Space {
    /// Maximum number of racks.
    pub racks_max: u32,
    /// Sizes of disks.
    #[serde(deserialize_with = "sizes")]
    pub disks: Vec<ByteCount>,
    /// Kinds of power and cooling.
    pub provisions: Vec<Provision>,
    /// Servers per rack.
    pub servers: Vec<u32>,
    /// Network bandwidth per server, in Gbit/s.
    pub nic_gbps: Vec<u32>,
}

/// The request for a plan.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlanRequest {
    /// The system.
    pub system: SystemTag,
    /// User bytes ingested per day.
    #[serde(deserialize_with = "size")]
    pub ingest_per_day: ByteCount,
    /// User bytes already stored.
    #[serde(deserialize_with = "size")]
    pub stored: ByteCount,
    /// Days of ingest to provide room for.
    pub growth_days: u32,
    /// Random reads per second of all racks together.
    pub rate: f64,
    /// Size of a blob that is read.
    #[serde(deserialize_with = "size")]
    pub blob: ByteCount,
    /// Time within which 99 of 100 reads must have their first byte.
    pub objective: Duration,
    /// Maximum power of a rack's disks, in watts; no limit if omitted.
    pub power_w_max: Option<f64>,
    /// Maximum mean spin-ups per disk and day; no limit if omitted.
    pub spin_ups_a_day_max: Option<f64>,
    /// Number of seeds; every one of them must meet all requirements.
    pub seeds: u32,
    /// Time of reads before the measured window.
    pub warm_up: Duration,
    /// Length of the measured window.
    pub window: Duration,
    /// The disks, except for their size.
    pub disks: Disks,
    /// The cost table.
    pub costs: CostTable,
    /// The space to search.
    pub space: Space,
    /// Number of runs after which the search stops.
    pub runs_max: u32,
}

impl Default for Space {
    fn default() -> Self {
        let terabytes = |count: u64| ByteCount::new(count * 1_000_000_000_000);
        Self {
            racks_max: 16,
            disks: [4, 8, 12, 16, 20, 24].map(terabytes).to_vec(),
            provisions: vec![Provision::Sleeping, Provision::All],
            servers: vec![1, 2],
            nic_gbps: vec![10, 20, 40],
        }
    }
}

impl Default for PlanRequest {
    /// A year of growth, blobs of 1 GB, the first byte within five minutes, three seeds, and the
    /// paper's two hours of warm-up and one-day window. Nothing is ingested or read yet.
    fn default() -> Self {
        let Scenario { warm_up, window, disks, .. } = Scenario::new(Workload::poisson(1.0));
        Self {
            system: SystemTag::Rack,
            ingest_per_day: ByteCount::ZERO,
            stored: ByteCount::ZERO,
            growth_days: 365,
            rate: 0.0,
            blob: ByteCount::new(1_000_000_000),
            objective: Duration::from_secs(300),
            power_w_max: None,
            spin_ups_a_day_max: None,
            seeds: 3,
            warm_up,
            window,
            disks,
            costs: CostTable::default(),
            space: Space::default(),
            runs_max: 2_000,
        }
    }
}

impl PlanRequest {
    /// Checks every part.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        let refuse =
            |field, value: String, expected| Err(Error::Parameter { field, value, expected });
        if self.user_bytes() <= 0.0 {
            return refuse("ingest_per_day", "0".to_owned(), "above 0, or `stored` must be");
        }
        if !(self.rate > 0.0 && self.rate <= 1_000.0) {
            return refuse("rate", self.rate.to_string(), "above 0 and at most 1000");
        }
        if !(1..=100).contains(&self.seeds) {
            return refuse("seeds", self.seeds.to_string(), "from 1 to 100");
        }
        if self.objective == Duration::ZERO {
            return refuse("objective", self.objective.to_string(), "above 0");
        }
        let bounds =
            [("power_w_max", self.power_w_max), ("spin_ups_a_day_max", self.spin_ups_a_day_max)];
        for (field, bound) in bounds {
            if bound.is_some_and(|bound| !(bound.is_finite() && bound > 0.0)) {
                return refuse(field, bound.unwrap_or_default().to_string(), "above 0");
            }
        }
        let standby = f64::from(DISKS) * self.disks.standby_w;
        if let Some(bound) = self.power_w_max.filter(|bound| *bound < standby) {
            // No rack can meet it, but every candidate would be run.
            let expected = "at least the standby power of all disks";
            return refuse(
                "power_w_max",
                format!("{bound} W per rack (standby draws {standby:.0} W)"),
                expected,
            );
        }
        let space = &self.space;
        if !(1..=1_000).contains(&space.racks_max) {
            return refuse("space.racks_max", space.racks_max.to_string(), "from 1 to 1000");
        }
        if space.nic_gbps.contains(&0) || space.disks.contains(&ByteCount::ZERO) {
            return refuse("space", "0".to_owned(), "disks and networks above 0");
        }
        costs::check(&self.costs)?;
        // Each of these is a part of every scenario that is run.
        for &servers in &space.servers {
            let network = Network { servers, ..Network::default() };
            Scenario { network, ..self.scenario_of(self.rate) }.validate()?;
        }
        Ok(())
    }

    /// Returns the user bytes at the given age.
    #[must_use]
    pub fn user_bytes(&self) -> f64 {
        to_f64(self.stored) + to_f64(self.ingest_per_day) * f64::from(self.growth_days)
    }

    /// Returns the raw bytes: user bytes with redundancy, and the space that stays empty in a full
    /// rack.
    #[must_use]
    pub fn raw_bytes(&self) -> f64 {
        self.user_bytes() * f64::from(STACKS_OF_BLOB) / f64::from(self.disks.stacks) / FULL
    }

    /// Returns all candidates in the space with enough room.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let Space { racks_max, disks, provisions, servers, nic_gbps } = &self.space;
        let mut all = Vec::new();
        for &disk in disks {
            let of_rack = to_f64(disk) * f64::from(DISKS);
            for racks in (1..=*racks_max).filter(|&n| f64::from(n) * of_rack >= self.raw_bytes()) {
                for &provision in provisions {
                    for &servers in servers {
                        all.extend(nic_gbps.iter().map(|&nic_gbps| Candidate {
                            racks,
                            disk,
                            provision,
                            servers,
                            nic_gbps,
                        }));
                    }
                }
            }
        }
        all
    }

    /// Returns the scenario of a candidate: one of its racks with its share of the reads.
    pub(super) fn scenario(&self, candidate: &Candidate) -> Scenario {
        let share = self.rate / f64::from(candidate.racks);
        Scenario {
            configuration: candidate.provision.configuration(),
            network: Network {
                servers: candidate.servers,
                nic_gbps: f64::from(candidate.nic_gbps),
                ..Network::default()
            },
            ..self.scenario_of(share)
        }
    }

    fn scenario_of(&self, rate: f64) -> Scenario {
        let sizes = Sizes::Fixed { size: self.blob };
        Scenario {
            warm_up: self.warm_up,
            window: self.window,
            disks: self.disks,
            ..Scenario::new(Workload { sizes, ..Workload::poisson(rate) })
        }
    }
}

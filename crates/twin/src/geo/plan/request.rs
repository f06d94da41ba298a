//! The request for a plan of sites, and the space of candidates.

use fulgurite_geo_core::{QuorumRule, Quorums, limits};
use fulgurite_units::{ByteCount, Duration};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::geo::durability::losses_a_year;
use crate::geo::latencies::{Blob, Coding, Network, Rows, megabytes};
use crate::geo::scenario::{Place, Scenario, SystemTag, Workload};

/// Maximum number of sites to choose from: the search is exhaustive.
const SITES_MAX: usize = 12;
/// Maximum number of fragments of an object.
const FRAGMENTS_MAX: u8 = 12;
/// Writes per run.
const WRITES: u32 = 150;

/// The request for a plan, as read from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// The system.
    #[serde(default)]
    pub system: SystemTag,
    /// The currency of the prices.
    #[serde(default = "default_currency")]
    pub currency: String,
    /// The sites.
    pub site: Vec<PricedSite>,
    /// Round-trip times between them, in milliseconds.
    pub rtt_ms: Vec<Vec<f64>>,
    /// The workload to serve.
    pub demand: Demand,
    /// The requirements.
    pub objective: Objective,
    /// The space to search.
    #[serde(default)]
    pub space: Space,
    /// Latencies of networks and stores.
    #[serde(default)]
    pub stores: Stores,
    /// Number of seeds; every one of them must meet all requirements.
    #[serde(default = "default_seeds")]
    pub seeds: u32,
    /// Number of runs after which the search stops.
    #[serde(default = "default_runs_max")]
    pub runs_max: u32,
}

fn default_currency() -> String {
    "USD".to_owned()
}

const fn default_seeds() -> u32 {
    3
}

const fn default_runs_max() -> u32 {
    2_000
}

const fn default_true() -> bool {
    true
}

/// A site with its prices and its loss rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PricedSite {
    /// Its name.
    pub name: String,
    /// Price of storing a GB of 10^9 bytes for a month.
    pub gb_month: f64,
    /// Price of a GB sent to another site.
    pub gb_sent: f64,
    /// Price of a thousand fragment writes.
    pub writes_1000: f64,
    /// Price of a thousand fragment reads.
    pub reads_1000: f64,
    /// Price of a thousand row updates.
    pub row_updates_1000: f64,
    /// Price of a thousand row reads.
    pub row_reads_1000: f64,
    /// How often a year it is permanently lost.
    pub losses_a_year: f64,
    /// Whether it can hold fragments.
    #[serde(default = "default_true")]
    pub data: bool,
    /// Whether its rows can vote.
    #[serde(default = "default_true")]
    pub votes: bool,
}

/// The monthly workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// Bytes stored.
    pub stored: ByteCount,
    /// Size of an object.
    pub object: ByteCount,
    /// Writes a month.
    pub puts: f64,
    /// Reads a month.
    pub gets: f64,
    /// Names of the sites that send requests, round robin.
    pub from: Vec<String>,
}

/// The requirements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// Latency within which 99 of 100 writes are acknowledged.
    pub put: Duration,
    /// Latency within which 99 of 100 reads have their bytes.
    pub get: Duration,
    /// Maximum number of object losses a year; objects are lost together, since all use the same
    /// sites.
    pub losses_a_year: f64,
    /// Days until the fragments of a lost site are rebuilt.
    pub rebuild_days: f64,
    /// Number of sites that may be unavailable while writes and reads continue.
    pub sites_away: u8,
    /// Whether writes must end in one round with that many sites unavailable.
    #[serde(default)]
    pub fast_then: bool,
}

/// The space to search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Space {
    /// Numbers of data fragments.
    pub data: Vec<u8>,
    /// Numbers of parity fragments.
    pub parity: Vec<u8>,
    /// Numbers of voting sites.
    pub voters: Vec<usize>,
    /// How quorum sizes are chosen.
    pub sizes: Vec<QuorumRule>,
}

/// Latencies of networks and stores, as in a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stores {
    /// The network between sites.
    pub network: Network,
    /// Rows.
    pub rows: Rows,
    /// Fragments.
    pub blob: Blob,
    /// Encoding and decoding on a node.
    pub coding: Coding,
}

impl Default for Space {
    fn default() -> Self {
        Self {
            data: (1..=8).collect(),
            parity: vec![1, 2, 3],
            voters: vec![3, 5, 7],
            sizes: vec![QuorumRule::Majority, QuorumRule::Balanced, QuorumRule::Flexible],
        }
    }
}

/// One candidate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Candidate {
    /// Number of data fragments.
    pub data: u8,
    /// Number of parity fragments.
    pub parity: u8,
    /// Indices of the sites that hold fragments.
    pub holders: Vec<u8>,
    /// Indices of the sites that vote.
    pub voters: Vec<u8>,
    /// How quorum sizes are chosen.
    #[serde(serialize_with = "named")]
    pub sizes: OrderedQuorumRule,
}

/// Quorum sizes, as an ordered type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderedQuorumRule(u8);

fn named<S: serde::Serializer>(
    sizes: &OrderedQuorumRule,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    sizes.get().serialize(serializer)
}

impl OrderedQuorumRule {
    const ALL: [QuorumRule; 3] = [QuorumRule::Majority, QuorumRule::Balanced, QuorumRule::Flexible];

    fn new(sizes: QuorumRule) -> Self {
        let place = Self::ALL.iter().position(|rule| *rule == sizes);
        Self(u8::try_from(place.unwrap_or(0)).unwrap_or(0))
    }

    /// Returns the quorum sizes.
    #[must_use]
    pub fn get(self) -> QuorumRule {
        Self::ALL[usize::from(self.0)]
    }
}

/// Numbers of candidates excluded without a run, each counted under the first requirement it fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Excluded {
    /// Lost too often.
    pub lost: usize,
    /// Unavailable with the required number of sites away.
    pub away: usize,
    /// Too slow even if every time were its median.
    pub late: usize,
}

/// Why a candidate is excluded without a run.
enum ExclusionReason {
    Lost,
    Away,
    Late,
}

fn refuse<T>(field: &'static str, value: String, expected: &'static str) -> Result<T, Error> {
    Err(Error::Parameter { field, value, expected })
}

impl PlanRequest {
    /// Checks every part.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        if !(3..=SITES_MAX).contains(&self.site.len()) {
            return refuse("site", self.site.len().to_string(), "from 3 to 12 sites");
        }
        if self.client_sites().is_none() {
            let value = self.demand.from.join(", ");
            return refuse("demand.from", value, "names of sites, at least one");
        }
        self.validate_numbers()?;
        let (objective, space) = (&self.objective, &self.space);
        if objective.put == Duration::ZERO || objective.get == Duration::ZERO {
            return refuse("objective.put, objective.get", "0".to_owned(), "above 0");
        }
        let fragments = space.data.iter().chain(&space.parity);
        if fragments.clone().any(|count| !(1..=FRAGMENTS_MAX).contains(count)) {
            return refuse("space.data, space.parity", "out of range".to_owned(), "from 1 to 12");
        }
        if let Some(wrong) =
            space.voters.iter().find(|count| !(3..=limits::VOTING_SITES_MAX).contains(*count))
        {
            return refuse("space.voters", wrong.to_string(), "from 3 to 9");
        }
        if space.data.is_empty() || space.parity.is_empty() || space.sizes.is_empty() {
            return refuse("space", "empty".to_owned(), "a space with at least one candidate");
        }
        if !(1..=100).contains(&self.seeds) || self.runs_max == 0 {
            return refuse("seeds, runs_max", self.seeds.to_string(), "from 1 to 100, above 0");
        }
        let rates: Vec<f64> = self.site.iter().map(|site| site.losses_a_year).collect();
        losses_a_year(&rates, objective.rebuild_days, 1)?;
        // Sites, round trips and stores are the same in every scenario that is run.
        let all = (0_u8..).zip(&self.site).map(|(place, _)| place).collect::<Vec<_>>();
        let three = all.iter().copied().take(3).collect();
        let (data, parity) = (u8::try_from(all.len()).unwrap_or(u8::MAX) - 1, 1);
        let sizes = OrderedQuorumRule::new(QuorumRule::Majority);
        self.scenario(&Candidate { data, parity, holders: all, voters: three, sizes }).validate()
    }

    fn validate_numbers(&self) -> Result<(), Error> {
        for site in &self.site {
            for (field, value) in [
                ("site.gb_month", site.gb_month),
                ("site.gb_sent", site.gb_sent),
                ("site.writes_1000", site.writes_1000),
                ("site.reads_1000", site.reads_1000),
                ("site.row_updates_1000", site.row_updates_1000),
                ("site.row_reads_1000", site.row_reads_1000),
                ("site.losses_a_year", site.losses_a_year),
            ] {
                if !(0.0..=1e6).contains(&value) {
                    let value = format!("{value} of {}", site.name);
                    return refuse(field, value, "from 0 to 1000000");
                }
            }
        }
        let (demand, objective) = (&self.demand, &self.objective);
        for (field, value) in [("demand.puts", demand.puts), ("demand.gets", demand.gets)] {
            if !(0.0..=1e13).contains(&value) {
                return refuse(field, value.to_string(), "from 0 to 1e13 a month");
            }
        }
        if !(objective.losses_a_year > 0.0 && objective.losses_a_year <= 1.0) {
            let value = objective.losses_a_year.to_string();
            return refuse("objective.losses_a_year", value, "above 0 and at most 1");
        }
        if !(objective.rebuild_days > 0.0 && objective.rebuild_days <= 365.0) {
            let value = objective.rebuild_days.to_string();
            return refuse("objective.rebuild_days", value, "above 0 and at most 365");
        }
        Ok(())
    }

    /// Returns the objectives of writes and of reads, in seconds.
    pub(super) fn objectives_s(&self) -> [f64; 2] {
        [self.objective.put, self.objective.get].map(Duration::as_secs_f64)
    }

    /// Returns the indices of the sites that send requests.
    pub(super) fn client_sites(&self) -> Option<Vec<u8>> {
        let place = |name: &String| {
            let place = self.site.iter().position(|site| site.name == *name)?;
            u8::try_from(place).ok()
        };
        let all: Option<Vec<u8>> = self.demand.from.iter().map(place).collect();
        all.filter(|all| !all.is_empty())
    }

    fn places(&self, predicate: fn(&PricedSite) -> bool) -> Vec<u8> {
        let all = (0_u8..).zip(&self.site);
        all.filter(|(_, site)| predicate(site)).map(|(place, _)| place).collect()
    }

    fn rtt(&self, from: u8, to: u8) -> f64 {
        self.rtt_ms[usize::from(from)][usize::from(to)]
    }

    /// Returns the candidates that are worth a run, and how many are not.
    pub(super) fn choices(&self) -> (Vec<Candidate>, Excluded) {
        let client_sites = self.client_sites().unwrap_or_default();
        let mut nearest = self.places(|site| site.votes);
        let far = |site: u8| client_sites.iter().map(|from| self.rtt(*from, site)).sum::<f64>();
        nearest.sort_by(|a, b| far(*a).total_cmp(&far(*b)));
        let (mut worth, mut excluded) = (Vec::new(), Excluded::default());
        for holders in subsets(&self.places(|site| site.data)) {
            for (data, parity) in self.codes(holders.len()) {
                for &count in self.space.voters.iter().filter(|count| **count <= nearest.len()) {
                    for &sizes in &self.space.sizes {
                        let voters = nearest[..count].to_vec();
                        let (holders, sizes) = (holders.clone(), OrderedQuorumRule::new(sizes));
                        let candidate = Candidate { data, parity, holders, voters, sizes };
                        match self.exclusion_reason(&candidate) {
                            None => worth.push(candidate),
                            Some(ExclusionReason::Lost) => excluded.lost += 1,
                            Some(ExclusionReason::Away) => excluded.away += 1,
                            Some(ExclusionReason::Late) => excluded.late += 1,
                        }
                    }
                }
            }
        }
        (worth, excluded)
    }

    fn codes(&self, fragments: usize) -> impl Iterator<Item = (u8, u8)> + '_ {
        let all = self
            .space
            .data
            .iter()
            .flat_map(|data| self.space.parity.iter().map(|parity| (*data, *parity)));
        all.filter(move |(data, parity)| usize::from(data + parity) == fragments)
    }

    fn exclusion_reason(&self, candidate: &Candidate) -> Option<ExclusionReason> {
        let rates: Vec<f64> = candidate
            .holders
            .iter()
            .map(|site| self.site[usize::from(*site)].losses_a_year)
            .collect();
        let losses = losses_a_year(&rates, self.objective.rebuild_days, candidate.parity);
        if losses.map_or(true, |losses| losses > self.objective.losses_a_year) {
            return Some(ExclusionReason::Lost);
        }
        let away = usize::from(self.objective.sites_away);
        let Ok(quorums) = Quorums::new(candidate.voters.len(), candidate.sizes.get()) else {
            return Some(ExclusionReason::Away);
        };
        let left = candidate.voters.len().saturating_sub(away);
        let needed = quorums.promise().max(quorums.classic()).max(quorums.read());
        let slow = left < needed || (self.objective.fast_then && left < quorums.fast());
        // A write must leave one fragment to lose beyond the unavailable sites, where it can.
        let fragments = usize::from(candidate.data) + usize::from(candidate.parity > 1);
        if slow || candidate.holders.len().saturating_sub(away) < fragments {
            return Some(ExclusionReason::Away);
        }
        let (put, get) = self.latency_lower_bounds_s(candidate, quorums);
        let late = put > self.objective.put.as_secs_f64() || get > self.objective.get.as_secs_f64();
        late.then_some(ExclusionReason::Late)
    }

    /// Returns how long a write and a read take, from the worst requesting site, if every time is
    /// its median and nothing else is done.
    fn latency_lower_bounds_s(&self, candidate: &Candidate, quorums: Quorums) -> (f64, f64) {
        let (mut put, mut get) = (0.0_f64, 0.0_f64);
        let stores = &self.stores;
        let bytes = self.demand.object.get().div_ceil(u64::from(candidate.data));
        for from in self.client_sites().unwrap_or_default() {
            let sorted = |places: &[u8]| {
                let mut trips: Vec<f64> = places.iter().map(|to| self.rtt(from, *to)).collect();
                trips.sort_by(f64::total_cmp);
                trips
            };
            let (votes, data) = (sorted(&candidate.voters), sorted(&candidate.holders));
            let fast = votes[quorums.fast() - 1] + stores.rows.update_ms + stores.rows.read_ms;
            let out = |rtt: f64| stores.network.transfer_ms(bytes, rtt, 1, true);
            let farthest = data[data.len() - 1];
            let written = farthest
                + out(farthest)
                + stores.blob.write_ms
                + megabytes(bytes) * stores.blob.write_ms_per_mb;
            put = put.max(fast.max(written));
            let needed = data[usize::from(candidate.data) - 1];
            let back = stores.network.transfer_ms(bytes, needed, 1, false);
            let read = stores.blob.read_ms + megabytes(bytes) * stores.blob.read_ms_per_mb;
            get = get.max(stores.rows.read_ms + needed + back + read);
        }
        (put / 1e3, get / 1e3)
    }

    /// Returns the scenario of a candidate.
    pub(super) fn scenario(&self, candidate: &Candidate) -> Scenario {
        let client_sites = self.client_sites().unwrap_or_default();
        let place = |(index, site): (u8, &PricedSite)| Place {
            name: site.name.clone(),
            votes: candidate.voters.contains(&index),
            data: candidate.holders.contains(&index),
        };
        let workload = Workload {
            objects: WRITES,
            from: client_sites.clone(),
            read_from: client_sites,
            ..Workload::default()
        };
        Scenario {
            sites: (0_u8..).zip(&self.site).map(place).collect(),
            rtt_ms: self.rtt_ms.clone(),
            data: candidate.data,
            parity: candidate.parity,
            sizes: candidate.sizes.get(),
            size: self.demand.object,
            network: self.stores.network,
            rows: self.stores.rows,
            blob: self.stores.blob,
            coding: self.stores.coding,
            // Prices are per byte given to the site.
            stored_for_each: 1.0,
            workload,
            ..Scenario::default()
        }
    }
}

/// Returns all non-empty subsets, in a fixed order.
fn subsets(sites: &[u8]) -> Vec<Vec<u8>> {
    let all = 1_u32..1 << sites.len();
    let picked = |bits: u32| {
        let places = (0_u32..).zip(sites).filter(|(place, _)| bits >> place & 1 == 1);
        places.map(|(_, site)| *site).collect()
    };
    all.map(picked).collect()
}

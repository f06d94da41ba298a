//! What is asked of a plan of sites, and what there is to choose from.

use fulgurite_geo::{Quorums, Sizes, limits};
use fulgurite_units::{ByteCount, Duration};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::giza::lasting::losses_a_year;
use crate::giza::scenario::{Place, Scenario, Workload};
use crate::giza::times::{Blob, Coding, Network, Rows, megabytes};

/// Sites to choose from, at most: of so many every choice is looked at.
const SITES_MAX: usize = 12;
/// Fragments of an object, at most.
const FRAGMENTS_MAX: u8 = 12;
/// Writes of a run.
const WRITES: u32 = 150;

/// What is asked of a plan: a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// The money prices are in.
    #[serde(default = "dollars")]
    pub currency: String,
    /// Sites.
    pub site: Vec<PricedSite>,
    /// Round trips between them, in milliseconds.
    pub rtt_ms: Vec<Vec<f64>>,
    /// What is asked for.
    pub demand: Demand,
    /// What must be had.
    pub objective: Objective,
    /// What there is to choose from.
    #[serde(default)]
    pub space: Space,
    /// How long anything takes.
    #[serde(default)]
    pub stores: Stores,
    /// Every one of so many seeds must meet everything.
    #[serde(default = "three")]
    pub seeds: u32,
    /// Runs after which the search ends.
    #[serde(default = "runs")]
    pub runs_max: u32,
}

fn dollars() -> String {
    "USD".to_owned()
}

const fn three() -> u32 {
    3
}

const fn runs() -> u32 {
    2_000
}

const fn yes() -> bool {
    true
}

/// A site, what it costs and how often it is lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PricedSite {
    /// Its name.
    pub name: String,
    /// A GB of 10^9 bytes for a month.
    pub gb_month: f64,
    /// A GB that leaves it for another site.
    pub gb_sent: f64,
    /// A thousand fragments written.
    pub writes_1000: f64,
    /// A thousand fragments read.
    pub reads_1000: f64,
    /// A thousand rows changed.
    pub row_updates_1000: f64,
    /// A thousand rows read.
    pub row_reads_1000: f64,
    /// How often a year it is lost for good.
    pub losses_a_year: f64,
    /// Whether it can have fragments.
    #[serde(default = "yes")]
    pub data: bool,
    /// Whether its rows can vote.
    #[serde(default = "yes")]
    pub votes: bool,
}

/// What is asked for, in a month.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// Bytes that lie there.
    pub stored: ByteCount,
    /// Bytes of an object.
    pub object: ByteCount,
    /// Writes a month.
    pub puts: f64,
    /// Reads a month.
    pub gets: f64,
    /// Names of the sites that ask, in turn.
    pub from: Vec<String>,
}

/// What must be had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// Within this 99 of 100 writes are acknowledged.
    pub put: Duration,
    /// Within this 99 of 100 reads have their bytes.
    pub get: Duration,
    /// Losses of an object a year, at most: of any of them, since all lie at the same sites.
    pub losses_a_year: f64,
    /// Days until the fragments of a lost site are made again.
    pub rebuild_days: f64,
    /// Sites that may be away while writes and reads go on.
    pub sites_away: u8,
    /// Whether writes must end in one round with that many away.
    #[serde(default)]
    pub fast_then: bool,
}

/// What there is to choose from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Space {
    /// Fragments that give an object back.
    pub data: Vec<u8>,
    /// Fragments beside them.
    pub parity: Vec<u8>,
    /// Sites that vote.
    pub voters: Vec<usize>,
    /// How sizes of quorums are chosen.
    pub sizes: Vec<Sizes>,
}

/// How long anything takes: as in a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stores {
    /// Between sites.
    pub network: Network,
    /// Rows.
    pub rows: Rows,
    /// Fragments.
    pub blob: Blob,
    /// What a node reckons.
    pub coding: Coding,
}

impl Default for Space {
    fn default() -> Self {
        Self {
            data: (1..=8).collect(),
            parity: vec![1, 2, 3],
            voters: vec![3, 5, 7],
            sizes: vec![Sizes::Majority, Sizes::Balanced, Sizes::Flexible],
        }
    }
}

/// One choice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Candidate {
    /// Fragments that give an object back.
    pub data: u8,
    /// Fragments beside them.
    pub parity: u8,
    /// Places of the sites that have them.
    pub holders: Vec<u8>,
    /// Places of the sites that vote.
    pub voters: Vec<u8>,
    /// How sizes of quorums are chosen.
    #[serde(serialize_with = "named")]
    pub sizes: Quorum,
}

/// Sizes of quorums, in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quorum(u8);

fn named<S: serde::Serializer>(sizes: &Quorum, serializer: S) -> Result<S::Ok, S::Error> {
    sizes.get().serialize(serializer)
}

impl Quorum {
    const ALL: [Sizes; 3] = [Sizes::Majority, Sizes::Balanced, Sizes::Flexible];

    fn of(sizes: Sizes) -> Self {
        let place = Self::ALL.iter().position(|of| *of == sizes);
        Self(u8::try_from(place.unwrap_or(0)).unwrap_or(0))
    }

    /// What they are called.
    #[must_use]
    pub fn get(self) -> Sizes {
        Self::ALL[usize::from(self.0)]
    }
}

/// Candidates that are not enough by arithmetic, each counted where it fails first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Excluded {
    /// Lost too often.
    pub lost: usize,
    /// Not there with as many sites away.
    pub away: usize,
    /// Late though every time were its median.
    pub late: usize,
}

/// Why a candidate is not worth a run.
enum Why {
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
        if self.asking().is_none() {
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
            return refuse("space.data, space.parity", "outside".to_owned(), "from 1 to 12");
        }
        if let Some(wrong) =
            space.voters.iter().find(|count| !(3..=limits::VOTING_SITES_MAX).contains(*count))
        {
            return refuse("space.voters", wrong.to_string(), "from 3 to 9");
        }
        if space.data.is_empty() || space.parity.is_empty() || space.sizes.is_empty() {
            return refuse("space", "empty".to_owned(), "something to choose from");
        }
        if !(1..=100).contains(&self.seeds) || self.runs_max == 0 {
            return refuse("seeds, runs_max", self.seeds.to_string(), "from 1 to 100, above 0");
        }
        let rates: Vec<f64> = self.site.iter().map(|site| site.losses_a_year).collect();
        losses_a_year(&rates, objective.rebuild_days, 1)?;
        // Sites, round trips and stores are those of every scenario that is run.
        let all = (0_u8..).zip(&self.site).map(|(place, _)| place).collect::<Vec<_>>();
        let three = all.iter().copied().take(3).collect();
        let (data, parity) = (u8::try_from(all.len()).unwrap_or(u8::MAX) - 1, 1);
        let sizes = Quorum::of(Sizes::Majority);
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

    /// Places of the sites that ask.
    pub(super) fn asking(&self) -> Option<Vec<u8>> {
        let place = |name: &String| {
            let place = self.site.iter().position(|site| site.name == *name)?;
            u8::try_from(place).ok()
        };
        let all: Option<Vec<u8>> = self.demand.from.iter().map(place).collect();
        all.filter(|all| !all.is_empty())
    }

    fn places(&self, which: fn(&PricedSite) -> bool) -> Vec<u8> {
        let all = (0_u8..).zip(&self.site);
        all.filter(|(_, site)| which(site)).map(|(place, _)| place).collect()
    }

    fn rtt(&self, from: u8, to: u8) -> f64 {
        self.rtt_ms[usize::from(from)][usize::from(to)]
    }

    /// Everything that is worth a run, and how many are not.
    pub(super) fn choices(&self) -> (Vec<Candidate>, Excluded) {
        let asking = self.asking().unwrap_or_default();
        let mut nearest = self.places(|site| site.votes);
        let far = |site: u8| asking.iter().map(|from| self.rtt(*from, site)).sum::<f64>();
        nearest.sort_by(|a, b| far(*a).total_cmp(&far(*b)));
        let (mut worth, mut excluded) = (Vec::new(), Excluded::default());
        for holders in subsets(&self.places(|site| site.data)) {
            for (data, parity) in self.codes(holders.len()) {
                for &count in self.space.voters.iter().filter(|count| **count <= nearest.len()) {
                    for &sizes in &self.space.sizes {
                        let voters = nearest[..count].to_vec();
                        let (holders, sizes) = (holders.clone(), Quorum::of(sizes));
                        let candidate = Candidate { data, parity, holders, voters, sizes };
                        match self.why_not(&candidate) {
                            None => worth.push(candidate),
                            Some(Why::Lost) => excluded.lost += 1,
                            Some(Why::Away) => excluded.away += 1,
                            Some(Why::Late) => excluded.late += 1,
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

    fn why_not(&self, of: &Candidate) -> Option<Why> {
        let rates: Vec<f64> =
            of.holders.iter().map(|site| self.site[usize::from(*site)].losses_a_year).collect();
        let losses = losses_a_year(&rates, self.objective.rebuild_days, of.parity);
        if losses.map_or(true, |losses| losses > self.objective.losses_a_year) {
            return Some(Why::Lost);
        }
        let away = usize::from(self.objective.sites_away);
        let Ok(quorums) = Quorums::new(of.voters.len(), of.sizes.get()) else {
            return Some(Why::Away);
        };
        let left = of.voters.len().saturating_sub(away);
        let needed = quorums.promise().max(quorums.classic()).max(quorums.read());
        let slow = left < needed || (self.objective.fast_then && left < quorums.fast());
        // A write must leave one to lose beyond the sites that are away, where it can.
        let fragments = usize::from(of.data) + usize::from(of.parity > 1);
        if slow || of.holders.len().saturating_sub(away) < fragments {
            return Some(Why::Away);
        }
        let (put, get) = self.least_s(of, quorums);
        let late = put > self.objective.put.as_secs_f64() || get > self.objective.get.as_secs_f64();
        late.then_some(Why::Late)
    }

    /// How long a write and a read take if every time is its median and nothing else is done: of
    /// the site for which that is longest.
    fn least_s(&self, of: &Candidate, quorums: Quorums) -> (f64, f64) {
        let (mut put, mut get) = (0.0_f64, 0.0_f64);
        let stores = &self.stores;
        let bytes = self.demand.object.get().div_ceil(u64::from(of.data));
        for from in self.asking().unwrap_or_default() {
            let sorted = |places: &[u8]| {
                let mut trips: Vec<f64> = places.iter().map(|to| self.rtt(from, *to)).collect();
                trips.sort_by(f64::total_cmp);
                trips
            };
            let (votes, data) = (sorted(&of.voters), sorted(&of.holders));
            let fast = votes[quorums.fast() - 1] + stores.rows.update_ms + stores.rows.read_ms;
            let out = |rtt: f64| stores.network.transfer_ms(bytes, rtt, 1, true);
            let farthest = data[data.len() - 1];
            let written = farthest
                + out(farthest)
                + stores.blob.write_ms
                + megabytes(bytes) * stores.blob.write_ms_per_mb;
            put = put.max(fast.max(written));
            let needed = data[usize::from(of.data) - 1];
            let back = stores.network.transfer_ms(bytes, needed, 1, false);
            let read = stores.blob.read_ms + megabytes(bytes) * stores.blob.read_ms_per_mb;
            get = get.max(stores.rows.read_ms + needed + back + read);
        }
        (put / 1e3, get / 1e3)
    }

    /// What is simulated of a candidate.
    pub(super) fn scenario(&self, of: &Candidate) -> Scenario {
        let asking = self.asking().unwrap_or_default();
        let place = |(index, site): (u8, &PricedSite)| Place {
            name: site.name.clone(),
            votes: of.voters.contains(&index),
            data: of.holders.contains(&index),
        };
        let workload = Workload {
            objects: WRITES,
            from: asking.clone(),
            read_from: asking,
            ..Workload::default()
        };
        Scenario {
            sites: (0_u8..).zip(&self.site).map(place).collect(),
            rtt_ms: self.rtt_ms.clone(),
            data: of.data,
            parity: of.parity,
            sizes: of.sizes.get(),
            size: self.demand.object,
            network: self.stores.network,
            rows: self.stores.rows,
            blob: self.stores.blob,
            coding: self.stores.coding,
            // Prices are of what is put there.
            stored_for_each: 1.0,
            workload,
            ..Scenario::default()
        }
    }
}

/// All sets of some sites, in an order that repeats.
fn subsets(of: &[u8]) -> Vec<Vec<u8>> {
    let all = 1_u32..1 << of.len();
    let picked = |bits: u32| {
        let places = (0_u32..).zip(of).filter(|(place, _)| bits >> place & 1 == 1);
        places.map(|(_, site)| *site).collect()
    };
    all.map(picked).collect()
}

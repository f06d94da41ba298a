//! Scenarios of several sites. The paper (Giza, USENIX ATC 2017) gives few of these numbers:
//! `experiments/giza/base-*.toml` lists which are its own and which are assumed.

use fulgurite_geo_core::{QuorumRule, Quorums, limits};
use fulgurite_units::{ByteCount, Duration};
use serde::{Deserialize, Serialize};
use toml::Table;

use super::latencies::{Blob, Coding, Disk, MS_MAX, Network, Rows};
use crate::{Error, scenario};

/// Fields of a scenario that are tables and may be omitted.
const TABLES: [&str; 7] = ["network", "rows", "blob", "coding", "disk", "workload", "fetching"];
/// Maximum number of writes per run: all rows are held in memory.
const OBJECTS_MAX: u32 = 1_000_000;
/// Maximum number of clients that write one object back to back.
const BACK_TO_BACK_MAX: u32 = 64;
/// Maximum number of objects in a stripe.
const BATCH_MAX: u32 = 4_096;

/// Maximum length of a run and of anything in it.
const RUN_MAX: Duration = Duration::from_secs(10 * 365 * 86_400);
const WAIT_MAX: Duration = Duration::from_secs(86_400);

/// Several sites and their workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// The system.
    pub system: SystemTag,
    /// The sites.
    pub sites: Vec<Place>,
    /// Bare round-trip times between them, in milliseconds.
    pub rtt_ms: Vec<Vec<f64>>,
    /// Number of data fragments.
    pub data: u8,
    /// Number of parity fragments.
    pub parity: u8,
    /// How quorum sizes are chosen.
    pub sizes: QuorumRule,
    /// Size of an object.
    pub size: ByteCount,
    /// How objects are written, and read.
    pub design: Design,
    /// How an object is read, where the design leaves that open.
    pub reading: ReadStrategy,
    /// Where the bytes of an object are stored.
    pub layout: Layout,
    /// The network between sites, and to their own stores.
    pub network: Network,
    /// Conditional writes.
    pub rows: Rows,
    /// Fragments.
    pub blob: Blob,
    /// Encoding and decoding on a node.
    pub coding: Coding,
    /// Disks of the replicated database; used by that design only.
    pub disk: Disk,
    /// Bytes a site stores for each byte it is given (1.3, section 2.3).
    pub stored_for_each: f64,
    /// The workload.
    pub workload: Workload,
    /// Indices of the sites that are down.
    pub down: Vec<u8>,
    /// Whether nodes know which sites are down.
    pub down_is_known: bool,
    /// How fragments are fetched.
    pub fetching: Fetching,
    /// A site that loses its fragments after all writes; its objects are then healed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<u8>,
    /// Timeout for the replies of a round.
    pub round: Duration,
    /// Timeout of an operation.
    pub patience: Duration,
}

/// The name of the system in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemTag {
    /// Several sites.
    #[default]
    Geo,
}

/// A site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// Whether its rows vote.
    #[serde(default = "default_true")]
    pub votes: bool,
    /// Whether it holds fragments.
    #[serde(default = "default_true")]
    pub data: bool,
}

const fn default_true() -> bool {
    true
}

/// How objects are written and read. All but the last three run the controllers of `geo-core`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Fragments and version in parallel, the version in a fast round.
    #[default]
    ParallelFast,
    /// Fragments and version in parallel, the version in classic rounds.
    ParallelClassic,
    /// Fragments, then a fast round.
    SerialFast,
    /// Fragments, then classic rounds.
    SerialClassic,
    /// One fragment to or from the farthest site needed, and nothing else.
    Baseline,
    /// The whole object to or from the store of the node's own site, and nothing else.
    Local,
    /// A MODEL of fragments and versions as rows of a replicated database, by the paper's text.
    Cockroach,
}

/// How an object is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadStrategy {
    /// Fetches the fragments named by the nearest row while a quorum of rows is read.
    #[default]
    Optimistic,
    /// A quorum of rows, then fragments.
    Serial,
    /// All rows, then fragments.
    SerialAll,
}

/// Where the bytes of an object are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// In fragments of its own.
    #[default]
    Own,
    /// In a stripe with others; see [`Workload::batch`].
    Shared,
    /// In its rows.
    Inline,
}

/// The workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// Number of writes, each of a new object unless a field below says otherwise.
    pub objects: u32,
    /// Time between two writes.
    pub every: Duration,
    /// Sites that write, round robin.
    pub from: Vec<u8>,
    /// Sites that read each object once it is written, round robin; empty for no reads.
    pub read_from: Vec<u8>,
    /// Share of writes for which another site writes the same object within a second.
    pub concurrent: f64,
    /// Number of clients at the first site that all write one object, each as soon as its last
    /// write ended.
    pub back_to_back: u32,
    /// Objects per stripe, for [`Layout::Shared`].
    pub batch: u32,
    /// Maximum time that a stripe waits for more objects.
    pub batch_wait: Duration,
}

/// How fragments are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fetching {
    /// Whether reads are hedged: the remaining fragments are requested too if the nearest have not
    /// arrived within `after`.
    pub hedged: bool,
    /// See `hedged`.
    pub after: Duration,
}

impl Default for Fetching {
    fn default() -> Self {
        Self { hedged: false, after: Duration::from_millis(0) }
    }
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            objects: 200,
            every: Duration::from_secs(10),
            from: vec![0],
            read_from: vec![0],
            concurrent: 0.0,
            back_to_back: 0,
            batch: 64,
            batch_wait: Duration::from_millis(100),
        }
    }
}

impl Default for Scenario {
    /// Three sites of the paper's World-2-1 (Figure 5): the largest round trip is the paper's.
    fn default() -> Self {
        let place = |name: &str| Place { name: name.to_owned(), votes: true, data: true };
        Self {
            system: SystemTag::Geo,
            sites: ["US", "EU", "JP"].map(place).to_vec(),
            rtt_ms: vec![vec![0.0, 102.0, 140.0], vec![102.0, 0.0, 240.0], vec![140.0, 240.0, 0.0]],
            data: 2,
            parity: 1,
            sizes: QuorumRule::Majority,
            size: ByteCount::mib(4),
            design: Design::ParallelFast,
            reading: ReadStrategy::Optimistic,
            layout: Layout::Own,
            network: Network::default(),
            rows: Rows::default(),
            blob: Blob::default(),
            coding: Coding::default(),
            disk: Disk::default(),
            stored_for_each: 1.3,
            workload: Workload::default(),
            down: Vec::new(),
            down_is_known: true,
            fetching: Fetching::default(),
            rebuilt: None,
            round: Duration::from_secs(2),
            patience: Duration::from_secs(60),
        }
    }
}

fn refuse<T>(field: &'static str, value: String, expected: &'static str) -> Result<T, Error> {
    Err(Error::Parameter { field, value, expected })
}

impl Scenario {
    /// Returns the indices of the sites whose rows vote.
    pub(crate) fn voters(&self) -> Vec<u8> {
        self.places(|place| place.votes)
    }

    /// Returns the indices of the sites that hold fragments.
    pub(crate) fn holders(&self) -> Vec<u8> {
        self.places(|place| place.data)
    }

    fn places(&self, predicate: fn(&Place) -> bool) -> Vec<u8> {
        let all = (0_u8..).zip(&self.sites);
        all.filter(|(_, place)| predicate(place)).map(|(index, _)| index).collect()
    }

    /// Returns a round-trip time, in milliseconds.
    pub(crate) fn rtt(&self, from: u8, to: u8) -> f64 {
        self.rtt_ms[usize::from(from)][usize::from(to)]
    }

    /// Sorts sites by distance, nearest first.
    pub(crate) fn nearest(&self, from: u8, mut places: Vec<u8>) -> Vec<u8> {
        places.sort_by(|a, b| self.rtt(from, *a).total_cmp(&self.rtt(from, *b)));
        places
    }

    /// Returns the quorums of the voting sites.
    ///
    /// # Errors
    /// When there are no quorums for that number of sites.
    pub(crate) fn quorums(&self) -> Result<Quorums, Error> {
        Ok(Quorums::new(self.voters().len(), self.sizes)?)
    }

    /// Returns the size of a fragment of `bytes`.
    pub(crate) fn fragment(&self, bytes: u64) -> u64 {
        bytes.div_ceil(u64::from(self.data).max(1))
    }

    /// Returns the number of fragments a write must have on stable storage: all, or as many as
    /// leave one to lose.
    pub(crate) fn needed(&self) -> usize {
        usize::from(self.data) + usize::from(self.parity > 1)
    }

    /// Checks every part.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        self.validate_sites()?;
        self.quorums()?;
        let fragments = usize::from(self.data) + usize::from(self.parity);
        if self.data == 0 || self.parity == 0 || fragments != self.holders().len() {
            let value = format!("{} + {}", self.data, self.parity);
            return refuse("data + parity", value, "the number of sites that hold fragments");
        }
        let inline = self.layout == Layout::Inline;
        if self.size == ByteCount::ZERO || self.size > ByteCount::gib(1) {
            return refuse("size", self.size.to_string(), "from one byte to 1 GiB");
        }
        if inline && self.size.get() > limits::INLINE_BYTES_MAX as u64 {
            return refuse("size", self.size.to_string(), "at most 4 KiB where layout is inline");
        }
        if !(1.0..=100.0).contains(&self.stored_for_each) {
            return refuse("stored_for_each", self.stored_for_each.to_string(), "from 1 to 100");
        }
        let waits = [self.patience, self.fetching.after, self.workload.batch_wait];
        if let Some(long) = waits.into_iter().find(|wait| *wait > WAIT_MAX) {
            let field = "patience, fetching.after, workload.batch_wait";
            return refuse(field, long.to_string(), "at most a day");
        }
        if self.round == Duration::ZERO || self.patience < self.round {
            return refuse("round", self.round.to_string(), "above 0 and at most patience");
        }
        self.network.validate()?;
        self.rows.validate()?;
        self.blob.validate()?;
        self.coding.validate()?;
        self.disk.validate()?;
        self.validate_workload()
    }

    fn validate_sites(&self) -> Result<(), Error> {
        let count = self.sites.len();
        if !(3..=limits::DATA_SITES_MAX).contains(&count) {
            return refuse("sites", count.to_string(), "from 3 to 32");
        }
        let named = |name: &str| self.sites.iter().filter(|place| place.name == name).count();
        if let Some(twice) = self.sites.iter().find(|place| named(&place.name) > 1) {
            return refuse("sites", format!("{} twice", twice.name), "sites with different names");
        }
        let square = self.rtt_ms.len() == count && self.rtt_ms.iter().all(|row| row.len() == count);
        if !square {
            return refuse("rtt_ms", "not square".to_owned(), "a row and a column for each site");
        }
        for (from, row) in self.rtt_ms.iter().enumerate() {
            for (to, rtt) in row.iter().enumerate() {
                let back = self.rtt_ms[to][from];
                let fits = if from == to { *rtt == 0.0 } else { (0.01..=MS_MAX).contains(rtt) };
                if !fits || (rtt - back).abs() > 1e-9 {
                    let value = format!("{rtt} from {from} to {to}");
                    let expected = "0 to itself, else from 0.01 to 60000 and the same both ways";
                    return refuse("rtt_ms", value, expected);
                }
            }
        }
        let outside = |site: &u8| usize::from(*site) >= count;
        let clients = self.workload.from.iter().chain(&self.workload.read_from);
        let mut all = clients.chain(&self.down).chain(&self.rebuilt);
        if let Some(site) = all.find(|site| outside(site)) {
            return refuse("from, read_from, down, rebuilt", site.to_string(), "indices of sites");
        }
        if let Some(site) = self.rebuilt.filter(|site| !self.sites[usize::from(*site)].data) {
            return refuse("rebuilt", site.to_string(), "a site that holds fragments");
        }
        if let Some(site) = self.workload.from.iter().find(|site| self.down.contains(site)) {
            return refuse("workload.from", site.to_string(), "sites that are not down");
        }
        Ok(())
    }

    fn validate_workload(&self) -> Result<(), Error> {
        let workload = &self.workload;
        if !(1..=OBJECTS_MAX).contains(&workload.objects) || workload.from.is_empty() {
            return refuse("workload.objects", workload.objects.to_string(), "from 1 to 1000000");
        }
        let length = workload.every.as_nanos().checked_mul(u64::from(workload.objects));
        if length.is_none_or(|length| length > RUN_MAX.as_nanos()) {
            return refuse(
                "workload.every",
                workload.every.to_string(),
                "at most ten years for all",
            );
        }
        if !(0.0..=1.0).contains(&workload.concurrent) {
            return refuse("workload.concurrent", workload.concurrent.to_string(), "from 0 to 1");
        }
        if workload.back_to_back > BACK_TO_BACK_MAX {
            return refuse(
                "workload.back_to_back",
                workload.back_to_back.to_string(),
                "at most 64",
            );
        }
        if !(1..=BATCH_MAX).contains(&workload.batch) {
            return refuse("workload.batch", workload.batch.to_string(), "from 1 to 4096");
        }
        let batched = self.layout == Layout::Shared;
        if batched && (self.design != Design::ParallelFast || workload.back_to_back > 0) {
            let value = format!("{:?}", self.design).to_lowercase();
            return refuse(
                "layout",
                value,
                "shared for objects that design parallel-fast writes once",
            );
        }
        Ok(())
    }
}

impl scenario::Scenario for Scenario {
    fn check(&self) -> Result<(), Error> {
        self.validate()
    }

    /// Measures all arrivals.
    fn window(&self) -> [Duration; 2] {
        [Duration::ZERO, Duration::from_nanos(u64::MAX)]
    }

    /// Fills in omitted tables, so that their fields can be set.
    fn resolve(table: Table) -> Result<Table, String> {
        scenario::fill_defaults(table, &Self::default(), &TABLES)
    }
}

//! The request for a plan.

use fulgurite_glass_core::control::{LibraryShape, MechanicsParameters, Policy, Throughput};
use fulgurite_glass_core::plan::{BlastModel, SetShape, minimum_storage_racks};
use fulgurite_units::{ByteCount, Duration, Instant, Ratio, Seed};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::CostTable;
use crate::glass::scenario::SystemTag;
use crate::plan::costs;
use crate::plan::sizes::size;
use crate::{Error, Trace, TraceRead, Workload};

/// The reads of all libraries together.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// A generated workload, by its name; its rates are multiplied by `scale`. Its window is
    /// measured.
    #[serde(default, deserialize_with = "named")]
    pub workload: Workload,
    /// Factor for the rates; of a trace, the mean repetitions of each read: as often as the integer
    /// part, and once more with the probability of the fraction.
    #[serde(default = "once")]
    pub scale: f64,
    /// A recorded trace to take instead, measured as a whole.
    #[serde(skip)]
    pub trace: Option<Trace>,
}

const fn once() -> f64 {
    1.0
}

fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Workload, D::Error> {
    let name = String::deserialize(deserializer)?;
    Workload::named(&name).ok_or_else(|| {
        D::Error::custom(format!("\"{name}\" is no workload: {}", Workload::NAMES.join(", ")))
    })
}

/// Platters and their sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glass {
    /// User bytes per platter; 2 TB, assumed.
    pub platter_size: ByteCount,
    /// User bytes per track; 20 MB, assumed.
    pub track_size: ByteCount,
    /// Larger files are split over platters; 1 GB.
    pub shard_size: ByteCount,
    /// Information and redundancy platters of a set; 16+3 (Silica, Table 1).
    pub set: SetShape,
}

/// The space to search.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Space {
    /// Minimum and maximum number of libraries.
    pub libraries: [u32; 2],
    /// Read racks per library.
    pub read_racks: Vec<u16>,
    /// Drives per read rack; a multiple of the panels.
    pub drives_per_read_rack: Vec<u16>,
    /// Throughputs of drives.
    pub throughputs: Vec<Throughput>,
    /// Maximum shuttles per panel; two per drive in any case.
    pub shuttles_per_panel_max: u16,
    /// Maximum storage racks per library.
    pub storage_racks_max: u16,
    /// Policies by name.
    pub policies: Vec<String>,
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
    /// Days of ingest to provide slots for.
    pub growth_days: u32,
    /// The reads.
    pub demand: Demand,
    /// Time within which 999 of 1,000 reads must complete.
    pub objective: Duration,
    /// Share of platters that are unavailable.
    pub unavailable: Ratio,
    /// Number of seeds; every one of them must meet the objective.
    pub seeds: u32,
    /// Platters and sets.
    #[serde(skip)]
    pub glass: Glass,
    /// The common shape of all libraries; racks, drives and shuttles are searched for.
    #[serde(skip)]
    pub library: LibraryShape,
    /// Times of the machines.
    #[serde(skip)]
    pub mechanics: MechanicsParameters,
    /// The cost table.
    pub costs: CostTable,
    /// The space to search.
    pub space: Space,
    /// Number of runs after which the search stops.
    pub runs_max: u32,
}

impl Default for Glass {
    fn default() -> Self {
        Self {
            platter_size: ByteCount::new(2_000_000_000_000),
            track_size: ByteCount::new(20_000_000),
            shard_size: ByteCount::new(1_000_000_000),
            set: SetShape::new(16, 3),
        }
    }
}

impl Default for Space {
    fn default() -> Self {
        Self {
            libraries: [1, 16],
            read_racks: vec![2, 4],
            drives_per_read_rack: vec![2, 4, 6, 8, 10],
            throughputs: (1..=7).filter_map(|n| Throughput::new(30 * n).ok()).collect(),
            shuttles_per_panel_max: 20,
            storage_racks_max: 14,
            policies: ["fulgurite", "silica"].map(str::to_owned).to_vec(),
        }
    }
}

impl Default for Demand {
    fn default() -> Self {
        Self { workload: Workload::typical(), scale: once(), trace: None }
    }
}

impl Default for PlanRequest {
    /// The paper's objective of 15 h with a tenth of the platters unavailable, a year of growth and
    /// three seeds. Nothing is ingested yet.
    fn default() -> Self {
        Self {
            system: SystemTag::Glass,
            ingest_per_day: ByteCount::ZERO,
            stored: ByteCount::ZERO,
            growth_days: 365,
            demand: Demand::default(),
            objective: Duration::from_secs(15 * 3600),
            unavailable: Ratio::new(0.1).unwrap_or(Ratio::ZERO),
            seeds: 3,
            glass: Glass::default(),
            library: LibraryShape { spare_slots_per_shelf: 1, ..LibraryShape::mdu() },
            mechanics: MechanicsParameters::PAPER,
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
        costs::check(&self.costs)?;
        let scale = self.demand.scale;
        let space = &self.space;
        let [from, to] = space.libraries;
        let bytes = self.ingest_per_day + self.stored;
        let rules = [
            ("ingest_per_day", bytes > ByteCount::ZERO, "above 0, or `stored` must be"),
            ("seeds", self.seeds > 0, "at least 1"),
            ("demand.scale", scale > 0.0 && scale <= 1e4, "above 0 and at most 10000"),
            ("libraries", from > 0 && from <= to && to <= 256, "from 1 to 256, in order"),
            ("read_racks", !space.read_racks.is_empty(), "non-empty"),
            ("drives_per_read_rack", !space.drives_per_read_rack.is_empty(), "non-empty"),
            ("throughputs", !space.throughputs.is_empty(), "non-empty"),
            ("policies", !space.policies.is_empty(), "non-empty"),
            ("platter_size", self.glass.platter_size >= self.glass.track_size, "at least a track"),
            ("set.information", self.glass.set.information > 0, "at least 1"),
            ("objective", self.objective > Duration::ZERO, "above 0"),
        ];
        if let Some(&(field, _, expected)) = rules.iter().find(|(_, holds, _)| !holds) {
            return Err(Error::Parameter { field, value: "invalid".to_owned(), expected });
        }
        for name in &space.policies {
            Policy::named(name)?;
        }
        Ok(())
    }

    /// Returns the storage racks that a set needs in one library.
    pub(super) fn set_racks(&self) -> Result<u16, Error> {
        let model = BlastModel {
            panels: self.library.panels,
            shelves_per_panel: self.library.shelves_per_panel,
            ..BlastModel::silica()
        };
        Ok(minimum_storage_racks(self.glass.set, &model)?.racks)
    }

    /// Returns the platters at the end of the growth, including redundancy.
    pub(super) fn platters(&self) -> u64 {
        let set = self.glass.set;
        let growth = u128::from(self.ingest_per_day.get()) * u128::from(self.growth_days);
        let bytes = growth + u128::from(self.stored.get());
        let information = bytes.div_ceil(u128::from(self.glass.platter_size.get()));
        let sets = information.div_ceil(u128::from(set.information)).max(1);
        u64::try_from(sets * u128::from(set.platters())).unwrap_or(u64::MAX)
    }

    /// Returns the bytes to verify per day.
    pub(super) fn verify_per_day(&self) -> f64 {
        let set = self.glass.set;
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let ingest = self.ingest_per_day.get() as f64;
        ingest * f64::from(set.platters()) / f64::from(set.information)
    }
}

impl Demand {
    /// Returns the workload that determines the placement.
    pub(super) fn workload(&self) -> Workload {
        if self.trace.is_some() {
            return Workload::typical();
        }
        let mut scaled = self.workload.clone();
        scaled.envelope.window_rate *= self.scale;
        scaled.envelope.quiet_rate *= self.scale;
        scaled
    }

    /// Returns the measured window.
    pub(super) fn window(&self) -> [Duration; 2] {
        let envelope = &self.workload.envelope;
        let [from, until] = match &self.trace {
            None => [envelope.window_from(), envelope.window_until()],
            Some(trace) => {
                let [first, last] = [trace.reads().first(), trace.reads().last()]
                    .map(|read| read.map_or(Instant::ZERO, |read| read.at));
                [first, last + Duration::from_nanos(1)]
            }
        };
        [from, until].map(|at| at.since(Instant::ZERO))
    }

    /// Estimates the number of reads.
    pub(super) fn expected(&self) -> u64 {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let reads = match &self.trace {
            None => self.workload.envelope.reads_mean(),
            Some(trace) => trace.reads().len() as f64,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate, not negative; float casts saturate"
        )]
        let reads = (reads * self.scale).ceil() as u64;
        reads
    }

    /// Returns the reads.
    pub(super) fn reads(
        &self,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = TraceRead> + '_>, Error> {
        let seed = Seed::new(seed);
        let Some(trace) = &self.trace else {
            return Ok(Box::new(self.workload().reads(seed.child(b"workload"))?));
        };
        let mut chance = seed.child(b"trace").stream();
        let (whole, rest) = (self.scale.floor(), self.scale.fract());
        let mut times = move || {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "from 0 to 10000"
            )]
            let whole = whole as usize;
            whole + usize::from(chance.unit() < rest)
        };
        let reads = trace.reads().iter();
        Ok(Box::new(reads.flat_map(move |read| std::iter::repeat_n(*read, times()))))
    }
}

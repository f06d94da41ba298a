//! The request for a plan.

use fulgurite_glass_core::control::{LibraryShape, MechanicsParameters, Policy, Throughput};
use fulgurite_glass_core::plan::{BlastModel, SetShape, minimum_storage_racks};
use fulgurite_units::{ByteCount, Duration, Instant, Ratio, Seed};

use super::CostTable;
use crate::{Error, Trace, TraceRead, Workload};

/// The reads of all libraries together.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// A generated workload; its rates are multiplied by `scale`. Its window is measured.
    Workload {
        /// The reads.
        workload: Box<Workload>,
        /// Factor for its rates.
        scale: f64,
    },
    /// A recorded trace, measured as a whole. Each read is repeated `scale` times on average: as
    /// often as its integer part, and once more with the probability of its fraction.
    Trace {
        /// The reads.
        trace: Trace,
        /// Mean repetitions of each read.
        scale: f64,
    },
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRequest {
    /// User bytes ingested per day.
    pub ingest_per_day: ByteCount,
    /// User bytes already stored.
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
    pub glass: Glass,
    /// The common shape of all libraries; racks, drives and shuttles are searched for.
    pub library: LibraryShape,
    /// Times of the machines.
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
            policies: vec!["silica".to_owned()],
        }
    }
}

impl PlanRequest {
    /// Creates a request with the paper's objective of 15 h with a tenth of the platters
    /// unavailable, a year of growth and three seeds.
    #[must_use]
    pub fn new(ingest_per_day: ByteCount, demand: Demand) -> Self {
        Self {
            ingest_per_day,
            stored: ByteCount::ZERO,
            growth_days: 365,
            demand,
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

    /// Checks every part.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        self.costs.validate()?;
        let (Demand::Workload { scale, .. } | Demand::Trace { scale, .. }) = self.demand;
        let space = &self.space;
        let [from, to] = space.libraries;
        let rules = [
            ("seeds", self.seeds > 0, "at least 1"),
            ("scale", scale > 0.0 && scale <= 1e4, "above 0 and at most 10000"),
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
        match self {
            Self::Workload { workload, scale } => {
                let mut scaled = workload.as_ref().clone();
                scaled.envelope.window_rate *= scale;
                scaled.envelope.quiet_rate *= scale;
                scaled
            }
            Self::Trace { .. } => Workload::typical(),
        }
    }

    /// Returns the measured window.
    pub(super) fn window(&self) -> [Duration; 2] {
        match self {
            Self::Workload { workload, .. } => {
                [workload.envelope.window_from(), workload.envelope.window_until()]
                    .map(|at| at.since(Instant::ZERO))
            }
            Self::Trace { trace, .. } => {
                let [first, last] = [trace.reads().first(), trace.reads().last()]
                    .map(|read| read.map_or(Instant::ZERO, |read| read.at));
                let end = last + Duration::from_nanos(1);
                [first.since(Instant::ZERO), end.since(Instant::ZERO)]
            }
        }
    }

    /// Estimates the number of reads.
    pub(super) fn expected(&self) -> u64 {
        let reads = match self {
            Self::Workload { workload, scale } => workload.envelope.reads_mean() * scale,
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            Self::Trace { trace, scale } => trace.reads().len() as f64 * scale,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate, not negative; float casts saturate"
        )]
        let reads = reads.ceil() as u64;
        reads
    }

    /// Returns the reads.
    pub(super) fn reads(
        &self,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = TraceRead> + '_>, Error> {
        let seed = Seed::new(seed);
        match self {
            Self::Workload { .. } => Ok(Box::new(self.workload().reads(seed.child(b"workload"))?)),
            Self::Trace { trace, scale } => {
                let mut chance = seed.child(b"trace").stream();
                let (whole, rest) = (scale.floor(), scale.fract());
                let times = move || {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "from 0 to 10000"
                    )]
                    let whole = whole as usize;
                    whole + usize::from(chance.unit() < rest)
                };
                let mut times = times;
                let reads = trace.reads().iter();
                Ok(Box::new(reads.flat_map(move |read| std::iter::repeat_n(*read, times()))))
            }
        }
    }
}

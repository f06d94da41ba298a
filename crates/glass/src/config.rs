//! The configuration of the glass tier.

use std::path::PathBuf;

pub use crate::decode_service::{HOURS, QueueAddress, Tariff};
pub use crate::injected::{InjectedDamage, InjectedRead, InjectedWrite};
pub use fulgurite_decode::EngineChoice;
pub use fulgurite_glass_core::control::{LibraryShape, Policy};
pub use fulgurite_platter::Geometry;
use fulgurite_units::{ByteCount, Ratio};

use crate::{GlassError, Result};

/// The default shard size. The paper gives none. On its Volume workload the twin's reads complete
/// sooner the smaller shards are (`docs/design/0005-placement.md`); 4 GB is the smallest that was
/// tried.
pub const SHARD_SIZE_DEFAULT: ByteCount = ByteCount::new(4_000_000_000);

/// The glass tier: its platters, its medium, its library.
#[derive(Clone, Debug)]
pub struct GlassConfig {
    /// Platter geometry of new archives, and of new sets of an existing one.
    pub geometry: Geometry,
    /// A larger body is split over several platters of its set, so that several drives read it at
    /// the same time (Silica section 6). A shard is whole tracks, and never more than a quarter of
    /// a platter.
    pub shard_size: ByteCount,
    /// The simulated medium.
    pub medium: MediumOptions,
    /// The simulated library.
    pub library: LibraryOptions,
    /// Redundancy platters of each set that go to libraries at other sites, if there are any; not
    /// more than a set has.
    pub far_redundancy: u16,
}

impl GlassConfig {
    /// Checks whether platters of this configuration are possible. Does not open the files that it
    /// names.
    ///
    /// # Errors
    /// When they are not.
    pub fn validate(&self) -> Result<()> {
        let refuse = |what: String| GlassError::InvalidArgument { what };
        self.geometry.validate().map_err(|error| refuse(error.to_string()))?;
        if self.shard_size == ByteCount::ZERO {
            return Err(refuse("shard_size is zero, but must be at least one byte".to_owned()));
        }
        let (far, all) = (self.far_redundancy, self.geometry.set_redundancy_platters);
        if far > all {
            let what =
                format!("far_redundancy is {far}, but a set has only {all} redundancy platters");
            return Err(refuse(what));
        }
        Ok(())
    }
}

/// The simulated medium.
#[derive(Clone, Debug)]
pub struct MediumOptions {
    /// Seed that determines everything about it: failing sectors, or the glass itself.
    pub seed: u64,
    /// How it is simulated.
    pub fidelity: Fidelity,
}

/// How the medium is simulated.
#[derive(Clone, Debug)]
pub enum Fidelity {
    /// Whole sectors fail, at given rates.
    Sector {
        /// Chance that a sector cannot be decoded.
        sector_rate: Ratio,
        /// Chance that a whole track cannot be decoded.
        track_rate: Ratio,
    },
    /// Whole sectors fail, and have margins, according to statistics.
    Drawn {
        /// What `fulgurite lab calibrate` wrote.
        statistics: PathBuf,
        /// Maximum number of reads of a sector.
        reads_max: u8,
    },
    /// The decoders' output is drawn from statistics; the sectors' code is real.
    Soft {
        /// What `fulgurite lab calibrate` wrote.
        statistics: PathBuf,
        /// Maximum number of reads of a sector.
        reads_max: u8,
    },
    /// Bytes become voxels, voxels become images, images become bytes.
    Analog(Box<AnalogOptions>),
}

/// The medium at fidelity `analog`.
#[derive(Clone, Debug)]
pub struct AnalogOptions {
    /// Name of the voxel channel's preset.
    pub preset: String,
    /// The learned decoder's file, with its card beside it; `None` is the one that comes with the
    /// program.
    pub model: Option<PathBuf>,
    /// The engine that runs it.
    pub engine: EngineChoice,
    /// Maximum number of times that a sector is imaged.
    pub reads_max: u8,
    /// Maximum number of decoding threads; 0 is one per processor.
    pub workers: usize,
    /// The queue for workers on other machines; then nothing is decoded here.
    pub queue: Option<QueueAddress>,
    /// When verification is decoded.
    pub tariff: Tariff,
    /// Watts of a worker that is busy.
    pub watts: f64,
    /// Damage in addition to what the channel draws.
    pub damage: InjectedDamage,
}

impl MediumOptions {
    /// Creates a medium that never fails.
    #[must_use]
    pub const fn perfect(seed: u64) -> Self {
        let fidelity = Fidelity::Sector { sector_rate: Ratio::ZERO, track_rate: Ratio::ZERO };
        Self { seed, fidelity }
    }

    /// Creates a medium that loses sectors independently at this rate.
    #[must_use]
    pub const fn losing(seed: u64, sector_rate: Ratio) -> Self {
        Self { seed, fidelity: Fidelity::Sector { sector_rate, track_rate: Ratio::ZERO } }
    }
}

/// The simulated library and its mechanics.
#[derive(Clone, Debug)]
pub struct LibraryOptions {
    /// Panels, racks, shelves, slots, drives, shuttles.
    pub shape: LibraryShape,
    /// Real seconds per mechanical second; 0 is as fast as the bytes come.
    pub time_scale: f64,
    /// Seed of the sampled mechanical times.
    pub seed: u64,
    /// How the controller decides. Not [`fulgurite_glass_core::control::Movement::NoShuttles`]:
    /// that is a bound for comparisons, and no library.
    pub policy: Policy,
    /// Path of a log of the library's events and decisions, for replay; `None` writes no log. The
    /// log of an earlier start is kept at the same path with `.1` appended.
    pub log: Option<PathBuf>,
}

impl LibraryOptions {
    /// Number of read drives of the library.
    #[must_use]
    pub(crate) fn read_drives(&self) -> u32 {
        u32::from(self.shape.panels) * u32::from(self.shape.drives_per_panel())
    }
}

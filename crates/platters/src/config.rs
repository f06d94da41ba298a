//! What the glass tier is told when it is opened.

use std::path::PathBuf;

pub use crate::decode_service::{HOURS, QueueAddress, Tariff};
pub use crate::injected::{InjectedDamage, InjectedRead, InjectedWrite};
pub use fulgurite_decode::EngineChoice;
pub use fulgurite_glass::Geometry;
pub use fulgurite_library::{LibraryShape, Policy};
use fulgurite_units::{ByteCount, Ratio};

use crate::{PlattersError, Result};

/// The shard size to take when nobody says otherwise. The paper gives none. On its Volume workload
/// the twin's reads are complete sooner the smaller shards are (`docs/design/0005-placement.md`);
/// 4 GB is the smallest that was tried.
pub const SHARD_SIZE_DEFAULT: ByteCount = ByteCount::new(4_000_000_000);

/// The glass tier: its platters, its medium, its library.
#[derive(Clone, Debug)]
pub struct GlassConfig {
    /// Platter geometry of new archives, and of new sets of an old one.
    pub geometry: Geometry,
    /// A larger body is shared out to several platters of its set, to be read by several drives
    /// at the same time (Silica section 6). A shard is whole tracks, and never more than a quarter
    /// of a platter.
    pub shard_size: ByteCount,
    /// The simulated medium.
    pub medium: MediumOptions,
    /// The simulated library.
    pub library: LibraryOptions,
    /// Redundancy platters of each set that go to libraries at other sites, where there are some;
    /// not more than a set has.
    pub far_redundancy: u16,
}

impl GlassConfig {
    /// Whether platters can be as it says. Files that it names are not looked at.
    ///
    /// # Errors
    /// When they cannot.
    pub fn validate(&self) -> Result<()> {
        let refuse = |what: String| PlattersError::InvalidArgument { what };
        self.geometry.validate().map_err(|error| refuse(error.to_string()))?;
        if self.shard_size == ByteCount::ZERO {
            return Err(refuse("shard_size is zero, and a shard has at least a byte".to_owned()));
        }
        let (far, all) = (self.far_redundancy, self.geometry.set_redundancy_platters);
        if far > all {
            let what = format!("far_redundancy is {far}, and a set has {all} redundancy platters");
            return Err(refuse(what));
        }
        Ok(())
    }
}

/// The simulated medium.
#[derive(Clone, Debug)]
pub struct MediumOptions {
    /// Seed from which everything about it follows: failing sectors, or the glass itself.
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
    /// Whole sectors fail, and have margins, as statistics say.
    Drawn {
        /// What `fulgurite glass calibrate` wrote.
        statistics: PathBuf,
        /// Times that a sector is read, at most.
        reads_max: u8,
    },
    /// What decoders say is drawn from statistics; the sectors' code is real.
    Soft {
        /// What `fulgurite glass calibrate` wrote.
        statistics: PathBuf,
        /// Times that a sector is read, at most.
        reads_max: u8,
    },
    /// Bytes become voxels, voxels images, images bytes.
    Analog(Box<AnalogOptions>),
}

/// The medium at fidelity `analog`.
#[derive(Clone, Debug)]
pub struct AnalogOptions {
    /// Preset of the voxel channel, by its name.
    pub preset: String,
    /// The learned decoder's file, with its card beside it; the one that comes with the program
    /// without it.
    pub model: Option<PathBuf>,
    /// What runs it.
    pub engine: EngineChoice,
    /// Times that images are taken of a sector, at most.
    pub reads_max: u8,
    /// Threads that decode, at most; 0 is one for each processor.
    pub workers: usize,
    /// Where parts of tracks are sent for workers on other machines; then nothing is decoded here.
    pub queue: Option<QueueAddress>,
    /// When verification is decoded.
    pub tariff: Tariff,
    /// Watts of a worker that is busy.
    pub watts: f64,
    /// Damage on top of what the channel draws.
    pub damage: InjectedDamage,
}

impl MediumOptions {
    /// A medium that never fails.
    #[must_use]
    pub const fn perfect(seed: u64) -> Self {
        let fidelity = Fidelity::Sector { sector_rate: Ratio::ZERO, track_rate: Ratio::ZERO };
        Self { seed, fidelity }
    }

    /// A medium that loses sectors, each by itself, at this rate.
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
    /// How the controller decides. Not [`fulgurite_library::Movement::NoShuttles`]: that is a bound
    /// for comparisons, and no library.
    pub policy: Policy,
    /// Where what the library is told and decides is written down, to be played again; nowhere
    /// without a path. A log of an earlier start goes to the same path with `.1` behind.
    pub log: Option<PathBuf>,
}

impl LibraryOptions {
    /// Read drives of the library.
    #[must_use]
    pub(crate) fn read_drives(&self) -> u32 {
        u32::from(self.shape.panels) * u32::from(self.shape.drives_per_panel())
    }
}

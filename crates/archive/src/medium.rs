//! The simulated medium of an archive, at the fidelity that was configured.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_codes::ldpc::Rate;
use fulgurite_decode::{
    Damage, DecodeError, Decoder, Learned, Model, SoftReader, SoftStatistics, VoxelMedium,
    VoxelReader, standard_linear, standard_model,
};
use fulgurite_glass::channel::{self, Channel};
use fulgurite_glass::{GlassError, Medium, SectorReading, SectorsAt, SeededFaults};
use fulgurite_units::Seed;

use crate::config::{AnalogOptions, ArchiveConfig, Fidelity};
use crate::decode_pool::{DecodePool, DecodeStatus, Urgency};
use crate::{ArchiveError, Result};

/// The rate of the sectors' code.
const RATE: Rate = Rate::R9of10;

/// The medium.
#[derive(Debug)]
pub(crate) enum ArchiveMedium {
    Sector(SeededFaults),
    Soft(Box<SoftMedium>),
    Analog(DecodePool),
}

impl ArchiveMedium {
    pub(crate) fn new(config: &ArchiveConfig) -> Result<Self> {
        let seed = Seed::new(config.medium.seed).child(b"medium");
        match &config.medium.fidelity {
            Fidelity::Sector { sector_rate, track_rate } => {
                Ok(Self::Sector(SeededFaults::new(seed, *sector_rate, *track_rate)))
            }
            Fidelity::Soft { statistics, reads_max } => {
                let drives = drives(config);
                let soft = SoftMedium::open(statistics, seed, *reads_max, drives)?;
                Ok(Self::Soft(Box::new(soft)))
            }
            Fidelity::Analog(options) => {
                Ok(Self::Analog(analog(options, seed, drives(config)).map_err(|error| {
                    ArchiveError::InvalidArgument { what: format!("medium: {error}") }
                })?))
            }
        }
    }

    /// Its name, for people.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Sector(_) => "sector (simulated medium)",
            Self::Soft(_) => "soft (simulated medium)",
            Self::Analog(_) => "analog (simulated medium)",
        }
    }

    /// The decode service, if there is one.
    pub(crate) fn decode_status(&self) -> Option<DecodeStatus> {
        match self {
            Self::Sector(_) | Self::Soft(_) => None,
            Self::Analog(pool) => Some(pool.status()),
        }
    }
}

/// The medium as one reader sees it.
#[derive(Clone, Debug)]
pub(crate) struct MediumHandle {
    medium: Arc<ArchiveMedium>,
    urgency: Urgency,
}

impl MediumHandle {
    /// For reads that somebody waits for.
    pub(crate) fn urgent(medium: &Arc<ArchiveMedium>) -> Self {
        Self { medium: Arc::clone(medium), urgency: Urgency::Urgent }
    }

    /// For verification.
    pub(crate) fn deferred(medium: &Arc<ArchiveMedium>) -> Self {
        Self { medium: Arc::clone(medium), urgency: Urgency::Deferred }
    }
}

impl Medium for MediumHandle {
    fn read(
        &self,
        at: SectorsAt,
        images: &mut [u8],
        readings: &mut Vec<SectorReading>,
    ) -> std::result::Result<(), GlassError> {
        match &*self.medium {
            ArchiveMedium::Sector(faults) => faults.read(at, images, readings),
            ArchiveMedium::Soft(soft) => soft.read(at, images, readings),
            ArchiveMedium::Analog(pool) => pool.read(at, images, readings, self.urgency),
        }
    }
}

/// Read drives of the library.
fn drives(config: &ArchiveConfig) -> u32 {
    let shape = &config.library.shape;
    u32::from(shape.panels) * u32::from(shape.drives_per_panel())
}

/// The medium at fidelity `soft`.
#[derive(Debug)]
pub(crate) struct SoftMedium {
    first: SoftReader,
    /// Readers that are not at work; as many as ever were at the same time.
    idle: Mutex<Vec<SoftReader>>,
    drives: u32,
    reads: AtomicU64,
}

impl SoftMedium {
    fn open(path: &Path, seed: Seed, reads_max: u8, drives: u32) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(ArchiveError::io("read", path))?;
        let first = SoftStatistics::from_json(&text)
            .and_then(|statistics| SoftReader::new(&statistics, RATE, seed, reads_max))
            .map_err(|error| ArchiveError::Unusable {
                path: path.display().to_string(),
                reason: format!("{error}; `fulgurite glass calibrate` makes statistics"),
            })?;
        let (idle, reads) = (Mutex::default(), AtomicU64::new(0));
        Ok(Self { first, idle, drives: drives.max(1), reads })
    }

    fn read(
        &self,
        at: SectorsAt,
        images: &mut [u8],
        readings: &mut Vec<SectorReading>,
    ) -> std::result::Result<(), GlassError> {
        let read = self.reads.fetch_add(1, Ordering::Relaxed);
        let drive = u32::try_from(read % u64::from(self.drives)).unwrap_or(0);
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut reader = taken.unwrap_or_else(|| self.first.another());
        let found = reader.read(at, images, drive, read).map_err(|error| {
            let reason = error.to_string();
            GlassError::Medium { platter: at.platter, reason }
        });
        idle().push(reader);
        readings.extend(found?);
        Ok(())
    }
}

/// The decode service for voxels: the linear decoder first, and the learned one for what it cannot
/// read. There is no learned one for the medium `phase`.
fn analog(
    options: &AnalogOptions,
    seed: Seed,
    drives: u32,
) -> std::result::Result<DecodePool, DecodeError> {
    let channel = Channel::preset(&options.preset)?;
    let learned = match (&options.model, channel.medium) {
        (Some(path), _) => Some(Arc::new(Model::open(path)?)),
        (None, channel::Medium::Birefringent) => Some(standard_model()?),
        (None, channel::Medium::Phase) => None,
    };
    let linear = standard_linear(&options.preset)?;
    let medium = VoxelMedium {
        channel,
        rate: RATE,
        seed,
        reads_max: options.reads_max,
        damage: Damage::default(),
    };
    let engine = options.engine.clone();
    let make = move || {
        let mut decoders: Vec<Box<dyn Decoder + Send>> = vec![Box::new(linear.clone())];
        if let Some(model) = &learned {
            decoders.push(Box::new(Learned::new(model, medium.channel.medium, &engine)?));
        }
        VoxelReader::new(medium.clone(), decoders)
    };
    let workers = if options.workers > 0 {
        options.workers
    } else {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
    };
    DecodePool::new(Box::new(make), workers, drives)
}

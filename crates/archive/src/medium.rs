//! The simulated medium of an archive, at the fidelity that was configured.

use std::sync::Arc;

use fulgurite_codes::ldpc::Rate;
use fulgurite_decode::{Damage, Decoder, VoxelMedium, VoxelReader, standard_linear};
use fulgurite_glass::channel::Channel;
use fulgurite_glass::{GlassError, Medium, SectorReading, SectorsAt, SeededFaults};
use fulgurite_units::Seed;

use crate::config::{AnalogOptions, ArchiveConfig, Fidelity};
use crate::decode_pool::{DecodePool, DecodeStatus, Urgency};
use crate::{ArchiveError, Result};

/// The medium.
#[derive(Debug)]
pub(crate) enum ArchiveMedium {
    Sector(SeededFaults),
    Analog(DecodePool),
}

impl ArchiveMedium {
    pub(crate) fn new(config: &ArchiveConfig) -> Result<Self> {
        let seed = Seed::new(config.medium.seed).child(b"medium");
        match &config.medium.fidelity {
            Fidelity::Sector { sector_rate, track_rate } => {
                Ok(Self::Sector(SeededFaults::new(seed, *sector_rate, *track_rate)))
            }
            Fidelity::Analog(options) => {
                let shape = &config.library.shape;
                let drives = u32::from(shape.panels * shape.drives_per_panel());
                Ok(Self::Analog(analog(options, seed, drives).map_err(|error| {
                    ArchiveError::InvalidArgument { what: format!("medium: {error}") }
                })?))
            }
        }
    }

    /// Its name, for people.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Sector(_) => "sector (simulated medium)",
            Self::Analog(_) => "analog (simulated medium)",
        }
    }

    /// The decode service, if there is one.
    pub(crate) fn decode_status(&self) -> Option<DecodeStatus> {
        match self {
            Self::Sector(_) => None,
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
            ArchiveMedium::Analog(pool) => pool.read(at, images, readings, self.urgency),
        }
    }
}

fn analog(
    options: &AnalogOptions,
    seed: Seed,
    drives: u32,
) -> std::result::Result<DecodePool, fulgurite_decode::DecodeError> {
    let medium = VoxelMedium {
        channel: Channel::preset(&options.preset)?,
        rate: Rate::R9of10,
        seed,
        reads_max: options.reads_max,
        damage: Damage::default(),
    };
    let linear = standard_linear(&options.preset)?;
    let make = move || {
        let decoders: Vec<Box<dyn Decoder + Send>> = vec![Box::new(linear.clone())];
        VoxelReader::new(medium.clone(), decoders)
    };
    let workers = if options.workers > 0 {
        options.workers
    } else {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
    };
    DecodePool::new(Box::new(make), workers, drives)
}

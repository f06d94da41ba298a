//! The simulated medium, at the configured fidelity.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_decode::{DecodeError, Model, OutcomeReader, SoftReader, SoftStatistics};
use fulgurite_platter::{Medium, PlatterError, SectorExtent, SectorReading, SeededFaults};
use fulgurite_units::Seed;

use crate::config::{AnalogOptions, Fidelity, MediumOptions};
use crate::decode_service::{
    DecodeService, DecodeStatus, Energy, MediumSettings, RATE, Urgency, standard_model_for,
};
use crate::{GlassError, Result};

/// The simulated medium.
#[derive(Debug)]
pub(crate) struct SimulatedMedium(Kind);

/// The implementation, by fidelity.
#[derive(Debug)]
enum Kind {
    Sector(SeededFaults),
    Drawn(DrawnMedium),
    Soft(Box<SoftMedium>),
    Analog(DecodeService),
}

impl SimulatedMedium {
    /// Creates the configured medium, for this many drives.
    ///
    /// # Errors
    /// When one of its files cannot be read, or its settings do not fit together.
    pub(crate) fn new(options: &MediumOptions, drives: u32) -> Result<Self> {
        let seed = Seed::new(options.seed).child(b"medium");
        let kind = match &options.fidelity {
            Fidelity::Sector { sector_rate, track_rate } => {
                Kind::Sector(SeededFaults::new(seed, *sector_rate, *track_rate))
            }
            Fidelity::Drawn { statistics, reads_max } => {
                Kind::Drawn(DrawnMedium::open(statistics, seed, *reads_max, drives)?)
            }
            Fidelity::Soft { statistics, reads_max } => {
                let soft = SoftMedium::open(statistics, seed, *reads_max, drives)?;
                Kind::Soft(Box::new(soft))
            }
            Fidelity::Analog(analog) => {
                Kind::Analog(analog_service(analog, options.seed, drives).map_err(|error| {
                    GlassError::InvalidArgument { what: format!("medium: {error}") }
                })?)
            }
        };
        Ok(Self(kind))
    }

    /// Its name, for display.
    #[must_use]
    pub(crate) const fn name(&self) -> &'static str {
        match &self.0 {
            Kind::Sector(_) | Kind::Drawn(_) => "sector (simulated medium)",
            Kind::Soft(_) => "soft (simulated medium)",
            Kind::Analog(_) => "analog (simulated medium)",
        }
    }

    /// Whether decoding for verification may take longer than a drive should wait: on other
    /// machines, or in a cheaper hour.
    #[must_use]
    pub(crate) fn can_defer_decoding(&self) -> bool {
        match &self.0 {
            Kind::Sector(_) | Kind::Drawn(_) | Kind::Soft(_) => false,
            Kind::Analog(service) => service.can_defer_decoding(),
        }
    }

    /// Ends all waits for what is not being decoded.
    pub(crate) fn stop(&self) {
        match &self.0 {
            Kind::Sector(_) | Kind::Drawn(_) | Kind::Soft(_) => {}
            Kind::Analog(service) => service.stop(),
        }
    }

    /// The status of the decode service, if there is one.
    #[must_use]
    pub(crate) fn decode_status(&self) -> Option<DecodeStatus> {
        match &self.0 {
            Kind::Sector(_) | Kind::Drawn(_) | Kind::Soft(_) => None,
            Kind::Analog(pool) => Some(pool.status()),
        }
    }
}

/// The medium as one reader sees it.
#[derive(Clone, Debug)]
pub(crate) struct MediumHandle {
    medium: Arc<SimulatedMedium>,
    urgency: Urgency,
}

impl MediumHandle {
    /// Creates a handle for urgent reads.
    #[must_use]
    pub(crate) fn urgent(medium: &Arc<SimulatedMedium>) -> Self {
        Self { medium: Arc::clone(medium), urgency: Urgency::Urgent }
    }

    /// Creates a handle for verification.
    #[must_use]
    pub(crate) fn deferred(medium: &Arc<SimulatedMedium>) -> Self {
        Self { medium: Arc::clone(medium), urgency: Urgency::Deferred }
    }
}

impl Medium for MediumHandle {
    fn read(
        &self,
        at: SectorExtent,
        bytes: &mut [u8],
        readings: &mut Vec<SectorReading>,
    ) -> std::result::Result<(), PlatterError> {
        match &self.medium.0 {
            Kind::Sector(faults) => faults.read(at, bytes, readings),
            Kind::Drawn(drawn) => {
                drawn.read(at, bytes, readings);
                Ok(())
            }
            Kind::Soft(soft) => soft.read(at, bytes, readings),
            Kind::Analog(pool) => pool.read(at, bytes, readings, self.urgency),
        }
    }
}

/// Reads the statistics of a decoder.
fn statistics<R>(
    path: &Path,
    reader: impl FnOnce(&SoftStatistics) -> std::result::Result<R, DecodeError>,
) -> Result<R> {
    let text = std::fs::read_to_string(path).map_err(GlassError::io("read", path))?;
    let made = SoftStatistics::from_json(&text).and_then(|statistics| reader(&statistics));
    made.map_err(|error| GlassError::Unusable {
        path: path.display().to_string(),
        reason: format!("{error}; create them with `fulgurite lab calibrate`"),
    })
}

/// The medium at fidelity `sector`, by statistics.
#[derive(Debug)]
struct DrawnMedium {
    reader: OutcomeReader,
    drives: u32,
    reads: AtomicU64,
}

impl DrawnMedium {
    fn open(path: &Path, seed: Seed, reads_max: u8, drives: u32) -> Result<Self> {
        let reader =
            statistics(path, |statistics| OutcomeReader::new(statistics, seed, reads_max))?;
        Ok(Self { reader, drives: drives.max(1), reads: AtomicU64::new(0) })
    }

    fn read(&self, at: SectorExtent, bytes: &[u8], readings: &mut Vec<SectorReading>) {
        let read = self.reads.fetch_add(1, Ordering::Relaxed);
        let drive = u32::try_from(read % u64::from(self.drives)).unwrap_or(0);
        readings.extend(self.reader.read(at, bytes.len() / at.sector_bytes, drive, read));
    }
}

/// The medium at fidelity `soft`.
#[derive(Debug)]
struct SoftMedium {
    first: SoftReader,
    /// Idle readers; as many as were ever in use at the same time.
    idle: Mutex<Vec<SoftReader>>,
    drives: u32,
    reads: AtomicU64,
}

impl SoftMedium {
    fn open(path: &Path, seed: Seed, reads_max: u8, drives: u32) -> Result<Self> {
        let first =
            statistics(path, |statistics| SoftReader::new(statistics, RATE, seed, reads_max))?;
        let (idle, reads) = (Mutex::default(), AtomicU64::new(0));
        Ok(Self { first, idle, drives: drives.max(1), reads })
    }

    fn read(
        &self,
        at: SectorExtent,
        bytes: &mut [u8],
        readings: &mut Vec<SectorReading>,
    ) -> std::result::Result<(), PlatterError> {
        let read = self.reads.fetch_add(1, Ordering::Relaxed);
        let drive = u32::try_from(read % u64::from(self.drives)).unwrap_or(0);
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut reader = taken.unwrap_or_else(|| self.first.another());
        let found = reader.read(at, bytes, drive, read).map_err(|error| {
            let reason = error.to_string();
            PlatterError::Medium { platter: at.platter, reason }
        });
        idle().push(reader);
        readings.extend(found?);
        Ok(())
    }
}

/// Creates the decode service for voxels, here or elsewhere.
fn analog_service(
    options: &AnalogOptions,
    seed: u64,
    drives: u32,
) -> std::result::Result<DecodeService, DecodeError> {
    let model = match &options.model {
        Some(path) => Some(Arc::new(Model::open(path)?)),
        None => standard_model_for(&options.preset)?,
    };
    let medium = MediumSettings {
        preset: options.preset.clone(),
        seed,
        reads_max: options.reads_max,
        model: model.as_ref().map(|model| model.id().hash),
        damage: options.damage.clone(),
    };
    let energy = Energy { tariff: options.tariff, watts: options.watts };
    if let Some(queue) = &options.queue {
        return DecodeService::remote(queue.clone(), medium, drives, energy);
    }
    let engine = options.engine.clone();
    let models: Vec<Arc<Model>> = model.into_iter().collect();
    let make = move || medium.reader(&models, &engine);
    let workers = if options.workers > 0 {
        options.workers
    } else {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
    };
    DecodeService::threads(Box::new(make), workers, drives, energy)
}

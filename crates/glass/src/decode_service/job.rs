//! A part of a track as it is sent to a worker on another machine, and the answer.
//!
//! There is no real glass, so a job carries what was written, and its worker makes voxels and
//! images of it, as the drives do in one process. The payloads of sectors are encrypted.

use std::ops::Range;
use std::sync::Arc;

use fulgurite_codes::ldpc::Rate;
use fulgurite_decode::{
    DecodeError, Decoder, EngineChoice, Learned, Model, SectorOutcome, VoxelMedium, VoxelReader,
    standard_linear, standard_model,
};
use fulgurite_platter::channel::{self, Channel};
use fulgurite_platter::{SectorExtent, SectorReading};
use fulgurite_units::{LayerIndex, PlatterId, Seed, TrackIndex};
use serde::{Deserialize, Serialize};

use crate::injected::InjectedDamage;

/// The rate of the sectors' code.
pub(crate) const RATE: Rate = Rate::R9of10;

/// The glass and the drives, as far as a worker needs to know them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MediumSettings {
    /// Preset of the voxel channel.
    pub(crate) preset: String,
    /// Seed of the medium, as configured.
    pub(crate) seed: u64,
    /// Maximum number of times that a sector is imaged.
    pub(crate) reads_max: u8,
    /// The learned decoder, by the hex digits of its file's hash; `None` uses none.
    pub(crate) model: Option<String>,
    /// Injected damage.
    pub(crate) damage: InjectedDamage,
}

impl MediumSettings {
    /// Creates a reader: the linear decoder first, and the learned one for what it cannot read.
    pub(crate) fn reader(
        &self,
        models: &[Arc<Model>],
        engine: &EngineChoice,
    ) -> Result<VoxelReader, DecodeError> {
        let medium = VoxelMedium {
            channel: Channel::preset(&self.preset)?,
            rate: RATE,
            seed: Seed::new(self.seed).child(b"medium"),
            reads_max: self.reads_max,
            damage: self.damage.damage(),
        };
        let linear = standard_linear(&self.preset)?;
        let mut decoders: Vec<Box<dyn Decoder + Send>> = vec![Box::new(linear)];
        if let Some(hash) = &self.model {
            let found = models.iter().find(|model| model.id().hash == *hash);
            let model = found.ok_or_else(|| DecodeError::ModelUnknown {
                name: hash.clone(),
                known: names(models),
            })?;
            decoders.push(Box::new(Learned::new(model, medium.channel.medium, engine)?));
        }
        VoxelReader::new(medium, decoders)
    }

    /// Whether one of these models is the required one, or none is required.
    pub(crate) fn is_served_by(&self, models: &[Arc<Model>]) -> bool {
        let has_hash = |hash: &String| models.iter().any(|model| model.id().hash == *hash);
        self.model.as_ref().is_none_or(has_hash)
    }

    /// Returns the number of layers below and above a sector whose light is seen in its images.
    pub(crate) fn neighbors(&self) -> Result<usize, DecodeError> {
        Ok(usize::from(Channel::preset(&self.preset)?.optics.layers))
    }
}

/// Lists the names of the models, for messages.
pub(crate) fn names(models: &[Arc<Model>]) -> String {
    let names: Vec<String> = models.iter().map(|model| model.id().to_string()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Returns the learned decoder of a channel that comes with the program. There is none for the
/// medium `phase`.
pub(crate) fn standard_model_for(preset: &str) -> Result<Option<Arc<Model>>, DecodeError> {
    match Channel::preset(preset)?.medium {
        channel::Medium::Birefringent => Ok(Some(standard_model()?)),
        channel::Medium::Phase => Ok(None),
    }
}

/// Sectors to decode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The subject of the answer.
    pub(crate) answer_to: String,
    /// The number that the answer carries.
    pub(crate) number: u64,
    pub(crate) medium: MediumSettings,
    pub(crate) platter: PlatterId,
    pub(crate) track: TrackIndex,
    /// Layer of the first sector.
    pub(crate) first: LayerIndex,
    pub(crate) sector_bytes: u32,
    /// The sectors to decode; the others are their neighbors.
    pub(crate) wanted: Range<u32>,
    pub(crate) drive: u32,
    pub(crate) read: u64,
    /// What was written.
    pub(crate) bytes: Vec<u8>,
}

impl Job {
    /// Decodes it, with a reader of its settings.
    ///
    /// # Errors
    /// Why no worker can decode it.
    pub(crate) fn decode(&self, reader: &mut VoxelReader) -> Result<Decoded, String> {
        let size = self.sector_bytes as usize;
        let wanted = self.wanted.start as usize..self.wanted.end as usize;
        if size == 0 || wanted.start >= wanted.end || wanted.end > self.bytes.len() / size {
            return Err("the job does not carry the sectors that it asks for".to_owned());
        }
        let extent = SectorExtent {
            platter: self.platter,
            track: self.track,
            first: self.first,
            sector_bytes: size,
        };
        let mut bytes = self.bytes.clone();
        let outcomes = reader.read(extent, &mut bytes, wanted.clone(), self.drive, self.read);
        let outcomes = outcomes.map_err(|error| error.to_string())?;
        Ok(Decoded::new(reader, &outcomes, bytes[wanted.start * size..wanted.end * size].to_vec()))
    }
}

/// Decoded sectors, with the effort.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decoded {
    pub(crate) sectors: Vec<DecodedSector>,
    /// Bytes of all sectors; those of lost sectors are undefined.
    pub(crate) bytes: Vec<u8>,
    /// Voxels of a sector.
    pub(crate) voxels: u64,
}

/// The outcome of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DecodedSector {
    /// `None` if it is lost; otherwise its margin, if it has one.
    pub(crate) read: Option<Option<u8>>,
    /// The decoder that decided, by its index in the ladder.
    pub(crate) decoder: u8,
    pub(crate) reads: u8,
    pub(crate) decodes: u8,
}

impl DecodedSector {
    pub(crate) const fn reading(self) -> SectorReading {
        match self.read {
            None => SectorReading::Lost,
            Some(margin) => SectorReading::Read { margin },
        }
    }
}

impl Decoded {
    pub(crate) fn new(
        reader: &mut VoxelReader,
        sector_outcomes: &[SectorOutcome],
        bytes: Vec<u8>,
    ) -> Self {
        let sectors = sector_outcomes.iter().map(|outcome| DecodedSector {
            read: match outcome.reading {
                SectorReading::Lost => None,
                SectorReading::Read { margin } => Some(margin),
            },
            decoder: u8::try_from(outcome.decoder).unwrap_or(u8::MAX),
            reads: outcome.reads,
            decodes: outcome.decodes,
        });
        let voxels = reader.frame().map_or(0, |frame| frame.shape().voxels());
        Self { sectors: sectors.collect(), bytes, voxels: voxels as u64 }
    }
}

/// A worker's answer to a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) number: u64,
    /// The name of the worker.
    pub(crate) worker: String,
    /// Microseconds that the worker was busy.
    pub(crate) busy_us: u64,
    pub(crate) outcome: JobOutcome,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum JobOutcome {
    Decoded(Decoded),
    /// The worker's thread died over it; another may not.
    Died,
    /// No worker can decode it, for this reason.
    Refused(String),
}

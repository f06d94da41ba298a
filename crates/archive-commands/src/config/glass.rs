//! `[tiers.glass]` of kind `glass`: the platters, the simulated medium and the simulated library.

use std::path::PathBuf;

use fulgurite_archive::config::{EngineChoice, QueueAddress, SHARD_SIZE_DEFAULT};
use fulgurite_glass_core::control::{LibraryShape, Movement, Policy};
use fulgurite_platter::Geometry;
use fulgurite_units::{ByteCount, Duration, Ratio};
use serde::{Deserialize, Serialize};

use super::decode::{self, Prices};
use super::{ConfigError, policy, refuse};

/// The tier of kind `glass`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Glass {
    /// Platter profile: `sliver`, `demo`, `desk` or `silica`. `geometry` overrides it.
    pub profile: String,
    /// Larger objects are split over several platters, so that several drives can read them at
    /// once.
    pub shard_size: ByteCount,
    /// Tiers that are far libraries: they keep redundancy platters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub far_libraries: Vec<String>,
    /// Redundancy platters of each set that go to far libraries; by default all but one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub far_redundancy: Option<u16>,
    /// When staged bodies are sealed without a request.
    pub moves: Moves,
    /// The simulated medium.
    pub medium: Medium,
    /// The simulated library.
    pub library: Library,
    /// A custom platter geometry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geometry: Option<Geometry>,
}

/// `moves`: when staged bodies are sealed without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Moves {
    /// Longest wait of a staged body.
    pub age: Duration,
    /// Most bytes that wait; by default a full platter-set, or a quarter of the logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<ByteCount>,
}

/// `medium`: the simulated medium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Medium {
    /// Fidelity of the simulation.
    pub fidelity: Fidelity,
    /// Seed of the simulation: it determines which sectors fail, or the glass itself.
    pub seed: u64,
    /// `sector`: probability that a sector cannot be decoded.
    pub sector_failure_rate: Ratio,
    /// `sector`: probability that a whole track cannot be decoded.
    pub track_failure_rate: Ratio,
    /// `analog`: preset of the voxel channel.
    pub channel: String,
    /// `soft`: file written by `fulgurite lab calibrate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistics: Option<PathBuf>,
    /// `analog`: file of the learned decoder; by default the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<PathBuf>,
    /// `analog`: engine of the learned decoder.
    pub engine: Engine,
    /// `soft`, `analog`: most times that a sector is read.
    pub reads_max: u8,
    /// `analog`: file of damage to platters and drives, for experiments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<PathBuf>,
    /// `analog`: most decoding threads; 0 means one per processor.
    pub decode_workers: usize,
    /// `analog`: the NATS server from which `fulgurite decode-worker` takes its work; without it
    /// this process decodes.
    #[serde(skip_serializing_if = "Option::is_none", with = "decode::queue")]
    pub decode_queue: Option<QueueAddress>,
    /// `analog`: how long decoding for verification may be deferred to a cheaper hour.
    pub decode_within: Duration,
    /// `analog`: energy price for each hour of the day (UTC), in any unit.
    pub(crate) decode_prices: Prices,
    /// `analog`: watts of a busy worker, for the energy in the status.
    pub decode_watts: f64,
}

/// Fidelity of the simulated medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Fidelity {
    /// Whole sectors fail at given rates
    #[default]
    Sector,
    /// Soft bits drawn from decoder statistics, and the real code
    Soft,
    /// Voxels, camera images and decoders
    Analog,
}

/// Engine of a learned decoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum Engine {
    /// Our own for int8 networks; tract for float32 ones, if built with `--features tract`
    #[default]
    BuiltIn,
    /// ONNX Runtime, a shared library that the variable FULGURITE_ONNXRUNTIME names
    OnnxRuntime,
}

impl Engine {
    /// Converts it to the decoders' type.
    pub const fn choice(self) -> EngineChoice {
        match self {
            Self::BuiltIn => EngineChoice::BuiltIn,
            Self::OnnxRuntime => EngineChoice::onnx_runtime(),
        }
    }
}

impl Default for Medium {
    fn default() -> Self {
        Self {
            fidelity: Fidelity::default(),
            seed: 0,
            sector_failure_rate: Ratio::default(),
            track_failure_rate: Ratio::default(),
            channel: "nominal".to_owned(),
            statistics: None,
            model: None,
            engine: Engine::default(),
            reads_max: 3,
            damage: None,
            decode_workers: 0,
            decode_queue: None,
            decode_within: Duration::ZERO,
            decode_prices: Prices::default(),
            decode_watts: 10.0,
        }
    }
}

/// `library`: the simulated library.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Library {
    /// Real seconds per mechanical second; 0 means no delays.
    pub time_scale: f64,
    /// Seed of the sampled mechanical times.
    pub seed: u64,
    /// File in which inputs and decisions of the library controller are logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// Policy of the controller, by name or field by field.
    #[serde(with = "policy")]
    pub policy: Policy,
    /// Panels, racks, shelves, slots, drives, shuttles.
    pub shape: LibraryShape,
}

impl Default for Glass {
    fn default() -> Self {
        Self {
            profile: "desk".to_owned(),
            shard_size: SHARD_SIZE_DEFAULT,
            far_libraries: Vec::new(),
            far_redundancy: None,
            moves: Moves::default(),
            medium: Medium::default(),
            library: Library::default(),
            geometry: None,
        }
    }
}

impl Default for Moves {
    fn default() -> Self {
        Self { age: Duration::from_secs(24 * 3600), bytes: None }
    }
}

impl Glass {
    /// Returns the name of the effective profile.
    pub(crate) fn profile(&self) -> &str {
        self.geometry.as_ref().map_or(&self.profile, |geometry| &geometry.profile)
    }

    /// Returns the effective geometry.
    pub fn effective_geometry(&self) -> Result<Geometry, ConfigError> {
        match &self.geometry {
            Some(geometry) => Ok(geometry.clone()),
            None => Geometry::profile(&self.profile)
                .or_else(|error| refuse("profile", error.to_string())),
        }
    }

    pub(super) fn validate(&self, log_capacity: ByteCount) -> Result<(), ConfigError> {
        let geometry = self.effective_geometry()?;
        if let Err(error) = geometry.validate() {
            return refuse("geometry", error.to_string());
        }
        self.library.validate(u32::from(geometry.set_platters()))?;
        if self.shard_size == ByteCount::ZERO {
            return refuse("shard_size", "a shard has at least one byte");
        }
        match self.moves.bytes {
            Some(bytes) if bytes == ByteCount::ZERO || bytes > log_capacity => refuse(
                "moves.bytes",
                format!("{bytes} is not between 1B and storage.log_capacity, {log_capacity}"),
            ),
            Some(_) | None => Ok(()),
        }
    }
}

impl Library {
    fn validate(&self, set_platters: u32) -> Result<(), ConfigError> {
        if let Err(error) = self.shape.validate() {
            return refuse("library.shape", error.to_string());
        }
        if let Err(error) = self.policy.validate() {
            return refuse("library.policy", error.to_string());
        }
        if self.policy.movement == Movement::NoShuttles {
            let reason = "without shuttles there is no library, only a bound to compare with";
            return refuse("library.policy", reason);
        }
        let zones = self.shape.zone_count();
        if zones < set_platters {
            return refuse(
                "library.shape",
                format!(
                    "{zones} blast zones cannot keep the {set_platters} platters of a set apart"
                ),
            );
        }
        if !(self.time_scale.is_finite() && self.time_scale >= 0.0) {
            return refuse("library.time_scale", "it is not a number from 0 up");
        }
        Ok(())
    }
}

//! Configuration: one TOML file into plain structs, then environment, then flags.
//!
//! Unknown keys are refused, values carry their units, and `config show` prints the effective
//! configuration as an equivalent file. Credentials are never part of a configuration.

mod args;
mod decode;
mod environment;
pub mod geo;
mod locations;
mod policy;
pub mod rack;
pub mod tiers;
mod tls;
pub mod tome;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use fulgurite_archive::config::{
    Classes, EngineChoice, QueueAddress, SHARD_SIZE_DEFAULT, TierName,
};
use fulgurite_glass_core::control::{LibraryShape, Movement, Policy};
use fulgurite_platter::Geometry;
use fulgurite_units::{ByteCount, Duration, Ratio, settings};
use serde::{Deserialize, Serialize};

pub use args::{ConfigArgs, TierArgs};
use decode::Prices;
pub use environment::process_environment;
pub use geo::Geo;
pub use rack::Rack;
pub use tiers::{Tier, TierConfig, TierFlag};
pub use tls::TlsChoice;
pub use tome::Tome;

/// All settings of `serve`, as in the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// Domain whose subdomains are buckets; without it only path-style addressing works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// `off`, `auto` or `CERT,KEY`.
    pub tls: TlsChoice,
    /// Platter profile: `sliver`, `demo`, `desk` or `silica`. `[geometry]` overrides it.
    pub profile: String,
    /// When and how staged bodies are sealed automatically.
    pub seal: Seal,
    /// Space for staged, online and restored bodies.
    pub storage: Storage,
    /// Restore.
    pub restore: Restore,
    /// Keys.
    pub keys: Keys,
    /// The simulated medium.
    pub medium: Medium,
    /// The simulated library.
    pub library: Library,
    /// A custom platter geometry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geometry: Option<Geometry>,
    /// The tier of each storage class.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) classes: BTreeMap<String, tiers::Class>,
    /// Tiers besides the built-in ones, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<TierName, Tier>,
}

/// `[seal]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Seal {
    /// Seal as soon as this much is staged; by default a full platter-set, or a quarter of the
    /// logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staged_bytes: Option<ByteCount>,
    /// Seal as soon as the oldest staged body is this old.
    pub age: Duration,
    /// Larger objects are split over several platters, so that several drives can read them at
    /// once.
    pub shard_size: ByteCount,
    /// Tiers that are far libraries: they keep redundancy platters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub far_libraries: Vec<String>,
    /// Redundancy platters of each set that go to far libraries; by default all but one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub far_redundancy: Option<u16>,
}

/// `[storage]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Storage {
    /// Most bytes in the staging, online and restored logs together.
    pub log_capacity: ByteCount,
    /// Disk space that bodies may not use; by default a sixteenth of the disk, at most 1 GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_min: Option<ByteCount>,
    /// Bytes held in reserve for a full disk; by default a sixteenth of the disk, at most 64 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<ByteCount>,
    /// Time within which names and metadata of deleted objects are purged from every file.
    pub forget_within: Duration,
    /// The tier that must also hold a staged body before its put is acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged_at: Option<String>,
}

/// `[restore]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Restore {
    /// How Expedited restores of `DEEP_ARCHIVE` are handled.
    pub expedited: Expedited,
    /// Length of a restore day; shorter only for tests.
    pub day: Duration,
    /// File in which inputs and decisions of the restore controller are logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
}

/// How Expedited restores of `DEEP_ARCHIVE` are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expedited {
    /// Refuse it, as AWS does.
    Refuse,
    /// Serve it as Standard.
    Standard,
}

/// `[keys]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keys {
    /// Master key file; by default `DATA/keys/master.key`, made on first use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_key: Option<PathBuf>,
    /// Files of the key table, each a full copy; by default `DATA/keys/table` and
    /// `DATA/keys/table.copy`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<PathBuf>,
}

/// `[medium]`
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
    /// `soft`: file written by `fulgurite glass calibrate`.
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

/// `[library]`
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

/// Errors of the configuration.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what the fields are")]
#[non_exhaustive]
pub enum ConfigError {
    #[error("cannot read configuration \"{path}\"")]
    Unreadable { path: String, source: std::io::Error },
    #[error("configuration \"{path}\" is wrong")]
    Syntax { path: String, source: settings::Error },
    #[error("environment variable {name}: {reason}")]
    Environment { name: String, reason: String },
    #[error("setting {name}: {reason}")]
    Value { name: String, reason: String },
    #[error("configuration cannot be shown")]
    Unshowable { source: toml::ser::Error },
}

impl ConfigError {
    /// Names a setting of a tier by its path in the file.
    pub(crate) fn in_tier(self, tier: &TierName) -> Self {
        match self {
            Self::Value { name, reason } => {
                Self::Value { name: format!("tiers.{tier}.{name}"), reason }
            }
            Self::Unreadable { .. }
            | Self::Syntax { .. }
            | Self::Environment { .. }
            | Self::Unshowable { .. } => self,
        }
    }
}

/// Refuses the value of a setting.
fn refuse<T>(name: &str, reason: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::Value { name: name.to_owned(), reason: reason.into() })
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 9000)),
            domain: None,
            tls: TlsChoice::Off,
            profile: "desk".to_owned(),
            seal: Seal::default(),
            storage: Storage::default(),
            restore: Restore::default(),
            keys: Keys::default(),
            medium: Medium::default(),
            library: Library::default(),
            geometry: None,
            classes: BTreeMap::new(),
            tiers: BTreeMap::new(),
        }
    }
}

impl Default for Seal {
    fn default() -> Self {
        Self {
            staged_bytes: None,
            age: Duration::from_secs(24 * 3600),
            shard_size: SHARD_SIZE_DEFAULT,
            far_libraries: Vec::new(),
            far_redundancy: None,
        }
    }
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            log_capacity: ByteCount::gib(256),
            free_min: None,
            reserve: None,
            forget_within: Duration::from_secs(3600),
            acknowledged_at: None,
        }
    }
}

impl Default for Restore {
    fn default() -> Self {
        Self { expedited: Expedited::Refuse, day: Duration::from_secs(24 * 3600), log: None }
    }
}

/// Command line flags that override file and environment.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--listen`
    pub listen: Option<SocketAddr>,
    /// `--tls`
    pub tls: Option<TlsChoice>,
    /// `--profile`
    pub profile: Option<String>,
    /// `--tier`
    pub tiers: Vec<TierFlag>,
}

impl Config {
    /// Loads the file, then `FULGURITE_*` of `environment`, then flags; validates, and fills in
    /// defaults.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
        overrides: Overrides,
    ) -> Result<Self, ConfigError> {
        let mut config = match file {
            Some(path) => Self::read(path)?,
            None => Self::default(),
        };
        environment::apply(&mut config, environment)?;
        config.apply_overrides(overrides)?;
        config.set_defaults()?;
        config.validate()?;
        Ok(config)
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: shown.clone(), source })?;
        tiers::refuse_tables_of_kinds(&text)?;
        Self::parse(&text).map_err(|source| ConfigError::Syntax { path: shown, source })
    }

    /// Reads TOML text.
    pub fn parse(text: &str) -> Result<Self, settings::Error> {
        settings::from_toml(text)
    }

    /// Formats the configuration as a file.
    pub fn show(&self) -> Result<String, ConfigError> {
        toml::to_string(self).map_err(|source| ConfigError::Unshowable { source })
    }

    /// Returns the effective geometry.
    pub fn effective_geometry(&self) -> Result<Geometry, ConfigError> {
        match &self.geometry {
            Some(geometry) => Ok(geometry.clone()),
            None => Geometry::profile(&self.profile)
                .or_else(|error| refuse("profile", error.to_string())),
        }
    }

    fn apply_overrides(&mut self, overrides: Overrides) -> Result<(), ConfigError> {
        if let Some(listen) = overrides.listen {
            self.listen = listen;
        }
        if let Some(tls) = overrides.tls {
            self.tls = tls;
        }
        if let Some(profile) = overrides.profile {
            self.profile = profile;
            self.geometry = None;
        }
        let mut names = BTreeSet::new();
        for TierFlag { name, tier } in overrides.tiers {
            if !names.insert(name.clone()) {
                return refuse("tiers", format!("--tier gives \"{name}\" twice"));
            }
            self.tiers.insert(name, tier);
        }
        Ok(())
    }

    /// Sets the default of `staged_bytes`: a set too large for the logs is sealed before they are
    /// full.
    fn set_defaults(&mut self) -> Result<(), ConfigError> {
        let set = self.effective_geometry()?.set_user_bytes();
        let room = self.storage.log_capacity.get() / 4;
        self.seal.staged_bytes.get_or_insert_with(|| ByteCount::new(set.min(room)));
        Ok(())
    }

    /// Returns the effective table of classes.
    pub fn effective_classes(&self) -> Result<Classes, ConfigError> {
        tiers::classes(&self.classes, &self.tiers).or_else(|reason| refuse("classes", reason))
    }

    /// Returns the tier at which puts are acknowledged; `None` if it is the log.
    pub fn acknowledged_at(&self) -> Result<Option<TierName>, ConfigError> {
        let Some(name) = &self.storage.acknowledged_at else { return Ok(None) };
        let reason = match self.tier(name) {
            Some((name, Tier::Geo(_) | Tier::Objects(_))) => return Ok(Some(name.clone())),
            Some((_, Tier::Rack(_) | Tier::Tome(_))) => format!(
                "disks of \"{name}\" sleep, and each put would wake some; name a tier of kind geo \
                 or objects"
            ),
            None => format!("\"{name}\" is none of [tiers]"),
        };
        refuse("storage.acknowledged_at", reason)
    }

    fn tier(&self, name: &str) -> Option<(&TierName, &Tier)> {
        self.tiers.iter().find(|(known, _)| known.as_str() == name)
    }

    /// Returns the tiers that keep redundancy platters, and how many of each set.
    pub fn far_libraries(&self) -> Result<(Vec<TierName>, u16), ConfigError> {
        let has = self.effective_geometry()?.set_redundancy_platters;
        let mut names = Vec::new();
        for name in &self.seal.far_libraries {
            match self.tier(name) {
                Some((name, Tier::Objects(_))) if names.contains(name) => {
                    return refuse("seal.far_libraries", format!("\"{name}\" is named twice"));
                }
                Some((name, Tier::Objects(_))) => names.push(name.clone()),
                Some((_, Tier::Rack(_) | Tier::Tome(_) | Tier::Geo(_))) | None => {
                    let reason = format!("\"{name}\" is none of [tiers] of kind objects");
                    return refuse("seal.far_libraries", reason);
                }
            }
        }
        match self.seal.far_redundancy {
            None if names.is_empty() => Ok((names, 0)),
            None => Ok((names, has.saturating_sub(1).max(1))),
            Some(_) if names.is_empty() => {
                let reason = "no far library is named in seal.far_libraries";
                refuse("seal.far_redundancy", reason.to_owned())
            }
            Some(away) if !(1..=has).contains(&away) => refuse(
                "seal.far_redundancy",
                format!("{away} is not between 1 and the {has} redundancy platters of a set"),
            ),
            Some(away) => Ok((names, away)),
        }
    }

    /// Rejects tiers that cannot be those of an archive in `data`: in the location of another, or
    /// among the archive's own files; or with options that name no tier. Touches nothing.
    ///
    /// # Errors
    /// Names the setting.
    pub fn check_tiers(&self, data: &Path) -> Result<(), ConfigError> {
        if let Err(reason) = tiers::objects(&self.tiers, process_environment()) {
            return refuse("tiers", reason);
        }
        locations::check(&self.tiers, Some(data))
    }

    fn validate(&self) -> Result<(), ConfigError> {
        let geometry = self.effective_geometry()?;
        self.effective_classes()?;
        tiers::validate(&self.tiers)?;
        self.far_libraries()?;
        self.acknowledged_at()?;
        if let Err(error) = geometry.validate() {
            return refuse("geometry", error.to_string());
        }
        let shape = &self.library.shape;
        if let Err(error) = shape.validate() {
            return refuse("library.shape", error.to_string());
        }
        if let Err(error) = self.library.policy.validate() {
            return refuse("library.policy", error.to_string());
        }
        if self.library.policy.movement == Movement::NoShuttles {
            let reason = "without shuttles there is no library, only a bound to compare with";
            return refuse("library.policy", reason.to_owned());
        }
        let (zones, platters) = (shape.zone_count(), u32::from(geometry.set_platters()));
        if zones < platters {
            return refuse(
                "library.shape",
                format!("{zones} blast zones cannot keep the {platters} platters of a set apart"),
            );
        }
        if !(self.library.time_scale.is_finite() && self.library.time_scale >= 0.0) {
            return refuse("library.time_scale", "it is not a number from 0 up".to_owned());
        }
        if self.restore.day == Duration::ZERO {
            return refuse("restore.day", "a day must be longer than zero".to_owned());
        }
        if self.storage.forget_within == Duration::ZERO {
            return refuse("storage.forget_within", "it must be longer than zero".to_owned());
        }
        if self.seal.shard_size == ByteCount::ZERO {
            return refuse("seal.shard_size", "a shard has at least one byte".to_owned());
        }
        let capacity = self.storage.log_capacity;
        match self.seal.staged_bytes {
            Some(bytes) if bytes == ByteCount::ZERO || bytes > capacity => refuse(
                "seal.staged_bytes",
                format!("{bytes} is not between 1B and storage.log_capacity, {capacity}"),
            ),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;

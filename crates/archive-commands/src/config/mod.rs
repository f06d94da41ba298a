//! Configuration: one TOML file into plain structs, then environment, then flags.
//!
//! Unknown keys are refused, values carry their units, and `config show` prints the effective
//! configuration as an equivalent file. Credentials are never part of a configuration.

mod args;
mod decode;
mod environment;
pub mod geo;
pub mod glass;
mod locations;
mod policy;
pub mod rack;
pub mod tiers;
mod tls;
pub mod tome;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use fulgurite_archive::config::{Classes, TierName};
use fulgurite_units::{ByteCount, Duration, settings};
use serde::{Deserialize, Serialize};

pub use args::{ConfigArgs, TierArgs};
pub use environment::process_environment;
pub use geo::Geo;
pub use glass::{Engine, Fidelity, Glass, Medium};
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
    /// Space for staged, online and restored bodies.
    pub storage: Storage,
    /// Restore.
    pub restore: Restore,
    /// Keys.
    pub keys: Keys,
    /// The tier of each storage class.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) classes: BTreeMap<String, tiers::Class>,
    /// The tiers in the file, by name; `glass` and `tiers` have them after it was read.
    #[serde(rename = "tiers", skip_serializing_if = "BTreeMap::is_empty")]
    entries: BTreeMap<TierName, tiers::Entry>,
    /// The tier of kind `glass`, which every archive has.
    #[serde(skip)]
    pub glass: Glass,
    /// The other tiers, by name.
    #[serde(skip)]
    pub tiers: BTreeMap<TierName, Tier>,
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

/// Names a setting of the glass tier by its path in the file.
fn in_glass(error: ConfigError) -> ConfigError {
    error.in_tier(&TierName::glass())
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
            storage: Storage::default(),
            restore: Restore::default(),
            keys: Keys::default(),
            glass: Glass::default(),
            classes: BTreeMap::new(),
            entries: BTreeMap::new(),
            tiers: BTreeMap::new(),
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
        Self::parse(&text, &shown)
    }

    /// Reads TOML text.
    fn parse(text: &str, path: &str) -> Result<Self, ConfigError> {
        let wrong = |source| ConfigError::Syntax { path: path.to_owned(), source };
        let mut config: Self = settings::from_toml(text).map_err(wrong)?;
        (config.glass, config.tiers) = tiers::separate(std::mem::take(&mut config.entries))?;
        Ok(config)
    }

    /// Formats the configuration as a file.
    pub fn show(&self) -> Result<String, ConfigError> {
        toml::to_string(&self.in_file()).map_err(|source| ConfigError::Unshowable { source })
    }

    /// Returns the configuration to serialize: with all tiers in one table.
    #[must_use]
    pub fn in_file(&self) -> Self {
        Self { entries: tiers::join(&self.glass, &self.tiers), ..self.clone() }
    }

    fn apply_overrides(&mut self, overrides: Overrides) -> Result<(), ConfigError> {
        if let Some(listen) = overrides.listen {
            self.listen = listen;
        }
        if let Some(tls) = overrides.tls {
            self.tls = tls;
        }
        if let Some(profile) = overrides.profile {
            self.glass.profile = profile;
            self.glass.geometry = None;
        }
        let mut names = BTreeSet::new();
        for TierFlag { name, tier } in overrides.tiers {
            if !names.insert(name.clone()) {
                return refuse("tiers", format!("--tier gives \"{name}\" twice"));
            }
            if self.tiers.get(&name).is_some_and(|known| *known != tier) {
                let reason = format!(
                    "--tier gives \"{name}\" other settings than [tiers.{name}]; leave out the \
                     flag, or give its tier another name"
                );
                return refuse("tiers", reason);
            }
            self.tiers.insert(name, tier);
        }
        Ok(())
    }

    /// Sets the default of `moves.bytes` of glass: a set too large for the logs is sealed before
    /// they are full.
    fn set_defaults(&mut self) -> Result<(), ConfigError> {
        let set = self.glass.effective_geometry().map_err(in_glass)?.set_user_bytes();
        let room = self.storage.log_capacity.get() / 4;
        self.glass.moves.bytes.get_or_insert_with(|| ByteCount::new(set.min(room)));
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
        self.far_libraries_of_glass().map_err(in_glass)
    }

    fn far_libraries_of_glass(&self) -> Result<(Vec<TierName>, u16), ConfigError> {
        let has = self.glass.effective_geometry()?.set_redundancy_platters;
        let mut names = Vec::new();
        for name in &self.glass.far_libraries {
            match self.tier(name) {
                Some((name, Tier::Objects(_))) if names.contains(name) => {
                    return refuse("far_libraries", format!("\"{name}\" is named twice"));
                }
                Some((name, Tier::Objects(_))) => names.push(name.clone()),
                Some((_, Tier::Rack(_) | Tier::Tome(_) | Tier::Geo(_))) | None => {
                    let reason = format!("\"{name}\" is none of [tiers] of kind objects");
                    return refuse("far_libraries", reason);
                }
            }
        }
        match self.glass.far_redundancy {
            None if names.is_empty() => Ok((names, 0)),
            None => Ok((names, has.saturating_sub(1).max(1))),
            Some(_) if names.is_empty() => {
                let reason = "no far library is named in far_libraries";
                refuse("far_redundancy", reason.to_owned())
            }
            Some(away) if !(1..=has).contains(&away) => refuse(
                "far_redundancy",
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
        self.effective_classes()?;
        tiers::validate(&self.tiers)?;
        self.glass.validate(self.storage.log_capacity).map_err(in_glass)?;
        self.far_libraries()?;
        self.acknowledged_at()?;
        if self.restore.day == Duration::ZERO {
            return refuse("restore.day", "a day must be longer than zero".to_owned());
        }
        if self.storage.forget_within == Duration::ZERO {
            return refuse("storage.forget_within", "it must be longer than zero".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

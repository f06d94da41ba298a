//! `[rack]`: a rack of cold disks, what it is made of and where each of its disks is.
//!
//! Not here: how it is made, opened and asked (`crate::rack`).

mod or_never;
mod places;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fulgurite_disks::{LinuxDisk, PlaceId};
use fulgurite_rack::{Policy, Shape, Wakes, presets};
use fulgurite_stacks::ScrubPolicy;
use fulgurite_units::{ByteCount, Duration, Ratio, error_chain};
use serde::{Deserialize, Serialize};

pub use self::or_never::OrNever;
pub(crate) use self::places::Place;
use super::ConfigError;

/// Name of the tier that the rack is.
pub const TIER: &str = "rack";
/// The shortest time in which all of a rack is verified.
const VERIFY_MIN: Duration = Duration::from_secs(3600);

/// `[rack]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rack {
    /// Where its index, its ledger and what is staged are; by default DATA/rack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// `laptop`, `shelf` or `pelican`, or a file (TOML) with a shape of one's own.
    pub shape: String,
    /// Where the disk of each place has its files, `{place}` being its number; by default, of
    /// simulated disks, `disks/{place}` in the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disks: Option<String>,
    /// What turns the disks.
    pub backend: Backend,
    /// `simulated`: real seconds for each second that a disk takes to turn up or down, to 1.
    pub time_scale: Ratio,
    /// `simulated`: seed of those times.
    pub seed: u64,
    /// `simulated`: made at the first start of `serve`, if nothing is there.
    pub make: bool,
    /// `linux`: the device of each place, `{place}` being its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// `linux`: what smartctl calls their kind (`-d`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smartctl: Option<String>,
    /// `linux`: whether disks are mounted and unmounted, where `/etc/fstab` says.
    pub mount: bool,
    /// When a group that nobody wants is put down, or `never`.
    pub idle: OrNever,
    /// In what time all blobs of each group are read from all of their stacks, or `never`.
    pub verify: OrNever,
    /// Spin-ups that its disks are rated for over their lives, as data sheets say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rated_spinups: Option<u64>,
    /// When staged bodies are brought there.
    pub moves: Moves,
    /// How the controller decides.
    pub policy: Policy,
    /// Places that are elsewhere than the patterns say.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) places: BTreeMap<String, Place>,
}

/// `[rack.moves]`: groups are woken for many bodies together, when nobody reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Moves {
    /// How long the first waits while nobody reads from the rack.
    pub calm_age: Duration,
    /// How long it waits at most.
    pub age: Duration,
    /// Bytes that wait at most.
    pub bytes: ByteCount,
}

impl Default for Moves {
    fn default() -> Self {
        Self {
            calm_age: Duration::from_secs(300),
            age: Duration::from_secs(6 * 3600),
            bytes: ByteCount::gib(16),
        }
    }
}

/// What turns the disks of a rack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Nothing: directories that are waited for as for disks.
    #[default]
    Simulated,
    /// Real disks of Linux.
    Linux,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            directory: None,
            shape: "laptop".to_owned(),
            disks: None,
            backend: Backend::default(),
            time_scale: Ratio::ZERO,
            seed: 0,
            make: false,
            device: None,
            smartctl: None,
            mount: true,
            // A switch is worth some, and disks that sleep are what it is for.
            idle: OrNever::After(Duration::from_secs(600)),
            verify: OrNever::After(Duration::from_secs(30 * 86_400)),
            rated_spinups: None,
            moves: Moves::default(),
            policy: Policy::default(),
            places: BTreeMap::new(),
        }
    }
}

impl Rack {
    /// What `--rack SHAPE` means: simulated disks below the data directory, ten times as fast as
    /// Pelican's, made at the first start.
    pub(super) fn simulated(shape: String) -> Self {
        Self {
            shape,
            make: true,
            time_scale: Ratio::new(0.1).unwrap_or_default(),
            idle: OrNever::After(Duration::from_secs(60)),
            moves: Moves { calm_age: Duration::from_secs(5), ..Moves::default() },
            ..Self::default()
        }
    }

    /// Where its index is, of an archive in `data`.
    pub fn folder(&self, data: &Path) -> PathBuf {
        self.directory.clone().unwrap_or_else(|| data.join("rack"))
    }

    /// What it is made of.
    pub fn effective_shape(&self) -> Result<Shape, ConfigError> {
        let refuse = |reason| ConfigError::Value { name: "rack.shape", reason };
        if presets::names().any(|name| name == self.shape) {
            return presets::shape(&self.shape).map_err(|error| refuse(error_chain(&error)));
        }
        let known = presets::names().collect::<Vec<_>>().join(", ");
        let text = std::fs::read_to_string(&self.shape).map_err(|error| {
            refuse(format!(
                "\"{}\" is none of {known}, and cannot be read as a file: {error}",
                self.shape
            ))
        })?;
        Shape::parse(&text)
            .map_err(|error| refuse(format!("\"{}\": {}", self.shape, error_chain(&error))))
    }

    /// How often its groups are verified.
    pub fn scrub(&self) -> ScrubPolicy {
        ScrubPolicy { interval: self.verify.time() }
    }

    /// How its controller decides.
    pub fn effective_policy(&self) -> Policy {
        Policy { idle: self.idle.time(), ..self.policy }
    }

    /// Where the disk of each place has its files.
    pub fn roots(
        &self,
        shape: &Shape,
        folder: &Path,
    ) -> Result<BTreeMap<PlaceId, PathBuf>, ConfigError> {
        places::roots(self, shape, folder)
    }

    /// The device of each place.
    pub fn devices(
        &self,
        shape: &Shape,
        roots: &BTreeMap<PlaceId, PathBuf>,
    ) -> Result<BTreeMap<PlaceId, LinuxDisk>, ConfigError> {
        places::devices(self, shape, roots)
    }

    /// Refuses what cannot be, before anything is opened.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let refuse =
            |name, reason: &str| Err(ConfigError::Value { name, reason: reason.to_owned() });
        let shape = self.effective_shape()?;
        if self.policy.idle.is_some() {
            return refuse("rack.policy.idle", "it stands one table higher, as rack.idle");
        }
        if self.verify.time().is_some_and(|time| time < VERIFY_MIN) {
            return refuse(
                "rack.verify",
                "to read all that lies on a rack takes days: give an hour or more, or \"never\"",
            );
        }
        if self.rated_spinups == Some(0) {
            return refuse("rack.rated_spinups", "data sheets say 300000 or more; leave it out");
        }
        if self.verify.time().is_none() && self.policy.wakes != Wakes::All {
            return refuse(
                "rack.verify",
                "with rack.policy.wakes = \"needed\" reads do not look at all stacks, so that what \
                 is lost is found by verifications alone: \"never\" would be never",
            );
        }
        let roots = self.roots(&shape, Path::new("DATA/rack"))?;
        match self.backend {
            Backend::Simulated => {
                let is_told = self.device.is_some() || self.smartctl.is_some();
                if is_told || self.places.values().any(Place::has_device) {
                    let reason = "simulated disks have no devices; write backend = \"linux\" if \
                                  they are real";
                    return refuse("rack.device", reason);
                }
                Ok(())
            }
            Backend::Linux if self.make => {
                refuse("rack.make", "real disks are taken by `fulgurite rack init` alone")
            }
            Backend::Linux if self.time_scale != Ratio::ZERO => {
                refuse("rack.time_scale", "real disks take the time they take; leave it out")
            }
            Backend::Linux => self.devices(&shape, &roots).map(drop),
        }
    }
}

//! `[tiers.NAME]` of kind `rack`: a rack of cold disks, its shape, and the location of each of its
//! disks.
//!
//! Creating, opening and querying it is in `crate::rack`.

mod delay;
mod places;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fulgurite_disks::{LinuxDisk, PlaceId};
use fulgurite_rack::ScrubPolicy;
use fulgurite_rack_core::{Policy, Shape, SpinUps, presets};
use fulgurite_units::{ByteCount, Duration, Ratio, error_chain};
use serde::{Deserialize, Serialize};

pub use self::delay::Delay;
pub(crate) use self::places::Place;
use super::{ConfigError, refuse};

/// Shortest interval for scrubbing a whole rack.
const SCRUB_MIN: Duration = Duration::from_secs(3600);

/// A tier of kind `rack`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rack {
    /// Directory of index, ledger and staging; by default DATA/tiers/NAME.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// `laptop`, `shelf` or `pelican`, or a file (TOML) with a custom shape.
    pub shape: String,
    /// Directory of each place's disk, with `{place}` for its number; for simulated disks the
    /// default is `disks/{place}` in the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disks: Option<String>,
    /// The kind of disks.
    pub backend: Backend,
    /// `simulated`: real seconds per second of spinning up or down, at most 1.
    pub time_scale: Ratio,
    /// `simulated`: seed of those times.
    pub seed: u64,
    /// `simulated`: created at the first start of `serve`, if nothing is there.
    pub make: bool,
    /// `linux`: the device of each place, with `{place}` for its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// `linux`: device type for smartctl (`-d`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smartctl: Option<String>,
    /// `linux`: whether disks are mounted and unmounted as in `/etc/fstab`.
    pub mount: bool,
    /// When an idle group is spun down, or `never`.
    pub idle: Delay,
    /// Interval in which all blobs of each group are read from all of their stacks, or `never`.
    pub scrub: Delay,
    /// Rated spin-ups of its disks over their life, from their data sheet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rated_spinups: Option<u64>,
    /// When staged bodies are moved to the rack.
    pub moves: Moves,
    /// Policy of the controller.
    pub policy: Policy,
    /// Places whose location differs from the patterns.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) places: BTreeMap<String, Place>,
}

/// `moves`: groups are spun up for many bodies at once, while there are no reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Moves {
    /// How long the first body waits while there are no reads from the rack.
    pub calm_age: Duration,
    /// Longest wait.
    pub age: Duration,
    /// Most bytes that wait.
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

/// The kind of disks in a rack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Directories, with the delays of disks.
    #[default]
    Simulated,
    /// Real disks under Linux.
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
            // A spin-up has a cost, but the purpose of the rack is to keep disks spun down.
            idle: Delay::After(Duration::from_secs(600)),
            scrub: Delay::After(Duration::from_secs(30 * 86_400)),
            rated_spinups: None,
            moves: Moves::default(),
            policy: Policy::default(),
            places: BTreeMap::new(),
        }
    }
}

impl Rack {
    /// Returns the settings of `--tier NAME=rack:SHAPE`: simulated disks below the data directory,
    /// ten times as fast as Pelican's, created at the first start.
    pub(super) fn simulated(shape: String) -> Self {
        Self {
            shape,
            make: true,
            time_scale: Ratio::new(0.1).unwrap_or_default(),
            idle: Delay::After(Duration::from_secs(60)),
            moves: Moves { calm_age: Duration::from_secs(5), ..Moves::default() },
            ..Self::default()
        }
    }

    /// Returns the effective shape.
    pub fn effective_shape(&self) -> Result<Shape, ConfigError> {
        let invalid = |reason| ConfigError::Value { name: "shape".to_owned(), reason };
        if presets::names().any(|name| name == self.shape) {
            return presets::shape(&self.shape).map_err(|error| invalid(error_chain(&error)));
        }
        let known = presets::names().collect::<Vec<_>>().join(", ");
        let text = std::fs::read_to_string(&self.shape).map_err(|error| {
            invalid(format!(
                "\"{}\" is none of {known}, and cannot be read as a file: {error}",
                self.shape
            ))
        })?;
        Shape::parse(&text)
            .map_err(|error| invalid(format!("\"{}\": {}", self.shape, error_chain(&error))))
    }

    /// Returns how often its groups are scrubbed.
    pub fn scrub_policy(&self) -> ScrubPolicy {
        ScrubPolicy { interval: self.scrub.time() }
    }

    /// Returns the effective policy of its controller.
    pub fn effective_policy(&self) -> Policy {
        Policy { idle: self.idle.time(), ..self.policy }
    }

    /// Returns the directory of each place's disk.
    pub fn roots(
        &self,
        shape: &Shape,
        folder: &Path,
    ) -> Result<BTreeMap<PlaceId, PathBuf>, ConfigError> {
        places::roots(self, shape, folder)
    }

    /// Returns the device of each place.
    pub fn devices(
        &self,
        shape: &Shape,
        roots: &BTreeMap<PlaceId, PathBuf>,
    ) -> Result<BTreeMap<PlaceId, LinuxDisk>, ConfigError> {
        places::devices(self, shape, roots)
    }

    /// Rejects invalid settings, before anything is opened.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let shape = self.effective_shape()?;
        if self.policy.idle.is_some() {
            return refuse("policy.idle", "set it one table higher, as idle");
        }
        if self.scrub.time().is_some_and(|time| time < SCRUB_MIN) {
            return refuse(
                "scrub",
                "to read all that lies on a rack takes days: give an hour or more, or \"never\"",
            );
        }
        if self.rated_spinups == Some(0) {
            return refuse("rated_spinups", "data sheets say 300000 or more; leave it out");
        }
        if self.scrub.time().is_none() && self.policy.spin_ups != SpinUps::All {
            return refuse(
                "scrub",
                "with policy.spin_ups = \"needed\" reads do not look at all stacks, so that what \
                 is lost is found by scrubs alone: \"never\" would be never",
            );
        }
        let roots = self.roots(&shape, Path::new("DATA/tiers/NAME"))?;
        match self.backend {
            Backend::Simulated => {
                let has_devices = self.device.is_some() || self.smartctl.is_some();
                if has_devices || self.places.values().any(Place::has_device) {
                    let reason = "simulated disks have no devices; write backend = \"linux\" if \
                                  they are real";
                    return refuse("device", reason);
                }
                Ok(())
            }
            Backend::Linux if self.make => {
                refuse("make", "real disks are taken by `fulgurite tier init` alone")
            }
            Backend::Linux if self.time_scale != Ratio::ZERO => {
                refuse("time_scale", "it applies to simulated disks only; leave it out")
            }
            Backend::Linux => self.devices(&shape, &roots).map(drop),
        }
    }
}

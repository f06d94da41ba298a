//! `[tiers.NAME]` of kind `tome`: a set of tomes, the layout of their disks, and their locations.
//!
//! Creating, opening and querying it is in `crate::tomes`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fulgurite_disks::{LinuxDisk, PlaceId};
use fulgurite_tome::objects::PutGuarantee;
use fulgurite_tome_core::limits::{IDLE, IDLE_MAX, IDLE_MIN, SPIN_UPS_A_DAY_MAX};
use fulgurite_tome_core::{CodeParams, Layout, Parts, TomeId};
use fulgurite_units::{ByteCount, Duration, Ratio, error_chain};
use serde::{Deserialize, Serialize};

use super::rack::Backend;
use super::{ConfigError, refuse};

/// Placeholder in a pattern for the number of a tome.
const PLACEHOLDER: &str = "{tome}";
/// Fewest tomes: one for each member of a group, and one that can replace another.
const TOMES_MIN: u32 = 3;

/// A tier of kind `tome`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tome {
    /// Directory of the metadata store: index, signatures, ledgers, tokens; by default
    /// DATA/tiers/NAME.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Number of tomes, numbered from zero.
    pub count: u32,
    /// Directory of each tome's disk, with `{tome}` for its number; by default `disks/{tome}` in
    /// the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disks: Option<String>,
    /// File with the addresses of tomes in processes of their own (docs/tomes-network.md); it
    /// replaces `count` and `disks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<PathBuf>,
    /// Data and parity members of each group.
    pub groups: CodeParams,
    /// Size of a block.
    pub block: ByteCount,
    /// Data and parity blocks per segment.
    pub segment: CodeParams,
    /// Segments per region.
    pub segments: u32,
    /// Regions per disk.
    pub regions: u32,
    /// Spare physical blocks per disk, for blocks that are rewritten while the old one is still
    /// needed.
    pub spares: u32,
    /// The protection that a body needs before its staged copy is removed.
    pub promise: PutGuarantee,
    /// Most spin-ups of a disk in 24 hours, for work that can wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_spinups_per_day: Option<u32>,
    /// How long an idle disk spins before it is spun down; at most two seconds when other tomes
    /// wait for a token.
    pub idle: Duration,
    /// The kind of disks.
    pub backend: Backend,
    /// `simulated`: real seconds per second of spinning up or down, at most 1.
    pub time_scale: Ratio,
    /// `simulated`: seed of those times.
    pub seed: u64,
    /// `simulated`: created at the first start of `serve`, if nothing is there.
    pub make: bool,
    /// `linux`: the device of each tome, with `{tome}` for its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// `linux`: whether disks are mounted and unmounted as in `/etc/fstab`.
    pub mount: bool,
}

impl Default for Tome {
    fn default() -> Self {
        let split = |data, parity| CodeParams::new(data, parity);
        Self {
            directory: None,
            count: 8,
            disks: None,
            network: None,
            // The paper's groups have 13 + 3, and its prototype 3 + 2 (Pergamum, FAST 2008).
            groups: split(3, 2).unwrap_or_else(|_| unreachable!("a split of the paper")),
            block: ByteCount::kib(128),
            segment: split(62, 2).unwrap_or_else(|_| unreachable!("a split of the paper")),
            segments: 16,
            regions: 16,
            spares: 1024,
            promise: PutGuarantee::Protected,
            max_spinups_per_day: None,
            idle: IDLE,
            backend: Backend::default(),
            time_scale: Ratio::ZERO,
            seed: 0,
            make: false,
            device: None,
            mount: true,
        }
    }
}

impl Tome {
    /// Returns the settings of `--tier NAME=tome:COUNT`: simulated disks below the data directory,
    /// ten times as fast as real ones, created at the first start.
    pub(super) fn simulated(count: u32) -> Self {
        let time_scale = Ratio::new(0.1).unwrap_or_default();
        Self { count, make: true, time_scale, ..Self::default() }
    }

    /// Returns the layout of each disk.
    pub fn layout(&self) -> Result<Layout, ConfigError> {
        let Self { block, segment, segments, regions, spares, .. } = *self;
        let layout = Layout::new(Parts { block, segment, segments, regions, spares });
        layout.or_else(|error| refuse("block", error_chain(&error)))
    }

    /// Returns the directory of the disk of each tome in this process.
    pub fn roots(&self, folder: &Path) -> Result<BTreeMap<TomeId, PathBuf>, ConfigError> {
        let default_pattern = folder.join("disks").join(PLACEHOLDER);
        let pattern = self.disks.clone().unwrap_or_else(|| default_pattern.display().to_string());
        if !pattern.contains(PLACEHOLDER) {
            return refuse("disks", format!("\"{pattern}\" has no {PLACEHOLDER} in it"));
        }
        let root = |tome: u32| PathBuf::from(pattern.replace(PLACEHOLDER, &tome.to_string()));
        Ok((0..self.count).map(|tome| (TomeId::new(tome), root(tome))).collect())
    }

    /// Returns the device of each tome.
    pub fn devices(
        &self,
        roots: &BTreeMap<TomeId, PathBuf>,
    ) -> Result<BTreeMap<PlaceId, LinuxDisk>, ConfigError> {
        let Some(pattern) = self.device.as_ref().filter(|pattern| pattern.contains(PLACEHOLDER))
        else {
            return refuse(
                "device",
                format!("a real disk has a device: name it with {PLACEHOLDER}"),
            );
        };
        let disk = |(tome, root): (&TomeId, &PathBuf)| {
            let device = PathBuf::from(pattern.replace(PLACEHOLDER, &tome.to_string()));
            let mount = self.mount.then(|| root.clone());
            (PlaceId::new(tome.get()), LinuxDisk { device, mount, smartctl: None })
        };
        Ok(roots.iter().map(disk).collect())
    }

    /// Rejects invalid settings, before anything is opened.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        self.layout()?;
        if let Err(error) = self.groups.for_group() {
            return refuse("groups", error_chain(&error));
        }
        if self.max_spinups_per_day.is_some_and(|limit| !(1..=SPIN_UPS_A_DAY_MAX).contains(&limit))
        {
            let reason = format!("write 1 to {SPIN_UPS_A_DAY_MAX}, or leave it out");
            return refuse("max_spinups_per_day", reason);
        }
        if !(IDLE_MIN..=IDLE_MAX).contains(&self.idle) {
            return refuse("idle", format!("write {IDLE_MIN} to {IDLE_MAX}"));
        }
        let least = self.groups.total().max(TOMES_MIN);
        if self.network.is_none() && self.count < least {
            let reason = format!("groups of {} need {least} tomes or more", self.groups);
            return refuse("count", reason);
        }
        let roots = self.roots(Path::new("DATA/tiers/NAME"))?;
        match self.backend {
            Backend::Simulated if self.device.is_some() => refuse(
                "device",
                "simulated disks have no devices; write backend = \"linux\" if they are real",
            ),
            Backend::Simulated => Ok(()),
            Backend::Linux if self.make => {
                refuse("make", "real disks are taken by `fulgurite tier init` alone")
            }
            Backend::Linux if self.time_scale != Ratio::ZERO => {
                refuse("time_scale", "it applies to simulated disks only; leave it out")
            }
            Backend::Linux => self.devices(&roots).map(drop),
        }
    }
}

//! The location of each place's disk: a pattern, and a table for exceptions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fulgurite_disks::{LinuxDisk, PlaceId};
use fulgurite_rack_core::Shape;
use serde::{Deserialize, Serialize};

use super::{Backend, Rack};
use crate::config::{ConfigError, refuse};

/// Placeholder in a pattern for the number of a place.
const PLACEHOLDER: &str = "{place}";

/// A row of `places`: a directory, or also the disk's device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Place {
    /// Directory of its files.
    Directory(PathBuf),
    /// Directory and device.
    Disk(Disk),
}

/// The disk of a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Disk {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    smartctl: Option<String>,
}

impl Place {
    fn directory(&self) -> Option<&PathBuf> {
        match self {
            Self::Directory(directory) => Some(directory),
            Self::Disk(disk) => disk.directory.as_ref(),
        }
    }

    fn device(&self) -> Option<&PathBuf> {
        match self {
            Self::Directory(_) => None,
            Self::Disk(disk) => disk.device.as_ref(),
        }
    }

    fn smartctl(&self) -> Option<&String> {
        match self {
            Self::Directory(_) => None,
            Self::Disk(disk) => disk.smartctl.as_ref(),
        }
    }

    pub(super) fn has_device(&self) -> bool {
        self.device().is_some() || self.smartctl().is_some()
    }
}

/// Returns the table by place. Rejects places that the shape does not have.
fn table<'a>(rack: &'a Rack, shape: &Shape) -> Result<BTreeMap<PlaceId, &'a Place>, ConfigError> {
    let mut table = BTreeMap::new();
    for (name, place) in &rack.places {
        let known = |&place: &PlaceId| place.to_string() == *name;
        match shape.places().find(known) {
            Some(known) => table.insert(known, place),
            None => {
                let last = shape.place_count().saturating_sub(1);
                return refuse(
                    "places",
                    format!("\"{name}\" is no place of {}, which has 0 to {last}", rack.shape),
                );
            }
        };
    }
    Ok(table)
}

/// Returns the directory of each place's disk.
pub(super) fn roots(
    rack: &Rack,
    shape: &Shape,
    folder: &Path,
) -> Result<BTreeMap<PlaceId, PathBuf>, ConfigError> {
    let table = table(rack, shape)?;
    let default_pattern = folder.join("disks").join(PLACEHOLDER).to_string_lossy().into_owned();
    let pattern = match (&rack.disks, rack.backend) {
        (Some(pattern), _) => Some(pattern.clone()),
        (None, Backend::Simulated) => Some(default_pattern),
        (None, Backend::Linux) => None,
    };
    let mut roots: BTreeMap<PlaceId, PathBuf> = BTreeMap::new();
    let mut owners: BTreeMap<PathBuf, PlaceId> = BTreeMap::new();
    for place in shape.places() {
        let explicit = table.get(&place).and_then(|row| row.directory());
        let root = match (explicit, &pattern) {
            (Some(explicit), _) => explicit.clone(),
            (None, Some(pattern)) => expand(pattern, place).into(),
            (None, None) => {
                let reason = format!(
                    "no directory is set for the disk of place {place}; write \
                     something like \"/mnt/rack/{PLACEHOLDER}\""
                );
                return refuse("disks", reason);
            }
        };
        if let Some(other) = owners.insert(root.clone(), place) {
            let reason = format!(
                "places {other} and {place} would both use \"{}\"; have {PLACEHOLDER} in the \
                 pattern, or a directory for each in places",
                root.display()
            );
            return refuse("disks", reason);
        }
        roots.insert(place, root);
    }
    Ok(roots)
}

/// Returns the device of each place.
pub(super) fn devices(
    rack: &Rack,
    shape: &Shape,
    roots: &BTreeMap<PlaceId, PathBuf>,
) -> Result<BTreeMap<PlaceId, LinuxDisk>, ConfigError> {
    let table = table(rack, shape)?;
    let mut disks = BTreeMap::new();
    for (&place, root) in roots {
        let row = table.get(&place);
        let explicit = row.and_then(|row| row.device()).cloned();
        let default_pattern = || rack.device.as_ref().map(|pattern| expand(pattern, place).into());
        let Some(device) = explicit.or_else(default_pattern) else {
            let reason = format!(
                "no device is set for place {place}; write something like \
                 \"/dev/disk/by-path/pci-0000:00:17.0-ata-{PLACEHOLDER}\", or use backend = \
                 \"simulated\""
            );
            return refuse("device", reason);
        };
        let smartctl = row.and_then(|row| row.smartctl()).or(rack.smartctl.as_ref()).cloned();
        let mount = rack.mount.then(|| root.clone());
        disks.insert(place, LinuxDisk { device, mount, smartctl });
    }
    Ok(disks)
}

fn expand(pattern: &str, place: PlaceId) -> String {
    pattern.replace(PLACEHOLDER, &place.to_string())
}

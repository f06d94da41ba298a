//! Injected damage of platters and drives, configured by an operator to test the codes.

use fulgurite_decode::Damage;
use fulgurite_platter::channel::{ReadFaults, WriteFaults};
use fulgurite_units::settings;
use serde::{Deserialize, Serialize};

/// Faults of the voxels and their images, on every platter of the archive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InjectedDamage {
    /// Faults while sectors are written.
    pub write: Vec<InjectedWrite>,
    /// Faults while sectors are read.
    pub read: Vec<InjectedRead>,
}

/// A fault while sectors are written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InjectedWrite {
    /// The physical track.
    pub track: u32,
    /// Its layers, 0 the deepest.
    pub layers: Vec<u16>,
    /// The faults.
    pub faults: WriteFaults,
}

/// A fault of a platter's surface or of the drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InjectedRead {
    /// The physical track; all tracks, if not given.
    #[serde(default)]
    pub track: Option<u32>,
    /// The faults.
    pub faults: ReadFaults,
}

impl InjectedDamage {
    /// Parses a file of injected damage.
    ///
    /// # Errors
    /// What is wrong with the file, and where.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let damage: Self = settings::from_toml(text).map_err(|error| error.to_string())?;
        let mut places: Vec<(u32, u16)> =
            damage.write.iter().flat_map(|w| w.layers.iter().map(|l| (w.track, *l))).collect();
        places.sort_unstable();
        if let Some(twice) = places.array_windows().find(|[a, b]| a == b) {
            let [(track, layer), _] = twice;
            return Err(format!("track {track}, layer {layer} has two entries: merge them"));
        }
        let mut tracks: Vec<Option<u32>> = damage.read.iter().map(|read| read.track).collect();
        tracks.sort_unstable();
        match tracks.array_windows().find(|[a, b]| a == b) {
            Some([Some(track), _]) => {
                Err(format!("track {track} has two entries of read faults: merge them"))
            }
            Some([None, _]) => Err("two entries are for every track: merge them".to_owned()),
            None => Ok(damage),
        }
    }

    /// Converts it for readers of voxels.
    pub(crate) fn damage(&self) -> Damage {
        let write = self.write.iter().flat_map(|write| {
            write.layers.iter().map(|layer| ((write.track, *layer), write.faults.clone()))
        });
        let read = self.read.iter().map(|read| (read.track, read.faults.clone()));
        Damage { write: write.collect(), read: read.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "numbers are given back as they are")]
    fn file_of_injected_damage_is_parsed() {
        let damage = InjectedDamage::from_toml(
            r#"
            [[write]]
            track = 3
            layers = [0, 5]
            faults.particulates = [{ row = 20, column = 30, radius = 12 }]
            faults.dips = [[{ row = 5, column = 5, radius = 3 }, 0.5]]
            [[read]]
            faults.defocus_um = 0.7
            [[read]]
            track = 4
            faults.placement = "half-turn"
            "#,
        );
        let found = damage.unwrap().damage();
        assert_eq!(found.write.keys().copied().collect::<Vec<_>>(), [(3, 0), (3, 5)]);
        assert_eq!(found.write[&(3, 5)].particulates[0].radius, 12.0);
        assert_eq!(found.write[&(3, 0)].dips[0].1, 0.5);
        assert_eq!(found.read[&None].defocus_um, 0.7);
        assert_eq!(found.read.len(), 2);
    }

    #[test]
    fn errors_name_the_invalid_entry() {
        let error = |text: &str| InjectedDamage::from_toml(text).unwrap_err();
        assert!(error("[[write]]\ntrack = 1\nlayer = 2").contains("unknown field `layer`"));
        assert!(error("[[read]]\nfaults.scratch = 1").contains("unknown field `scratch`"));
        let twice = "[[write]]\ntrack = 1\nlayers = [2, 2]\nfaults.lost_layer = true";
        assert!(error(twice).contains("track 1, layer 2 has two entries"));
        let read = "[[read]]\nfaults.defocus_um = 1\n";
        assert!(error(&read.repeat(2)).contains("every track"));
    }
}

//! Damages real platter files, at random and within what the three codes can repair.
//!
//! One platter of each set is removed. On the others some tracks lose up to as many sectors as
//! their own redundancy, and one track of each large group is lost completely. Every loss is
//! charged to the budget of the code that must repair it, so whatever the seed, all bytes can be
//! restored.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fulgurite_archive_commands::inspect::FileSource;
use fulgurite_platter::{
    NoFaults, PlatterReader, PlatterRole, SECTOR_HEADER_BYTES, TrackMap, TrackRole,
};
use fulgurite_units::{PlatterId, RandomStream, Seed, SetId, TrackIndex};

/// The damage done to the platters.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub(crate) struct Damage {
    /// Platters removed.
    pub(crate) platters_lost: Vec<PlatterId>,
    /// Whole tracks overwritten.
    pub(crate) tracks: u64,
    /// Single sectors with flipped bytes, in addition to those of whole tracks.
    pub(crate) sectors: u64,
}

struct Platter {
    path: PathBuf,
    id: PlatterId,
    set: SetId,
    position: usize,
    is_information: bool,
    map: TrackMap,
}

/// One track in this many gets bad sectors.
const TRACKS_PER_DAMAGED: u64 = 4;
/// Bytes flipped in a bad sector.
const FLIPS: u64 = 3;
/// Most that one flip adds to a byte.
const FLIP_MAX: u64 = 80;

const _: () = assert!(FLIPS * FLIP_MAX < 256, "flips of one byte cannot cancel");

/// Returns the bytes of all platter files in `platters`.
pub(crate) fn platter_bytes(platters: &Path) -> anyhow::Result<u64> {
    let paths = platter_paths(platters)?;
    paths.iter().map(|path| Ok(std::fs::metadata(path)?.len())).sum()
}

/// Damages the platters in `platters`; removed ones are moved to `lost`.
pub(crate) fn damage(platters: &Path, lost: &Path, seed: Seed) -> anyhow::Result<Damage> {
    let mut sets: BTreeMap<SetId, Vec<Platter>> = BTreeMap::new();
    for path in platter_paths(platters)? {
        let platter = open(path)?;
        sets.entry(platter.set).or_default().push(platter);
    }
    std::fs::create_dir_all(lost)?;
    let mut damage = Damage::default();
    let mut random = seed.child(b"demo damage").stream();
    for members in sets.values_mut() {
        members.sort_by_key(|platter| platter.position);
        let information = members.iter().filter(|platter| platter.is_information).count();
        let gone = members.remove(pick(&mut random, information));
        let name = gone.path.file_name().context("a platter has a name")?;
        std::fs::rename(&gone.path, lost.join(name))?;
        damage.platters_lost.push(gone.id);
        damage_set(members, &mut random, &mut damage)?;
    }
    Ok(damage)
}

fn platter_paths(platters: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(platters)
        .with_context(|| format!("cannot list \"{}\"", platters.display()))?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "glass") {
            paths.push(path);
        }
    }
    Ok(paths)
}

fn open(path: PathBuf) -> anyhow::Result<Platter> {
    let source = FileSource::open(&path)?;
    let reader = PlatterReader::open(source, None, &NoFaults)
        .with_context(|| format!("cannot open \"{}\"", path.display()))?;
    let header = reader.header();
    Ok(Platter {
        id: header.platter,
        set: header.set,
        position: header.position(),
        is_information: matches!(header.role, PlatterRole::Information { .. }),
        map: reader.map().clone(),
        path,
    })
}

/// Returns an index below `count`, or 0 when there is nothing to choose from.
fn pick(random: &mut RandomStream, count: usize) -> usize {
    usize::try_from(random.below(count.max(1) as u64)).unwrap_or(0)
}

/// Damages what is left of a set.
///
/// The cross-platter code covers the same track of every platter: `budget` is how many sectors of
/// each track it can still lose, after the platter that is gone. The large-group code has a
/// separate budget on each platter.
fn damage_set(
    members: &[Platter],
    random: &mut RandomStream,
    damage: &mut Damage,
) -> anyhow::Result<()> {
    let mut budget: BTreeMap<u32, u32> = BTreeMap::new();
    for platter in members {
        let geometry = platter.map.geometry().clone();
        let full = u32::from(geometry.track_information_sectors);
        let set_room = (u32::from(geometry.set_redundancy_platters) - 1) * full;
        let group_room = u32::from(geometry.group_redundancy_tracks) * full;
        let file = writable(&platter.path)?;
        for group in 0..platter.map.groups() {
            let mut room = group_room;
            let tracks = u64::from(platter.map.group_tracks(group));
            let whole = random.below(tracks.max(1));
            for index in 0..tracks {
                let first = group * u32::from(geometry.group_information_tracks);
                let track = first + u32::try_from(index).unwrap_or(u32::MAX);
                let left = budget.entry(track).or_insert(set_room);
                let is_whole = index == whole;
                let count = if is_whole {
                    full + u32::from(geometry.track_redundancy_sectors)
                } else if random.below(TRACKS_PER_DAMAGED) == 0 {
                    1 + below_u32(random, u32::from(geometry.track_redundancy_sectors))
                } else {
                    0
                };
                let cost = count.min(full);
                if count == 0 || cost > *left || cost > room {
                    continue;
                }
                *left -= cost;
                room -= cost;
                let information = fulgurite_platter::InformationTrack::new(track);
                flip_bytes(&file, platter, platter.map.physical(information), count, random)?;
                if is_whole {
                    damage.tracks += 1;
                } else {
                    damage.sectors += u64::from(count);
                }
            }
        }
        file.sync_all()?;
        drop(file);
        std::fs::set_permissions(&platter.path, Permissions::from_mode(0o600))?;
    }
    Ok(())
}

fn below_u32(random: &mut RandomStream, bound: u32) -> u32 {
    u32::try_from(random.below(u64::from(bound.max(1)))).unwrap_or(0)
}

/// Opens a platter for writing; older ones may be read-only.
fn writable(path: &Path) -> anyhow::Result<File> {
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .with_context(|| format!("cannot open \"{}\" for damage", path.display()))
}

/// Flips bytes in the payloads of `count` sectors of a physical track.
fn flip_bytes(
    file: &File,
    platter: &Platter,
    track: TrackIndex,
    count: u32,
    random: &mut RandomStream,
) -> anyhow::Result<()> {
    let geometry = platter.map.geometry();
    assert!(
        matches!(platter.map.role(track), Some(TrackRole::Information(_))),
        "header and redundancy tracks stay as they are"
    );
    let mut layers: Vec<u64> = (0..u64::from(geometry.track_sectors())).collect();
    for _ in 0..count {
        let layer = layers.swap_remove(pick(random, layers.len()));
        let start = platter.map.offset(track)
            + layer * geometry.sector_image_bytes() as u64
            + SECTOR_HEADER_BYTES as u64;
        for _ in 0..FLIPS {
            let offset = start + random.below(u64::from(geometry.sector_payload_bytes));
            let mut byte = [0];
            file.read_exact_at(&mut byte, offset)?;
            // 3 flips of the same byte add 3 to 240: never a multiple of 256, so it has changed.
            byte[0] = byte[0].wrapping_add(1 + u8::try_from(random.below(FLIP_MAX)).unwrap_or(0));
            file.write_all_at(&byte, offset)?;
        }
    }
    Ok(())
}

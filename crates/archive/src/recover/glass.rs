//! Bodies on glass: the file lists of all platters, and of those that are missing, by their sets.
//!
//! ```text
//! every *.glass -> header -> file list (own codes, else its set) -> entries
//! entry + its key -> what is known of a body        entry without a key -> deleted; stays so
//! members of sets that are missing -> their lists from the set -> the same
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fulgurite_glass::{
    GlassError, ListEntry, ListReader, Member, PlatterHeader, PlatterReader, SetDecoder,
    TrackBuffer,
};
use fulgurite_platters::{MediumHandle, PlatterFileSource};
use fulgurite_units::{ArchiveId, PlatterId, SetId, SlotIndex, error_chain};

use super::found::{Bodies, Known};
use super::opened::Opened;
use super::rebuild::{Sums, Writer};
use super::salvaged::Salvaged;
use super::{RecoverProgress, RecoverReport};
use crate::Result;
use crate::entry::Entry;
use crate::rows::{
    self, MARGINS, PLATTERS, PlatterRow, SETS, SLOTS, SetRow, SetState, Shard, VERIFIED,
};

type Reader = PlatterReader<PlatterFileSource>;

/// All platters of an archive.
pub(super) struct Glass {
    medium: MediumHandle,
    archive: ArchiveId,
    readers: BTreeMap<PlatterId, Reader>,
    pub(super) headers: BTreeMap<SetId, PlatterHeader>,
}

/// The archive that most platters say they are of.
pub(super) fn find_archive(paths: &[PathBuf]) -> Result<Option<ArchiveId>> {
    let mut counts: BTreeMap<ArchiveId, usize> = BTreeMap::new();
    for path in paths {
        let source = PlatterFileSource::open(path)?;
        if let Ok(reader) = PlatterReader::open(source, None, &fulgurite_glass::NoFaults) {
            *counts.entry(reader.header().archive).or_default() += 1;
        }
    }
    Ok(counts.into_iter().max_by_key(|&(_, count)| count).map(|(archive, _)| archive))
}

/// The platter that a file's name says it is.
fn named_platter(path: &Path) -> Option<PlatterId> {
    path.file_stem()?.to_str()?.parse().ok()
}

impl Glass {
    /// Opens every platter file of `paths` that can be used.
    pub(super) fn open(opened: &Opened, paths: &[PathBuf], report: &mut RecoverReport) -> Self {
        let mut glass = Self {
            medium: MediumHandle::urgent(&opened.medium),
            archive: opened.archive,
            readers: BTreeMap::new(),
            headers: BTreeMap::new(),
        };
        for path in paths {
            match glass.open_one(path) {
                Ok(reader) => {
                    let header = reader.header();
                    glass.headers.entry(header.set).or_insert_with(|| header.clone());
                    glass.readers.insert(header.platter, reader);
                }
                Err(reason) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    report.unusable.push(format!("{name}: {reason}"));
                }
            }
        }
        report.platters = glass.readers.len() as u64;
        report.sets = glass.headers.len() as u64;
        glass
    }

    fn open_one(&self, path: &Path) -> Result<Reader, String> {
        let platter = named_platter(path).ok_or("its name is not a platter id")?;
        let source = PlatterFileSource::open(path).map_err(|e| error_chain(&e))?;
        PlatterReader::open(source, Some((self.archive, platter)), &self.medium)
            .map_err(|e| error_chain(&e))
    }

    /// Whether the file of this platter is there.
    pub(super) fn has(&self, platter: PlatterId) -> bool {
        self.readers.contains_key(&platter)
    }

    /// The platters of sets of which every written platter is there.
    pub(super) fn whole_sets(&self) -> impl Iterator<Item = (SetId, PlatterId)> + '_ {
        let is_whole = |header: &PlatterHeader| {
            header.members.iter().flatten().all(|member| self.has(member.platter))
        };
        self.headers.iter().filter(move |(_, header)| is_whole(header)).flat_map(
            |(&set, header)| {
                header.members.iter().flatten().map(move |member| (set, member.platter))
            },
        )
    }

    /// Reads the file list of every information platter there is or was.
    pub(super) fn read_lists(
        &self,
        opened: &Opened,
        bodies: &mut Bodies,
        report: &mut RecoverReport,
        progress: &dyn Fn(RecoverProgress),
    ) {
        let mut sets: Vec<&PlatterHeader> = self.headers.values().collect();
        sets.sort_by_key(|header| header.created);
        let total = sets.iter().map(|h| information_members(h).count() as u64).sum();
        let mut state = RecoverProgress { platters_total: total, ..RecoverProgress::default() };
        for header in sets {
            for (position, member) in information_members(header) {
                report.platters_rebuilt += u64::from(!self.has(member));
                match self.read_list(header, position) {
                    Ok(entries) => {
                        state.entries += entries.len() as u64;
                        entries.into_iter().for_each(|e| take(opened, member, e, bodies, report));
                    }
                    Err(reason) => {
                        report.unusable.push(format!("file list of {member}: {reason}"));
                    }
                }
                state.platters += 1;
                progress(state);
            }
        }
    }

    fn read_list(&self, header: &PlatterHeader, position: usize) -> Result<Vec<ListEntry>, String> {
        let member = header.members[position].ok_or("it was never written")?;
        let (from, to) = (member.data_bytes, member.data_bytes + member.list_bytes);
        let mut list = ListReader::new(member.platter);
        let own = self.readers.get(&member.platter);
        let mut entries = Vec::new();
        let mut take = |list: &mut ListReader| -> Result<(), GlassError> {
            while let Some(entry) = list.next_entry()? {
                entries.push(entry);
            }
            Ok(())
        };
        let mut decoder = SetDecoder::new(header);
        let members = self.members(header);
        let track_bytes = header.geometry.track_user_bytes() as u64;
        let mut buffer = TrackBuffer::new();
        let mut offset = from;
        while offset < to {
            let track = header.geometry.address(offset).track;
            let own_read = own.map(|own| own.read_track(track, &self.medium, &mut buffer));
            if !matches!(own_read, Some(Ok(_))) {
                decoder
                    .recover_track(track, &members, position, &self.medium, &mut buffer)
                    .map_err(|e| error_chain(&e))?;
            }
            let start = u64::from(track.get()) * track_bytes;
            let until = to.min(start + track_bytes);
            let within = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
            for piece in buffer.user_bytes(within(offset), within(until) - within(offset)) {
                list.push(piece);
                take(&mut list).map_err(|e| error_chain(&e))?;
            }
            offset = until;
        }
        list.finish().map_err(|e| error_chain(&e))?;
        Ok(entries)
    }

    fn members(&self, header: &PlatterHeader) -> Vec<Member<'_, PlatterFileSource>> {
        header
            .members
            .iter()
            .map(|member| match member {
                None => Member::NotWritten,
                Some(member) => {
                    self.readers.get(&member.platter).map_or(Member::Lost, Member::Platter)
                }
            })
            .collect()
    }

    /// Writes the rows of sets and platters, each platter in a slot of its own.
    pub(super) fn write_sets(
        &self,
        writer: &mut Writer<'_>,
        opened: &Opened,
        salvaged: &Salvaged,
        sums: &Sums,
    ) -> Result<()> {
        let mut next_slot = 0;
        let shape = &opened.config.library.shape;
        let zone_slots = shape.slot_count() / shape.zone_count().max(1);
        for (set, header) in &self.headers {
            let information = header.geometry.set_information_platters;
            let ids = |range: std::ops::Range<usize>| -> Vec<PlatterId> {
                header.members[range].iter().flatten().map(|member| member.platter).collect()
            };
            let row = SetRow {
                state: SetState::Released,
                geometry: header.geometry.clone(),
                created: header.created,
                generation: header.generation,
                information: ids(0..usize::from(information)),
                redundancy: ids(usize::from(information)..header.members.len()),
                bytes: header.members[..usize::from(information)]
                    .iter()
                    .flatten()
                    .map(|member| member.data_bytes)
                    .sum(),
                redundancy_bytes: header.members[usize::from(information)..]
                    .iter()
                    .flatten()
                    .map(|member| member.data_bytes)
                    .max()
                    .unwrap_or(0),
                damaged: Vec::new(),
            };
            for (position, member) in (0u16..).zip(&header.members) {
                let Some(member) = member else { continue };
                // Zone by zone, as at first: no two of a set share one.
                let (zone, place) =
                    (next_slot % shape.zone_count(), next_slot / shape.zone_count());
                let slot = zone * zone_slots + place;
                let is_home = place < zone_slots && !shape.is_spare(SlotIndex::new(slot));
                next_slot += 1;
                let platter_row = PlatterRow {
                    set: *set,
                    position,
                    slot: is_home.then_some(slot),
                    data_bytes: member.data_bytes,
                    list_bytes: member.list_bytes,
                    list_entries: self
                        .readers
                        .get(&member.platter)
                        .map_or(0, |r| r.header().list_entries),
                    live_bytes: sums.live.get(&member.platter).copied().unwrap_or(0),
                    unreadable_tracks: Vec::new(),
                };
                let key = member.platter.to_bytes().to_vec();
                if is_home {
                    writer.put(SLOTS, rows::slot_key(slot), &member.platter)?;
                }
                if let Some(verified) = salvaged.verified.get(&member.platter) {
                    writer.put(VERIFIED, key.clone(), verified)?;
                    let first = key.clone();
                    for (track, row) in salvaged
                        .margins
                        .range(first..)
                        .take_while(|(track, _)| track.starts_with(&key))
                    {
                        writer.put(MARGINS, track.clone(), row)?;
                    }
                }
                writer.put(PLATTERS, key, &platter_row)?;
            }
            writer.put(SETS, set.to_bytes().to_vec(), &row)?;
        }
        Ok(())
    }
}

/// The information platters that a set has or had, with their positions.
fn information_members(header: &PlatterHeader) -> impl Iterator<Item = (usize, PlatterId)> + '_ {
    let information = usize::from(header.geometry.set_information_platters);
    header.members[..information]
        .iter()
        .enumerate()
        .filter_map(|(position, member)| member.map(|member| (position, member.platter)))
}

/// Takes an entry of the list of `platter`.
fn take(
    opened: &Opened,
    platter: PlatterId,
    listed: ListEntry,
    bodies: &mut Bodies,
    report: &mut RecoverReport,
) {
    let Some(&slot) = opened.slots.get(&listed.object) else {
        report.shredded += u64::from(listed.body_offset == 0);
        return;
    };
    let found = bodies.entry(listed.object).or_default();
    found.listed_bytes = listed.body_bytes;
    if found.known.is_none() {
        let key = opened.keys.load(slot.index, slot.body);
        match key.and_then(|key| Entry::open(&key, listed.object, &listed.sealed)) {
            Ok(entry) => {
                found.known = Some(Known { entry: Box::new(entry), slot, written: None });
            }
            Err(error) => report.unusable.push(format!("entry on {platter}: {error}")),
        }
    }
    let shard = Shard {
        platter,
        offset: listed.offset,
        body_offset: listed.body_offset,
        bytes: listed.length,
        crc: None,
    };
    found.shards.entry(listed.body_offset).or_default().push(shard);
}

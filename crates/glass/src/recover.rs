//! Recovery from platters without a catalog: the file lists of all platters, and of missing ones,
//! rebuilt from their sets.
//!
//! ```text
//! every *.glass -> header -> file list (own codes, else its set) -> entries, sealed
//! members of sets that are missing -> their lists from the set -> the same
//! platters in far libraries -> read there, where none is at home
//! ```
//!
//! The caller knows whose entry it is, and whether a key opens it. Rows of sets, platters and slots
//! are made here and written by the caller, which is building the catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_catalog::Space;
use fulgurite_catalog::row::{self, Row};
use fulgurite_glass_core::control::LibraryShape;
use fulgurite_platter::{
    ListEntry, ListReader, Member, NoFaults, PlatterError, PlatterHeader, PlatterReader,
    PlatterSource as _, SetDecoder, SetMember, TrackBuffer,
};
use fulgurite_units::{ArchiveId, ObjectId, PlatterId, SetId, SlotIndex, error_chain};

use crate::config::GlassConfig;
use crate::far::{FarLibrary, FarSource, OpenPlatter};
use crate::rows::{
    self, FAR, FarRow, MARGINS, PLATTERS, PlatterRow, SETS, SLOTS, SetRow, SetState, TrackRow,
    VERIFIED, VerificationRow,
};
use crate::{MediumHandle, PlatterFileSource, PlatterFiles, Result, Shard, SimulatedMedium};

type Reader = PlatterReader<OpenPlatter>;

/// All platters of an archive.
#[derive(Debug)]
pub struct Recovered {
    medium: MediumHandle,
    shape: LibraryShape,
    archive: ArchiveId,
    readers: BTreeMap<PlatterId, Reader>,
    /// Platters among them that are at other sites.
    far: BTreeMap<PlatterId, FarRow>,
    headers: BTreeMap<SetId, PlatterHeader>,
}

/// A shard, as listed on its platter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedShard {
    /// The body that it belongs to.
    pub body: ObjectId,
    /// Ciphertext bytes of the body.
    pub body_bytes: u64,
    /// Where it is.
    pub shard: Shard,
    /// The body's entry, sealed.
    pub sealed: Vec<u8>,
}

/// Progress and results of reading the lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListsReport {
    /// Platters whose lists were read, or could not be.
    pub platters: u64,
    /// All platters with lists.
    pub platters_total: u64,
    /// Missing platters among those read, whose lists were rebuilt from their sets.
    pub rebuilt: u64,
    /// Entries found.
    pub entries: u64,
    /// Why lists cannot be used.
    pub unusable: Vec<String>,
}

/// What a damaged catalog still has of sets and platters, and nothing else knows.
#[derive(Debug, Default)]
pub struct SalvagedRows {
    sets: BTreeMap<SetId, SetRow>,
    /// Last verifications.
    verified: BTreeMap<PlatterId, VerificationRow>,
    /// Their results per track, by row key.
    margins: BTreeMap<Vec<u8>, TrackRow>,
    /// Locations of platters at other sites, which may not be reachable now.
    far: BTreeMap<PlatterId, FarRow>,
}

impl SalvagedRows {
    /// Keeps a row, if it is of a kind that is needed.
    ///
    /// # Errors
    /// When it does not decode.
    pub fn keep(&mut self, space: Space, key: &[u8], value: &[u8]) -> Result<()> {
        if space == SETS {
            self.sets.insert(SetId::from_bytes(rows::id(key)?), rows::decode(space, value)?);
        } else if space == VERIFIED {
            self.verified
                .insert(PlatterId::from_bytes(rows::id(key)?), rows::decode(space, value)?);
        } else if space == FAR {
            self.far.insert(PlatterId::from_bytes(rows::id(key)?), rows::decode(space, value)?);
        } else if space == MARGINS {
            self.margins.insert(key.to_vec(), rows::decode(space, value)?);
        }
        Ok(())
    }

    /// Whether no row contradicts that a set was released.
    fn is_released(&self, set: SetId) -> bool {
        self.sets.get(&set).is_none_or(|row| row.state == SetState::Released)
    }
}

/// Lists the platter files in a folder.
///
/// # Errors
/// When it cannot be listed.
pub fn platter_files(folder: &Path) -> Result<Vec<PathBuf>> {
    PlatterFiles::new(folder.to_owned()).all()
}

/// Returns the archive that most platters name in their headers.
///
/// # Errors
/// When a file cannot be opened.
pub fn find_archive(paths: &[PathBuf]) -> Result<Option<ArchiveId>> {
    let mut counts: BTreeMap<ArchiveId, usize> = BTreeMap::new();
    for path in paths {
        let source = PlatterFileSource::open(path)?;
        if let Ok(reader) = PlatterReader::open(source, None, &NoFaults) {
            *counts.entry(reader.header().archive).or_default() += 1;
        }
    }
    Ok(counts.into_iter().max_by_key(|&(_, count)| count).map(|(archive, _)| archive))
}

/// Returns the platter that a file's name stands for.
fn named_platter(path: &Path) -> Option<PlatterId> {
    path.file_stem()?.to_str()?.parse().ok()
}

impl Recovered {
    /// Opens every usable platter file of `paths`, and further platters in `far` libraries; also
    /// returns why each of the others cannot be used.
    ///
    /// # Errors
    /// When the configuration makes no medium.
    pub fn open(
        archive: ArchiveId,
        config: &GlassConfig,
        paths: &[PathBuf],
        far: &[Arc<dyn FarLibrary>],
    ) -> Result<(Self, Vec<String>)> {
        let medium = SimulatedMedium::new(&config.medium, config.library.read_drives())?;
        let medium = MediumHandle::urgent(&Arc::new(medium));
        let shape = config.library.shape.clone();
        let (readers, headers) = (BTreeMap::new(), BTreeMap::new());
        let far_rows = BTreeMap::new();
        let mut found = Self { medium, shape, archive, readers, far: far_rows, headers };
        let mut unusable = Vec::new();
        for path in paths {
            match found.open_one(path) {
                Ok(reader) => found.take(reader),
                Err(reason) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    unusable.push(format!("{name}: {reason}"));
                }
            }
        }
        for library in far {
            found.open_far(library, &mut unusable);
        }
        Ok((found, unusable))
    }

    fn take(&mut self, reader: Reader) {
        let header = reader.header();
        self.headers.entry(header.set).or_insert_with(|| header.clone());
        self.readers.insert(header.platter, reader);
    }

    /// Opens the platters that are in a far library and not at home.
    fn open_far(&mut self, library: &Arc<dyn FarLibrary>, unusable: &mut Vec<String>) {
        let platters = match library.platters() {
            Ok(platters) => platters,
            Err(error) => return unusable.push(error_chain(&error)),
        };
        for platter in
            platters.into_iter().filter(|platter| !self.has(*platter)).collect::<Vec<_>>()
        {
            match self.open_one_far(library, platter) {
                Ok(reader) => self.take(reader),
                Err(reason) => unusable.push(format!("{platter} in {}: {reason}", library.name())),
            }
        }
    }

    fn open_one_far(
        &mut self,
        library: &Arc<dyn FarLibrary>,
        platter: PlatterId,
    ) -> Result<Reader, String> {
        let source = FarSource::open(library, platter).map_err(|e| error_chain(&e))?;
        let bytes = source.bytes();
        let expected = Some((self.archive, platter));
        let reader = PlatterReader::open(OpenPlatter::Far(source), expected, &self.medium)
            .map_err(|e| error_chain(&e))?;
        let library = library.name().to_owned();
        self.far.insert(platter, FarRow { library, is_there: true, bytes });
        Ok(reader)
    }

    /// Number of usable platters.
    #[must_use]
    pub fn platters(&self) -> u64 {
        self.readers.len() as u64
    }

    /// Number of their sets.
    #[must_use]
    pub fn sets(&self) -> u64 {
        self.headers.len() as u64
    }

    fn open_one(&self, path: &Path) -> Result<Reader, String> {
        let platter = named_platter(path).ok_or("its name is not a platter id")?;
        let source = PlatterFileSource::open(path).map_err(|e| error_chain(&e))?;
        PlatterReader::open(OpenPlatter::Home(source), Some((self.archive, platter)), &self.medium)
            .map_err(|e| error_chain(&e))
    }

    /// Whether this platter is available.
    #[must_use]
    pub fn has(&self, platter: PlatterId) -> bool {
        self.readers.contains_key(&platter)
    }

    /// Returns the platters of released sets of which every written platter is available.
    #[must_use]
    pub fn safe(&self, old: &SalvagedRows) -> BTreeSet<PlatterId> {
        let is_whole = |header: &PlatterHeader| {
            header.members.iter().flatten().all(|member| self.has(member.platter))
        };
        let is_safe =
            |(set, header): &(&SetId, &PlatterHeader)| is_whole(header) && old.is_released(**set);
        let safe = self.headers.iter().filter(is_safe);
        safe.flat_map(|(_, header)| header.members.iter().flatten().map(|member| member.platter))
            .collect()
    }

    /// Reads the file list of every information platter that exists or existed, the oldest set
    /// first, and gives `take` each entry with its platter.
    pub fn read_lists(
        &self,
        take: &mut dyn FnMut(ListedShard),
        progress: &mut dyn FnMut(&ListsReport),
    ) -> ListsReport {
        let mut sets: Vec<&PlatterHeader> = self.headers.values().collect();
        sets.sort_by_key(|header| header.created);
        let platters_total = sets.iter().map(|h| information_members(h).count() as u64).sum();
        let mut read = ListsReport { platters_total, ..ListsReport::default() };
        for header in sets {
            for (position, member) in information_members(header) {
                read.rebuilt += u64::from(!self.has(member));
                match self.read_list(header, position) {
                    Ok(entries) => {
                        read.entries += entries.len() as u64;
                        entries.into_iter().for_each(|entry| take(listed(member, entry)));
                    }
                    Err(reason) => read.unusable.push(format!("file list of {member}: {reason}")),
                }
                read.platters += 1;
                progress(&read);
            }
        }
        read
    }

    fn read_list(&self, header: &PlatterHeader, position: usize) -> Result<Vec<ListEntry>, String> {
        let member = header.members[position].ok_or("it was never written")?;
        let (from, to) = (member.data_bytes, member.data_bytes + member.list_bytes);
        let mut list = ListReader::new(member.platter);
        let own = self.readers.get(&member.platter);
        let mut entries = Vec::new();
        let mut take = |list: &mut ListReader| -> Result<(), PlatterError> {
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

    /// Returns where a platter is that is not at home: as found now, or else as known before.
    fn far_row<'a>(&'a self, platter: PlatterId, old: &'a SalvagedRows) -> Option<&'a FarRow> {
        let known = || old.far.get(&platter).filter(|row| row.is_there && !self.has(platter));
        self.far.get(&platter).or_else(known)
    }

    fn members(&self, header: &PlatterHeader) -> Vec<Member<'_, OpenPlatter>> {
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

    /// Makes the rows of sets and platters, with a slot for each platter and its `live` bytes, and
    /// has `put` write them: space, key, bytes of the row.
    ///
    /// # Errors
    /// Those of `put`, and when a row does not encode.
    pub fn write_sets<E: From<crate::GlassError>>(
        &self,
        old: &SalvagedRows,
        live: &BTreeMap<PlatterId, u64>,
        put: &mut dyn FnMut(Space, Vec<u8>, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut next_slot = 0;
        for (set, header) in &self.headers {
            for (position, member) in (0u16..).zip(&header.members) {
                let Some(member) = member else { continue };
                let far = self.far_row(member.platter, old);
                let slot = if far.is_some() { None } else { home_slot(&self.shape, next_slot) };
                next_slot += 1;
                let row = PlatterRow {
                    set: *set,
                    position,
                    slot,
                    data_bytes: member.data_bytes,
                    list_bytes: member.list_bytes,
                    list_entries: self
                        .readers
                        .get(&member.platter)
                        .map_or(0, |r| r.header().list_entries),
                    live_bytes: live.get(&member.platter).copied().unwrap_or(0),
                    unreadable_tracks: Vec::new(),
                };
                if let Some(slot) = slot {
                    put(SLOTS, rows::slot_key(slot), bytes(&member.platter)?)?;
                }
                let key = member.platter.to_bytes().to_vec();
                if let Some(far) = far {
                    put(FAR, key.clone(), bytes(far)?)?;
                }
                if let Some(verified) = old.verified.get(&member.platter) {
                    put(VERIFIED, key.clone(), bytes(verified)?)?;
                    let of_platter = old.margins.range(key.clone()..);
                    for (track, row) in of_platter.take_while(|(track, _)| track.starts_with(&key))
                    {
                        put(MARGINS, track.clone(), bytes(row)?)?;
                    }
                }
                put(PLATTERS, key, bytes(&row)?)?;
            }
            put(SETS, set.to_bytes().to_vec(), bytes(&set_row(header))?)?;
        }
        Ok(())
    }
}

/// Returns the bytes of a row.
fn bytes<T: Row>(row: &T) -> Result<Vec<u8>> {
    Ok(row::encode(row)?)
}

/// Returns the slot of the platter with this number: zone by zone, as for new sets, so that no two
/// of a set share a zone. `None` when no slot is left.
fn home_slot(shape: &LibraryShape, number: u32) -> Option<u32> {
    let zone_slots = shape.slot_count() / shape.zone_count().max(1);
    let (zone, place) = (number % shape.zone_count(), number / shape.zone_count());
    let slot = zone * zone_slots + place;
    (place < zone_slots && !shape.is_spare(SlotIndex::new(slot))).then_some(slot)
}

/// Returns the row of a set from the header of any of its platters; it counts as released.
fn set_row(header: &PlatterHeader) -> SetRow {
    let (information, redundancy) =
        header.members.split_at(usize::from(header.geometry.set_information_platters));
    let ids = |members: &[Option<SetMember>]| -> Vec<PlatterId> {
        members.iter().flatten().map(|member| member.platter).collect()
    };
    SetRow {
        state: SetState::Released,
        geometry: header.geometry.clone(),
        created: header.created,
        generation: header.generation,
        information: ids(information),
        redundancy: ids(redundancy),
        bytes: information.iter().flatten().map(|member| member.data_bytes).sum(),
        redundancy_bytes: redundancy
            .iter()
            .flatten()
            .map(|member| member.data_bytes)
            .max()
            .unwrap_or(0),
        damaged: Vec::new(),
    }
}

/// Returns the information platters that a set has or had, with their positions.
fn information_members(header: &PlatterHeader) -> impl Iterator<Item = (usize, PlatterId)> + '_ {
    let information = usize::from(header.geometry.set_information_platters);
    header.members[..information]
        .iter()
        .enumerate()
        .filter_map(|(position, member)| member.map(|member| (position, member.platter)))
}

/// Converts an entry of the list of `platter`.
fn listed(platter: PlatterId, entry: ListEntry) -> ListedShard {
    let ListEntry { object, offset, length, body_offset, body_bytes, sealed } = entry;
    let shard = Shard { platter, offset, body_offset, bytes: length, crc: None };
    ListedShard { body: object, body_bytes, shard, sealed }
}

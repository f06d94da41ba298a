//! Shards off glass: by platter, each track once, and from the platter-set where a platter fails.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_glass::{
    CodeLevel, InformationTrack, Member, PlatterReader, SetDecoder, TrackBuffer,
};
use fulgurite_library::TrackSpan;
use fulgurite_platters::library_driver::{self, Answer, Due, LiveLibrary};
use fulgurite_platters::{MediumHandle, PlatterFileSource, PlatterFiles, cipher_crc};
use fulgurite_units::{PlatterId, SlotIndex, UnixTime, error_chain};

use crate::ground::Ground;
use crate::log::LogWriter;
use crate::rows::{self, PLATTERS, PlatterRow, SETS, SetRow, Shard};
use crate::{ArchiveError, Result};

type Reader = PlatterReader<PlatterFileSource>;

/// A shard wanted, for body `number` of the batch, into that body's room.
#[derive(Clone, Debug)]
pub(crate) struct ShardWish {
    pub(crate) number: usize,
    pub(crate) shard: Shard,
    pub(crate) room: Arc<LogWriter>,
    /// By when it is to be there.
    pub(crate) due: UnixTime,
}

/// What reading gave, by the body's number.
#[derive(Debug, Default)]
pub(crate) struct ReadShards {
    /// Offset, length and CRC of each shard that came.
    pub(crate) pieces: BTreeMap<usize, Vec<(u64, u64, u64)>>,
    /// Why a body did not come.
    pub(crate) errors: BTreeMap<usize, String>,
}

impl ReadShards {
    fn came(&mut self, wish: &ShardWish, crc: u64) {
        let piece = (wish.shard.body_offset, wish.shard.bytes, crc);
        self.pieces.entry(wish.number).or_default().push(piece);
    }
}

/// Reads shards off the platters of an archive.
#[derive(Clone, Debug)]
pub(crate) struct ShardReader {
    ground: Arc<Ground>,
    library: LiveLibrary,
    files: PlatterFiles,
    medium: MediumHandle,
}

/// Where the tracks of one platter come from.
trait Tracks {
    /// The track in `buffer`, whole and checked.
    fn read(&mut self, track: InformationTrack, buffer: &mut TrackBuffer) -> Result<(), String>;
}

/// The platter itself.
struct Own<'a> {
    reader: &'a Reader,
    access: &'a ShardReader,
}

impl Tracks for Own<'_> {
    fn read(&mut self, track: InformationTrack, buffer: &mut TrackBuffer) -> Result<(), String> {
        let report = self
            .reader
            .read_track(track, &self.access.medium, buffer)
            .map_err(|error| error_chain(&error))?;
        let repairs = &self.access.ground.repairs;
        match report.repaired_by {
            Some(CodeLevel::Track) => {
                Ground::count(&repairs.sectors_by_track, u64::from(report.failed));
            }
            Some(CodeLevel::Group) => Ground::count(&repairs.tracks_by_group, 1),
            Some(CodeLevel::Set) | None => {}
        }
        Ok(())
    }
}

/// The platter as far as it goes, and its set where it does not.
struct WithSet<'a> {
    own: Option<Own<'a>>,
    members: &'a [Member<'a, PlatterFileSource>],
    position: usize,
    decoder: SetDecoder,
    access: &'a ShardReader,
}

impl Tracks for WithSet<'_> {
    fn read(&mut self, track: InformationTrack, buffer: &mut TrackBuffer) -> Result<(), String> {
        if let Some(own) = &mut self.own
            && own.read(track, buffer).is_ok()
        {
            return Ok(());
        }
        self.decoder
            .recover_track(track, self.members, self.position, &self.access.medium, buffer)
            .map_err(|error| error_chain(&error))?;
        Ground::count(&self.access.ground.repairs.tracks_by_set, 1);
        Ok(())
    }
}

impl ShardReader {
    pub(crate) fn new(ground: &Arc<Ground>, library: &LiveLibrary, files: &PlatterFiles) -> Self {
        Self {
            ground: Arc::clone(ground),
            library: library.clone(),
            files: files.clone(),
            medium: MediumHandle::urgent(&ground.medium),
        }
    }

    /// Reads every wish into its room. The library is asked for all platters at once, and for all
    /// others of a set as soon as one of it fails.
    pub(crate) fn read(&self, wishes: Vec<ShardWish>) -> Result<ReadShards> {
        let mut by_platter: BTreeMap<PlatterId, Vec<ShardWish>> = BTreeMap::new();
        for wish in wishes {
            by_platter.entry(wish.shard.platter).or_default().push(wish);
        }
        let visits: Vec<Visit> = by_platter
            .into_iter()
            .map(|(platter, wishes)| self.visit(platter, wishes))
            .collect::<Result<_>>()?;
        let mut all = ReadShards::default();
        let mut recoveries = Vec::new();
        for visit in visits {
            let (platter, wishes) = (visit.platter, Arc::clone(&visit.wishes));
            let Some((brought, left)) = self.end(visit, &mut all)? else { continue };
            self.ground.check_stopping()?;
            let left = left.into_iter().map(|index| wishes[index].clone()).collect();
            recoveries.push(self.ask_set(platter, brought, left)?);
        }
        for recovery in recoveries {
            self.read_from_set(recovery, &mut all)?;
        }
        Ok(all)
    }

    /// Has the library mount a platter and read what is wished of it.
    fn visit(&self, platter: PlatterId, mut wishes: Vec<ShardWish>) -> Result<Visit> {
        wishes.sort_by_key(|wish| wish.shard.offset);
        let wishes = Arc::new(wishes);
        let outcome: Arc<Mutex<Option<PlatterOutcome>>> = Arc::default();
        let (access, shared) = (self.clone(), Arc::clone(&outcome));
        let work_wishes = Arc::clone(&wishes);
        let work = Box::new(move || {
            access.ground.fail.pass("read-platter");
            let read = access.read_platter(platter, &work_wishes);
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
        });
        let answer = match self.ask(platter, &wishes, work) {
            Ok(answer) => Some(answer),
            Err(ArchiveError::Stopping) => return Err(ArchiveError::Stopping),
            Err(error) => {
                tracing::warn!(%platter, %error, "the library cannot fetch a platter");
                None
            }
        };
        Ok(Visit { platter, wishes, outcome, answer })
    }

    /// Waits for a visit; whether the platter was brought, and which wishes it did not give, if
    /// there are any.
    fn end(&self, visit: Visit, all: &mut ReadShards) -> Result<Option<(bool, Vec<usize>)>> {
        let Visit { platter, wishes, outcome, answer } = visit;
        let brought = match answer.map(library_driver::wait) {
            Some(Ok(())) => true,
            None => false,
            Some(Err(error)) => {
                self.ground.check_stopping()?;
                tracing::warn!(%platter, %error, "the library did not bring a platter");
                false
            }
        };
        let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        let left = match outcome.filter(|_| brought) {
            Some(outcome) => {
                for (index, crc) in outcome.came {
                    all.came(&wishes[index], crc);
                }
                outcome.left
            }
            None => (0..wishes.len()).collect(),
        };
        Ok((!left.is_empty()).then_some((brought, left)))
    }

    /// Has the library mount a platter and run `work` over the tracks that `wishes` lie on.
    fn ask(
        &self,
        platter: PlatterId,
        wishes: &[ShardWish],
        work: library_driver::Read,
    ) -> Result<Answer> {
        let (row, set) = self.rows(platter)?;
        let Some(slot) = row.slot else {
            return Err(ArchiveError::PlatterUnreadable {
                platter,
                reason: "it has no slot in the library".to_owned(),
            });
        };
        let span = span(&set, &row, wishes);
        Ok(self.library.read(platter, SlotIndex::new(slot), span, self.due(wishes), work)?)
    }

    /// When the first of them is due.
    fn due(&self, wishes: &[ShardWish]) -> Due {
        let first = wishes.iter().map(|wish| wish.due).min();
        first.map_or(Due::OBJECTIVE, |first| Due::new(first, self.ground.now()))
    }

    fn rows(&self, platter: PlatterId) -> Result<(PlatterRow, SetRow)> {
        let missing =
            || ArchiveError::Corrupt { what: format!("platter {platter} is not in the catalog") };
        let row: Option<PlatterRow> = rows::get(&*self.ground.kv, PLATTERS, &platter.to_bytes())?;
        let row = row.ok_or_else(missing)?;
        let set: Option<SetRow> = rows::get(&*self.ground.kv, SETS, &row.set.to_bytes())?;
        Ok((row, set.ok_or_else(missing)?))
    }

    fn open(&self, platter: PlatterId) -> Result<Reader, String> {
        let source = self.files.open(platter).map_err(|error| error_chain(&error))?;
        let expected = Some((self.ground.archive, platter));
        PlatterReader::open(source, expected, &self.medium).map_err(|error| error_chain(&error))
    }

    /// What the platter alone gives of the wishes, which are in order of place.
    fn read_platter(&self, platter: PlatterId, wishes: &[ShardWish]) -> PlatterOutcome {
        let reader = match self.open(platter) {
            Ok(reader) => reader,
            Err(reason) => {
                tracing::warn!(%platter, reason, "platter cannot be opened; its set is asked");
                return PlatterOutcome { came: Vec::new(), left: (0..wishes.len()).collect() };
            }
        };
        let mut outcome = PlatterOutcome::default();
        let mut current = Current::default();
        let mut own = Own { reader: &reader, access: self };
        for (index, wish) in wishes.iter().enumerate() {
            match current.read_shard(&reader, &mut own, wish) {
                Ok(crc) => outcome.came.push((index, crc)),
                Err(reason) => {
                    tracing::warn!(%platter, reason, "a track needs the platter's set");
                    outcome.left.push(index);
                }
            }
        }
        outcome
    }

    /// Asks the library for all other platters of a set at once.
    fn ask_set(
        &self,
        platter: PlatterId,
        brought: bool,
        wishes: Vec<ShardWish>,
    ) -> Result<Recovery> {
        let (row, set) = self.rows(platter)?;
        let (span, due) = (span(&set, &row, &wishes), self.due(&wishes));
        let mut members = Vec::new();
        for (_, member) in set.platters().filter(|&(_, member)| member != platter) {
            let slot = self.rows(member)?.0.slot.filter(|_| self.files.exists(member));
            let answer = match slot.map(SlotIndex::new) {
                Some(slot) => Some(self.library.read(member, slot, span, due, Box::new(|| {}))?),
                None => None,
            };
            members.push((member, answer));
        }
        Ok(Recovery { platter, brought, wishes, row, set, members })
    }

    /// Recovers shards of a platter that could not give them, from the other platters of its set.
    /// What the library did not bring is not looked at, though its file is there.
    fn read_from_set(&self, recovery: Recovery, all: &mut ReadShards) -> Result<()> {
        let Recovery { platter, brought, wishes, row, set, members: asked } = recovery;
        let own = if brought { self.open(platter).ok() } else { None };
        let opened = self.open_members(asked)?;
        let Some(some) = own.as_ref().or_else(|| opened.values().next()) else {
            for wish in &wishes {
                let reason = format!("platter {platter} and every other of its set are missing");
                all.errors.insert(wish.number, reason);
            }
            return Ok(());
        };
        let mut members: Vec<Member<'_, PlatterFileSource>> = Vec::new();
        members.resize_with(usize::from(set.geometry.set_platters()), || Member::NotWritten);
        for (position, member) in set.platters() {
            members[usize::from(position)] =
                opened.get(&member).map_or(Member::Lost, Member::Platter);
        }
        let mut tracks = WithSet {
            own: own.as_ref().map(|reader| Own { reader, access: self }),
            members: &members,
            position: usize::from(row.position),
            decoder: SetDecoder::new(some.header()),
            access: self,
        };
        let mut current = Current::default();
        for wish in &wishes {
            match current.read_shard(some, &mut tracks, wish) {
                Ok(crc) => all.came(wish, crc),
                Err(reason) => {
                    all.errors.insert(wish.number, reason);
                }
            }
        }
        Ok(())
    }

    /// Waits until the library has brought each of them, and opens those that are there.
    fn open_members(
        &self,
        members: Vec<(PlatterId, Option<Answer>)>,
    ) -> Result<BTreeMap<PlatterId, Reader>> {
        let mut opened = BTreeMap::new();
        for (member, answer) in members {
            if let Some(Err(error)) = answer.map(library_driver::wait) {
                self.ground.check_stopping()?;
                tracing::warn!(platter = %member, %error, "the library brings no platter");
                continue;
            }
            match self.open(member) {
                Ok(reader) => {
                    opened.insert(member, reader);
                }
                Err(reason) => tracing::warn!(platter = %member, reason, "platter counts as lost"),
            }
        }
        Ok(opened)
    }
}

/// What the library was asked for of one platter.
#[derive(Debug)]
struct Visit {
    platter: PlatterId,
    /// In order of place.
    wishes: Arc<Vec<ShardWish>>,
    outcome: Arc<Mutex<Option<PlatterOutcome>>>,
    /// None when it could not be asked.
    answer: Option<Answer>,
}

/// What a platter could not give, while the others of its set come.
#[derive(Debug)]
struct Recovery {
    platter: PlatterId,
    /// Whether the platter itself is there, for those of its tracks that can be read.
    brought: bool,
    wishes: Vec<ShardWish>,
    row: PlatterRow,
    set: SetRow,
    /// None of those that have no file or no slot: no drive is needed to find that out.
    members: Vec<(PlatterId, Option<Answer>)>,
}

/// Which wishes came from their own platter, with their CRCs, and which did not.
#[derive(Debug, Default)]
struct PlatterOutcome {
    came: Vec<(usize, u64)>,
    left: Vec<usize>,
}

/// The physical tracks that shards of a platter lie on, as one span.
fn span(set: &SetRow, row: &PlatterRow, wishes: &[ShardWish]) -> TrackSpan {
    let geometry = &set.geometry;
    let map = geometry.map(geometry.tracks_for(row.data_bytes + row.list_bytes));
    let (mut first, mut last) = (u32::MAX, 0);
    for shard in wishes.iter().map(|wish| &wish.shard) {
        let physical = |offset: u64| map.physical(geometry.address(offset).track);
        first = first.min(physical(shard.offset).get());
        last = last.max(physical(shard.offset + shard.bytes.max(1) - 1).get());
    }
    let first = first.min(last);
    TrackSpan::new(fulgurite_units::TrackIndex::new(first), last - first + 1)
}

/// The track at hand: shards side by side share it.
#[derive(Debug, Default)]
struct Current {
    track: Option<u32>,
    buffer: TrackBuffer,
    failed: BTreeMap<u32, String>,
}

impl Current {
    /// Reads one shard into its room and returns its CRC. A shard that fails may leave bytes in
    /// its room; nothing names them until all of it came.
    fn read_shard(
        &mut self,
        reader: &Reader,
        tracks: &mut dyn Tracks,
        wish: &ShardWish,
    ) -> Result<u64, String> {
        let geometry = &reader.header().geometry;
        let track_bytes = geometry.track_user_bytes() as u64;
        let (mut offset, end) = (wish.shard.offset, wish.shard.offset + wish.shard.bytes);
        let mut crc = cipher_crc();
        let mut done = wish.shard.body_offset;
        while offset < end {
            let track = geometry.address(offset).track;
            self.load(track, tracks)?;
            let start = u64::from(track.get()) * track_bytes;
            let until = end.min(start + track_bytes);
            let within = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
            for piece in self.buffer.user_bytes(within(offset), within(until) - within(offset)) {
                crc.update(piece);
                wish.room.write_at(done, piece).map_err(|error| error_chain(&error))?;
                done += piece.len() as u64;
            }
            offset = until;
        }
        Ok(crc.finalize())
    }

    fn load(&mut self, track: InformationTrack, tracks: &mut dyn Tracks) -> Result<(), String> {
        if self.track == Some(track.get()) {
            return Ok(());
        }
        if let Some(reason) = self.failed.get(&track.get()) {
            return Err(reason.clone());
        }
        self.track = None;
        match tracks.read(track, &mut self.buffer) {
            Ok(()) => {
                self.track = Some(track.get());
                Ok(())
            }
            Err(reason) => {
                self.failed.insert(track.get(), reason.clone());
                Err(reason)
            }
        }
    }
}

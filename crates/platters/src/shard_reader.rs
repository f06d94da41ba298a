//! Shards off glass: by platter, each track once, and from the platter-set where a platter fails.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_glass::{
    CodeLevel, Geometry, InformationTrack, Member, PlatterReader, SetDecoder, TrackBuffer, TrackMap,
};
use fulgurite_library::TrackSpan;
use fulgurite_units::{PlatterId, SlotIndex, UnixTime, error_chain};

use crate::library_driver::{Due, LiveLibrary};
use crate::limits::READ_GAP_TRACKS;
use crate::rows::{self, PLATTERS, PlatterRow, SETS, SetRow};
use crate::{
    Given, MediumHandle, PlatterFileSource, PlattersError, Result, Shard, WriteAt, cipher_crc,
};

type Reader = PlatterReader<PlatterFileSource>;

/// A shard wanted, into the room of its body. `P` is what it is to whoever wants it.
#[derive(Clone, Debug)]
pub struct ShardWish<P> {
    /// Its name.
    pub piece: P,
    /// Where it is.
    pub shard: Shard,
    /// Where it goes.
    pub room: Arc<dyn WriteAt>,
    /// By when it is to be there.
    pub due: UnixTime,
}

/// What became of shards: the CRC of each that came, and why each other did not.
#[derive(Debug)]
pub struct ReadShards<P> {
    /// With their CRCs.
    pub came: Vec<(P, u64)>,
    /// With the reasons.
    pub failed: Vec<(P, String)>,
}

/// Reads shards off the platters of an archive.
#[derive(Clone, Debug)]
pub struct ShardReader {
    given: Arc<Given>,
    library: LiveLibrary,
    medium: MediumHandle,
    /// Waits for the library's answers.
    answers: tokio::runtime::Handle,
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
        self.access.given.repairs.count(report.repaired_by, u64::from(report.failed));
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
        self.access.given.repairs.count(Some(CodeLevel::Set), 0);
        Ok(())
    }
}

impl ShardReader {
    /// One for this library.
    pub fn new(given: &Arc<Given>, library: &LiveLibrary, answers: tokio::runtime::Handle) -> Self {
        Self {
            given: Arc::clone(given),
            library: library.clone(),
            medium: MediumHandle::urgent(&given.medium),
            answers,
        }
    }

    /// Has the library mount a platter and read what is wished of it. `then` is told what each
    /// stretch of neighboring tracks gave, as soon as that ended.
    pub fn visit<P: Copy + Send + Sync + 'static>(
        &self,
        platter: PlatterId,
        wishes: Vec<ShardWish<P>>,
        then: impl FnOnce(Visited<P>) + Clone + Send + 'static,
    ) -> Result<()> {
        let places = match self.rows(platter) {
            Ok((row, set)) => Some((row.slot, Tracked::new(&set, &row))),
            Err(error) => {
                tracing::warn!(%platter, %error, "a platter cannot be looked up");
                None
            }
        };
        let Some((Some(slot), tracked)) = places else {
            tracing::warn!(%platter, "a platter has no slot in the library; its set is asked");
            then(Visited { platter, brought: false, came: Vec::new(), left: wishes });
            return Ok(());
        };
        for (span, wishes) in tracked.stretches(wishes) {
            let (wishes, then) = (Arc::new(wishes), then.clone());
            let outcome: Arc<Mutex<Option<PlatterOutcome>>> = Arc::default();
            let (access, shared) = (self.clone(), Arc::clone(&outcome));
            let work_wishes = Arc::clone(&wishes);
            let work = Box::new(move || {
                access.given.fail.pass("read-platter");
                let read = access.read_platter(platter, &work_wishes);
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
            });
            let due = self.due(&wishes);
            let answer = self.library.read(platter, SlotIndex::new(slot), span, due, work)?;
            self.answers.spawn(async move {
                let brought = answer.ended().await;
                if let Err(error) = &brought {
                    tracing::warn!(%platter, %error, "the library did not bring a platter");
                }
                let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
                then(Visited::new(platter, brought.is_ok(), &wishes, outcome));
            });
        }
        Ok(())
    }

    /// When the first of them is due.
    fn due<P>(&self, wishes: &[ShardWish<P>]) -> Due {
        let first = wishes.iter().map(|wish| wish.due).min();
        first.map_or(Due::OBJECTIVE, |first| Due::new(first, self.given.now()))
    }

    fn rows(&self, platter: PlatterId) -> Result<(PlatterRow, SetRow)> {
        let missing =
            || PlattersError::Corrupt { what: format!("platter {platter} is not in the catalog") };
        let row: Option<PlatterRow> =
            rows::get(&*self.given.catalog, PLATTERS, &platter.to_bytes())?;
        let row = row.ok_or_else(missing)?;
        let set: Option<SetRow> = rows::get(&*self.given.catalog, SETS, &row.set.to_bytes())?;
        Ok((row, set.ok_or_else(missing)?))
    }

    fn open(&self, platter: PlatterId) -> Result<Reader, String> {
        let source = self.given.files.open(platter).map_err(|error| error_chain(&error))?;
        let expected = Some((self.given.archive, platter));
        PlatterReader::open(source, expected, &self.medium).map_err(|error| error_chain(&error))
    }

    /// What the platter alone gives of the wishes, which are in order of place.
    fn read_platter<P>(&self, platter: PlatterId, wishes: &[ShardWish<P>]) -> PlatterOutcome {
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

    /// Asks the library for all other platters of a set at once, for what a visit left. `then` is
    /// told when the last of them was brought, or was not.
    pub fn ask_set<P: Send + 'static>(
        &self,
        visited: Visited<P>,
        then: impl FnOnce(Recovery<P>) + Send + 'static,
    ) -> Result<()> {
        let Visited { platter, brought, left: wishes, .. } = visited;
        let (row, set) = self.rows(platter)?;
        let (span, due) = (Tracked::new(&set, &row).span(&wishes), self.due(&wishes));
        let mut asked = Vec::new();
        for (_, member) in set.platters().filter(|&(_, member)| member != platter) {
            let slot = self.rows(member)?.0.slot.filter(|_| self.given.files.exists(member));
            let answer = match slot.map(SlotIndex::new) {
                Some(slot) => Some(self.library.read(member, slot, span, due, Box::new(|| {}))?),
                None => None,
            };
            asked.push((member, answer));
        }
        self.answers.spawn(async move {
            let mut members = Vec::new();
            for (member, answer) in asked {
                // For what has no slot or no file no drive is needed to find that out.
                let ended = match answer {
                    Some(answer) => answer.ended().await,
                    None => Ok(()),
                };
                match ended {
                    Ok(()) => members.push(member),
                    Err(error) => {
                        tracing::warn!(platter = %member, %error, "the library brings no platter");
                    }
                }
            }
            then(Recovery { platter, brought, wishes, row, set, members });
        });
        Ok(())
    }

    /// Recovers shards of a platter that could not give them, from the other platters of its set.
    /// What the library did not bring is not looked at, though its file is there.
    pub fn read_from_set<P: Copy>(&self, recovery: &Recovery<P>) -> ReadShards<P> {
        let Recovery { platter, brought, wishes, row, set, members: brought_members } = recovery;
        let own = if *brought { self.open(*platter).ok() } else { None };
        let opened = self.open_members(brought_members);
        let mut all = ReadShards { came: Vec::new(), failed: Vec::new() };
        let Some(some) = own.as_ref().or_else(|| opened.values().next()) else {
            let reason = format!("platter {platter} and every other of its set are missing");
            all.failed.extend(wishes.iter().map(|wish| (wish.piece, reason.clone())));
            return all;
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
        for wish in wishes {
            match current.read_shard(some, &mut tracks, wish) {
                Ok(crc) => all.came.push((wish.piece, crc)),
                Err(reason) => all.failed.push((wish.piece, reason)),
            }
        }
        all
    }

    /// Opens those of a set that the library brought.
    fn open_members(&self, members: &[PlatterId]) -> BTreeMap<PlatterId, Reader> {
        let mut opened = BTreeMap::new();
        for &member in members {
            match self.open(member) {
                Ok(reader) => {
                    opened.insert(member, reader);
                }
                Err(reason) => tracing::warn!(platter = %member, reason, "platter counts as lost"),
            }
        }
        opened
    }
}

/// What a visit gave of its platter.
#[derive(Debug)]
pub struct Visited<P> {
    /// Which platter.
    pub platter: PlatterId,
    /// Whether the platter itself is there, for those of its tracks that can be read.
    brought: bool,
    /// The CRC of each shard that came.
    pub came: Vec<(P, u64)>,
    /// What it did not give, in order of place.
    pub left: Vec<ShardWish<P>>,
}

impl<P: Copy> Visited<P> {
    fn new(
        platter: PlatterId,
        brought: bool,
        wishes: &[ShardWish<P>],
        outcome: Option<PlatterOutcome>,
    ) -> Self {
        let Some(outcome) = outcome.filter(|_| brought) else {
            return Self { platter, brought, came: Vec::new(), left: wishes.to_vec() };
        };
        let came = outcome.came.into_iter().map(|(index, crc)| (wishes[index].piece, crc));
        let left = outcome.left.into_iter().map(|index| wishes[index].clone());
        Self { platter, brought, came: came.collect(), left: left.collect() }
    }
}

/// What a platter could not give, with those of its set that were brought.
#[derive(Debug)]
pub struct Recovery<P> {
    platter: PlatterId,
    brought: bool,
    /// What is wanted of it.
    pub wishes: Vec<ShardWish<P>>,
    row: PlatterRow,
    set: SetRow,
    members: Vec<PlatterId>,
}

impl<P> Recovery<P> {
    /// When the first of what is recovered is due.
    pub fn due(&self) -> Option<UnixTime> {
        self.wishes.iter().map(|wish| wish.due).min()
    }
}

/// Which wishes came from their own platter, with their CRCs, and which did not.
#[derive(Debug, Default)]
struct PlatterOutcome {
    came: Vec<(usize, u64)>,
    left: Vec<usize>,
}

/// Where on a platter the tracks of its shards are.
struct Tracked {
    geometry: Geometry,
    map: TrackMap,
}

impl Tracked {
    fn new(set: &SetRow, row: &PlatterRow) -> Self {
        let geometry = set.geometry.clone();
        let map = geometry.map(geometry.tracks_for(row.data_bytes + row.list_bytes));
        Self { geometry, map }
    }

    /// The first and the last physical track of a shard.
    fn of(&self, shard: &Shard) -> (u32, u32) {
        let at = |offset| self.map.physical(self.geometry.address(offset).track).get();
        (at(shard.offset), at(shard.offset + shard.bytes.max(1) - 1))
    }

    /// The tracks that shards lie on, as one span.
    fn span<P>(&self, wishes: &[ShardWish<P>]) -> TrackSpan {
        let all = wishes.iter().map(|wish| self.of(&wish.shard));
        let (first, last) =
            all.fold((u32::MAX, 0), |(first, last), of| (first.min(of.0), last.max(of.1)));
        let first = first.min(last);
        TrackSpan::new(fulgurite_units::TrackIndex::new(first), last - first + 1)
    }

    /// Wishes in order of place, by stretches of tracks that are read in one go each.
    fn stretches<P>(&self, mut wishes: Vec<ShardWish<P>>) -> Vec<(TrackSpan, Vec<ShardWish<P>>)> {
        wishes.sort_by_key(|wish| wish.shard.offset);
        let mut stretches: Vec<(u32, Vec<ShardWish<P>>)> = Vec::new();
        for wish in wishes {
            let (first, last) = self.of(&wish.shard);
            match stretches.last_mut() {
                Some((end, wishes)) if first <= end.saturating_add(READ_GAP_TRACKS) => {
                    *end = last.max(*end);
                    wishes.push(wish);
                }
                _ => stretches.push((last, vec![wish])),
            }
        }
        stretches.into_iter().map(|(_, wishes)| (self.span(&wishes), wishes)).collect()
    }
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
    fn read_shard<P>(
        &mut self,
        reader: &Reader,
        tracks: &mut dyn Tracks,
        wish: &ShardWish<P>,
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

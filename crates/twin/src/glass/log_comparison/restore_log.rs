//! The log of a served archive's restores, next to that of its library.
//!
//! ```text
//! restore log: Asked, Room, Forgotten, times --> RestoreDriver --> Library + the twin's machines
//!              Fetch, Committed, times <--------- versus ------> the same in the twin
//! library log: the slot of each platter; the platters read instead of another
//! ```
//!
//! The two logs begin at different moments, and name platters, not sets. The shift between their
//! clocks is the median, over all platters, of the time from first fetch to first read. A run of
//! reads of the same tracks of different platters, which no fetch explains, is a degraded read from
//! a set. It replaces the platter whose read of these tracks ended last before it, or one that was
//! to be fetched just then and was never read. A platter counts as unusable if at least half of its
//! reads ended so. The logs do not tell how many of a set were enough: the twin waits for all, as
//! the archive does, and then has the data.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::io::BufRead;

use fulgurite_glass_core::control::{Event, Outcome, TrackSpan};
use fulgurite_restore::log::{Entry, LogError, LogReader, Logged};
use fulgurite_restore::{
    self as restore, Command, Piece, PieceId, Place, RestoreId, Retrieval, TierIndex,
};
use fulgurite_units::{ByteCount, Duration, Instant, PlatterId, SlotIndex, TrackIndex, UnixTime};

use super::{End, ExternalEvent};
use crate::glass::restore_driver::{Part, Places};

/// Maximum delay from a decision to its arrival at the library, on a busy machine.
const LATENCY_MAX: Duration = Duration::from_secs(1);

/// Inputs and decisions of the archive's restore controller, on the library's clock.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Restores {
    pub(super) drives: usize,
    pub(super) inputs: Vec<(Instant, RestoreInput)>,
    pub(super) history: RestoreHistory,
    /// The library's time zero as milliseconds since 1970, in nanoseconds.
    origin: i128,
    pub(super) platter_map: PlatterMap,
}

/// An external input of the restore controller.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RestoreInput {
    Asked { restore: RestoreId, retrieval: Retrieval, at: UnixTime, parts: Vec<Part> },
    Room(ByteCount),
    Forgotten(RestoreId),
}

/// The outcome of restores, in the log or in the twin.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RestoreHistory {
    /// When each was first requested, and its retrieval class.
    pub(super) requested: BTreeMap<RestoreId, (Instant, Retrieval)>,
    pub(super) done: BTreeMap<RestoreId, Instant>,
    /// Restores with a failure, a repeated request or a cancellation.
    pub(super) disturbed: BTreeSet<RestoreId>,
    /// Visits to platters: time, place and pieces.
    pub(super) visits: Vec<(Instant, Place, Vec<PieceId>)>,
}

impl RestoreHistory {
    /// Records an event of the controller.
    pub(super) fn event(&mut self, now: Instant, event: &restore::Event) {
        match *event {
            restore::Event::Asked { restore, retrieval, .. } => {
                if let btree_map::Entry::Vacant(first) = self.requested.entry(restore) {
                    first.insert((now, retrieval));
                } else {
                    self.disturbed.insert(restore);
                }
            }
            restore::Event::Committed { restore } => {
                self.done.insert(restore, now);
            }
            restore::Event::Failed { piece } => {
                self.disturbed.insert(piece.restore);
            }
            restore::Event::Lost { restore } | restore::Event::Forgotten { restore } => {
                self.disturbed.insert(restore);
            }
            restore::Event::Came { .. } | restore::Event::Room { .. } | restore::Event::Timer => {}
        }
    }

    /// Records a command of the controller.
    pub(super) fn command(&mut self, now: Instant, command: &Command) {
        if let Command::Fetch { place: Some(place), pieces, .. } = command {
            self.visits.push((now, *place, pieces.clone()));
        }
    }

    fn shift(&mut self, shift: i128) {
        let move_by = |at: &mut Instant| *at = shifted(*at, shift);
        self.requested.values_mut().for_each(|(at, _)| move_by(at));
        self.done.values_mut().for_each(move_by);
        self.visits.iter_mut().for_each(|(at, ..)| move_by(at));
    }
}

/// The slots of platters, and the unusable platters.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PlatterMap {
    slots: BTreeMap<Place, SlotIndex>,
    /// For each unusable platter, the others of its set.
    sets: BTreeMap<Place, Vec<Place>>,
}

impl PlatterMap {
    /// Returns the slot of an available platter.
    pub(super) fn slot(&self, place: Place) -> SlotIndex {
        self.slots.get(&place).copied().unwrap_or(SlotIndex::new(0))
    }
}

impl PlatterMap {
    pub(super) fn unusable_count(&self) -> u64 {
        self.sets.len() as u64
    }
}

impl Places for PlatterMap {
    fn is_available(&self, place: Place) -> bool {
        self.slots.contains_key(&place)
    }

    fn is_usable(&self, place: Place) -> bool {
        !self.sets.contains_key(&place)
    }

    fn recovery_sources(&mut self, place: Place) -> (Vec<Place>, usize) {
        (self.sets.get(&place).cloned().unwrap_or_default(), 0)
    }
}

impl Restores {
    /// Reads the log of the restores whose reads a library served.
    ///
    /// # Errors
    /// Names the first invalid line, or one that does not say where a piece begins.
    pub(super) fn read(
        source: impl BufRead,
        external_events: &[ExternalEvent],
        track_size: ByteCount,
    ) -> Result<Self, LogError> {
        let mut log = LogReader::new(source)?;
        let drives = log.tiers().first().map_or(0, |tier| tier.drives);
        let (mut inputs, mut history) = (Vec::new(), RestoreHistory::default());
        while let Some(Entry { line, at, what }) = log.next_entry()? {
            match what {
                Logged::Event(event) => {
                    history.event(at, &event);
                    let parts = |pieces: &[Piece]| parts(line, pieces, track_size);
                    inputs.extend(restore_input(event, parts)?.map(|input| (at, input)));
                }
                Logged::Command(command) => history.command(at, &command),
            }
        }
        let shift = shift(&history, external_events);
        history.shift(shift);
        inputs.iter_mut().for_each(|(at, _)| *at = shifted(*at, shift));
        let offsets = inputs.iter().filter_map(|(at, input)| match input {
            RestoreInput::Asked { at: requested, .. } => {
                Some(unix_ns(*requested) - i128::from(at.as_nanos()))
            }
            RestoreInput::Room(_) | RestoreInput::Forgotten(_) => None,
        });
        let origin = offsets.max().unwrap_or(0);
        let platter_map =
            PlatterMap { slots: slots(external_events), sets: sets(external_events, &history) };
        Ok(Self { drives, inputs, history, origin, platter_map })
    }

    /// Converts a Unix time to the library's clock.
    pub(super) fn instant(&self, at: UnixTime) -> Instant {
        let nanos = unix_ns(at) - self.origin;
        Instant::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX >> 1))
    }
}

fn restore_input(
    event: restore::Event,
    parts: impl FnOnce(&[Piece]) -> Result<Vec<Part>, LogError>,
) -> Result<Option<RestoreInput>, LogError> {
    Ok(match event {
        restore::Event::Asked { restore, retrieval, at, pieces } => {
            Some(RestoreInput::Asked { restore, retrieval, at, parts: parts(&pieces)? })
        }
        restore::Event::Room { bytes } => Some(RestoreInput::Room(bytes)),
        restore::Event::Forgotten { restore } => Some(RestoreInput::Forgotten(restore)),
        // These follow from the library's behavior, which is simulated.
        restore::Event::Came { .. }
        | restore::Event::Failed { .. }
        | restore::Event::Committed { .. }
        | restore::Event::Lost { .. }
        | restore::Event::Timer => None,
    })
}

/// Returns pieces with the tracks that hold them, computed from user bytes: redundancy tracks in
/// between are ignored.
fn parts(line: u64, pieces: &[Piece], track_size: ByteCount) -> Result<Vec<Part>, LogError> {
    let part = |&piece: &Piece| {
        // For a library, data in another tier is already staged.
        let first = TierIndex::default();
        let place = piece.place.filter(|_| piece.tier == first);
        let piece = Piece { tier: first, place, ..piece };
        let offset = match (piece.place, piece.offset) {
            (Some(_), None) => {
                let problem = "a piece does not say where it begins";
                return Err(LogError::Line { line, problem: problem.to_owned() });
            }
            (_, offset) => offset.unwrap_or_default().get(),
        };
        let track =
            |byte: u64| u32::try_from(byte / track_size.get().max(1)).unwrap_or(u32::MAX / 2);
        let (first, last) = (track(offset), track(offset + piece.bytes.get().max(1) - 1));
        let tracks = TrackSpan::new(TrackIndex::new(first), last - first + 1);
        Ok(Part { piece, tracks })
    };
    pieces.iter().map(part).collect()
}

/// Returns the place of a platter, named as in an archive.
pub(super) fn place_of(platter: PlatterId) -> Place {
    Place::new(u128::from_le_bytes(platter.to_bytes()))
}

/// Returns the platter of a place.
pub(super) fn platter_of(place: Place) -> PlatterId {
    PlatterId::from_bytes(place.get().to_le_bytes())
}

fn unix_ns(at: UnixTime) -> i128 {
    i128::from(at.as_millis()) * 1_000_000
}

fn shifted(at: Instant, shift: i128) -> Instant {
    let nanos = (i128::from(at.as_nanos()) + shift).max(0);
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX >> 1))
}

/// A read requested from a library.
#[derive(Clone, Copy, Debug)]
struct Read {
    at: Instant,
    place: Place,
    tracks: TrackSpan,
    ended: Option<(Instant, End)>,
}

fn reads(external_events: &[ExternalEvent]) -> Vec<Read> {
    let read = |ask: &ExternalEvent| match ask.event {
        Event::Read { platter, tracks, .. } => {
            Some(Read { at: ask.at, place: place_of(platter), tracks, ended: ask.ended })
        }
        Event::Verify { .. }
        | Event::Store { .. }
        | Event::Cancel { .. }
        | Event::Completed { .. }
        | Event::Passed { .. }
        | Event::Halted { .. }
        | Event::Failed { .. }
        | Event::Broke { .. }
        | Event::Repaired { .. }
        | Event::Battery { .. }
        | Event::Timer => None,
    };
    external_events.iter().filter_map(read).collect()
}

/// Returns how far the library's clock is ahead of that of the restores.
fn shift(history: &RestoreHistory, external_events: &[ExternalEvent]) -> i128 {
    let (mut fetched, mut read) = (BTreeMap::new(), BTreeMap::new());
    for (at, place, _) in &history.visits {
        fetched.entry(*place).or_insert(*at);
    }
    for Read { at, place, .. } in reads(external_events) {
        read.entry(place).or_insert(at);
    }
    let both = fetched.iter().filter_map(|(place, fetched)| {
        let read = read.get(place)?;
        Some(i128::from(read.as_nanos()) - i128::from(fetched.as_nanos()))
    });
    let mut shifts: Vec<i128> = both.collect();
    shifts.sort_unstable();
    shifts.get(shifts.len() / 2).copied().unwrap_or(0)
}

/// Returns the slot where each platter was read or stored.
fn slots(external_events: &[ExternalEvent]) -> BTreeMap<Place, SlotIndex> {
    let mut slots = BTreeMap::new();
    for ask in external_events {
        if let Event::Read { platter, slot, .. } | Event::Store { platter, slot, .. } = ask.event {
            slots.insert(place_of(platter), slot);
        }
    }
    slots
}

/// Returns the unusable platters, each with the others of its set.
fn sets(
    external_events: &[ExternalEvent],
    history: &RestoreHistory,
) -> BTreeMap<Place, Vec<Place>> {
    let reads = reads(external_events);
    let is_read: BTreeSet<Place> = reads.iter().map(|read| read.place).collect();
    let visits = || history.visits.iter().map(|(at, place, _)| (*at, *place));
    let is_explained = explained(&reads, visits().filter(|(_, place)| is_read.contains(place)));
    let mut unread = visits().filter(|(_, place)| !is_read.contains(place)).peekable();
    let mut votes: BTreeMap<Place, BTreeMap<Vec<Place>, usize>> = BTreeMap::new();
    let mut before: Option<(Place, Vec<Place>)> = None;
    let mut begin = 0;
    while begin < reads.len() {
        let first = &reads[begin];
        let end = begin + reads[begin..].iter().take_while(|of| of.tracks == first.tracks).count();
        let recovery_sources: Vec<Place> =
            reads[begin..end].iter().map(|read| read.place).collect();
        let unexplained = (begin..end).filter(|number| !is_explained[*number]).count();
        let different: BTreeSet<&Place> = recovery_sources.iter().collect();
        // One platter of a set may be fetched for its own data at the same moment.
        if unexplained >= 2 && different.len() == recovery_sources.len() {
            while unread.next_if(|(at, _)| *at + LATENCY_MAX < first.at).is_some() {}
            let goes_on =
                before.as_ref().filter(|(_, set)| *set == recovery_sources).map(|(of, _)| *of);
            let next = || unread.next_if(|(at, _)| *at <= first.at).map(|(_, place)| place);
            let missing = goes_on.or_else(next);
            let replaced = missing.or_else(|| read_last(&reads[..begin], first, &recovery_sources));
            if let Some(replaced) = replaced {
                *votes.entry(replaced).or_default().entry(recovery_sources.clone()).or_default() +=
                    1;
                before = missing.map(|of| (of, recovery_sources));
            }
        }
        begin = end;
    }
    let reads_of = |place| {
        let own = (0..reads.len()).filter(|number| is_explained[*number]);
        own.filter(|number| reads[*number].place == place).count()
    };
    let lost = votes.into_iter().filter_map(|(place, sets)| {
        let count: usize = sets.values().sum();
        let (recovery_sources, _) = sets.into_iter().max_by_key(|(_, count)| *count)?;
        (2 * count >= reads_of(place)).then_some((place, recovery_sources))
    });
    lost.collect()
}

/// Returns the platter whose read of the same tracks ended last before the others of its set were
/// requested.
fn read_last(before: &[Read], first: &Read, recovery_sources: &[Place]) -> Option<Place> {
    let ended = |read: &&Read| read.ended.is_some_and(|(at, _)| at <= first.at);
    let same = before.iter().filter(ended).filter(|read| read.tracks == first.tracks);
    let of = same.filter(|read| !recovery_sources.contains(&read.place));
    of.max_by_key(|read| read.ended.map(|(at, _)| at)).map(|read| read.place)
}

/// Returns for each read whether a visit explains it: both are in the order of their requests.
fn explained(reads: &[Read], visits: impl Iterator<Item = (Instant, Place)>) -> Vec<bool> {
    let mut visits = visits.peekable();
    let mut current: Option<(Place, u32)> = None;
    let explains = reads.iter().map(|read| {
        let first = read.tracks.first.get();
        let goes_on = current.is_some_and(|(place, end)| place == read.place && first >= end);
        // A fetch from long ago was never read: its objects had been deleted.
        while visits.next_if(|(at, _)| *at + LATENCY_MAX < read.at).is_some() {}
        if !goes_on && visits.next_if(|(_, place)| *place == read.place).is_none() {
            return false;
        }
        current = Some((read.place, first + read.tracks.track_count));
        true
    });
    explains.collect()
}

/// Returns whether a read of the log succeeded.
pub(super) const fn is_successful_read(end: End) -> bool {
    matches!(end, End::Finished(Outcome::Read))
}

//! What an archive makes of restores: the controller of restores in front of that of the library.
//!
//! ```text
//! ask --> waiting --(first of each retrieval)--> Restores --Fetch--> stretches --Read--> library
//!                                                   ^                                     |
//!                   Came, Failed <---- all others of the set, if a platter is of no use <-'
//! ```
//!
//! The controller is that of a live archive; what stands here is the archive's driver without its
//! files: of a visit each stretch of neighboring tracks is one read of the library, what a platter
//! does not give is asked of all others of its set at once, and what is at hand, and making copies
//! readable, takes no time.

use std::collections::{BTreeMap, VecDeque};

use fulgurite_library::{RequestId, TrackSpan};
use fulgurite_restore::limits::HELD_MAX;
use fulgurite_restore::{Command, Event, Piece, PieceId, Place, RestoreId, Restores, Retrieval};
use fulgurite_units::{Controller as _, Instant, Outbox, UnixTime};

/// Tracks from the last of one piece to the first of another that is read along with it: as in the
/// archive.
const GAP_TRACKS: u32 = 2;

/// Platters, as far as restores have to know them.
pub(crate) trait Places {
    /// Whether the library can be asked for a platter.
    fn is_there(&self, place: Place) -> bool;

    /// Whether what is read of a platter is of use.
    fn is_whole(&self, place: Place) -> bool;

    /// What is read in the place of a platter, and how many of these are enough.
    fn others(&mut self, place: Place) -> (Vec<Place>, usize);
}

/// A piece of a restore, and the tracks that it lies on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) piece: Piece,
    pub(crate) tracks: TrackSpan,
}

/// What restores come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wanted {
    /// Tracks are to be read; ends with [`Restoring::ended`].
    Read { request: RequestId, place: Place, tracks: TrackSpan, due: UnixTime },
    /// All of a restore is there.
    Restored(RestoreId),
    /// A restore failed too often, and begins anew after a while.
    GaveUp(RestoreId),
}

/// What the controller of restores is told, or decides.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told<'a> {
    Event(&'a Event),
    Command(&'a Command),
}

/// Restores, and the reads that they wait for.
#[derive(Debug)]
pub(crate) struct Restoring {
    restores: Restores,
    /// What the controller was not told of, of each retrieval, by when it was asked for.
    waiting: BTreeMap<Retrieval, BTreeMap<(UnixTime, RestoreId), Vec<Part>>>,
    known: BTreeMap<RestoreId, Known>,
    /// Pieces that did not come, of restores that the controller knows or not.
    pieces_open: usize,
    events: VecDeque<Event>,
    wanted: VecDeque<Wanted>,
    /// The stretch that a read is part of.
    reads: BTreeMap<RequestId, u64>,
    stretches: BTreeMap<u64, Stretch>,
    next_request: u64,
    next_stretch: u64,
    out: Outbox<Command>,
}

/// A restore that the controller knows.
#[derive(Clone, Debug)]
struct Known {
    parts: Vec<Part>,
    /// Pieces that did not come yet.
    open: usize,
}

/// Pieces that are read in one go.
#[derive(Clone, Debug)]
struct Stretch {
    place: Place,
    pieces: Vec<PieceId>,
    tracks: TrackSpan,
    due: UnixTime,
    /// Where others of the set are read instead.
    set: Option<OfSet>,
}

/// How far the reads of a set are.
#[derive(Clone, Copy, Debug)]
struct OfSet {
    left: usize,
    came: usize,
    needed: usize,
}

impl Restoring {
    /// Nothing is asked for; reads are numbered from here on.
    pub(crate) fn new(drives: usize, first_request: u64) -> Self {
        Self {
            restores: Restores::new(drives.max(1)),
            waiting: BTreeMap::new(),
            known: BTreeMap::new(),
            pieces_open: 0,
            events: VecDeque::new(),
            wanted: VecDeque::new(),
            reads: BTreeMap::new(),
            stretches: BTreeMap::new(),
            next_request: first_request,
            next_stretch: 0,
            out: Outbox::new(),
        }
    }

    /// Pieces that did not come yet.
    pub(crate) const fn pieces_open(&self) -> usize {
        self.pieces_open
    }

    /// Whether everything that was asked for has ended.
    pub(crate) fn is_idle(&self) -> bool {
        self.known.is_empty() && self.waiting.values().all(BTreeMap::is_empty)
    }

    /// When the controller is to be told the time.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.restores.deadline()
    }

    /// Tells the controller something that is no restore: the room, the time.
    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// A restore is asked for, or the same one once more.
    pub(crate) fn ask(
        &mut self,
        restore: RestoreId,
        retrieval: Retrieval,
        at: UnixTime,
        parts: Vec<Part>,
    ) {
        if self.known.contains_key(&restore) {
            // What is asked for again has its pieces known.
            self.events.push_back(Event::Asked { restore, retrieval, at, pieces: Vec::new() });
            return;
        }
        let urged = self.forget_waiting(restore);
        let parts = urged.unwrap_or(parts);
        self.pieces_open += parts.len();
        self.waiting.entry(retrieval).or_default().insert((at, restore), parts);
    }

    /// A restore is not wanted any more.
    pub(crate) fn forget(&mut self, restore: RestoreId) {
        self.forget_waiting(restore);
        if let Some(known) = self.known.remove(&restore) {
            self.pieces_open -= known.open;
            self.events.push_back(Event::Forgotten { restore });
        }
    }

    fn forget_waiting(&mut self, restore: RestoreId) -> Option<Vec<Part>> {
        let mut lanes = self.waiting.values_mut();
        let parts = lanes.find_map(|lane| {
            let key = lane.keys().find(|(_, of)| *of == restore).copied()?;
            lane.remove(&key)
        })?;
        self.pieces_open -= parts.len();
        Some(parts)
    }

    /// The next thing that restores come to; nothing until something ends or is asked for.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        places: &mut impl Places,
        mut told: impl FnMut(Told<'_>),
    ) -> Option<Wanted> {
        loop {
            if let Some(wanted) = self.wanted.pop_front() {
                return Some(wanted);
            }
            let Some(event) = self.events.pop_front() else {
                self.ask_more();
                if self.events.is_empty() {
                    return None;
                }
                continue;
            };
            told(Told::Event(&event));
            self.restores.step(now, event, &mut self.out);
            for command in self.out.drain().collect::<Vec<_>>() {
                told(Told::Command(&command));
                self.carry_out(command, places);
            }
        }
    }

    /// A read came to its end. Whether it was one of these.
    pub(crate) fn ended(
        &mut self,
        request: RequestId,
        is_read: bool,
        places: &mut impl Places,
    ) -> bool {
        let Some(number) = self.reads.remove(&request) else { return false };
        let Some(stretch) = self.stretches.get_mut(&number) else { return true };
        if let Some(set) = &mut stretch.set {
            set.left -= 1;
            set.came += usize::from(is_read);
            if set.left > 0 {
                return true;
            }
        }
        let Some(stretch) = self.stretches.remove(&number) else { return true };
        match stretch.set {
            Some(set) => self.answer(&stretch.pieces, set.came >= set.needed),
            None if is_read && places.is_whole(stretch.place) => {
                self.answer(&stretch.pieces, true);
            }
            None => self.ask_others(stretch, places),
        }
        true
    }

    /// Tells the controller of the first that wait of each retrieval, one of each at a time.
    fn ask_more(&mut self) {
        for retrieval in Retrieval::URGENT_FIRST {
            if self.events.is_empty()
                && self.restores.count(retrieval) < HELD_MAX
                && let Some(((at, restore), parts)) =
                    self.waiting.get_mut(&retrieval).and_then(BTreeMap::pop_first)
            {
                let pieces = parts.iter().map(|part| part.piece).collect();
                let open = parts.len();
                self.known.insert(restore, Known { parts, open });
                self.events.push_back(Event::Asked { restore, retrieval, at, pieces });
            }
        }
    }

    fn carry_out(&mut self, command: Command, places: &mut impl Places) {
        match command {
            Command::Fetch { place, pieces, due } => {
                let is_known = |piece: &PieceId| self.known.contains_key(&piece.restore);
                let (pieces, forgotten): (Vec<_>, Vec<_>) = pieces.into_iter().partition(is_known);
                self.answer(&forgotten, false);
                match place {
                    Some(place) => self.visit(place, pieces, due, places),
                    None => self.answer(&pieces, true),
                }
            }
            Command::Commit { restore } => {
                self.known.remove(&restore);
                self.events.push_back(Event::Committed { restore });
                self.wanted.push_back(Wanted::Restored(restore));
            }
            Command::Forget { restore } => {
                // What came of it has to come again.
                if let Some(known) = self.known.get_mut(&restore) {
                    self.pieces_open += known.parts.len() - known.open;
                    known.open = known.parts.len();
                }
                self.wanted.push_back(Wanted::GaveUp(restore));
            }
        }
    }

    /// Has what is wished of a platter read, each stretch of neighboring tracks in one go.
    fn visit(
        &mut self,
        place: Place,
        pieces: Vec<PieceId>,
        due: UnixTime,
        places: &mut impl Places,
    ) {
        let tracks_of =
            |piece: &PieceId| self.known[&piece.restore].parts[piece.index as usize].tracks;
        let mut wishes: Vec<(TrackSpan, PieceId)> =
            pieces.into_iter().map(|piece| (tracks_of(&piece), piece)).collect();
        wishes.sort_by_key(|(tracks, _)| tracks.first);
        for (tracks, pieces) in stretches(wishes) {
            let stretch = Stretch { place, pieces, tracks, due, set: None };
            if places.is_there(place) {
                self.read([place], stretch);
            } else {
                self.ask_others(stretch, places);
            }
        }
    }

    /// Has all others of a set read in the place of a platter.
    fn ask_others(&mut self, stretch: Stretch, places: &mut impl Places) {
        let (others, needed) = places.others(stretch.place);
        if others.is_empty() || others.len() < needed {
            self.answer(&stretch.pieces, false);
            return;
        }
        let set = Some(OfSet { left: others.len(), came: 0, needed });
        self.read(others, Stretch { set, ..stretch });
    }

    fn read(&mut self, of: impl IntoIterator<Item = Place>, stretch: Stretch) {
        for place in of {
            let request = RequestId::new(self.next_request);
            self.next_request += 1;
            self.reads.insert(request, self.next_stretch);
            let (tracks, due) = (stretch.tracks, stretch.due);
            self.wanted.push_back(Wanted::Read { request, place, tracks, due });
        }
        self.stretches.insert(self.next_stretch, stretch);
        self.next_stretch += 1;
    }

    /// Tells the controller what became of pieces.
    fn answer(&mut self, pieces: &[PieceId], came: bool) {
        for &piece in pieces.iter().filter(|piece| self.restores.is_under_way(**piece)) {
            if came && let Some(known) = self.known.get_mut(&piece.restore) {
                known.open -= 1;
                self.pieces_open -= 1;
            }
            let event = if came { Event::Came { piece } } else { Event::Failed { piece } };
            self.events.push_back(event);
        }
    }
}

/// Wishes in order of place, by stretches of tracks that are read in one go each.
fn stretches(wishes: Vec<(TrackSpan, PieceId)>) -> Vec<(TrackSpan, Vec<PieceId>)> {
    let mut stretches: Vec<(TrackSpan, Vec<PieceId>)> = Vec::new();
    for (tracks, piece) in wishes {
        let (first, until) = (tracks.first.get(), tracks.first.get() + tracks.track_count);
        if let Some((of, pieces)) = stretches.last_mut() {
            let end = of.first.get() + of.track_count;
            if first < end.saturating_add(GAP_TRACKS) {
                of.track_count = end.max(until) - of.first.get();
                pieces.push(piece);
                continue;
            }
        }
        stretches.push((tracks, vec![piece]));
    }
    stretches
}

#[cfg(test)]
mod tests;

//! How an archive handles restores: the restore controller in front of the library's controller.
//!
//! ```text
//! ask --> waiting --(first of each retrieval)--> Restores --Fetch--> stretches --Read--> library
//!                                                   ^                                     |
//!                   Came, Failed <---- all others of the set, if a platter is of no use <-'
//! ```
//!
//! The controller is that of a live archive; this is the archive's driver without its files. In a
//! visit, each stretch of neighboring tracks is one read of the library. What a platter does not
//! provide is requested from all others of its set at once. Staged data, and making copies
//! readable, takes no time.

use std::collections::{BTreeMap, VecDeque};

use fulgurite_glass_core::control::{RequestId, TrackSpan};
use fulgurite_restore::limits::SUBMITTED_MAX;
use fulgurite_restore::{Command, Event, Piece, PieceId, Place, RestoreId, Restores, Retrieval};
use fulgurite_units::{Controller as _, Instant, Outbox, UnixTime};

/// Maximum distance from the last track of one piece to the first of the next one read together
/// with it, as in the archive.
const GAP_TRACKS: u32 = 2;

/// Platters, as far as restores need to know them.
pub(crate) trait Places {
    /// Returns whether a platter can be requested from the library.
    fn is_available(&self, place: Place) -> bool;

    /// Returns whether the data read from a platter is usable.
    fn is_usable(&self, place: Place) -> bool;

    /// Returns the places to read instead of a platter, and how many of them are enough.
    fn recovery_sources(&mut self, place: Place) -> (Vec<Place>, usize);
}

/// A piece of a restore, and its tracks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) piece: Piece,
    pub(crate) tracks: TrackSpan,
}

/// What restores request or report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RestoreOutput {
    /// Tracks to read; ends with [`RestoreDriver::ended`].
    Read { request: RequestId, place: Place, tracks: TrackSpan, due: UnixTime },
    /// A restore is complete.
    Restored(RestoreId),
    /// A restore failed too often, and is retried after a backoff.
    GaveUp(RestoreId),
}

/// An input or output of the restore controller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ControllerTrace<'a> {
    Event(&'a Event),
    Command(&'a Command),
}

/// Restores, and the reads that they wait for.
#[derive(Debug)]
pub(crate) struct RestoreDriver {
    restores: Restores,
    /// Restores not passed to the controller yet, by retrieval class and request time.
    waiting: BTreeMap<Retrieval, BTreeMap<(UnixTime, RestoreId), Vec<Part>>>,
    known: BTreeMap<RestoreId, SubmittedRestore>,
    /// Pieces not read yet, of all restores, passed to the controller or not.
    pieces_open: usize,
    events: VecDeque<Event>,
    wanted: VecDeque<RestoreOutput>,
    /// The stretch that each read belongs to.
    reads: BTreeMap<RequestId, u64>,
    stretches: BTreeMap<u64, Stretch>,
    next_request: u64,
    next_stretch: u64,
    out: Outbox<Command>,
}

/// A restore that the controller knows.
#[derive(Clone, Debug)]
struct SubmittedRestore {
    parts: Vec<Part>,
    /// Pieces not read yet.
    open: usize,
}

/// Pieces that are read together.
#[derive(Clone, Debug)]
struct Stretch {
    place: Place,
    pieces: Vec<PieceId>,
    tracks: TrackSpan,
    due: UnixTime,
    /// Progress of a degraded read from the other platters of the set.
    set: Option<SetProgress>,
}

/// Progress of the reads from a set.
#[derive(Clone, Copy, Debug)]
struct SetProgress {
    left: usize,
    received: usize,
    needed: usize,
}

impl RestoreDriver {
    /// Creates an idle instance; reads are numbered from `first_request` on.
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

    /// Returns the number of pieces not read yet.
    pub(crate) const fn pieces_open(&self) -> usize {
        self.pieces_open
    }

    /// Returns whether all requests have ended.
    pub(crate) fn is_idle(&self) -> bool {
        self.known.is_empty() && self.waiting.values().all(BTreeMap::is_empty)
    }

    /// Returns when the controller's timer fires.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.restores.deadline()
    }

    /// Passes an event other than a restore to the controller: free space or a timer.
    pub(crate) fn pass_event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Requests a restore, or requests it again.
    pub(crate) fn request_restore(
        &mut self,
        restore: RestoreId,
        retrieval: Retrieval,
        at: UnixTime,
        parts: Vec<Part>,
    ) {
        if self.known.contains_key(&restore) {
            // The pieces of a repeated request are already known.
            self.events.push_back(Event::Asked { restore, retrieval, at, pieces: Vec::new() });
            return;
        }
        let urged = self.cancel_waiting(restore);
        let parts = urged.unwrap_or(parts);
        self.pieces_open += parts.len();
        self.waiting.entry(retrieval).or_default().insert((at, restore), parts);
    }

    /// Cancels a restore.
    pub(crate) fn cancel(&mut self, restore: RestoreId) {
        self.cancel_waiting(restore);
        if let Some(known) = self.known.remove(&restore) {
            self.pieces_open -= known.open;
            self.events.push_back(Event::Forgotten { restore });
        }
    }

    fn cancel_waiting(&mut self, restore: RestoreId) -> Option<Vec<Part>> {
        let mut lanes = self.waiting.values_mut();
        let parts = lanes.find_map(|lane| {
            let key = lane.keys().find(|(_, of)| *of == restore).copied()?;
            lane.remove(&key)
        })?;
        self.pieces_open -= parts.len();
        Some(parts)
    }

    /// Returns the next output of the restores; `None` until something ends or is requested.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        places: &mut impl Places,
        mut trace: impl FnMut(ControllerTrace<'_>),
    ) -> Option<RestoreOutput> {
        loop {
            if let Some(wanted) = self.wanted.pop_front() {
                return Some(wanted);
            }
            let Some(event) = self.events.pop_front() else {
                self.submit_waiting();
                if self.events.is_empty() {
                    return None;
                }
                continue;
            };
            trace(ControllerTrace::Event(&event));
            self.restores.step(now, event, &mut self.out);
            for command in self.out.drain().collect::<Vec<_>>() {
                trace(ControllerTrace::Command(&command));
                self.execute(command, places);
            }
        }
    }

    /// Handles the end of a read. Returns whether it belonged to a restore.
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
            set.received += usize::from(is_read);
            if set.left > 0 {
                return true;
            }
        }
        let Some(stretch) = self.stretches.remove(&number) else { return true };
        match stretch.set {
            Some(set) => self.answer(&stretch.pieces, set.received >= set.needed),
            None if is_read && places.is_usable(stretch.place) => {
                self.answer(&stretch.pieces, true);
            }
            None => self.read_recovery_sources(stretch, places),
        }
        true
    }

    /// Passes waiting restores to the controller: the first of each retrieval class, one at a time.
    fn submit_waiting(&mut self) {
        for retrieval in Retrieval::URGENT_FIRST {
            if self.events.is_empty()
                && self.restores.count(retrieval) < SUBMITTED_MAX
                && let Some(((at, restore), parts)) =
                    self.waiting.get_mut(&retrieval).and_then(BTreeMap::pop_first)
            {
                let pieces = parts.iter().map(|part| part.piece).collect();
                let open = parts.len();
                self.known.insert(restore, SubmittedRestore { parts, open });
                self.events.push_back(Event::Asked { restore, retrieval, at, pieces });
            }
        }
    }

    fn execute(&mut self, command: Command, places: &mut impl Places) {
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
                self.wanted.push_back(RestoreOutput::Restored(restore));
            }
            Command::Forget { restore } => {
                // Pieces already read must be read again.
                if let Some(known) = self.known.get_mut(&restore) {
                    self.pieces_open += known.parts.len() - known.open;
                    known.open = known.parts.len();
                }
                self.wanted.push_back(RestoreOutput::GaveUp(restore));
            }
        }
    }

    /// Reads the requested pieces of a platter, each stretch of neighboring tracks at once.
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
            if places.is_available(place) {
                self.read([place], stretch);
            } else {
                self.read_recovery_sources(stretch, places);
            }
        }
    }

    /// Reads all others of a set instead of a platter.
    fn read_recovery_sources(&mut self, stretch: Stretch, places: &mut impl Places) {
        let (recovery_sources, needed) = places.recovery_sources(stretch.place);
        if recovery_sources.is_empty() || recovery_sources.len() < needed {
            self.answer(&stretch.pieces, false);
            return;
        }
        let set = Some(SetProgress { left: recovery_sources.len(), received: 0, needed });
        self.read(recovery_sources, Stretch { set, ..stretch });
    }

    fn read(&mut self, places: impl IntoIterator<Item = Place>, stretch: Stretch) {
        for place in places {
            let request = RequestId::new(self.next_request);
            self.next_request += 1;
            self.reads.insert(request, self.next_stretch);
            let (tracks, due) = (stretch.tracks, stretch.due);
            self.wanted.push_back(RestoreOutput::Read { request, place, tracks, due });
        }
        self.stretches.insert(self.next_stretch, stretch);
        self.next_stretch += 1;
    }

    /// Reports the outcome of pieces to the controller.
    fn answer(&mut self, pieces: &[PieceId], received: bool) {
        for &piece in pieces.iter().filter(|piece| self.restores.is_in_flight(**piece)) {
            if received && let Some(known) = self.known.get_mut(&piece.restore) {
                known.open -= 1;
                self.pieces_open -= 1;
            }
            let event = if received { Event::Came { piece } } else { Event::Failed { piece } };
            self.events.push_back(event);
        }
    }
}

/// Groups requested pieces, sorted by track, into stretches of tracks that are each read at once.
fn stretches(wanted: Vec<(TrackSpan, PieceId)>) -> Vec<(TrackSpan, Vec<PieceId>)> {
    let mut stretches: Vec<(TrackSpan, Vec<PieceId>)> = Vec::new();
    for (tracks, piece) in wanted {
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

//! The state machine: each event is applied, then everything idle is given work.
//!
//! Giving work looks at the state alone, not at the event, so no event can be forgotten and no
//! wake-up lost. Drives choose first (`drives.rs`), then shuttles (`shuttles.rs`).

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{
    Controller, DriveIndex, Instant, Outbox, PlatterId, ShuttleIndex, SlotIndex,
};

use crate::floor::Floor;
use crate::limits::{EJECT_BAY_PLATTERS_MAX, REQUESTS_MAX};
use crate::state::{Age, Drive, Job, Place, Platter, Request, Shuttle, Stage};
use crate::{
    Action, Command, CommandId, Error, Event, Fault, LibraryShape, Outcome, Output, PanelIndex,
    RequestId, TrackSpan,
};

/// The controller of one library.
#[derive(Clone, Debug)]
pub struct Library {
    pub(crate) floor: Floor,
    pub(crate) now: Instant,
    sequence: u64,
    next_command: u64,
    pub(crate) requests: BTreeMap<RequestId, Request>,
    pub(crate) platters: BTreeMap<PlatterId, Platter>,
    /// The slots of the platters above: each has one owner.
    pub(crate) homes: BTreeMap<SlotIndex, PlatterId>,
    /// For each partition, the platters that wait in their slots to be fetched, oldest read first.
    pub(crate) fetchable: Vec<BTreeSet<(Age, PlatterId)>>,
    /// For each panel, the new platters that wait in its eject bay, oldest first.
    pub(crate) ejected: Vec<BTreeSet<(Age, PlatterId)>>,
    pub(crate) shuttles: Vec<Shuttle>,
    pub(crate) drives: Vec<Drive>,
    pub(crate) outstanding: BTreeMap<CommandId, Actor>,
    /// Whether any shuttle or drive is broken.
    pub(crate) damaged: bool,
}

/// Who carries out a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    Shuttle(ShuttleIndex),
    Drive(DriveIndex),
}

impl Controller for Library {
    type Event = Event;
    type Command = Output;

    fn step(&mut self, now: Instant, event: Event, out: &mut Outbox<Output>) {
        // Two drivers' threads may read one clock out of order; ages must not run backwards.
        self.now = self.now.max(now);
        match event {
            Event::Read { request, platter, slot, tracks } => {
                let taken = self.accept_read(request, platter, slot, tracks);
                reject(request, taken, out);
            }
            Event::Verify { request, platter, panel, tracks } => {
                let taken = self.accept_verify(request, platter, panel, tracks);
                reject(request, taken, out);
            }
            Event::Store { request, platter, slot } => {
                let taken = self.accept_store(request, platter, slot);
                reject(request, taken, out);
            }
            Event::Cancel { request } => self.cancel(request, out),
            Event::Completed { command } => match self.answered(command) {
                Actor::Shuttle(shuttle) => self.shuttle_completed(shuttle, command, out),
                Actor::Drive(drive) => self.drive_completed(drive, command, out),
            },
            Event::Halted { command, tracks_done } => match self.answered(command) {
                Actor::Drive(drive) => self.verify_halted(drive, command, tracks_done, out),
                Actor::Shuttle(shuttle) => panic!("shuttle {shuttle} was not asked to halt"),
            },
            Event::Failed { command, fault } => match self.answered(command) {
                Actor::Shuttle(shuttle) => self.shuttle_failed(shuttle, command, fault, out),
                Actor::Drive(drive) => self.drive_failed(drive, command, fault, out),
            },
            Event::Timer => {}
        }
        if self.damaged {
            self.end_unreachable(out);
        }
        self.dispatch_drives(out);
        self.dispatch_shuttles(out);
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn check(&self) {
        self.check_invariants();
    }
}

impl Library {
    /// A library at rest: every platter in its slot, every drive empty.
    ///
    /// # Errors
    /// When no library can have this shape.
    pub fn new(shape: &LibraryShape) -> Result<Self, Error> {
        let floor = Floor::new(shape)?;
        let partitions = floor.partitions().len();
        let shuttle = |index: u16| Shuttle {
            at: floor.start(ShuttleIndex::new(index)),
            cargo: None,
            trip: None,
            broken: false,
            fetches_in_a_row: 0,
        };
        let shuttles: Vec<Shuttle> =
            (0..shape.panels * shape.shuttles_per_panel).map(shuttle).collect();
        assert_eq!(shuttles.len(), partitions, "each shuttle has a partition");
        Ok(Self {
            now: Instant::ZERO,
            sequence: 0,
            next_command: 0,
            requests: BTreeMap::new(),
            platters: BTreeMap::new(),
            homes: BTreeMap::new(),
            fetchable: vec![BTreeSet::new(); partitions],
            ejected: vec![BTreeSet::new(); usize::from(shape.panels)],
            shuttles,
            drives: vec![Drive::default(); floor.drives().len()],
            outstanding: BTreeMap::new(),
            damaged: false,
            floor,
        })
    }

    /// The shape it was made with.
    #[must_use]
    pub const fn shape(&self) -> &LibraryShape {
        self.floor.shape()
    }

    /// Requests accepted and not finished.
    #[must_use]
    pub fn request_count(&self) -> usize {
        self.requests.len()
    }

    /// Where a platter is, if it has something to do; otherwise it is in its slot.
    #[must_use]
    pub fn place(&self, platter: PlatterId) -> Option<Place> {
        self.platters.get(&platter).map(|platter| platter.place)
    }

    fn accept_read(
        &mut self,
        request: RequestId,
        id: PlatterId,
        slot: SlotIndex,
        tracks: TrackSpan,
    ) -> Result<(), Error> {
        self.check_request(request)?;
        check_tracks(request, tracks)?;
        let owner = self.check_slot(slot)?;
        match self.platters.get(&id).map(|platter| platter.home()) {
            Some(Some(home)) if home != slot => {
                return Err(Error::OtherSlot { platter: id, home, slot });
            }
            Some(None) => return Err(Error::NotStored { platter: id }),
            Some(Some(_)) => {}
            None => self.check_free(slot, id)?,
        }
        if !self.is_served(owner) {
            return Err(Error::Unreachable { platter: id });
        }
        let age = self.next_age();
        self.requests.insert(request, Request { platter: id, age, job: Job::Read { tracks } });
        self.homes.insert(slot, id);
        let stored = || Platter::new(Stage::Stored { home: slot }, Place::Storage(slot));
        self.platters.entry(id).or_insert_with(stored).reads.insert(age, request);
        self.settle(id);
        Ok(())
    }

    fn accept_verify(
        &mut self,
        request: RequestId,
        id: PlatterId,
        panel: PanelIndex,
        tracks: TrackSpan,
    ) -> Result<(), Error> {
        self.check_request(request)?;
        check_tracks(request, tracks)?;
        let waiting = self.ejected.get(usize::from(panel.get()));
        let waiting = waiting.ok_or(Error::NoSuchPanel { panel })?.len();
        if self.platters.contains_key(&id) {
            return Err(Error::PlatterExists { platter: id });
        }
        if waiting >= EJECT_BAY_PLATTERS_MAX {
            return Err(Error::EjectBayFull { platter: id, limit: EJECT_BAY_PLATTERS_MAX });
        }
        if !self.is_panel_served(panel) {
            return Err(Error::Unreachable { platter: id });
        }
        let age = self.next_age();
        self.requests.insert(request, Request { platter: id, age, job: Job::Verify });
        let stage = Stage::Unverified { request, age, panel, tracks };
        self.platters.insert(id, Platter::new(stage, Place::EjectBay(panel)));
        self.settle(id);
        Ok(())
    }

    fn accept_store(
        &mut self,
        request: RequestId,
        id: PlatterId,
        slot: SlotIndex,
    ) -> Result<(), Error> {
        self.check_request(request)?;
        self.check_slot(slot)?;
        let stage = self.platters.get(&id).map(|platter| platter.stage);
        let Some(Stage::Checked { panel }) = stage else {
            return Err(Error::NotVerified { platter: id });
        };
        if self.floor.slot(slot).map(|position| position.panel) != Some(panel) {
            return Err(Error::OtherPanel { platter: id, panel, slot });
        }
        self.check_free(slot, id)?;
        let age = self.next_age();
        self.requests.insert(request, Request { platter: id, age, job: Job::Store });
        self.homes.insert(slot, id);
        self.platter_mut(id).stage = Stage::Storing { request, age, panel, home: slot };
        Ok(())
    }

    fn cancel(&mut self, request: RequestId, out: &mut Outbox<Output>) {
        let Some(&Request { platter: id, age, .. }) = self.requests.get(&request) else {
            return;
        };
        // Only reads are listed, and only as long as no drive has begun with them.
        if self.platter_mut(id).reads.remove(&age).is_some() {
            self.finish(request, Outcome::Canceled, out);
            self.settle(id);
        }
    }

    /// The request number is new, and there is room for it.
    fn check_request(&self, request: RequestId) -> Result<(), Error> {
        if self.requests.contains_key(&request) {
            return Err(Error::RequestExists { request });
        }
        if self.requests.len() >= REQUESTS_MAX {
            return Err(Error::QueueFull { request, limit: REQUESTS_MAX });
        }
        Ok(())
    }

    /// The slot exists; returns whose partition it is in.
    fn check_slot(&self, slot: SlotIndex) -> Result<ShuttleIndex, Error> {
        let slot_count = self.shape().slot_count();
        self.floor.owner(slot).ok_or(Error::NoSuchSlot { slot, slot_count })
    }

    /// No platter known here lives in the slot. Of platters at rest only the catalog knows.
    fn check_free(&self, slot: SlotIndex, platter: PlatterId) -> Result<(), Error> {
        match self.homes.get(&slot) {
            Some(&owner) => Err(Error::SlotTaken { slot, owner, platter }),
            None => Ok(()),
        }
    }

    const fn next_age(&mut self) -> Age {
        self.sequence += 1;
        Age { at: self.now, sequence: self.sequence }
    }

    /// A platter that must be known, since something else refers to it.
    pub(crate) fn platter(&self, id: PlatterId) -> &Platter {
        &self.platters[&id]
    }

    /// A platter that must be known, since something else refers to it.
    pub(crate) fn platter_mut(&mut self, id: PlatterId) -> &mut Platter {
        self.platters.get_mut(&id).expect("a platter that is referred to is known")
    }

    /// Gives a command to the driver.
    pub(crate) fn command(
        &mut self,
        actor: Actor,
        action: Action,
        out: &mut Outbox<Output>,
    ) -> CommandId {
        let id = CommandId::new(self.next_command);
        self.next_command += 1;
        self.outstanding.insert(id, actor);
        out.push(Output::Do(Command { id, action }));
        id
    }

    /// Who was given a command that is now answered.
    fn answered(&mut self, command: CommandId) -> Actor {
        let actor = self.outstanding.remove(&command);
        actor.expect("a driver answers each command once, and only commands it was given")
    }

    pub(crate) fn finish(
        &mut self,
        request: RequestId,
        outcome: Outcome,
        out: &mut Outbox<Output>,
    ) {
        let known = self.requests.remove(&request);
        assert!(known.is_some(), "request {request} is finished once");
        out.push(Output::Finished { request, outcome });
    }

    /// Puts a platter into the queue it belongs to after any change to it, or forgets it when it
    /// is at rest.
    pub(crate) fn settle(&mut self, id: PlatterId) {
        let platter = self.platter(id);
        let (stage, place, waited_since) = (platter.stage, platter.place, platter.waits_since);
        let waits_since = match (stage, place) {
            _ if platter.claim.is_some() => None,
            (Stage::Stored { .. }, Place::Storage(_)) => platter.oldest_read().map(|(age, _)| age),
            (Stage::Unverified { age, .. }, Place::EjectBay(_)) => Some(age),
            _ => None,
        };
        let at_rest = platter.claim.is_none()
            && platter.reads.is_empty()
            && matches!((stage, place), (Stage::Stored { .. }, Place::Storage(_)));
        if waits_since != waited_since {
            let queue = match place {
                Place::Storage(slot) => {
                    self.floor.owner(slot).map(|owner| &mut self.fetchable[owner.as_usize()])
                }
                Place::EjectBay(panel) => Some(&mut self.ejected[usize::from(panel.get())]),
                Place::Drive(..) | Place::Shuttle(_) => None,
            };
            let queue = queue.expect("a platter leaves its queue before it leaves its place");
            if let Some(age) = waited_since {
                queue.remove(&(age, id));
            }
            if let Some(age) = waits_since {
                queue.insert((age, id));
            }
            self.platter_mut(id).waits_since = waits_since;
        }
        if at_rest {
            self.forget(id);
        }
    }

    /// Drops a platter that has nothing to do, or is not there at all.
    pub(crate) fn forget(&mut self, id: PlatterId) {
        if let Some(platter) = self.platters.remove(&id) {
            assert!(platter.reads.is_empty(), "platter {id} is forgotten with reads");
            assert!(platter.waits_since.is_none(), "platter {id} is forgotten in a queue");
            if let Some(home) = platter.home() {
                self.homes.remove(&home);
            }
        }
    }

    /// Ends everything that is asked of a platter. It may be forgotten by this.
    pub(crate) fn end_requests(&mut self, id: PlatterId, fault: Fault, out: &mut Outbox<Output>) {
        let stage = self.platter(id).stage;
        if let Stage::Unverified { request, panel, .. } | Stage::Storing { request, panel, .. } =
            stage
        {
            if let Stage::Storing { home, .. } = stage {
                self.homes.remove(&home);
            }
            self.platter_mut(id).stage = Stage::Checked { panel };
            self.finish(request, Outcome::Failed(fault), out);
        }
        self.end_reads(id, fault, out);
    }

    /// Ends the reads that wait for a platter. It may be forgotten by this.
    pub(crate) fn end_reads(&mut self, id: PlatterId, fault: Fault, out: &mut Outbox<Output>) {
        let reads = std::mem::take(&mut self.platter_mut(id).reads);
        for request in reads.into_values() {
            self.finish(request, Outcome::Failed(fault), out);
        }
        self.settle(id);
    }
}

fn reject(request: RequestId, taken: Result<(), Error>, out: &mut Outbox<Output>) {
    if let Err(reason) = taken {
        out.push(Output::Rejected { request, reason });
    }
}

fn check_tracks(request: RequestId, tracks: TrackSpan) -> Result<(), Error> {
    let (first, track_count) = (tracks.first.get(), tracks.track_count);
    if track_count == 0 || tracks.end().is_none() {
        return Err(Error::BadTracks { request, first, track_count });
    }
    Ok(())
}

//! The state machine: each event is applied, then everything idle that the event may concern is
//! given work.
//!
//! While an event is applied, whatever it may concern is marked (`Dirty`): drives, groups of
//! shuttles, panels. Dispatch then depends on the state alone. So the cost of an event does not
//! grow with the library, and no wake-up is lost as long as every change marks what it concerns:
//! `check` asserts that nothing idle has work left.

use fulgurite_units::{Controller, Instant, Outbox, PlatterId, SlotIndex};

use crate::control::arrivals::Arrivals;
use crate::control::dirty::Dirty;
use crate::control::drive::Drives;
use crate::control::fleet::Fleet;
use crate::control::floor::Floor;
use crate::control::limits::{CANDIDATES_MAX, EJECT_BAY_PLATTERS_MAX, REQUESTS_MAX};
use crate::control::load::Load;
use crate::control::pace::Pace;
use crate::control::partition::Partitions;
use crate::control::platter_table::PlatterTable;
use crate::control::requests::Requests;
use crate::control::scratch::ScratchBuffers;
use crate::control::sequence::{Actor, Sequence, actor};
use crate::control::state::{Job, PendingRead, Place, PlatterKey, Request, Stage};
use crate::control::zones::Zones;
use crate::control::{
    Action, Command, CommandId, Counters, Error, Event, LibraryShape, Outcome, Output, PanelIndex,
    Policy, RequestId, TrackSpan,
};

/// The controller of one library.
///
/// Its state is split into parts that keep their own invariants: their fields are private, and each
/// has a `check`. The methods of `Library`, spread over the files of this crate, make decisions and
/// carry them out through the methods of the parts.
#[derive(Clone, Debug)]
pub struct Library {
    pub(crate) floor: Floor,
    pub(crate) policy: Policy,
    pub(crate) sequence: Sequence,
    pub(crate) requests: Requests,
    pub(crate) shelf: PlatterTable,
    pub(crate) partitions: Partitions,
    pub(crate) arrivals: Arrivals,
    pub(crate) pace: Pace,
    pub(crate) fleet: Fleet,
    pub(crate) drives: Drives,
    pub(crate) zones: Zones,
    pub(crate) dirty: Dirty,
    pub(crate) scratch: ScratchBuffers,
    pub(crate) load: Load,
    /// Whether anything is broken.
    pub(crate) damaged: bool,
    pub(crate) counters: Counters,
}

impl Controller for Library {
    type Event = Event;
    type Command = Output;

    fn step(&mut self, now: Instant, event: Event, out: &mut Outbox<Output>) {
        self.sequence.advance_to(now);
        self.apply(event, out);
        self.rebalance_when_due();
        self.update_pace();
        self.dispatch(out);
    }

    // Called after each event.
    #[inline]
    fn deadline(&self) -> Option<Instant> {
        // After a restart there is work before the first event.
        if !self.dirty.is_empty() {
            return Some(self.sequence.now());
        }
        let hold_end = if self.policy.hold.get() > 0.0 { self.next_hold_end() } else { None };
        match (hold_end, self.next_pace_update()) {
            (Some(hold_end), Some(pace_update)) => Some(hold_end.min(pace_update)),
            (hold_end, pace_update) => hold_end.or(pace_update),
        }
    }

    fn check(&self) {
        self.check_invariants();
    }
}

impl Library {
    /// Creates a library at rest with the product's policy: every platter in its slot, every drive
    /// empty.
    ///
    /// # Errors
    /// When the shape is invalid.
    pub fn new(shape: &LibraryShape) -> Result<Self, Error> {
        Self::with_policy(shape, Policy::fulgurite())
    }

    /// Creates a library at rest: every platter in its slot, every drive empty.
    ///
    /// # Errors
    /// When the shape or the policy is invalid.
    pub fn with_policy(shape: &LibraryShape, policy: Policy) -> Result<Self, Error> {
        let floor = Floor::new(shape)?;
        policy.validate()?;
        let cells = floor.cells_per_panel() * usize::from(shape.panels);
        let weights = vec![1; cells];
        let partitions = Partitions::new(&floor, policy.movement, &weights, |_| true, |_| true);
        let dirty = Dirty::new(floor.drives().len(), partitions.groups().len(), shape.panels);
        Ok(Self {
            sequence: Sequence::new(),
            requests: Requests::default(),
            shelf: PlatterTable::new(shape.slot_count()),
            partitions,
            arrivals: Arrivals::new(shape.panels),
            pace: Pace::new(),
            fleet: Fleet::new(&floor),
            drives: Drives::new(floor.drives().len()),
            zones: Zones::new(shape.zone_count(), shape.slots_per_shelf),
            dirty,
            scratch: ScratchBuffers::default(),
            load: Load::new(cells),
            damaged: false,
            counters: Counters::default(),
            policy,
            floor,
        })
    }

    /// The shape of the library.
    #[must_use]
    pub const fn shape(&self) -> &LibraryShape {
        self.floor.shape()
    }

    /// The policy of the library.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Number of requests accepted and not finished.
    #[must_use]
    pub fn request_count(&self) -> usize {
        self.requests.len()
    }

    /// Counters since the start.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns where a platter is, if it has work pending; otherwise it is in its slot.
    #[must_use]
    pub fn place(&self, platter: PlatterId) -> Option<Place> {
        self.shelf.find(platter).map(|key| self.shelf.get(key).place())
    }

    fn apply(&mut self, event: Event, out: &mut Outbox<Output>) {
        match event {
            Event::Read { request, platter, slot, tracks, deadline } => {
                let accepted = self.accept_read(request, platter, slot, tracks, deadline);
                reject(request, accepted, out);
            }
            Event::Verify { request, platter, panel, tracks } => {
                let accepted = self.accept_verify(request, platter, panel, tracks);
                reject(request, accepted, out);
            }
            Event::Store { request, platter, slot } => {
                let accepted = self.accept_store(request, platter, slot);
                reject(request, accepted, out);
            }
            Event::Cancel { request } => self.cancel(request, out),
            Event::Completed { command } => match actor(command) {
                Actor::Shuttle(shuttle) => self.shuttle_completed(shuttle, command, out),
                Actor::Drive(drive) => self.drive_completed(drive, command, out),
            },
            Event::Passed { command, at } => {
                if let Actor::Shuttle(shuttle) = actor(command) {
                    self.shuttle_passed(shuttle, command, at);
                }
            }
            Event::Halted { command, tracks_done } => match actor(command) {
                Actor::Drive(drive) => self.verify_halted(drive, command, tracks_done, out),
                Actor::Shuttle(shuttle) => panic!("shuttle {shuttle} was not asked to halt"),
            },
            Event::Failed { command, fault } => match actor(command) {
                Actor::Shuttle(shuttle) => self.shuttle_failed(shuttle, command, fault, out),
                Actor::Drive(drive) => self.drive_failed(drive, command, fault, out),
            },
            Event::Broke { machine } => self.mark_broken(machine, out),
            Event::Repaired { machine } => self.mark_repaired(machine),
            Event::Battery { shuttle, percent } => self.record_battery(shuttle, percent),
            Event::Timer => self.dirty.mark_all_groups(),
        }
    }

    /// Gives work to every machine that the event may have concerned.
    fn dispatch(&mut self, out: &mut Outbox<Output>) {
        loop {
            while let Some(drive) = self.dirty.next_drive() {
                self.dispatch_drive(drive, out);
            }
            if let Some(group) = self.next_group() {
                self.dispatch_group(group, out);
            } else if let Some(panel) = self.dirty.next_panel() {
                self.retry_blocked(panel, out);
                self.charge_idle(panel, out);
            } else {
                return;
            }
        }
    }

    fn next_group(&mut self) -> Option<u16> {
        let groups = self.partitions.groups();
        self.dirty.next_group(|group| groups[usize::from(group)].urgency())
    }

    fn accept_read(
        &mut self,
        request: RequestId,
        id: PlatterId,
        slot: SlotIndex,
        tracks: TrackSpan,
        deadline: Instant,
    ) -> Result<(), Error> {
        self.check_request(request)?;
        check_tracks(request, tracks)?;
        self.check_slot(slot)?;
        if self.shape().is_spare(slot) {
            return Err(Error::SpareSlot { slot });
        }
        // Nearly always the owner of the slot is the platter, which saves a search.
        let is_owner = |key: &PlatterKey| self.shelf.get(*key).id() == id;
        let known = self.shelf.owner(slot).filter(is_owner);
        let known = known.or_else(|| self.shelf.find(id));
        match known.map(|key| self.shelf.get(key).home()) {
            Some(Some(home)) if home != slot => {
                return Err(Error::OtherSlot { platter: id, home, slot });
            }
            Some(None) => return Err(Error::NotStored { platter: id }),
            Some(Some(_)) => {}
            None => self.check_free(slot, id)?,
        }
        if self.damaged && !self.is_reachable(known, slot) {
            return Err(Error::Unreachable { platter: id });
        }
        let age = self.sequence.age(deadline);
        let (stage, place) = (Stage::Stored { home: slot }, Place::Storage(slot));
        let key = known.unwrap_or_else(|| self.shelf.remember(id, stage, place));
        self.requests.insert(request, Request { platter: key, job: Job::Read });
        self.add_load(slot, tracks, known.is_none());
        self.enqueue(key, PendingRead { age, arrived: self.sequence.now(), request, tracks });
        self.settle(key);
        self.end_batch_if_urgent(key, age);
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
        let waiting = self.arrivals.ejected(panel).ok_or(Error::NoSuchPanel { panel })?;
        if let Some(key) = self.shelf.find(id) {
            return self.verify_again(request, key, tracks);
        }
        if waiting >= EJECT_BAY_PLATTERS_MAX {
            return Err(Error::EjectBayFull { platter: id, limit: EJECT_BAY_PLATTERS_MAX });
        }
        if self.damaged && !self.is_panel_served(panel) {
            return Err(Error::Unreachable { platter: id });
        }
        let age = self.sequence.age(self.sequence.now() + self.policy.verify_within);
        let stage = Stage::Unverified { request, age, panel, tracks };
        let key = self.shelf.remember(id, stage, Place::EjectBay(panel));
        self.requests.insert(request, Request { platter: key, job: Job::Verify });
        self.arrivals.eject(panel);
        self.settle(key);
        Ok(())
    }

    /// Verifies a platter where it is: one whose verification ended, or one found after a restart.
    fn verify_again(
        &mut self,
        request: RequestId,
        key: PlatterKey,
        tracks: TrackSpan,
    ) -> Result<(), Error> {
        let id = self.shelf.get(key).id();
        let Stage::Checked { panel } = self.shelf.get(key).stage() else {
            return Err(Error::PlatterExists { platter: id });
        };
        if self.damaged && self.is_out_of_reach(key) {
            return Err(Error::Unreachable { platter: id });
        }
        let age = self.sequence.age(self.sequence.now() + self.policy.verify_within);
        self.shelf.set_stage(key, Stage::Unverified { request, age, panel, tracks });
        self.mark_pace_stale();
        self.requests.insert(request, Request { platter: key, job: Job::Verify });
        self.mark_platter(key);
        self.settle(key);
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
        let known = self.shelf.find(id);
        let stage = known.map(|key| self.shelf.get(key).stage());
        let (Some(key), Some(Stage::Checked { panel })) = (known, stage) else {
            return Err(Error::NotVerified { platter: id });
        };
        if self.floor.slot(slot).panel != panel {
            return Err(Error::OtherPanel { platter: id, panel, slot });
        }
        if self.shape().is_spare(slot) {
            return Err(Error::SpareSlot { slot });
        }
        self.check_free(slot, id)?;
        if self.damaged && !self.is_reachable(Some(key), slot) {
            return Err(Error::Unreachable { platter: id });
        }
        let age = self.sequence.age(Instant::ZERO);
        self.requests.insert(request, Request { platter: key, job: Job::Store });
        self.shelf.set_stage(key, Stage::Storing { request, age, panel, home: slot });
        self.mark_pace_stale();
        // It was brought to a spare slot after a repair; from there it goes home like any other.
        self.mark_if_displaced(key);
        self.mark_platter(key);
        Ok(())
    }

    fn cancel(&mut self, request: RequestId, out: &mut Outbox<Output>) {
        let Some(Request { platter: key, .. }) = self.requests.get(request) else {
            return;
        };
        // Only reads are listed, and only until a drive starts them.
        let mut listed = self.shelf.get(key).reads().iter();
        let age = listed.find(|read| read.request == request).map(|read| read.age);
        if age.is_some_and(|age| self.remove_read(key, age).is_some()) {
            self.finish(request, Outcome::Canceled, out);
            self.mark_platter(key);
            self.settle(key);
        }
    }

    /// Checks that the request number is new and that there is room for the request.
    fn check_request(&self, request: RequestId) -> Result<(), Error> {
        if self.requests.get(request).is_some() {
            return Err(Error::RequestExists { request });
        }
        if self.requests.len() >= REQUESTS_MAX {
            return Err(Error::QueueFull { request, limit: REQUESTS_MAX });
        }
        Ok(())
    }

    pub(crate) fn check_slot(&self, slot: SlotIndex) -> Result<(), Error> {
        let slot_count = self.shape().slot_count();
        if slot.get() < slot_count { Ok(()) } else { Err(Error::NoSuchSlot { slot, slot_count }) }
    }

    /// Checks that no platter known here lives in the slot. Platters at rest are known only to the
    /// catalog.
    pub(crate) fn check_free(&self, slot: SlotIndex, platter: PlatterId) -> Result<(), Error> {
        match self.shelf.owner(slot) {
            Some(owner) => {
                Err(Error::SlotTaken { slot, owner: self.shelf.get(owner).id(), platter })
            }
            None => Ok(()),
        }
    }

    /// Sends a command to the driver.
    pub(crate) fn command(
        &mut self,
        actor: Actor,
        action: Action,
        out: &mut Outbox<Output>,
    ) -> CommandId {
        let id = self.sequence.command(actor);
        out.push(Output::Do(Command { id, action }));
        id
    }

    pub(crate) fn finish(
        &mut self,
        request: RequestId,
        outcome: Outcome,
        out: &mut Outbox<Output>,
    ) {
        let known = self.requests.remove(request);
        assert!(known.is_some(), "request {request} is finished once");
        out.push(Output::Finished { request, outcome });
    }

    /// Returns the earliest end of a hold, if any platter is held to gather more reads. Called only
    /// where the policy holds platters. Holds that are over do not count: those platters are
    /// fetched at the next event.
    fn next_hold_end(&self) -> Option<Instant> {
        let next = |group: &crate::control::partition::Group| {
            let oldest = group.queue().iter().take(usize::from(CANDIDATES_MAX));
            oldest.map(|(_, key)| self.hold_end(*key)).find(|end| *end > self.sequence.now())
        };
        self.partitions.groups().iter().filter_map(next).min()
    }
}

fn reject(request: RequestId, accepted: Result<(), Error>, out: &mut Outbox<Output>) {
    if let Err(reason) = accepted {
        out.push(Output::Rejected { request, reason });
    }
}

fn check_tracks(request: RequestId, tracks: TrackSpan) -> Result<(), Error> {
    if tracks.track_count > 0 && tracks.end().is_some() {
        return Ok(());
    }
    let (first, track_count) = (tracks.first.get(), tracks.track_count);
    Err(Error::BadTracks { request, first, track_count })
}

//! What broken shuttles, drives and rails put out of reach, and how it comes back.
//!
//! A broken machine is in no group: its neighbors take over what they can reach. A broken shuttle
//! bars what it held - its blast zone - until it is repaired. Requests for platters that nobody can
//! reach end with a fault, and new ones are refused: the requester then reads other platters of
//! their set. After the repair everything is as before: what the machine held goes on from there.

use fulgurite_units::{DriveIndex, Outbox, ShuttleIndex, SlotIndex};

use crate::controller::Library;
use crate::state::{Place, PlatterKey, Stage};
use crate::traffic::Span;
use crate::{Fault, Machine, Movement, Output, PanelIndex};

impl Library {
    pub(crate) fn broke(&mut self, machine: Machine, out: &mut Outbox<Output>) {
        match machine {
            Machine::Shuttle(index) => self.shuttle_broke(index, out),
            Machine::Drive(index) => {
                let work = self.drives[index.as_usize()].work.take();
                self.void_drive_work(index, work, out);
                self.drive_broke(index, out);
            }
            Machine::Rail { panel, shelf, from, to } => {
                let (from, to) = (from.get(), to.get());
                let span = Span { lane: self.traffic.lane(panel, shelf), from, to };
                self.traffic.bar_rail(span);
                self.damage_changed(out);
            }
        }
    }

    pub(crate) fn repaired(&mut self, machine: Machine) {
        match machine {
            Machine::Shuttle(index) => self.shuttle_repaired(index),
            Machine::Drive(index) => {
                let drive = &mut self.drives[index.as_usize()];
                drive.broken = false;
                drive.facing = None;
                drive.head = None;
                drive.bays.iter_mut().for_each(|bay| bay.mounted = false);
                self.dirty.drive(index);
            }
            Machine::Rail { panel, shelf, from, to } => {
                let (from, to) = (from.get(), to.get());
                let lane = self.traffic.lane(panel, shelf);
                self.traffic.unbar_rail(Span { lane, from, to });
                self.dirty.panel(panel);
            }
        }
        self.damaged = self.is_anything_broken();
        self.regroup();
        self.all_panels();
    }

    /// A shuttle stops where it is; what it held is barred.
    pub(crate) fn shuttle_broke(&mut self, index: ShuttleIndex, out: &mut Outbox<Output>) {
        if self.shuttles[index.as_usize()].broken {
            return;
        }
        self.unblock(index);
        let shuttle = &mut self.shuttles[index.as_usize()];
        shuttle.broken = true;
        let (trip, cargo) = (shuttle.trip.take(), shuttle.cargo);
        let held: Vec<Span> = self.traffic.held_by(index.get()).collect();
        held.into_iter().for_each(|span| self.traffic.bar(span));
        if let Some(trip) = trip {
            let action = trip.current.map(|(_, action)| action);
            if let Some(slot) = action.and_then(crate::shuttles::storage_slot) {
                self.unobscure(slot);
            }
            if let Some(errand) = trip.errand {
                self.release(&errand);
                if cargo.is_none() {
                    self.platter_mut(errand.platter).claim = None;
                    self.touch(errand.platter);
                    self.settle(errand.platter);
                }
            }
        }
        self.damage_changed(out);
    }

    fn shuttle_repaired(&mut self, index: ShuttleIndex) {
        if !std::mem::replace(&mut self.shuttles[index.as_usize()].broken, false) {
            return;
        }
        // Its battery may be another one: nothing is known of it until the driver says so.
        let shuttle = &mut self.shuttles[index.as_usize()];
        (shuttle.battery, shuttle.low) = (None, false);
        let held: Vec<Span> = self.traffic.held_by(index.get()).collect();
        for span in held {
            self.traffic.unbar(span);
            self.traffic.leave(index.get(), span.lane);
        }
        let at = self.shuttles[index.as_usize()].at;
        self.traffic.take(index.get(), self.traffic.footprint(at));
    }

    pub(crate) fn drive_broke(&mut self, index: DriveIndex, out: &mut Outbox<Output>) {
        self.drives[index.as_usize()].broken = true;
        self.drives[index.as_usize()].insists = false;
        self.damage_changed(out);
    }

    /// What a drive was doing when it broke ends with it.
    fn void_drive_work(
        &mut self,
        index: DriveIndex,
        work: Option<crate::state::Work>,
        out: &mut Outbox<Output>,
    ) {
        self.drives[index.as_usize()].head = None;
        if let Some(crate::Action::Read { request, .. }) = work.map(|work| work.action) {
            self.finish(request, crate::Outcome::Failed(Fault::DriveBroken), out);
        }
    }

    /// Something broke: groups without it, an end for what nobody can do any more.
    fn damage_changed(&mut self, out: &mut Outbox<Output>) {
        self.damaged = true;
        self.regroup();
        self.all_panels();
        self.end_unreachable(out);
    }

    fn all_panels(&mut self) {
        (0..self.shape().panels).for_each(|panel| self.dirty.panel(PanelIndex::new(panel)));
    }

    pub(crate) fn is_anything_broken(&self) -> bool {
        self.traffic.is_damaged()
            || self.shuttles.iter().any(|shuttle| shuttle.broken)
            || self.drives.iter().any(|drive| drive.broken)
    }

    /// Ends every request that nothing can serve.
    fn end_unreachable(&mut self, out: &mut Outbox<Output>) {
        let known: Vec<PlatterKey> = self.by_id.values().copied().collect();
        for key in known {
            self.end_if_out_of_reach(key, out);
        }
    }

    /// Ends the requests for a platter if nothing can serve it. It may be forgotten by this.
    pub(crate) fn end_if_out_of_reach(&mut self, key: PlatterKey, out: &mut Outbox<Output>) {
        let Some(fault) = self.out_of_reach(key) else { return };
        let Place::EjectBay(panel) = self.platter(key).place else {
            self.end_requests(key, fault, out);
            return;
        };
        // Nobody will come for a platter left in the eject bay.
        self.end_requests(key, fault, out);
        assert!(matches!(self.platter(key).stage, Stage::Checked { .. }), "it was new");
        self.ejected[usize::from(panel.get())] -= 1;
        self.forget(key);
    }

    /// Why a platter cannot be served, if it cannot.
    fn out_of_reach(&self, key: PlatterKey) -> Option<Fault> {
        let platter = self.platter(key);
        match platter.place {
            Place::Shuttle(index) => {
                self.shuttles[index.as_usize()].broken.then_some(Fault::ShuttleBroken)
            }
            // What a shuttle is coming for was released before the drive broke.
            Place::Drive(index, _) => {
                let broken = self.drives[index.as_usize()].broken;
                (broken && platter.claim.is_none()).then_some(Fault::DriveBroken)
            }
            Place::EjectBay(panel) => {
                let served = self.is_panel_served(panel);
                (!served && platter.claim.is_none()).then_some(Fault::Unreachable)
            }
            Place::Storage(slot) => {
                let served = self.is_slot_served(slot);
                (!served && platter.claim.is_none()).then_some(Fault::Unreachable)
            }
        }
    }

    /// Whether a broken machine holds a platter, or it cannot be reached.
    pub(crate) fn is_held(&self, key: PlatterKey) -> bool {
        self.out_of_reach(key).is_some()
    }

    /// Whether reads of a platter can be served.
    pub(crate) fn is_reachable(&self, known: Option<PlatterKey>, slot: SlotIndex) -> bool {
        match known.map(|key| self.platter(key).place) {
            Some(Place::Shuttle(index)) => !self.shuttles[index.as_usize()].broken,
            Some(Place::Drive(index, _)) => !self.drives[index.as_usize()].broken,
            Some(Place::Storage(at)) => self.is_slot_served(at),
            Some(Place::EjectBay(panel)) => self.is_panel_served(panel),
            None => self.is_slot_served(slot),
        }
    }

    /// Whether a shuttle of its group gets a platter from a slot to a drive of the group.
    fn is_slot_served(&self, slot: SlotIndex) -> bool {
        let at = self.floor.slot(slot);
        if self.policy.movement == Movement::NoShuttles {
            return self.drives.iter().any(|drive| !drive.broken);
        }
        let group = self.partitions.group(self.partitions.of_slot(&self.floor, slot));
        let has_drive = group.drives.iter().any(|drive| {
            let dock = self.floor.dock(*drive, at.shelf);
            self.traffic.shelf_around(dock, at).is_some()
        });
        let has_shuttle = group.shuttles.iter().any(|shuttle| {
            let from = self.shuttles[shuttle.as_usize()].at;
            self.traffic.shelf_around(from, at).is_some()
        });
        has_drive && has_shuttle && !self.traffic.is_barred(&self.traffic.footprint(at))
    }

    /// Whether new platters of a panel can be verified.
    pub(crate) fn is_panel_served(&self, panel: PanelIndex) -> bool {
        if self.policy.movement == Movement::NoShuttles {
            return self.drives.iter().any(|drive| !drive.broken);
        }
        let has_drive = self.partitions.groups.iter().any(|group| {
            group.panel == panel && !group.shuttles.is_empty() && !group.drives.is_empty()
        });
        has_drive && self.has_way(panel, self.floor.eject_bay(panel))
    }
}

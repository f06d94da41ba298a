//! What broken shuttles, drives and rails make unreachable, and how it becomes reachable again.
//!
//! A broken machine is in no group: its neighbors take over what they can reach. A broken shuttle
//! bars the spans it held - its blast zone - until it is repaired. Requests for unreachable
//! platters end with a fault, and new ones are rejected: the requester then reads other platters of
//! their set. After the repair everything is as before: the machine goes on with what it held.

use fulgurite_units::{DriveIndex, Outbox, ShuttleIndex, SlotIndex};

use crate::control::controller::Library;
use crate::control::drive::Work;
use crate::control::state::{Place, PlatterKey, Stage};
use crate::control::traffic::Span;
use crate::control::{Fault, Machine, Movement, Output, PanelIndex};

impl Library {
    pub(crate) fn mark_broken(&mut self, machine: Machine, out: &mut Outbox<Output>) {
        match machine {
            Machine::Shuttle(index) => self.shuttle_broke(index, out),
            Machine::Drive(index) => {
                let work = self.drives.get_mut(index).end();
                self.abort_drive_work(index, work, out);
                self.drive_broke(index, out);
            }
            Machine::Rail { panel, shelf, from, to } => {
                let (from, to) = (from.get(), to.get());
                let lane = self.fleet.traffic().lane(panel, shelf);
                self.fleet.bar_rail(Span { lane, from, to });
                self.handle_damage(out);
            }
        }
    }

    pub(crate) fn mark_repaired(&mut self, machine: Machine) {
        match machine {
            Machine::Shuttle(index) => {
                self.fleet.mark_repaired(index);
            }
            Machine::Drive(index) => {
                self.drives.get_mut(index).mark_repaired();
                self.dirty.drive(index);
            }
            Machine::Rail { panel, shelf, from, to } => {
                let (from, to) = (from.get(), to.get());
                let lane = self.fleet.traffic().lane(panel, shelf);
                self.fleet.unbar_rail(Span { lane, from, to });
                self.dirty.panel(panel);
            }
        }
        self.damaged = self.is_anything_broken();
        self.regroup();
        self.mark_all_panels();
    }

    /// Stops a shuttle where it is and bars the spans it held.
    pub(crate) fn shuttle_broke(&mut self, index: ShuttleIndex, out: &mut Outbox<Output>) {
        if self.fleet.get(index).is_broken() {
            return;
        }
        self.unblock(index);
        let cargo = self.fleet.get(index).cargo();
        let trip = self.fleet.mark_broken(index);
        if let Some(trip) = trip {
            let action = trip.current().map(|(_, action)| action);
            if let Some(slot) = action.and_then(crate::control::shuttle_dispatch::storage_slot) {
                self.unobscure(slot);
            }
            if let Some(errand) = trip.errand() {
                self.release(&errand);
                if cargo.is_none() {
                    self.release_claim(errand.platter);
                }
            }
        }
        self.handle_damage(out);
    }

    pub(crate) fn drive_broke(&mut self, index: DriveIndex, out: &mut Outbox<Output>) {
        self.drives.get_mut(index).mark_broken();
        self.handle_damage(out);
    }

    /// Ends the work that a drive was doing when it broke.
    fn abort_drive_work(
        &mut self,
        index: DriveIndex,
        work: Option<Work>,
        out: &mut Outbox<Output>,
    ) {
        self.drives.get_mut(index).set_head(None);
        if let Some(crate::control::Action::Read { request, .. }) = work.map(|work| work.action) {
            self.finish(request, crate::control::Outcome::Failed(Fault::DriveBroken), out);
        }
    }

    /// Reacts to a failure: repartitions without the broken machine and ends the requests that
    /// nothing can serve any more.
    fn handle_damage(&mut self, out: &mut Outbox<Output>) {
        self.damaged = true;
        self.regroup();
        self.mark_all_panels();
        self.end_unreachable(out);
    }

    fn mark_all_panels(&mut self) {
        (0..self.shape().panels).for_each(|panel| self.dirty.panel(PanelIndex::new(panel)));
    }

    pub(crate) fn is_anything_broken(&self) -> bool {
        self.fleet.is_any_broken() || self.drives.is_any_broken()
    }

    /// Ends every request that nothing can serve.
    fn end_unreachable(&mut self, out: &mut Outbox<Output>) {
        let known: Vec<PlatterKey> = self.shelf.known().map(|(key, _)| key).collect();
        for key in known {
            self.end_if_out_of_reach(key, out);
        }
    }

    /// Ends the requests for a platter if nothing can serve it. The platter may be forgotten by
    /// this.
    pub(crate) fn end_if_out_of_reach(&mut self, key: PlatterKey, out: &mut Outbox<Output>) {
        let Some(fault) = self.unreachable_fault(key) else { return };
        let Place::EjectBay(panel) = self.shelf.get(key).place() else {
            self.end_requests(key, fault, out);
            return;
        };
        // No shuttle will come for a platter left in the eject bay.
        self.end_requests(key, fault, out);
        assert!(
            matches!(self.shelf.get(key).stage(), Stage::Checked { .. }),
            "the platter was being verified"
        );
        self.arrivals.take(panel);
        self.shelf.forget(key);
    }

    /// Returns why a platter cannot be served, if it cannot.
    fn unreachable_fault(&self, key: PlatterKey) -> Option<Fault> {
        let platter = self.shelf.get(key);
        match platter.place() {
            Place::Shuttle(index) => {
                self.fleet.get(index).is_broken().then_some(Fault::ShuttleBroken)
            }
            // A platter that a shuttle is coming for was released before the drive broke.
            Place::Drive(index, _) => {
                let broken = self.drives.get(index).is_broken();
                (broken && platter.claim().is_none()).then_some(Fault::DriveBroken)
            }
            Place::EjectBay(panel) => {
                let served = self.is_panel_served(panel);
                (!served && platter.claim().is_none()).then_some(Fault::Unreachable)
            }
            Place::Storage(slot) => {
                let served = self.is_slot_served(slot);
                (!served && platter.claim().is_none()).then_some(Fault::Unreachable)
            }
        }
    }

    /// Whether a broken machine holds a platter, or it cannot be reached.
    pub(crate) fn is_out_of_reach(&self, key: PlatterKey) -> bool {
        self.unreachable_fault(key).is_some()
    }

    /// Whether reads of a platter can be served.
    pub(crate) fn is_reachable(&self, known: Option<PlatterKey>, slot: SlotIndex) -> bool {
        match known.map(|key| self.shelf.get(key).place()) {
            Some(Place::Shuttle(index)) => !self.fleet.get(index).is_broken(),
            Some(Place::Drive(index, _)) => !self.drives.get(index).is_broken(),
            Some(Place::Storage(at)) => self.is_slot_served(at),
            Some(Place::EjectBay(panel)) => self.is_panel_served(panel),
            None => self.is_slot_served(slot),
        }
    }

    /// Whether a shuttle of its group can bring a platter from a slot to a drive of the group.
    fn is_slot_served(&self, slot: SlotIndex) -> bool {
        let at = self.floor.slot(slot);
        if self.policy.movement == Movement::NoShuttles {
            return self.drives.is_any_working();
        }
        let group = self.partitions.group(self.partitions.group_of_slot(&self.floor, slot));
        let has_drive = group.drives().iter().any(|drive| {
            let dock = self.floor.dock(*drive, at.shelf);
            self.fleet.traffic().shelf_around(dock, at).is_some()
        });
        let has_shuttle = group.shuttles().iter().any(|shuttle| {
            let from = self.fleet.get(*shuttle).position();
            self.fleet.traffic().shelf_around(from, at).is_some()
        });
        has_drive
            && has_shuttle
            && !self.fleet.traffic().is_barred(&self.fleet.traffic().footprint(at))
    }

    /// Whether new platters of a panel can be verified.
    pub(crate) fn is_panel_served(&self, panel: PanelIndex) -> bool {
        if self.policy.movement == Movement::NoShuttles {
            return self.drives.is_any_working();
        }
        let has_drive = self.partitions.groups().iter().any(|group| {
            group.panel() == panel && !group.shuttles().is_empty() && !group.drives().is_empty()
        });
        has_drive && self.has_way(panel, self.floor.eject_bay(panel))
    }
}

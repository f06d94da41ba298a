//! What broken shuttles and drives put out of reach.
//!
//! A broken shuttle or drive is not used any more, and every request that only it could serve ends
//! with the fault that stopped it: nothing waits for a repair, nothing is silently forgotten. New
//! requests for such platters are rejected as unreachable. What the next version adds - repair,
//! recovery of platters from broken machines, neighbors that take over a partition, slots for the
//! time being - is not here.

use fulgurite_units::{Outbox, PlatterId, ShuttleIndex};

use crate::controller::Library;
use crate::state::{Place, Stage};
use crate::{DriveSlot, Fault, Output, PanelIndex};

impl Library {
    /// Whether reads of this partition can be served.
    pub(crate) fn is_served(&self, partition: ShuttleIndex) -> bool {
        self.stopped_by(partition).is_none()
    }

    /// Whether new platters of this panel can be verified.
    pub(crate) fn is_panel_served(&self, panel: PanelIndex) -> bool {
        self.partitions().any(|partition| {
            self.floor.partition(partition).panel == panel && self.is_served(partition)
        })
    }

    fn partitions(&self) -> impl Iterator<Item = ShuttleIndex> + use<> {
        let count = u16::try_from(self.shuttles.len()).unwrap_or(u16::MAX);
        (0..count).map(ShuttleIndex::new)
    }

    /// What keeps a partition from serving reads, if anything.
    fn stopped_by(&self, partition: ShuttleIndex) -> Option<Fault> {
        if self.shuttles[partition.as_usize()].broken {
            return Some(Fault::ShuttleBroken);
        }
        let mut drives = self.floor.partition(partition).drives.iter();
        let dead = drives.all(|drive| self.drives[drive.as_usize()].broken);
        dead.then_some(Fault::DriveBroken)
    }

    /// Ends every request that nothing can serve any more.
    pub(crate) fn end_unreachable(&mut self, out: &mut Outbox<Output>) {
        for (id, fault) in self.unreachable() {
            if !self.platters.contains_key(&id) {
                continue;
            }
            self.end_requests(id, fault, out);
            // Nobody will come for a platter left in the eject bay.
            let gone = self.platters.get(&id).is_some_and(|platter| {
                matches!(platter.stage, Stage::Checked { .. })
                    && matches!(platter.place, Place::EjectBay(_))
            });
            if gone {
                self.forget(id);
            }
        }
    }

    /// Platters that nobody can get at, and why.
    fn unreachable(&self) -> Vec<(PlatterId, Fault)> {
        let mut found = Vec::new();
        for partition in self.partitions() {
            let shuttle = &self.shuttles[partition.as_usize()];
            if let Some(cargo) = shuttle.cargo.filter(|_| shuttle.broken) {
                found.push((cargo, Fault::ShuttleBroken));
            }
            if let Some(fault) = self.stopped_by(partition) {
                let waiting = &self.fetchable[partition.as_usize()];
                found.extend(waiting.iter().map(|&(_, id)| (id, fault)));
            }
        }
        for (panel, waiting) in self.ejected.iter().enumerate() {
            let panel = PanelIndex::new(u16::try_from(panel).unwrap_or(u16::MAX));
            if !waiting.is_empty() && !self.is_panel_served(panel) {
                found.extend(waiting.iter().map(|&(_, id)| (id, Fault::ShuttleBroken)));
            }
        }
        for drive in 0..self.drives.len() {
            found.extend(self.caught(drive, DriveSlot::Customer));
            found.extend(self.caught(drive, DriveSlot::Verification));
        }
        found
    }

    /// The platter in a slot of a drive, if it is caught there with something still to be done.
    fn caught(&self, index: usize, slot: DriveSlot) -> Option<(PlatterId, Fault)> {
        let drive = &self.drives[index];
        let id = drive.bay(slot).platter?;
        let platter = self.platter(id);
        if drive.broken && drive.bay(slot).mounted {
            return Some((id, Fault::DriveBroken));
        }
        // Released: a shuttle could take it, if one works that may.
        let needs_shuttle = match platter.stage {
            Stage::Unverified { .. } => return drive.broken.then_some((id, Fault::DriveBroken)),
            Stage::Checked { .. } => false,
            Stage::Storing { .. } => true,
            Stage::Stored { .. } => drive.broken,
        };
        let helped = self.partitions().any(|partition| {
            let has_drive = self
                .floor
                .partition(partition)
                .drives
                .iter()
                .any(|drive| drive.as_usize() == index);
            let allowed = match platter.stage {
                Stage::Stored { home } => self.takes_home(partition, home),
                Stage::Storing { .. } | Stage::Unverified { .. } | Stage::Checked { .. } => true,
            };
            has_drive && allowed && !self.shuttles[partition.as_usize()].broken
        });
        (needs_shuttle && !helped).then_some((id, Fault::ShuttleBroken))
    }
}

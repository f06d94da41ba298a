//! Invariants of a set of tomes, checked from outside: by what tomes committed, not by what they
//! answer.
//!
//! Tokens are checked in each step that spins up a disk ([`super::driver`]). Protection is checked
//! in each answer that reports it. The rest requires a scan of everything, and is checked
//! periodically.

use fulgurite_tome_core::consistency::{Descent, Report};
use fulgurite_tome_core::group::Group;
use fulgurite_tome_core::metadata::{Region, Role};
use fulgurite_units::Controller as _;

use super::driver::Driven;
use super::initial_state::name_of;

impl Driven {
    /// Checks every tome and every group.
    pub(crate) fn check(&mut self) {
        self.counts.checks += 1;
        for node in &self.nodes {
            if let Some(tome) = &node.tome {
                tome.check();
            }
            assert!(
                node.spinning.is_none() || node.tome.is_some(),
                "a lost tome has no spinning disk"
            );
        }
        for group in self.groups.iter() {
            self.check_group(group);
        }
    }

    /// Checks that the signatures of a group match, except for in-flight deltas.
    fn check_group(&self, group: &Group) {
        let members: Vec<Option<&Region>> =
            group.slots().iter().map(|id| self.region(*id)).collect();
        let is_settled = |region: &&Region| {
            (region.is_member() || region.frozen().is_some())
                && region.group().epoch() == group.epoch()
        };
        let reports: Option<Vec<Report>> = members
            .into_iter()
            .map(|region| region.filter(is_settled).map(Region::report))
            .collect();
        // A member slot is lost, or is moving.
        let Some(reports) = reports else { return };
        match Descent::new(group.split(), self.layout, &reports) {
            Ok(descent) => {
                assert_eq!(
                    descent.wants(),
                    None,
                    "parity matches the data, or an in-flight delta explains the difference"
                );
                assert_eq!(descent.findings(), [], "no block of the group is corrupt");
            }
            Err(error) => unreachable!("every member of {} reports: {error}", group.id()),
        }
    }

    fn region(&self, id: fulgurite_tome_core::RegionId) -> Option<&Region> {
        self.nodes[id.tome.get() as usize].tome.as_ref()?.metadata().region(id.index)
    }

    /// Checks that every available parity has applied an object that its tome reports as protected.
    pub(crate) fn check_protected(&mut self, object: usize) {
        self.counts.checks += 1;
        let at = self.objects[object].tome;
        let Some(tome) = &self.nodes[at].tome else { return };
        let Some(known) = tome.metadata().object(&name_of(object)) else { return };
        for (index, offset) in &known.blocks {
            let Some(region) = tome.metadata().region(*index) else { continue };
            let (group, member) = (region.group(), region.member());
            for parity in &group.slots()[group.split().data() as usize..] {
                let Some(Role::Parity { applied, .. }) = self.region(*parity).map(Region::role)
                else {
                    continue;
                };
                let has = applied[member.as_usize()].summary().has(region.version(*offset));
                assert!(has, "object {object} is reported as protected, but {parity} lacks it");
            }
        }
    }
}

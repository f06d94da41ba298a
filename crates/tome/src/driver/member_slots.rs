//! Requests of a set to a tome while member slots of its groups move.
//!
//! Not here: how the core handles them, and which member slots move (`crate::set::slot_mover`).

use fulgurite_tome_core::consistency::Finding;
use fulgurite_tome_core::membership_state::MembershipState;
use fulgurite_tome_core::metadata::{Object, Region, TomeMetadata};
use fulgurite_tome_core::{GroupId, RegionIndex};
use fulgurite_units::Ratio;
use serde::{Deserialize, Serialize};

use super::event_loop::Loop;
use crate::piece_store::ObjectLocation;
use crate::{Result, TomesError};

/// Membership of a region in a group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum MembershipStatus {
    /// It is in no group, or in another one.
    Not,
    /// It is being rebuilt, with this progress.
    Building(Ratio),
    /// It is a member.
    Member,
    /// It was a member.
    Left,
}

/// Result of a group check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Blocks that are no codeword.
    pub findings: Vec<Finding>,
    /// Signatures exchanged for it.
    pub exchanged: u64,
}

/// Returns the data blocks of a tome that objects can use: in regions that are members and whose
/// objects are known.
pub(crate) fn data_blocks(metadata: &TomeMetadata) -> u64 {
    let is_open = |region: &Region| match region.membership_state() {
        MembershipState::Member | MembershipState::Frozen(_) => !region.is_rebuilt(),
        MembershipState::Building(_) | MembershipState::Left => false,
    };
    let data =
        metadata.regions().filter(|(_, region)| region.pending().is_some() && is_open(region));
    data.count() as u64 * u64::from(metadata.layout().region_data_blocks())
}

impl Loop {
    pub(super) fn placed(&self, name: &str) -> Option<ObjectLocation> {
        let metadata = self.tome.metadata();
        metadata.object(name).map(|object| ObjectLocation::new(metadata, object))
    }

    /// Returns an error if the tome is given up.
    pub(super) fn answerable(&self) -> Result<()> {
        match &self.failure {
            Some(failure) => {
                Err(TomesError::GivenUp { tome: self.id(), why: failure.why().to_owned() })
            }
            None => Ok(()),
        }
    }

    pub(super) fn membership_status(&self, index: RegionIndex, group: GroupId) -> MembershipStatus {
        let (metadata, segments) =
            (self.tome.metadata(), self.tome.metadata().layout().parts().segments);
        let is_in_group = |region: &&Region| region.group().id() == group;
        let Some(region) = metadata.region(index).filter(is_in_group) else {
            return MembershipStatus::Not;
        };
        match region.membership_state() {
            MembershipState::Member | MembershipState::Frozen(_) => MembershipStatus::Member,
            MembershipState::Building(building) => {
                MembershipStatus::Building(building.done(segments))
            }
            MembershipState::Left => MembershipStatus::Left,
        }
    }

    /// Returns those objects that are intact in this tome, and the names of all.
    pub(super) fn intact_objects(
        &self,
        objects: Vec<(String, ObjectLocation)>,
    ) -> (Vec<(String, Object)>, Vec<String>) {
        let names = objects.iter().map(|(name, _)| name.clone()).collect();
        let metadata = self.tome.metadata();
        let intact = objects.into_iter().filter(|(_, placed)| placed.is_whole(metadata));
        (intact.map(|(name, placed)| (name, placed.object)).collect(), names)
    }
}

//! Requests of a set to a tome while member slots of its groups move.
//!
//! Not here: how the core handles them, and which member slots move (`crate::set::moving`).

use fulgurite_tome::awake::{Awake, Object, Region};
use fulgurite_tome::consistency::Finding;
use fulgurite_tome::standing::Standing;
use fulgurite_tome::{GroupId, RegionIndex};
use fulgurite_units::Ratio;
use serde::{Deserialize, Serialize};

use super::looping::Loop;
use crate::piece_store::Placed;
use crate::{Result, TomesError};

/// Membership of a region in a group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Seated {
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
pub(crate) fn data_blocks(awake: &Awake) -> u64 {
    let is_open = |region: &Region| match region.standing() {
        Standing::Member | Standing::Frozen(_) => !region.is_rebuilt(),
        Standing::Building(_) | Standing::Left => false,
    };
    let data = awake.regions().filter(|(_, region)| region.pending().is_some() && is_open(region));
    data.count() as u64 * u64::from(awake.layout().region_data_blocks())
}

impl Loop {
    pub(super) fn placed(&self, name: &str) -> Option<Placed> {
        let awake = self.tome.awake();
        awake.object(name).map(|object| Placed::of(awake, object))
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

    pub(super) fn seated(&self, index: RegionIndex, group: GroupId) -> Seated {
        let (awake, segments) = (self.tome.awake(), self.tome.awake().layout().parts().segments);
        let is_of = |region: &&Region| region.group().id() == group;
        let Some(region) = awake.region(index).filter(is_of) else { return Seated::Not };
        match region.standing() {
            Standing::Member | Standing::Frozen(_) => Seated::Member,
            Standing::Building(building) => Seated::Building(building.done(segments)),
            Standing::Left => Seated::Left,
        }
    }

    /// Returns those objects that are intact in this tome, and the names of all.
    pub(super) fn whole(
        &self,
        objects: Vec<(String, Placed)>,
    ) -> (Vec<(String, Object)>, Vec<String>) {
        let names = objects.iter().map(|(name, _)| name.clone()).collect();
        let awake = self.tome.awake();
        let whole = objects.into_iter().filter(|(_, placed)| placed.is_whole(awake));
        (whole.map(|(name, placed)| (name, placed.object)).collect(), names)
    }
}

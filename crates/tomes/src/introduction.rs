//! What a set and a tome in another process say to each other first.
//!
//! Each time that the tome answers again it is told of its set ([`Introduction`]) and says what it
//! has, so whatever became of either side meanwhile is known. Not here: how it travels.

use fulgurite_tome::group::Group;
use fulgurite_tome::{Layout, TomeId};
use fulgurite_units::TomeSetId;
use serde::{Deserialize, Serialize};

/// What a set says to a tome before anything else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Introduction {
    /// The set.
    pub set: TomeSetId,
    /// Which of its tomes is meant.
    pub tome: TomeId,
    /// How its disk is divided.
    pub layout: Layout,
    /// Groups in which it has a seat.
    pub groups: Vec<Group>,
    /// Whether an awake store and a disk may be made where there are none. Not so once they were:
    /// what was lost is not to come back empty.
    pub may_make: bool,
}

/// What a tome answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// Data blocks of its regions.
    pub data_blocks: u64,
    /// Names that are being put for a set that was there before: they come yet, or not.
    pub under_way: Vec<String>,
}

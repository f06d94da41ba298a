//! The handshake between a set and a tome in another process.
//!
//! Each time that the tome answers again, the set sends a [`SetHandshake`] and the tome reports
//! what it has. So both sides know what happened on the other one. Not here: the transport.

use fulgurite_tome_core::group::Group;
use fulgurite_tome_core::{Layout, TomeId};
use fulgurite_units::TomeSetId;
use serde::{Deserialize, Serialize};

/// First message of a set to a tome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetHandshake {
    /// The set.
    pub set: TomeSetId,
    /// The tome that it expects.
    pub tome: TomeId,
    /// How its disk is divided.
    pub layout: Layout,
    /// Groups in which it has a member slot.
    pub groups: Vec<Group>,
    /// Whether a missing metadata store and disk may be created. Not once they were: lost data must
    /// not come back empty.
    pub may_make: bool,
}

/// Answer of the tome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandshakeReply {
    /// Data blocks of its regions.
    pub data_blocks: u64,
    /// Names being put for the previous session of a set: these puts may still succeed or fail.
    pub under_way: Vec<String>,
}

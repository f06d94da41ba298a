//! One candidate: how many racks, and what each has.

use fulgurite_units::ByteCount;
use serde::{Deserialize, Serialize};

use crate::rack::scenario::Configuration;
use crate::rack::shape::{DISKS, DISKS_OF_GROUP};

/// Active groups of the paper's rack: one of each of its four classes.
const AWAKE_GROUPS: u32 = 4;

/// How many disks a rack's power and cooling domains can supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provision {
    /// Two of the 16 of a tray and one of the 12 of a column: at most 96 spin.
    Sleeping,
    /// All: every disk spins all the time.
    All,
}

/// A candidate. All racks are alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Candidate {
    /// Number of racks.
    pub racks: u32,
    /// Size of each disk.
    pub disk: ByteCount,
    /// Power and cooling of each rack.
    pub provision: Provision,
    /// Servers per rack.
    pub servers: u32,
    /// Network bandwidth per server, in Gbit/s.
    pub nic_gbps: u32,
}

impl Provision {
    /// Returns how many disks may spin or spin up at the same time.
    #[must_use]
    pub const fn awake(self) -> u32 {
        match self {
            Self::Sleeping => AWAKE_GROUPS * DISKS_OF_GROUP,
            Self::All => DISKS,
        }
    }

    /// Returns the name that the twin uses.
    pub(super) const fn configuration(self) -> Configuration {
        match self {
            Self::Sleeping => Configuration::Driven,
            Self::All => Configuration::Provisioned,
        }
    }
}

impl Candidate {
    /// Returns the disks of all racks.
    #[must_use]
    pub const fn disks(&self) -> u32 {
        self.racks * DISKS
    }

    /// Returns whether this has at least as much as the other of everything that makes reads
    /// faster. The size of disks does not.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.racks >= other.racks
            && self.provision >= other.provision
            && self.servers >= other.servers
            && self.nic_gbps >= other.nic_gbps
    }
}

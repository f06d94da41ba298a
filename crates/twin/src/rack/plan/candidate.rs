//! One way to build: how many racks, and what each has.

use fulgurite_units::ByteCount;
use serde::Serialize;

use crate::rack::scenario::Configuration;
use crate::rack::shape::{DISKS, DISKS_OF_GROUP};

/// Classes of the paper's rack, of each of which one group turns.
const AWAKE_GROUPS: u32 = 4;

/// For how many disks a rack's domains have power and air.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provision {
    /// Two of the 16 of a tray and one of the 12 of a column: 96 turn at most.
    Sleeping,
    /// All: none ever sleeps.
    All,
}

/// One way to build. All racks are alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Candidate {
    /// Racks.
    pub racks: u32,
    /// Bytes of each disk.
    pub disk: ByteCount,
    /// What the domains of each are good for.
    pub provision: Provision,
    /// Servers of each.
    pub servers: u32,
    /// Network of each server, in Gbit/s.
    pub nic_gbps: u32,
}

impl Provision {
    /// Disks that may turn or spin up at the same time.
    #[must_use]
    pub const fn awake(self) -> u32 {
        match self {
            Self::Sleeping => AWAKE_GROUPS * DISKS_OF_GROUP,
            Self::All => DISKS,
        }
    }

    /// How the twin names it.
    pub(super) const fn configuration(self) -> Configuration {
        match self {
            Self::Sleeping => Configuration::Pelican,
            Self::All => Configuration::Provisioned,
        }
    }
}

impl Candidate {
    /// Disks of all racks.
    #[must_use]
    pub const fn disks(&self) -> u32 {
        self.racks * DISKS
    }

    /// Whether this has nothing less than the other that makes reads quicker. How large disks are
    /// does not.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.racks >= other.racks
            && self.provision >= other.provision
            && self.servers >= other.servers
            && self.nic_gbps >= other.nic_gbps
    }
}

//! One way to build: how many libraries, and what is in each.

use fulgurite_library::{LibraryShape, Throughput};
use serde::Serialize;

use super::PlanRequest;

/// One way to build. All libraries are alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Candidate {
    /// Libraries.
    pub libraries: u32,
    /// How the controller decides, by name.
    pub policy: String,
    /// Read racks of each.
    pub read_racks: u16,
    /// Drives of a read rack.
    pub drives_per_read_rack: u16,
    /// What a drive reads, in MB/s.
    pub throughput: Throughput,
    /// Storage racks of each.
    pub storage_racks: u16,
    /// Panels of each.
    pub panels: u16,
    /// Shuttles of a panel.
    pub shuttles_per_panel: u16,
}

impl Candidate {
    /// Drives of one library.
    #[must_use]
    pub const fn drives(&self) -> u16 {
        self.read_racks * self.drives_per_read_rack
    }

    /// Shuttles of one library.
    #[must_use]
    pub const fn shuttles(&self) -> u16 {
        self.panels * self.shuttles_per_panel
    }

    /// The same with another number of shuttles.
    pub(super) fn with_shuttles(&self, shuttles_per_panel: u16) -> Self {
        Self { shuttles_per_panel, ..self.clone() }
    }

    /// The shape of each library.
    pub(super) fn shape(&self, request: &PlanRequest) -> LibraryShape {
        LibraryShape {
            read_racks: self.read_racks,
            drives_per_read_rack: self.drives_per_read_rack,
            storage_racks: self.storage_racks,
            shuttles_per_panel: self.shuttles_per_panel,
            ..request.library.clone()
        }
    }

    /// Whether this has nothing less than the other: what fails here fails there too.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.libraries == other.libraries
            && self.policy == other.policy
            && self.read_racks >= other.read_racks
            && self.drives_per_read_rack >= other.drives_per_read_rack
            && self.throughput >= other.throughput
            && self.shuttles_per_panel >= other.shuttles_per_panel
    }

    /// Whether this has nothing less than the other, in as many libraries or more.
    pub(super) fn exceeds(&self, other: &Self) -> bool {
        self.libraries >= other.libraries
            && Self { libraries: other.libraries, ..self.clone() }.covers(other)
    }

    /// Shuttles of a panel with one for each drive, or as many as there are here.
    pub(super) fn one_shuttle_each(&self) -> u16 {
        (self.drives() / self.panels).clamp(1, self.shuttles_per_panel)
    }

    /// Whether there are more shuttles than drives.
    pub(super) const fn is_crowded(&self) -> bool {
        self.shuttles() > self.drives()
    }

    /// Whether only throughput and shuttles differ.
    pub(super) fn has_drives_of(&self, other: &Self) -> bool {
        self.libraries == other.libraries
            && self.policy == other.policy
            && self.read_racks == other.read_racks
            && self.drives_per_read_rack == other.drives_per_read_rack
    }

    /// Whether only the number of shuttles differs.
    pub(super) fn is_group_of(&self, other: &Self) -> bool {
        *self == other.with_shuttles(self.shuttles_per_panel)
    }
}

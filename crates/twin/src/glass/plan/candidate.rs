//! One candidate: how many libraries, and what is in each.

use fulgurite_glass_core::control::{LibraryShape, Throughput};
use serde::Serialize;

use super::PlanRequest;

/// A candidate. All libraries are alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Candidate {
    /// Number of libraries.
    pub libraries: u32,
    /// Policy of the controller, by name.
    pub policy: String,
    /// Read racks per library.
    pub read_racks: u16,
    /// Drives per read rack.
    pub drives_per_read_rack: u16,
    /// Read throughput of a drive, in MB/s.
    pub throughput: Throughput,
    /// Storage racks per library.
    pub storage_racks: u16,
    /// Panels per library.
    pub panels: u16,
    /// Shuttles per panel.
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

    /// Returns the same candidate with another number of shuttles.
    pub(super) fn with_shuttles(&self, shuttles_per_panel: u16) -> Self {
        Self { shuttles_per_panel, ..self.clone() }
    }

    /// Returns the shape of each library.
    pub(super) fn shape(&self, request: &PlanRequest) -> LibraryShape {
        LibraryShape {
            read_racks: self.read_racks,
            drives_per_read_rack: self.drives_per_read_rack,
            storage_racks: self.storage_racks,
            shuttles_per_panel: self.shuttles_per_panel,
            ..request.library.clone()
        }
    }

    /// Returns whether this has at least as much of everything as the other: what fails here fails
    /// there too.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.libraries == other.libraries
            && self.policy == other.policy
            && self.read_racks >= other.read_racks
            && self.drives_per_read_rack >= other.drives_per_read_rack
            && self.throughput >= other.throughput
            && self.shuttles_per_panel >= other.shuttles_per_panel
    }

    /// Returns whether this has at least as much of everything as the other, in as many libraries
    /// or more.
    pub(super) fn exceeds(&self, other: &Self) -> bool {
        self.libraries >= other.libraries
            && Self { libraries: other.libraries, ..self.clone() }.covers(other)
    }

    /// Returns the shuttles per panel with one for each drive, or as many as there are here.
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

//! New platters on their way in: those in the eject bays, and those that wait to be brought to a
//! drive, there or in a spare slot.
//!
//! Not here: new platters in drives (`verification.rs`).

use std::collections::BTreeSet;

use crate::control::PanelIndex;
use crate::control::state::{Age, PlatterKey};

/// The new platters of each panel.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals(Vec<Arrival>);

/// The new platters of one panel.
#[derive(Clone, Debug, Default)]
struct Arrival {
    /// New platters that wait in its eject bay or in a spare slot.
    waiting: BTreeSet<(Age, PlatterKey)>,
    /// Number of platters in the eject bay, claimed by a shuttle or not.
    ejected: usize,
}

impl Arrivals {
    pub(crate) fn new(panels: u16) -> Self {
        Self(vec![Arrival::default(); usize::from(panels)])
    }

    /// Returns how many platters are in the eject bay of a panel, if there is such a panel.
    pub(crate) fn ejected(&self, panel: PanelIndex) -> Option<usize> {
        self.0.get(usize::from(panel.get())).map(|arrival| arrival.ejected)
    }

    /// Counts a platter that came out at the eject bay.
    pub(crate) fn eject(&mut self, panel: PanelIndex) {
        self.arrival_mut(panel).ejected += 1;
    }

    /// Counts a platter that left the eject bay.
    pub(crate) fn take(&mut self, panel: PanelIndex) {
        self.arrival_mut(panel).ejected -= 1;
    }

    /// Adds a platter that waits for a shuttle.
    pub(crate) fn join(&mut self, panel: PanelIndex, entry: (Age, PlatterKey)) {
        self.arrival_mut(panel).waiting.insert(entry);
    }

    /// Removes a platter that no longer waits.
    pub(crate) fn leave(&mut self, panel: PanelIndex, entry: (Age, PlatterKey)) {
        let listed = self.arrival_mut(panel).waiting.remove(&entry);
        assert!(listed, "the platter is in its queue");
    }

    /// Returns how many platters of a panel wait.
    pub(crate) fn waiting(&self, panel: PanelIndex) -> usize {
        self.arrival(panel).waiting.len()
    }

    /// Returns the oldest platter of a panel.
    pub(crate) fn first(&self, panel: PanelIndex) -> Option<(Age, PlatterKey)> {
        self.arrival(panel).waiting.first().copied()
    }

    /// Returns the oldest platter of all panels.
    pub(crate) fn oldest(&self) -> Option<(Age, PlatterKey)> {
        self.0.iter().filter_map(|arrival| arrival.waiting.first()).min().copied()
    }

    fn arrival(&self, panel: PanelIndex) -> &Arrival {
        &self.0[usize::from(panel.get())]
    }

    fn arrival_mut(&mut self, panel: PanelIndex) -> &mut Arrival {
        &mut self.0[usize::from(panel.get())]
    }

    /// Asserts which platters wait on each panel and how many each eject bay holds.
    pub(crate) fn check(&self, waiting: &[BTreeSet<(Age, PlatterKey)>], ejected: &[usize]) {
        assert_eq!((waiting.len(), ejected.len()), (self.0.len(), self.0.len()), "panels");
        for (panel, arrival) in self.0.iter().enumerate() {
            assert_eq!(waiting[panel], arrival.waiting, "panel {panel} lists its new platters");
            assert_eq!(ejected[panel], arrival.ejected, "the eject bay counts are correct");
        }
    }
}

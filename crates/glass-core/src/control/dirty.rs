//! Drives, groups and panels that an event may have given work. Each is marked at most once; the
//! last one marked is taken first, groups by urgency.

use std::collections::BTreeSet;

use fulgurite_units::DriveIndex;

use crate::control::PanelIndex;

#[derive(Clone, Debug)]
pub(crate) struct Dirty {
    drives: Marks,
    groups: Marks,
    panels: Marks,
    /// Groups with a loaded shuttle that has nowhere to place its platter: any drive would do.
    stuck: BTreeSet<u16>,
}

/// Marked indices, each at most once.
#[derive(Clone, Debug, Default)]
struct Marks {
    marked: Vec<bool>,
    order: Vec<u16>,
}

impl Marks {
    fn new(count: usize) -> Self {
        Self { marked: vec![false; count], order: Vec::with_capacity(count) }
    }

    fn mark(&mut self, index: u16) {
        let marked = &mut self.marked[usize::from(index)];
        if !*marked {
            *marked = true;
            self.order.push(index);
        }
    }

    fn next(&mut self) -> Option<u16> {
        let index = self.order.pop()?;
        self.marked[usize::from(index)] = false;
        Some(index)
    }
}

impl Dirty {
    pub(crate) fn new(drives: usize, groups: usize, panels: u16) -> Self {
        Self {
            drives: Marks::new(drives),
            groups: Marks::new(groups),
            panels: Marks::new(usize::from(panels)),
            stuck: BTreeSet::new(),
        }
    }

    /// Resets the groups after a repartition and marks all of them.
    pub(crate) fn regroup(&mut self, groups: usize) {
        self.groups = Marks::new(groups);
        self.stuck.clear();
        self.mark_all_groups();
    }

    pub(crate) fn drive(&mut self, drive: DriveIndex) {
        self.drives.mark(drive.get());
    }

    pub(crate) fn group(&mut self, group: u16) {
        self.groups.mark(group);
    }

    /// Records that a group was dispatched, and whether it is stuck. Work given to a group that is
    /// not stuck may have made room for those that are.
    pub(crate) fn record_dispatch(&mut self, group: u16, is_stuck: bool) {
        if is_stuck {
            self.stuck.insert(group);
            return;
        }
        self.stuck.remove(&group);
        for stuck in &self.stuck {
            self.groups.mark(*stuck);
        }
    }

    pub(crate) fn mark_all_groups(&mut self) {
        let count = u16::try_from(self.groups.marked.len()).unwrap_or(u16::MAX);
        (0..count).rev().for_each(|group| self.groups.mark(group));
    }

    /// Marks a panel whose lanes have changed.
    pub(crate) fn panel(&mut self, panel: PanelIndex) {
        self.panels.mark(panel.get());
    }

    /// Whether nothing is marked.
    pub(crate) const fn is_empty(&self) -> bool {
        self.drives.order.is_empty() && self.groups.order.is_empty() && self.panels.order.is_empty()
    }

    pub(crate) fn next_drive(&mut self) -> Option<DriveIndex> {
        self.drives.next().map(DriveIndex::new)
    }

    /// Takes the most urgent marked group, the lowest number first: groups that share a drive get
    /// it in this order. The low bits of an urgency are 0, for the number of the group.
    pub(crate) fn next_group(&mut self, urgency: impl Fn(u16) -> u128) -> Option<u16> {
        let order = &mut self.groups.order;
        let last = order.len().checked_sub(1)?;
        if last > 0 {
            let urgencies = order.iter().map(|group| urgency(*group) | u128::from(*group));
            let (_, first) = urgencies.zip(0..).min()?;
            order.swap(first, last);
        }
        self.groups.next()
    }

    pub(crate) fn is_group_marked(&self, group: u16) -> bool {
        self.groups.marked[usize::from(group)]
    }

    pub(crate) fn next_panel(&mut self) -> Option<PanelIndex> {
        self.panels.next().map(PanelIndex::new)
    }
}

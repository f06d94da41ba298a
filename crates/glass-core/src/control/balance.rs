//! Load balancing between the groups of a panel.
//!
//! Two mechanisms: work stealing, as in the paper (section 4.1), where the shuttle of a group with
//! little to do fetches from the group with the most; and rebalancing, which redraws the partition
//! boundaries so that each group has the same load. Load is counted in milliseconds of work: the
//! time to fetch plus the time to read.

use fulgurite_units::{DriveIndex, Duration, ShuttleIndex, SlotIndex};

use crate::control::controller::Library;
use crate::control::errands::Findings;
use crate::control::limits::{
    LOAD_FETCH_MS, LOAD_TRACK_MS, LONGER_WAIT, LONGER_WAIT_PERCENT, UNEVEN_FETCHES, UNEVEN_PERCENT,
};
use crate::control::partition::Partitions;
use crate::control::state::{Errand, PlatterKey, Queue};
use crate::control::{Movement, TrackSpan};

impl Library {
    /// Adds a new read to the load of its cell.
    pub(crate) fn add_load(&mut self, slot: SlotIndex, tracks: TrackSpan, fetch: bool) {
        if self.policy.rebalance.is_some() {
            let fetch = if fetch { LOAD_FETCH_MS } else { 0 };
            let load = fetch + u64::from(tracks.track_count) * LOAD_TRACK_MS;
            self.load.add(self.floor.cell(slot), load);
        }
    }

    /// Returns a fetch from the most loaded group of the panel, if its backlog exceeds this group's
    /// by enough (Silica, section 4.1).
    pub(crate) fn steal_errand(&self, group: u16, found: &mut Findings) -> Option<Errand> {
        let threshold = self.policy.steal_tracks?;
        if self.policy.movement != Movement::Partitions || !self.has_room(group) {
            return None;
        }
        let own = self.partitions.group(group);
        let (panel, mine) = (own.panel(), own.backlog_tracks());
        let loads = self.partitions.groups_of_panel(panel);
        let most = loads.max_by_key(|other| self.partitions.group(*other).backlog_tracks())?;
        let load = self.partitions.group(most).backlog_tracks();
        if most == group || load <= mine.saturating_add(threshold) {
            return None;
        }
        let errand = self.fetch_errand(group, most, found)?;
        found.stolen = true;
        Some(errand)
    }

    /// Returns a fetch from the longest queue of the panel, for a group whose queue is empty.
    pub(crate) fn help_errand(&self, group: u16, found: &mut Findings) -> Option<Errand> {
        let least = usize::from(self.policy.help_platters?);
        let own = self.partitions.group(group);
        if self.policy.movement != Movement::Partitions
            || !own.queue().is_empty()
            || !self.has_room(group)
        {
            return None;
        }
        let waiting = |other: &u16| self.partitions.group(*other).queue().len();
        let most = self.partitions.groups_of_panel(own.panel()).max_by_key(waiting)?;
        if most == group || waiting(&most) < least.max(1) {
            return None;
        }
        let errand = self.fetch_errand(group, most, found)?;
        found.stolen = true;
        Some(errand)
    }

    /// Returns a fetch from the neighboring group whose customers wait longest, if they wait much
    /// longer than the group's own. Waits differ because a round over all platters takes half as
    /// long again where a drive keeps its second slot for verification. Only replaces a fetch of
    /// its own, so that no errand becomes due merely because time passes.
    pub(crate) fn neighbor_errand(&self, group: u16, found: &mut Findings) -> Option<Errand> {
        self.policy.help_platters?;
        if self.policy.movement != Movement::Partitions || !self.has_room(group) {
            return None;
        }
        let panel = self.partitions.group(group).panel();
        let neighbors = self.partitions.groups_of_panel(panel).filter(|at| at.abs_diff(group) == 1);
        // If all reads have one objective, the longest wait is also due first. A read due in
        // minutes never yields to a neighbor's reads that have waited for hours and are due in
        // hours.
        let due = |at: u16| self.partitions.group(at).queue().first().map(|(age, _)| age.due);
        let sooner = neighbors.filter(|at| due(*at) <= due(group));
        let (wait, most) = sooner.map(|at| (self.longest_wait(at), at)).max()?;
        let own = self.longest_wait(group).as_nanos();
        let bound = own / 100 * LONGER_WAIT_PERCENT + LONGER_WAIT.as_nanos();
        if wait.as_nanos() <= bound {
            return None;
        }
        self.fetch_errand(group, group, &mut Findings::default())?;
        let errand = self.fetch_errand(group, most, found)?;
        found.stolen = true;
        Some(errand)
    }

    /// Returns how long the oldest read of the group's most urgent waiting platter has waited.
    pub(crate) fn longest_wait(&self, group: u16) -> Duration {
        let first = self.partitions.group(group).queue().first();
        let read = first.and_then(|(_, key)| self.shelf.get(*key).first_read());
        read.map_or(Duration::ZERO, |read| self.sequence.now().since(read.arrived))
    }

    /// Moves the partition boundaries to where the load is, when that is due.
    pub(crate) fn rebalance_when_due(&mut self) {
        let Some(interval) = self.policy.rebalance else { return };
        let now = self.sequence.now();
        if self.policy.movement != Movement::Partitions || !self.load.is_due(now, interval) {
            return;
        }
        if self.is_uneven() {
            self.counters.rebalances += 1;
            self.regroup();
        }
        self.load.halve(now);
    }

    /// Whether some group has much more than its share of the load. Otherwise boundaries stay:
    /// random differences even out by themselves.
    fn is_uneven(&self) -> bool {
        let mut loads = vec![0u64; self.partitions.groups().len()];
        for (cell, load) in self.load.cells().iter().enumerate() {
            loads[usize::from(self.partitions.group_of_cell(cell))] += load;
        }
        let total: u64 = loads.iter().sum();
        let most = loads.iter().copied().max().unwrap_or(0);
        let share = total / loads.len().max(1) as u64;
        most > share.saturating_mul(UNEVEN_PERCENT) / 100 + LOAD_FETCH_MS * UNEVEN_FETCHES
    }

    /// Repartitions the panels by load and by what works, and moves the queues along.
    pub(crate) fn regroup(&mut self) {
        let weights = self.load.weights();
        let shuttle_works = |index: ShuttleIndex| !self.fleet.get(index).is_broken();
        let drive_works = |index: DriveIndex| !self.drives.get(index).is_broken();
        let movement = self.policy.movement;
        let new = Partitions::new(&self.floor, movement, &weights, shuttle_works, drive_works);
        let old = std::mem::replace(&mut self.partitions, new);
        self.partitions.inherit_counts(&old);
        let waiting = old.groups().iter().flat_map(|group| group.queue());
        for &(age, key) in waiting {
            let group = self.waiting_group(key);
            let tracks = self.shelf.get(key).tracks_wanted();
            self.partitions.group_mut(group).join(age, key, tracks);
            self.shelf.set_queued(key, Some((Queue::Group(group), age)));
        }
        self.dirty.regroup(self.partitions.groups().len());
        self.mark_pace_stale();
    }

    fn waiting_group(&self, key: PlatterKey) -> u16 {
        match self.due_queue(self.shelf.get(key)) {
            Some((Queue::Group(group), _)) => group,
            _ => unreachable!("a platter in the queue of a group waits for a group"),
        }
    }
}

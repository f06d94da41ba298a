//! Logical partitions: which shuttle serves which cells and drives (Silica, section 4.1).
//!
//! ```text
//!   cells of one side, shelf by shelf:   |--- run 0 ---|--- run 1 ---|--- run 2 ---|
//!   a run of 2 shelves and a half:       ##########        <- shelf 2, shared with run 1
//!                                        ####################
//!                                        ####################
//! ```
//!
//! A panel is divided into a left and a right side, each with the read racks of its end, and each
//! side into runs of cells, one per shuttle. With equal weights runs are whole shelves, the paper's
//! rectangles. Where the load differs so much that whole shelves would be unfair, or there are more
//! shuttles than shelves, runs have equal weight and end inside a shelf. Two runs that share a
//! shelf cost some waiting but are safe: `traffic.rs` keeps every pair of shuttles apart.

use std::collections::BTreeSet;
use std::ops::Range;

use fulgurite_units::{DriveIndex, Instant, ShuttleIndex, SlotIndex};

use crate::control::floor::Floor;
use crate::control::state::{Age, PlatterKey};
use crate::control::waitlist::Waitlist;
use crate::control::{Movement, PanelIndex};

/// A set of cells with the shuttles and drives that serve them.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    panel: PanelIndex,
    shuttles: Vec<ShuttleIndex>,
    /// Working drives, lowest index first.
    drives: Vec<DriveIndex>,
    /// Platters that wait in their slots to be fetched, most urgent first.
    queue: Waitlist,
    /// Tracks wanted of the waiting platters.
    backlog_tracks: u64,
    /// Fetches made since it last moved a new platter.
    fetches_in_a_row: u32,
    /// End of the batch: platters up to this age are served, the nearest first, before others.
    batch_end: Age,
    batch_began: Instant,
}

/// Which group serves which cells, shuttles and drives.
#[derive(Clone, Debug)]
pub(crate) struct Partitions {
    groups: Vec<Group>,
    group_of_cell: Vec<u16>,
    group_of_shuttle: Vec<u16>,
    groups_of_drive: Vec<Vec<u16>>,
    /// The groups of each panel, which are contiguous.
    groups_of_panel: Vec<Range<u16>>,
}

impl Group {
    pub(crate) const fn panel(&self) -> PanelIndex {
        self.panel
    }

    pub(crate) fn shuttles(&self) -> &[ShuttleIndex] {
        &self.shuttles
    }

    /// Working drives, lowest index first.
    pub(crate) fn drives(&self) -> &[DriveIndex] {
        &self.drives
    }

    /// Platters that wait in their slots to be fetched, most urgent first.
    pub(crate) const fn queue(&self) -> &Waitlist {
        &self.queue
    }

    /// Tracks wanted of the waiting platters.
    pub(crate) const fn backlog_tracks(&self) -> u64 {
        self.backlog_tracks
    }

    /// Fetches made since it last moved a new platter.
    pub(crate) const fn fetches_in_a_row(&self) -> u32 {
        self.fetches_in_a_row
    }

    /// End of the batch: platters up to this age are served, the nearest first, before others.
    pub(crate) const fn batch_end(&self) -> Age {
        self.batch_end
    }

    pub(crate) const fn batch_began(&self) -> Instant {
        self.batch_began
    }

    /// Returns a number that is lower the more urgent the first waiting platter is, and highest if
    /// none waits: the due time, then the sequence, then 16 bits that are 0.
    pub(crate) fn urgency(&self) -> u128 {
        let age = self.queue.first().map(|(age, _)| age);
        age.map_or(u128::MAX << GROUP_BITS, |age| {
            u128::from(age.due.as_nanos()) << u64::BITS | u128::from(age.sequence) << GROUP_BITS
        })
    }

    /// Adds a waiting platter, of which this many tracks are wanted.
    pub(crate) fn join(&mut self, age: Age, key: PlatterKey, tracks: u64) {
        self.queue.insert((age, key));
        self.backlog_tracks += tracks;
    }

    /// Removes a platter that no longer waits.
    pub(crate) fn leave(&mut self, age: Age, key: PlatterKey, tracks: u64) {
        let listed = self.queue.remove(&(age, key));
        assert!(listed, "the platter is in its queue");
        self.backlog_tracks -= tracks;
    }

    /// Adds wanted tracks of a waiting platter.
    pub(crate) const fn add_backlog(&mut self, tracks: u64) {
        self.backlog_tracks += tracks;
    }

    /// Subtracts wanted tracks of a waiting platter.
    pub(crate) const fn remove_backlog(&mut self, tracks: u64) {
        self.backlog_tracks -= tracks;
    }

    /// Starts a batch of the platters up to this age.
    pub(crate) const fn begin_batch(&mut self, end: Age, now: Instant) {
        (self.batch_end, self.batch_began) = (end, now);
    }

    /// Ends the batch here, if it did not end before.
    pub(crate) fn end_batch(&mut self, end: Age) {
        self.batch_end = self.batch_end.min(end);
    }

    /// Counts a fetch made while a new platter waits; otherwise resets the count.
    pub(crate) const fn count_fetch(&mut self, new_waits: bool) {
        self.fetches_in_a_row = if new_waits { self.fetches_in_a_row + 1 } else { 0 };
    }

    /// Takes over the fetch count of a group that had one of its shuttles.
    fn inherit_counts(&mut self, other: &Self) {
        self.fetches_in_a_row = self.fetches_in_a_row.max(other.fetches_in_a_row);
    }

    /// Asserts which platters wait, and how many tracks are wanted of them.
    pub(crate) fn check(&self, waiting: &BTreeSet<(Age, PlatterKey)>, tracks: u64) {
        assert!(waiting.iter().eq(&self.queue), "the queue of a group lists its waiting platters");
        assert_eq!(tracks, self.backlog_tracks, "the backlog of a group is correct");
    }
}

/// Bits of a group number.
pub(crate) const GROUP_BITS: u32 = u16::BITS;

/// The group of a shuttle that is in none, because it is broken.
const NO_GROUP: u16 = u16::MAX;

impl Partitions {
    /// Partitions the panels by weight. `weights` has one entry per cell; broken shuttles and
    /// drives get nothing to do.
    pub(crate) fn new(
        floor: &Floor,
        movement: Movement,
        weights: &[u64],
        shuttle_works: impl Fn(ShuttleIndex) -> bool,
        drive_works: impl Fn(DriveIndex) -> bool,
    ) -> Self {
        let shape = floor.shape();
        assert_eq!(weights.len(), floor.cells_per_panel() * usize::from(shape.panels));
        let mut partitions = Self {
            groups: Vec::new(),
            group_of_cell: vec![0; weights.len()],
            group_of_shuttle: vec![NO_GROUP; usize::from(shape.panels * shape.shuttles_per_panel)],
            groups_of_drive: vec![Vec::new(); floor.drives().len()],
            groups_of_panel: vec![0..0; usize::from(shape.panels)],
        };
        for panel in (0..shape.panels).map(PanelIndex::new) {
            let first = panel.get() * shape.shuttles_per_panel;
            let shuttles = (first..first + shape.shuttles_per_panel).map(ShuttleIndex::new);
            let shuttles: Vec<_> = shuttles.filter(|&shuttle| shuttle_works(shuttle)).collect();
            let drives = (0..).map(DriveIndex::new).zip(floor.drives());
            let drives = drives.filter(|(drive, site)| site.panel == panel && drive_works(*drive));
            let drives: Vec<_> = drives.map(|(drive, _)| drive).collect();
            match movement {
                Movement::Partitions if shuttles.len() > 1 => {
                    partitions.cut_panel(floor, panel, weights, &shuttles, &drives);
                }
                Movement::Partitions | Movement::ShortestPaths => {
                    partitions.add_whole_panel(floor, panel, shuttles, drives);
                }
                Movement::NoShuttles => partitions.add_to_single_group(panel, drives),
            }
        }
        partitions.index();
        partitions
    }

    /// Returns the group that serves a slot.
    pub(crate) fn group_of_slot(&self, floor: &Floor, slot: SlotIndex) -> u16 {
        self.group_of_cell[floor.cell(slot)]
    }

    /// Returns the group that serves a cell.
    pub(crate) fn group_of_cell(&self, cell: usize) -> u16 {
        self.group_of_cell[cell]
    }

    /// Returns the group of a shuttle, if it works.
    pub(crate) fn group_of_shuttle(&self, shuttle: ShuttleIndex) -> Option<u16> {
        let group = self.group_of_shuttle[shuttle.as_usize()];
        (group != NO_GROUP).then_some(group)
    }

    /// Returns the groups that use a drive.
    pub(crate) fn groups_of_drive(&self, drive: DriveIndex) -> &[u16] {
        &self.groups_of_drive[drive.as_usize()]
    }

    /// All groups, by index.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.groups.len()).unwrap_or(NO_GROUP)
    }

    /// Carries fetch counts over to the new groups of the same shuttles.
    pub(crate) fn inherit_counts(&mut self, old: &Self) {
        for group in &old.groups {
            for shuttle in &group.shuttles {
                if let Some(new) = self.group_of_shuttle(*shuttle) {
                    self.group_mut(new).inherit_counts(group);
                }
            }
        }
    }

    #[inline]
    pub(crate) fn group(&self, index: u16) -> &Group {
        &self.groups[usize::from(index)]
    }

    pub(crate) fn group_mut(&mut self, index: u16) -> &mut Group {
        &mut self.groups[usize::from(index)]
    }

    /// Returns the groups of a panel.
    pub(crate) fn groups_of_panel(&self, panel: PanelIndex) -> Range<u16> {
        self.groups_of_panel[usize::from(panel.get())].clone()
    }

    fn add_whole_panel(
        &mut self,
        floor: &Floor,
        panel: PanelIndex,
        shuttles: Vec<ShuttleIndex>,
        drives: Vec<DriveIndex>,
    ) {
        let cells = floor.cells_per_panel();
        let first = usize::from(panel.get()) * cells;
        let index = self.add(panel, shuttles, drives);
        self.group_of_cell[first..first + cells].fill(index);
    }

    /// Adds drives to the one group of all panels: without shuttles, nothing binds a platter to its
    /// panel.
    fn add_to_single_group(&mut self, panel: PanelIndex, drives: Vec<DriveIndex>) {
        if self.groups.is_empty() {
            self.add(panel, Vec::new(), drives);
        } else {
            self.groups[0].drives.extend(drives);
        }
    }

    fn cut_panel(
        &mut self,
        floor: &Floor,
        panel: PanelIndex,
        weights: &[u64],
        shuttles: &[ShuttleIndex],
        drives: &[DriveIndex],
    ) {
        let cells = floor.cells_per_panel();
        let first = usize::from(panel.get()) * cells;
        let columns = floor.columns() as usize;
        let weights = &weights[first..first + cells];
        let [left_racks, right_racks] = floor.shape().read_racks_at_ends().map(usize::from);
        let right = (shuttles.len() * right_racks / (left_racks + right_racks))
            .max(usize::from(right_racks > 0));
        let left = shuttles.len() - right;
        let cut = cut_column(weights, columns, left, shuttles.len());
        let middle = floor.shape().length_um() / 2;
        let sides = [(0..cut, &shuttles[..left]), (cut..columns, &shuttles[left..])];
        for (side, (range, shuttles)) in sides.into_iter().enumerate() {
            let on_side = |drive: &&DriveIndex| {
                (floor.drive(**drive).rail.get() > middle) == (side == 1) || right == 0
            };
            let beside: Vec<_> = drives.iter().filter(on_side).copied().collect();
            let candidates = if beside.is_empty() { drives } else { &beside };
            let runs = cut_runs(weights, columns, &range, shuttles.len());
            let base = u16::try_from(self.groups.len()).unwrap_or(NO_GROUP);
            for (run, &shuttle) in shuttles.iter().enumerate() {
                let shelves = shelves_of(&runs, range.len(), run);
                let drives = drives_beside(floor, candidates, &shelves);
                self.add(panel, vec![shuttle], drives);
            }
            for (index, run) in runs.into_iter().enumerate() {
                let (shelf, column) = (index / range.len(), range.start + index % range.len());
                self.group_of_cell[first + shelf * columns + column] = base + run;
            }
        }
    }

    fn add(
        &mut self,
        panel: PanelIndex,
        shuttles: Vec<ShuttleIndex>,
        drives: Vec<DriveIndex>,
    ) -> u16 {
        let index = u16::try_from(self.groups.len()).unwrap_or(NO_GROUP);
        assert!(index < NO_GROUP, "there are more groups than shuttles");
        self.groups.push(Group {
            panel,
            shuttles,
            drives,
            queue: Waitlist::default(),
            backlog_tracks: 0,
            fetches_in_a_row: 0,
            batch_end: Age { due: Instant::ZERO, sequence: 0 },
            batch_began: Instant::ZERO,
        });
        index
    }

    fn index(&mut self) {
        for (index, group) in (0..).zip(&self.groups) {
            let groups_of_panel = &mut self.groups_of_panel[usize::from(group.panel.get())];
            let first = if groups_of_panel.start == groups_of_panel.end {
                index
            } else {
                groups_of_panel.start
            };
            assert!(
                first == index || groups_of_panel.end == index,
                "groups of a panel are neighbors"
            );
            *groups_of_panel = first..index + 1;
            for shuttle in &group.shuttles {
                self.group_of_shuttle[shuttle.as_usize()] = index;
            }
            for drive in &group.drives {
                self.groups_of_drive[drive.as_usize()].push(index);
            }
        }
    }
}

/// Returns the first column of the right side, so that the left has its shuttles' share of the
/// weight.
fn cut_column(weights: &[u64], columns: usize, left: usize, shuttles: usize) -> usize {
    if left == shuttles {
        return columns;
    }
    let total: u64 = weights.iter().sum();
    let goal = total * left as u64 / shuttles as u64;
    let mut passed = 0;
    for column in 0..columns {
        let here: u64 = weights.iter().skip(column).step_by(columns).sum();
        if passed + here / 2 >= goal {
            return column.clamp(1, columns - 1);
        }
        passed += here;
    }
    columns - 1
}

/// Returns the run of each cell of a side, shelf by shelf: one run of equal weight per shuttle, of
/// whole shelves if that is fair enough.
fn cut_runs(weights: &[u64], columns: usize, range: &Range<usize>, runs: usize) -> Vec<u16> {
    if runs == 0 || range.is_empty() {
        return Vec::new();
    }
    let shelves: Vec<u64> =
        weights.chunks(columns).map(|shelf| shelf[range.clone()].iter().sum()).collect();
    let total: u64 = shelves.iter().sum();
    let (count, most_shelves) = (shelves.len() as u64, shelves.len().div_ceil(runs) as u64);
    let even = total * most_shelves / count;
    if let Some((ends, most)) = cut_shelves(&shelves, runs)
        && most <= even + even / WHOLE_SHELVES_EXCESS
    {
        let run = |shelf: usize| ends.iter().filter(|end| **end <= shelf).count();
        let run = |shelf| u16::try_from(run(shelf)).unwrap_or(NO_GROUP);
        return (0..shelves.len()).flat_map(|shelf| vec![run(shelf); range.len()]).collect();
    }
    let cells = weights.chunks(columns).flat_map(|shelf| &shelf[range.clone()]);
    let total = u128::from(total);
    let mut passed = 0u128;
    let run = |&weight: &u64| {
        let middle = 2 * passed + u128::from(weight);
        passed += u128::from(weight);
        let run = middle * runs as u128 / (2 * total).max(1);
        u16::try_from(run.min(runs as u128 - 1)).unwrap_or(NO_GROUP)
    };
    cells.map(run).collect()
}

/// Runs of whole shelves may be heavier than even shelves by one part in this many, before shelves
/// are shared: sharing costs more waiting than a somewhat uneven load.
const WHOLE_SHELVES_EXCESS: u64 = 4;

/// Returns the end of each run but the last, and the weight of the heaviest: whole shelves, at
/// least one per run, the heaviest as light as possible; `None` if there are fewer shelves than
/// runs.
fn cut_shelves(shelves: &[u64], runs: usize) -> Option<(Vec<usize>, u64)> {
    let count = shelves.len();
    if runs > count {
        return None;
    }
    let mut sums = vec![0];
    shelves.iter().for_each(|weight| sums.push(sums[sums.len() - 1] + weight));
    // best[end]: for shelves ..end, the heaviest of the runs so far and where the last one begins.
    let mut tables: Vec<Vec<(u64, usize)>> = vec![(0..=count).map(|end| (sums[end], 0)).collect()];
    for run in 1..runs {
        let before = &tables[run - 1];
        let best = |end: usize| {
            let starts =
                (run..end).map(|start| (before[start].0.max(sums[end] - sums[start]), start));
            starts.min().unwrap_or((u64::MAX, 0))
        };
        let table = (0..=count).map(best).collect();
        tables.push(table);
    }
    let most = tables[runs - 1][count].0;
    let mut ends = Vec::new();
    let mut end = count;
    for table in tables.iter().skip(1).rev() {
        end = table[end].1;
        ends.push(end);
    }
    ends.reverse();
    Some((ends, most))
}

/// Returns the shelves a run touches; all, if it has no cells.
fn shelves_of(runs: &[u16], columns: usize, run: usize) -> Range<u16> {
    let inside = |cell_run: &u16| usize::from(*cell_run) == run;
    let shelf = |index: usize| u16::try_from(index / columns).unwrap_or(u16::MAX);
    match (runs.iter().position(inside), runs.iter().rposition(inside)) {
        (Some(first), Some(last)) => shelf(first)..shelf(last) + 1,
        _ => 0..shelf(runs.len()),
    }
}

/// Returns the drives beside some shelves; if there are none, those nearest to them.
fn drives_beside(
    floor: &Floor,
    candidates: &[DriveIndex],
    shelves: &Range<u16>,
) -> Vec<DriveIndex> {
    let distance = |drive: &&DriveIndex| {
        let beside = &floor.drive(**drive).shelves;
        let above = beside.start.saturating_sub(shelves.end - 1);
        above.max(shelves.start.saturating_sub(beside.end - 1))
    };
    let nearest = candidates.iter().map(|drive| distance(&drive)).min();
    candidates.iter().filter(|drive| Some(distance(drive)) == nearest).copied().collect()
}

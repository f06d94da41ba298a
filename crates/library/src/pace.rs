//! Verification in time: how many drives of a panel must hold new platters now so that each is
//! verified before it is due, and which drives keep their second slots for that.
//!
//! ```text
//!   time a new platter has      |-- customers may have both slots --|-- its slot is kept --|due
//!   what its drive does then    other things                         verifies between reads
//! ```
//!
//! A platter is put off as long as its drive could still verify it beside customers; from then on
//! as many second slots of its panel are kept as platters are that far. A drive verifies whenever
//! no read waits for it, and no sooner: one that customers keep busy takes longer than expected.
//! This is worked out each minute while a new platter is there, and whenever one comes or goes.

use fulgurite_units::{DriveIndex, Duration, Instant, TrackIndex};

use crate::controller::Library;
use crate::limits::{
    CUSTOMER_SLOTS_MAX, LOAD_TRACK_MS, PACE_LOOK, VERIFY_RESERVE_PERCENT, VERIFY_SHARE_PERCENT,
};
use crate::state::{Age, Drive, Place, PlatterKey, Stage};
use crate::{Action, DriveSlot, PanelIndex};

/// Tracks a pass must have read to say how long one takes.
const TRACKS_TOLD_MIN: u32 = 16;
/// What one is believed to take at most: a minute, which is more than any drive needs.
const TRACK_NS_MAX: u64 = 60_000_000_000;
/// What a platter is believed to take at most: a year. Times that it is added to stay in range.
const VERIFY_NS_MAX: u64 = 365 * 86_400 * 1_000_000_000;

/// What is known of the time that verification takes and has.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// Of each panel, how many drives must hold a new platter.
    needed: Vec<usize>,
    looked: Instant,
    is_due: bool,
    /// Time alone can change it: a new platter is not late yet, or a drive is at one.
    is_open: bool,
    /// Nanoseconds a track needed in the passes seen.
    track_ns: u64,
}

impl Pace {
    pub(crate) fn new(panels: u16) -> Self {
        Self {
            needed: vec![0; usize::from(panels)],
            looked: Instant::ZERO,
            is_due: false,
            is_open: false,
            track_ns: LOAD_TRACK_MS * 1_000_000,
        }
    }

    /// Whether it was worked out at this moment.
    pub(crate) fn was_looked_at(&self, now: Instant) -> bool {
        self.looked == now
    }

    /// A pass read that many tracks.
    pub(crate) fn learn(&mut self, took: Duration, tracks: u32) {
        if tracks >= TRACKS_TOLD_MIN {
            let track_ns = (took.as_nanos() / u64::from(tracks)).min(TRACK_NS_MAX);
            self.track_ns = self.track_ns / 8 * 7 + track_ns / 8;
            self.is_due = true;
        }
    }
}

impl Library {
    /// A new platter came or went: the pace is another.
    pub(crate) const fn note_pace(&mut self) {
        self.pace.is_due = true;
    }

    /// A platter came into a drive: if it is new, it has a drive that may be behind.
    pub(crate) fn pace_if_new(&mut self, key: PlatterKey) {
        self.pace.is_due |= matches!(self.platter(key).stage, Stage::Unverified { .. });
    }

    /// When the pace is worked out next, if time can change it.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.pace.is_open.then(|| self.pace.looked + PACE_LOOK)
    }

    /// Works out the pace when it is time.
    pub(crate) fn look_at_pace(&mut self) {
        let is_due = self.pace.is_due || self.next_look().is_some_and(|at| at <= self.now);
        if !is_due || !self.holds_bound() {
            return;
        }
        self.pace.is_due = false;
        self.pace.is_open = self.is_pace_open();
        self.pace.looked = self.now;
        for panel in (0..self.shape().panels).map(PanelIndex::new) {
            self.look_at_panel(panel);
        }
    }

    fn look_at_panel(&mut self, panel: PanelIndex) {
        let needed = self.needed_drives(panel);
        self.pace.needed[usize::from(panel.get())] = needed;
        let is_freed = self.keep_slots(panel, needed);
        if is_freed || self.is_verification_behind(panel) {
            self.note_panel_groups(panel);
        }
    }

    /// The groups of a panel have a look at what they may do now.
    pub(crate) fn note_panel_groups(&mut self, panel: PanelIndex) {
        self.partitions.of_panel(panel).for_each(|group| self.dirty.group(group));
    }

    fn drives_of(&self, panel: PanelIndex) -> Vec<DriveIndex> {
        let drives = (0..).map(DriveIndex::new).zip(self.floor.drives());
        drives.filter(|(_, site)| site.panel == panel).map(|(index, _)| index).collect()
    }

    /// New platters of a panel that cannot be put off any more. All drives together must also be
    /// able to do by each date what is due by then.
    fn needed_drives(&self, panel: PanelIndex) -> usize {
        let waiting = &self.unverified[usize::from(panel.get())];
        let spare = u64::from(self.shape().drives_per_panel()) / 2;
        let (mut work, mut late, mut needed) = (0u64, 0u64, 0u64);
        for &(age, key) in waiting {
            let remaining = beside_ns(self.remaining_ns(key));
            let left = self.time_left(age, key, VERIFY_RESERVE_PERCENT);
            work = work.saturating_add(remaining);
            late += u64::from(self.is_late(age, key));
            needed = needed.max((work / left.max(1)).saturating_sub(spare));
        }
        usize::try_from(needed.max(late)).unwrap_or(usize::MAX).min(waiting.len())
    }

    /// Whether fewer drives of a panel hold new platters than must.
    pub(crate) fn is_verification_behind(&self, panel: PanelIndex) -> bool {
        self.holding(panel) < self.pace.needed[usize::from(panel.get())]
    }

    /// Whether a drive of a panel may give a new platter back to be verified later.
    pub(crate) fn may_put_off(&self, panel: PanelIndex) -> bool {
        self.holding(panel) > self.pace.needed[usize::from(panel.get())]
    }

    fn is_late(&self, age: Age, key: PlatterKey) -> bool {
        beside_ns(self.remaining_ns(key)) >= self.time_left(age, key, VERIFY_RESERVE_PERCENT)
    }

    fn is_pace_open(&self) -> bool {
        self.unverified.iter().flatten().any(|&(age, key)| match self.platter(key).place {
            Place::Drive(index, _) => !self.drives[index.as_usize()].broken,
            Place::EjectBay(_) | Place::Storage(_) | Place::Shuttle(_) => !self.is_late(age, key),
        })
    }

    /// Nanoseconds until a new platter has to be verified, less a share of the bound. A bound that
    /// is shorter than what verifying it takes beside customers cannot be held, and would only keep
    /// them from the drives: then it has that long.
    fn time_left(&self, age: Age, key: PlatterKey, less_percent: u64) -> u64 {
        let within = self.policy.verify_within.as_nanos();
        let Stage::Unverified { tracks, .. } = self.platter(key).stage else { return u64::MAX };
        let end = tracks.end().map_or(u32::MAX, TrackIndex::get);
        let whole = u64::from(end).saturating_mul(self.pace.track_ns);
        let due = age.due + Duration::from_nanos(beside_ns(whole).saturating_sub(within));
        due.since(self.now).as_nanos().saturating_sub(within / 100 * less_percent)
    }

    /// Whether a new platter has waited longer than it may.
    pub(crate) fn is_overdue(&self, age: Age, key: PlatterKey) -> bool {
        self.holds_bound() && self.time_left(age, key, 0) == 0
    }

    /// Whether there is anything to hold: a policy that never gives second slots to customers keeps
    /// them for verification anyway, and that is all the paper's does for it.
    const fn holds_bound(&self) -> bool {
        self.policy.customer_slots == CUSTOMER_SLOTS_MAX
    }

    /// Nanoseconds a drive needs for the rest of a new platter if it does nothing else.
    fn remaining_ns(&self, key: PlatterKey) -> u64 {
        let Stage::Unverified { tracks, .. } = self.platter(key).stage else { return 0 };
        let whole = u64::from(tracks.track_count).saturating_mul(self.pace.track_ns);
        let Place::Drive(index, _) = self.platter(key).place else { return whole };
        let work = self.drives[index.as_usize()].work;
        let pass = work.filter(|work| matches!(work.action, Action::VerifyPass { .. }));
        pass.map_or(whole, |work| whole.saturating_sub(self.now.since(work.began).as_nanos()))
    }

    /// Whether a drive holds a platter to verify, or one is on its way to it.
    pub(crate) fn holds_new(&self, drive: &Drive) -> bool {
        let bay = drive.bay(DriveSlot::Second);
        let inside = bay.platter.map(|key| self.platter(key).stage);
        if matches!(inside, Some(Stage::Unverified { .. })) {
            return !drive.evicting;
        }
        let trip = bay.reserved.and_then(|by| self.shuttles[by.as_usize()].trip.as_ref());
        let platter = trip.and_then(|trip| trip.errand).map(|errand| errand.platter);
        platter.is_some_and(|key| matches!(self.platter(key).stage, Stage::Unverified { .. }))
    }

    /// Drives of a panel that hold new platters, or will.
    fn holding(&self, panel: PanelIndex) -> usize {
        let drives = self.drives.iter().zip(self.floor.drives());
        let here = drives.filter(|(_, site)| site.panel == panel).map(|(drive, _)| drive);
        here.filter(|drive| !drive.broken && self.holds_new(drive)).count()
    }

    /// Keeps as many second slots from customers as hold too few new platters: those kept already,
    /// then those of the drives with the shortest queues. Whether one is not kept any more.
    fn keep_slots(&mut self, panel: PanelIndex, needed: usize) -> bool {
        let mut missing = needed.saturating_sub(self.holding(panel));
        let mut free: Vec<(bool, usize, DriveIndex)> = Vec::new();
        for index in self.drives_of(panel) {
            let drive = &self.drives[index.as_usize()];
            if !drive.broken && !self.holds_new(drive) {
                let groups = self.partitions.of_drive(index).iter();
                let waiting = groups.map(|group| self.partitions.group(*group).queue.len()).max();
                free.push((!drive.kept, waiting.unwrap_or(0), index));
            }
        }
        free.sort_unstable();
        let mut is_freed = false;
        for (.., index) in free {
            let keep = missing > 0;
            missing = missing.saturating_sub(1);
            let drive = &mut self.drives[index.as_usize()];
            is_freed |= drive.kept && !keep;
            drive.kept = keep;
        }
        is_freed
    }
}

/// What verifying takes beside customers that takes so long alone.
fn beside_ns(alone: u64) -> u64 {
    alone.min(VERIFY_NS_MAX) / VERIFY_SHARE_PERCENT * 100
}

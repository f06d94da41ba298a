//! Verification in time: how many drives of a panel must hold new platters now so that each is
//! verified before it is due, and which drives keep their second slots for that.
//!
//! ```text
//!   time a new platter has      |-- customers may have both slots --|-- its slot is kept --|due
//!   what its drive does then    other things                         verifies between reads
//! ```
//!
//! A platter is put off as long as its drive could still verify it beside customers; from then on
//! a second slot of its panel is kept for it. One that was begun can be put off again: it lies in a
//! spare slot meanwhile, and goes on where it ended. So all new platters together shift in time
//! while customers need the drives most, and are not late together afterwards. A drive verifies
//! whenever no read waits for it, and no sooner: one that customers keep busy takes longer than
//! expected.
//! This is worked out each minute while a new platter is there, and whenever one comes or goes.

use fulgurite_units::{DriveIndex, Duration, Instant, TrackIndex};

use crate::controller::Library;
use crate::limits::{
    CUSTOMER_SLOTS_MAX, LOAD_TRACK_MS, PACE_LOOK, PUT_OFF_SPARE_PERCENT, VERIFY_RESERVE_PERCENT,
    VERIFY_SHARE_PERCENT,
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

    /// Drives of a panel that must hold new platters: those that do, and one for each platter
    /// outside that cannot be put off any more. All together must also be able to do by each date
    /// what is due by then.
    fn needed_drives(&self, panel: PanelIndex) -> usize {
        let waiting = &self.unverified[usize::from(panel.get())];
        let spare = u64::from(self.shape().drives_per_panel()) / 2;
        let (mut work, mut needed, mut outside) = (0u64, 0u64, 0);
        for (platters, &(age, key)) in (1u64..).zip(waiting) {
            work = work.saturating_add(beside_ns(self.remaining_ns(key)));
            let left = self.time_left(age, key, VERIFY_RESERVE_PERCENT);
            // However late they are, each is in one drive at a time.
            let drives = (work / left.max(1)).min(platters);
            needed = needed.max(drives.saturating_sub(spare));
            outside += usize::from(self.is_late(age, key) && self.is_outside(key));
        }
        usize::try_from(needed).unwrap_or(usize::MAX).max(self.holding(panel) + outside)
    }

    /// Whether a new platter is in no drive and on its way to none.
    fn is_outside(&self, key: PlatterKey) -> bool {
        let platter = self.platter(key);
        match platter.place {
            Place::EjectBay(_) | Place::Storage(_) => platter.claim.is_none(),
            Place::Drive(index, _) => self.drives[index.as_usize()].evicting,
            Place::Shuttle(_) => false,
        }
    }

    /// Whether fewer drives of a panel hold new platters than must.
    pub(crate) fn is_verification_behind(&self, panel: PanelIndex) -> bool {
        self.holding(panel) < self.pace.needed[usize::from(panel.get())]
    }

    /// Whether a new platter in a drive may be verified later.
    pub(crate) fn may_put_off(&self, key: PlatterKey) -> bool {
        let Stage::Unverified { age, .. } = self.platter(key).stage else { return false };
        let reserve = VERIFY_RESERVE_PERCENT + PUT_OFF_SPARE_PERCENT;
        beside_ns(self.remaining_ns(key)) < self.time_left(age, key, reserve)
    }

    /// A new platter in a drive is put off: nothing is fetched in its place.
    pub(crate) fn note_put_off(&mut self, index: DriveIndex) {
        let panel = self.floor.drive(index).panel;
        let needed = &mut self.pace.needed[usize::from(panel.get())];
        *needed = needed.saturating_sub(1);
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
    /// then those of the drives whose customers wait least. Whether one is not kept any more.
    fn keep_slots(&mut self, panel: PanelIndex, needed: usize) -> bool {
        let mut missing = needed.saturating_sub(self.holding(panel));
        let mut free: Vec<(bool, Duration, DriveIndex)> = Vec::new();
        for index in self.drives_of(panel) {
            let drive = &self.drives[index.as_usize()];
            if !drive.broken && !self.holds_new(drive) {
                let groups = self.partitions.of_drive(index).iter();
                let wait = groups.map(|group| self.longest_wait(*group)).max();
                free.push((!drive.kept, wait.unwrap_or(Duration::ZERO), index));
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

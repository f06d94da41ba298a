//! Verification deadlines, for policies that give second slots to customers: which drives keep
//! theirs for new platters, and which verify although customers wait.
//!
//! ```text
//!   a new platter comes    |-- its drive verifies between reads --|-- and nothing else --| due
//!   a slot is kept for it                                   latest start
//! ```
//!
//! New platters come before customers where they need a slot: one is kept for each that waits
//! outside the drives, so customers get those second slots that verification does not need. Where
//! they need drive time they come last, until the remaining verification takes all the time that is
//! left. Then the drive insists: it takes no customer platters, lets those inside go home, where
//! another drive may have them, and does nothing else. It does so only if that can still help: at
//! most half of a panel's drives at once, never for a platter that entered the drive too late, and
//! never while so many new platters wait outside that the panel does not keep up anyway. Work
//! beyond the capacity of the drives must not be done at the cost of customers. This is recomputed
//! when a new platter comes or goes, and when one reaches its latest start.

use fulgurite_units::{DriveIndex, Duration, Instant, TrackIndex};

use crate::control::controller::Library;
use crate::control::drive::Drive;
use crate::control::limits::{
    CUSTOMER_SLOTS_MAX, PACE_CHECK_INTERVAL, VERIFY_BEHIND_PERCENT, VERIFY_ONLY_SHARE_PERCENT,
    VERIFY_RESERVE_PERCENT, VERIFY_TOO_LATE_PERCENT,
};
use crate::control::state::{Age, Place, PlatterKey, Stage};
use crate::control::{Action, DriveSlot, PanelIndex};

/// Upper bound of the estimate for a platter: a year. Times that it is added to stay in range.
const VERIFY_NS_MAX: u64 = 365 * 86_400 * 1_000_000_000;

/// A new platter in a drive, with its remaining time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    age: Age,
    drive: DriveIndex,
    /// Time until its drive must do nothing else.
    slack: Duration,
    /// Whether it can be verified in time if the drive does nothing else.
    can_meet_deadline: bool,
}

impl Library {
    /// Records that a new platter came or went, which changes the pace.
    pub(crate) const fn mark_pace_stale(&mut self) {
        self.pace.mark_stale();
    }

    /// Records a change of the pace if a platter that goes to, enters or leaves a drive is new:
    /// others have more or less room then.
    pub(crate) fn mark_pace_stale_if_new(&mut self, key: PlatterKey) {
        let stage = self.shelf.get(key).stage();
        if matches!(stage, Stage::Unverified { .. } | Stage::Checked { .. }) {
            self.pace.mark_stale();
        }
    }

    /// Returns when the pace is recomputed next, if time can change it.
    pub(crate) fn next_pace_update(&self) -> Option<Instant> {
        let is_due = self.pace.is_due() && self.has_verify_deadline();
        if is_due { Some(self.sequence.now()) } else { self.pace.next() }
    }

    /// Recomputes the pace when that is due.
    pub(crate) fn update_pace(&mut self) {
        if self.next_pace_update().is_none_or(|at| at > self.sequence.now()) {
            return;
        }
        self.pace.begin_update(self.sequence.now());
        for panel in (0..self.shape().panels).map(PanelIndex::new) {
            let is_freed = self.keep_slots(panel);
            if is_freed || self.has_new_platters_waiting(panel) {
                self.mark_panel_groups(panel);
            }
            self.choose_verify_only(panel);
        }
    }

    /// Marks the groups of a panel.
    pub(crate) fn mark_panel_groups(&mut self, panel: PanelIndex) {
        self.partitions.groups_of_panel(panel).for_each(|group| self.dirty.group(group));
    }

    /// Returns the drives of a panel.
    pub(crate) fn drives_of(&self, panel: PanelIndex) -> Vec<DriveIndex> {
        let drives = (0..).map(DriveIndex::new).zip(self.floor.drives());
        drives.filter(|(_, site)| site.panel == panel).map(|(index, _)| index).collect()
    }

    /// Whether new platters of a panel wait outside the drives, under a policy by which they come
    /// before customers.
    pub(crate) fn has_new_platters_waiting(&self, panel: PanelIndex) -> bool {
        self.has_verify_deadline() && self.arrivals.waiting(panel) > 0
    }

    /// Keeps as many second slots from customers as new platters wait: those kept already, then
    /// those of the drives whose customers wait least. With something broken, keeps all while one
    /// waits, because not every drive can be reached then. Returns whether a slot was released.
    fn keep_slots(&mut self, panel: PanelIndex) -> bool {
        let waiting = self.arrivals.waiting(panel);
        let mut missing = if self.damaged && waiting > 0 { usize::MAX } else { waiting };
        let mut free: Vec<(bool, Duration, DriveIndex)> = Vec::new();
        for index in self.drives_of(panel) {
            let drive = self.drives.get(index);
            if !drive.is_broken() && !self.has_new_platter(drive) {
                let groups = self.partitions.groups_of_drive(index).iter();
                let wait = groups.map(|group| self.longest_wait(*group)).max();
                free.push((!drive.is_slot_kept(), wait.unwrap_or(Duration::ZERO), index));
            }
        }
        free.sort_unstable();
        let mut is_freed = false;
        for (.., index) in free {
            let keep_slot = missing > 0;
            missing = missing.saturating_sub(1);
            is_freed |= self.drives.get_mut(index).keep_slot(keep_slot) && !keep_slot;
        }
        is_freed
    }

    /// Chooses the drives that insist on verifying, and sets when that changes by time alone.
    fn choose_verify_only(&mut self, panel: PanelIndex) {
        let drives = self.drives_of(panel);
        let mut candidates: Vec<Candidate> =
            drives.iter().filter_map(|drive| self.candidate(*drive)).collect();
        candidates.sort_unstable();
        let due = candidates.iter().filter(|c| c.slack == Duration::ZERO && c.can_meet_deadline);
        let most = self.verify_only_max(panel, drives.len());
        let verify_only: Vec<DriveIndex> = due.take(most).map(|c| c.drive).collect();
        for index in drives {
            let is_verify_only = verify_only.contains(&index);
            if self.drives.get_mut(index).set_verify_only(is_verify_only) != is_verify_only {
                self.dirty.drive(index);
                self.mark_drive_groups(index);
            }
        }
        let next = candidates.iter().filter(|c| c.can_meet_deadline).map(|c| c.slack).min();
        let next = next.map(|wait| self.sequence.now() + wait.max(PACE_CHECK_INTERVAL));
        self.pace.schedule_update(next);
    }

    /// Returns how many drives of a panel may insist: none if it does not keep up, nor its only
    /// one.
    fn verify_only_max(&self, panel: PanelIndex, drives: usize) -> usize {
        let waiting = self.arrivals.waiting(panel);
        if waiting * 100 >= drives * VERIFY_BEHIND_PERCENT {
            return 0;
        }
        drives * VERIFY_ONLY_SHARE_PERCENT / 100
    }

    /// Returns the timing of the new platter in a drive, if there is one to verify.
    fn candidate(&self, index: DriveIndex) -> Option<Candidate> {
        let drive = self.drives.get(index);
        let key = drive.bay(DriveSlot::Second).platter().filter(|_| !drive.is_broken())?;
        let Stage::Unverified { age, .. } = self.shelf.get(key).stage() else { return None };
        let within = self.policy.verify_within.as_nanos();
        let takes = self.remaining_ns(key);
        let left = self.due(age, key).since(self.sequence.now()).as_nanos();
        let reserve = within / 100 * VERIFY_RESERVE_PERCENT;
        let too_late = within / 100 * VERIFY_TOO_LATE_PERCENT;
        let slack = left.saturating_sub(takes.saturating_add(reserve));
        Some(Candidate {
            age,
            drive: index,
            slack: Duration::from_nanos(slack),
            can_meet_deadline: takes <= left.saturating_add(too_late),
        })
    }

    /// Returns when a new platter has to be verified. A bound shorter than 1.5 times the
    /// verification time would only keep customers from the drives, so it is extended to that.
    fn due(&self, age: Age, key: PlatterKey) -> Instant {
        let within = self.policy.verify_within.as_nanos();
        let Stage::Unverified { tracks, .. } = self.shelf.get(key).stage() else { return age.due };
        let end = tracks.end().map_or(u32::MAX, TrackIndex::get);
        let whole = u64::from(end).saturating_mul(self.pace.track_ns()).min(VERIFY_NS_MAX);
        age.due + Duration::from_nanos((whole / 2 * 3).saturating_sub(within))
    }

    /// Whether there is a bound to meet: a policy that never gives second slots to customers keeps
    /// them for verification anyway, and that is all the paper's does for it.
    pub(crate) const fn has_verify_deadline(&self) -> bool {
        self.policy.customer_slots == CUSTOMER_SLOTS_MAX
    }

    /// Returns the nanoseconds a drive needs for the rest of a new platter if it does nothing else.
    fn remaining_ns(&self, key: PlatterKey) -> u64 {
        let Stage::Unverified { tracks, .. } = self.shelf.get(key).stage() else { return 0 };
        let whole = u64::from(tracks.track_count).saturating_mul(self.pace.track_ns());
        let whole = whole.min(VERIFY_NS_MAX);
        let Place::Drive(index, _) = self.shelf.get(key).place() else { return whole };
        let work = self.drives.get(index).work();
        let pass = work.filter(|work| matches!(work.action, Action::VerifyPass { .. }));
        pass.map_or(whole, |work| {
            whole.saturating_sub(self.sequence.now().since(work.began).as_nanos())
        })
    }

    /// Whether the second slot of a drive is a new platter's: it is on its way, or inside until
    /// `Store` gives it a slot.
    pub(crate) fn has_new_platter(&self, drive: &Drive) -> bool {
        let bay = drive.bay(DriveSlot::Second);
        let inside = bay.platter().map(|key| self.shelf.get(key).stage());
        if matches!(inside, Some(Stage::Unverified { .. } | Stage::Checked { .. })) {
            return true;
        }
        let errand = bay.reserved().and_then(|shuttle| self.fleet.get(shuttle).errand());
        let platter = errand.map(|errand| errand.platter);
        platter.is_some_and(|key| matches!(self.shelf.get(key).stage(), Stage::Unverified { .. }))
    }
}

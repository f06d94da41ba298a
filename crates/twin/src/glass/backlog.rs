//! New platters that are not verified yet: their age, how much of each is left, and whether a drive
//! has them.
//!
//! Whether verification keeps up with ingest is checked over windows of two days. A window begins
//! and ends when a new platter is ejected, and that platter is not counted itself:
//!
//! ```text
//!   ejected      |     |     |     |  . . .  |     |     |     |
//!                '-- the shortest of two days at least --'
//!            unverified there                      waits outside of drives there
//!
//!   ingested - verified - left in drives at the end = what waits at the end - unverified before
//! ```
//!
//! So each platter has one interval to get into a drive, and a library that delays nothing has no
//! shortfall, however little work it has. The unverified tracks at the start are known exactly,
//! including passes in progress. Before the run there were none.

use std::collections::{BTreeMap, VecDeque};

use fulgurite_units::{Duration, Instant};

/// Minimum length of a window.
const WINDOW: Duration = Duration::from_secs(2 * 86_400);

/// New platters that are not verified yet, by number.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    platters: BTreeMap<u32, NewPlatter>,
    /// When platters were ejected, and the tracks unverified then. Entries at which no future
    /// window can begin are dropped.
    moments: VecDeque<(Instant, u64)>,
    /// Largest shortfall of the windows so far, in tracks; `None` if there was no window.
    shortfall: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct NewPlatter {
    ejected: Instant,
    tracks_left: u32,
    in_drive: bool,
}

impl Backlog {
    /// Adds a platter that was ejected.
    pub(crate) fn ejected(&mut self, number: u32, now: Instant, tracks: u32) {
        let platter = NewPlatter { ejected: now, tracks_left: tracks, in_drive: false };
        self.platters.insert(number, platter);
    }

    /// Records that a platter was put into a drive, or taken out of one.
    pub(crate) fn moved(&mut self, number: u32, in_drive: bool) {
        if let Some(platter) = self.platters.get_mut(&number) {
            platter.in_drive = in_drive;
        }
    }

    /// Counts the tracks that a verification pass read.
    pub(crate) fn passed(&mut self, number: u32, tracks: u32) {
        if let Some(platter) = self.platters.get_mut(&number) {
            platter.tracks_left = platter.tracks_left.saturating_sub(tracks);
        }
    }

    /// Removes a platter that is verified, and returns when it was ejected.
    pub(crate) fn verified(&mut self, number: u32) -> Option<Instant> {
        self.platters.remove(&number).map(|platter| platter.ejected)
    }

    /// Returns when the oldest platter was ejected.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.platters.values().next().map(|platter| platter.ejected)
    }

    /// Ends a window just before the next platter is ejected. Passes still in progress have read
    /// `under_way` tracks.
    pub(crate) fn window_ends(&mut self, now: Instant, under_way: u64) {
        let left = |platter: &NewPlatter| u64::from(platter.tracks_left);
        let waiting = self.platters.values().filter(|platter| !platter.in_drive).map(left).sum();
        let unverified: u64 = self.platters.values().map(left).sum();
        self.moments.push_back((now, unverified.saturating_sub(under_way)));
        let is_whole = |moment: &&(Instant, u64)| moment.0 + WINDOW <= now;
        // Keep the last entry that is at least two days old.
        while self.moments.get(1).as_ref().is_some_and(is_whole) {
            self.moments.pop_front();
        }
        if let Some((_, before)) = self.moments.front().filter(is_whole) {
            let missing = u64::saturating_sub(waiting, *before);
            self.shortfall = Some(self.shortfall.unwrap_or(0).max(missing));
        }
    }

    /// Returns the largest shortfall of a window, in tracks; `None` if there was no window.
    pub(crate) const fn shortfall(&self) -> Option<u64> {
        self.shortfall
    }
}

#[cfg(test)]
mod tests {
    use fulgurite_units::{Duration, Instant};

    use super::Backlog;

    fn hour(hours: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(3600 * hours)
    }

    /// Ejects a platter of 100 tracks every 12 h: 4 per window.
    fn after(windows: u32, each: impl Fn(&mut Backlog, u32)) -> Option<u64> {
        let mut backlog = Backlog::default();
        for number in 0..=windows + 3 {
            let now = hour(12 * u64::from(number));
            backlog.window_ends(now, 0);
            backlog.ejected(number, now, 100);
            each(&mut backlog, number);
        }
        backlog.shortfall()
    }

    #[test]
    fn shortfall_is_unverified_platters_outside_drives() {
        assert_eq!(after(0, |_, _| ()), None, "no window of two days");
        assert_eq!(after(1, |_, _| ()), Some(400));
        assert_eq!(after(5, |_, _| ()), Some(400), "the ingest of one window");
        assert_eq!(after(5, |backlog, number| backlog.moved(number, true)), Some(0));
        let verify = |backlog: &mut Backlog, number| {
            assert!(backlog.verified(number).is_some());
        };
        assert_eq!(after(5, verify), Some(0));
        let halves = |backlog: &mut Backlog, number| backlog.passed(number, 50);
        assert_eq!(after(5, halves), Some(200));
    }

    #[test]
    fn constant_backlog_is_no_shortfall() {
        // The first four wait for ever, and later ones are verified at once.
        let late = |backlog: &mut Backlog, number| {
            if number >= 4 {
                backlog.verified(number);
            }
        };
        assert_eq!(after(1, late), Some(400), "the window that begins with an empty backlog");
        let mut backlog = Backlog::default();
        for number in 0..4 {
            backlog.ejected(number, hour(0), 100);
        }
        backlog.window_ends(hour(1), 0);
        backlog.window_ends(hour(50), 0);
        assert_eq!(backlog.shortfall(), Some(0));
    }

    #[test]
    fn window_excludes_tracks_read_before_it() {
        let mut backlog = Backlog::default();
        backlog.ejected(0, hour(0), 100);
        backlog.moved(0, true);
        backlog.window_ends(hour(1), 90);
        backlog.moved(0, false);
        // A drive broke: the pass is never completed, and all has to be read again.
        backlog.window_ends(hour(49), 0);
        assert_eq!(backlog.shortfall(), Some(90));
        assert_eq!(backlog.oldest(), Some(hour(0)));
    }
}

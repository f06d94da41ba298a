//! When names are purged, on a clock that the test advances.

use fulgurite_units::{Duration, ManualClock};

use super::*;
use crate::testing;

struct Run {
    clock: ManualClock,
    state: Arc<ArchiveState>,
    purge_state: NamePurge,
}

impl Run {
    fn begin(dir: &tempfile::TempDir) -> Self {
        let clock = ManualClock::at(testing::NOW);
        let state = ArchiveState::open(testing::config(dir), clock.clock()).unwrap();
        Self { clock, state: Arc::new(state), purge_state: NamePurge::default() }
    }

    /// Marks the deletion of something with a name.
    fn mark(&self) {
        self.state.committer.commit_blocking(rows::mark_for_purge).unwrap();
    }

    /// Returns whether a check after this delay starts to purge names; if so, it is done on return.
    fn forgets_after(&mut self, waited: Duration) -> bool {
        self.clock.advance(waited);
        let mut begun = false;
        self.purge_state.run_due(&self.state, &mut || begun = true).unwrap();
        assert!(!begun || rows::purge_state(&*self.state.kv).unwrap().is_done());
        begun
    }
}

#[test]
fn names_are_forgotten_at_half_of_their_time_or_by_the_next_start() {
    let dir = testing::dir();
    let mut run = Run::begin(&dir);
    let half = Duration::from_nanos(run.state.config.space.forget_within.as_nanos() / 2);
    let almost = Duration::from_nanos(half.as_nanos() - 1);
    let (none, moment) = (Duration::ZERO, Duration::from_nanos(1));
    assert!(!run.forgets_after(half), "there is nothing to forget");
    for _ in 0..2 {
        run.mark();
        assert!(!run.forgets_after(half), "its time begins with the look that finds it");
        assert!(!run.forgets_after(almost));
        run.mark();
        assert!(run.forgets_after(moment), "what comes later does not put it off");
        assert!(!run.forgets_after(half), "it is done");
    }
    run.mark();
    drop(run);
    let mut run = Run::begin(&dir);
    assert!(run.forgets_after(none), "nobody knows how long it waited");
    run.mark();
    assert!(!run.forgets_after(none));
}

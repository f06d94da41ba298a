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
    fn purges_after(&mut self, waited: Duration) -> bool {
        self.clock.advance(waited);
        let mut begun = false;
        self.purge_state.run_due(&self.state, &mut || begun = true).unwrap();
        assert!(!begun || rows::purge_state(&*self.state.kv).unwrap().is_done());
        begun
    }
}

#[test]
fn names_are_purged_at_half_time_or_at_next_start() {
    let dir = testing::dir();
    let mut run = Run::begin(&dir);
    let half = Duration::from_nanos(run.state.config.space.forget_within.as_nanos() / 2);
    let almost = Duration::from_nanos(half.as_nanos() - 1);
    let (none, moment) = (Duration::ZERO, Duration::from_nanos(1));
    assert!(!run.purges_after(half), "there is nothing to purge");
    for _ in 0..2 {
        run.mark();
        assert!(!run.purges_after(half), "its time begins when a check finds the mark");
        assert!(!run.purges_after(almost));
        run.mark();
        assert!(run.purges_after(moment), "later marks do not delay it");
        assert!(!run.purges_after(half), "the purge is done");
    }
    run.mark();
    drop(run);
    let mut run = Run::begin(&dir);
    assert!(run.purges_after(none), "it is unknown how long the marks have waited");
    run.mark();
    assert!(!run.purges_after(none));
}

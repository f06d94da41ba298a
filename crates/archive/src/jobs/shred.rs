//! Destroys keys whose destruction a crash interrupted, or failed since, or whose deletion was left
//! unconfirmed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Failed, Job, JobRun, Next, Pace};
use crate::limits::{JOB_BACKOFF_MAX, JOB_TICK};
use crate::startup;
use crate::state::ArchiveState;

#[derive(Debug)]
pub(super) struct ShredJob {
    state: Arc<ArchiveState>,
    /// Whether keys of uploads that the previous run left incomplete were destroyed.
    has_swept: bool,
    /// How often the catalog had been reopened at the last run.
    reopens: u64,
}

impl ShredJob {
    pub(super) fn from_state(state: &Arc<ArchiveState>) -> Self {
        Self { state: Arc::clone(state), has_swept: false, reopens: 0 }
    }

    fn sweep(&mut self, run: &JobRun<'_>) -> crate::Result<()> {
        if self.has_swept {
            return Ok(());
        }
        if let Err(error) = startup::name_missing_platters(&self.state) {
            tracing::warn!(%error, "cannot report missing platters");
        }
        run.doing("destroying keys of interrupted uploads");
        let count = startup::sweep_orphan_keys(&self.state)?;
        if count > 0 {
            tracing::info!(count, "destroyed keys of interrupted uploads");
        }
        self.has_swept = true;
        Ok(())
    }
}

impl Job for ShredJob {
    fn name(&self) -> String {
        "shredding".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: Some(JOB_TICK), backoff: JOB_TICK, backoff_max: JOB_BACKOFF_MAX }
    }

    fn failing(&self) -> &'static str {
        "keys of deleted objects are not destroyed"
    }

    fn run(&mut self, run: &JobRun<'_>) -> Result<Next, Failed> {
        // A reopened catalog may hold deletions that were reported as failed.
        let reopens = self.state.catalog_reopens();
        if std::mem::replace(&mut self.reopens, reopens) != reopens {
            self.state.has_failed_shreds.store(true, Ordering::SeqCst);
        }
        // Both are tried, whatever the outcome of the other.
        let shredded = startup::finish_failed_shreds(&self.state, &mut || {
            run.doing("destroying keys");
        });
        self.sweep(run).and(shredded)?;
        Ok(Next::Tick)
    }
}

#[cfg(test)]
mod tests {
    use fulgurite_catalog::Transaction;
    use fulgurite_units::ManualClock;

    use super::*;
    use crate::bodies::log::LogKind;
    use crate::jobs::Runner;
    use crate::rows::{self, SHREDS};
    use crate::testing;

    /// Makes the catalog fail by moving its tables away, and reopen once they are back.
    fn fail_and_reopen(state: &ArchiveState) {
        let tables = state.config.data.join("catalog/keyspaces/1/tables");
        let away = state.config.data.join("away");
        std::fs::rename(&tables, &away).unwrap();
        state.committer.reopen_blocking().unwrap_err();
        std::fs::rename(&away, &tables).unwrap();
        state.committer.reopen_blocking().unwrap();
        assert_eq!(state.catalog_reopens(), 1);
    }

    #[test]
    fn unconfirmed_deletion_destroys_keys_after_reopen() {
        let dir = testing::dir();
        let state = testing::state(&dir);
        let body = testing::body_row(LogKind::Online).body_id;
        let (_, slot) = state.keys.create(body).unwrap();
        let commit = move |tx: &mut Transaction<'_>| -> crate::Result<()> {
            rows::put(tx, SHREDS, body.to_bytes().to_vec(), &slot)
        };
        state.committer.commit_blocking(commit).unwrap();
        let time = ManualClock::at(testing::NOW);
        let runner = Runner::new(&time.clock(), &state.runtime.panics);
        runner.start(ShredJob::from_state(&state)).unwrap();
        // The deleting call destroys its keys; after an error nobody has.
        assert!(state.keys.load(slot, body).is_ok());
        fail_and_reopen(&state);
        while state.keys.load(slot, body).is_ok() {
            time.advance(JOB_TICK);
            std::thread::yield_now();
        }
        runner.stop();
        assert_eq!(runner.join(), 0);
    }
}

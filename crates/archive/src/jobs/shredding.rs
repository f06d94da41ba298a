//! Destroys keys whose destruction a crash interrupted, or failed since, or whose deletion was left
//! unconfirmed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Failed, Job, Next, Pace, Turn};
use crate::ground::Ground;
use crate::limits::{JOB_REST_MAX, JOB_TICK};
use crate::startup;

#[derive(Debug)]
pub(super) struct Shredding {
    ground: Arc<Ground>,
    /// Whether keys of uploads that the previous run left incomplete were swept.
    has_swept: bool,
    /// How often the catalog had been reopened at the last run.
    mended: u64,
}

impl Shredding {
    pub(super) fn of(ground: &Arc<Ground>) -> Self {
        Self { ground: Arc::clone(ground), has_swept: false, mended: 0 }
    }

    fn sweep(&mut self, turn: &Turn<'_>) -> crate::Result<()> {
        if self.has_swept {
            return Ok(());
        }
        if let Err(error) = startup::name_missing_platters(&self.ground) {
            tracing::warn!(%error, "platters that are missing are not named");
        }
        turn.doing("looking for keys of uploads that a crash cut short");
        let count = startup::sweep_orphan_keys(&self.ground)?;
        if count > 0 {
            tracing::info!(count, "destroyed keys of uploads that a crash cut short");
        }
        self.has_swept = true;
        Ok(())
    }
}

impl Job for Shredding {
    fn name(&self) -> String {
        "shredding".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: Some(JOB_TICK), rest: JOB_TICK, rest_max: JOB_REST_MAX }
    }

    fn failing(&self) -> &'static str {
        "keys stay that are to be destroyed"
    }

    fn run(&mut self, turn: &Turn<'_>) -> Result<Next, Failed> {
        // A reopened catalog may hold deletions that were reported as failed.
        let mended = self.ground.catalog_mended();
        if std::mem::replace(&mut self.mended, mended) != mended {
            self.ground.has_failed_shreds.store(true, Ordering::SeqCst);
        }
        // Both are tried, whatever the outcome of the other.
        let shredded = startup::finish_failed_shreds(&self.ground, &mut || {
            turn.doing("destroying keys");
        });
        self.sweep(turn).and(shredded)?;
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
    fn fail_and_mend(ground: &Ground) {
        let tables = ground.config.data.join("catalog/keyspaces/1/tables");
        let away = ground.config.data.join("away");
        std::fs::rename(&tables, &away).unwrap();
        ground.committer.reopen_blocking().unwrap_err();
        std::fs::rename(&away, &tables).unwrap();
        ground.committer.reopen_blocking().unwrap();
        assert_eq!(ground.catalog_mended(), 1);
    }

    #[test]
    fn keys_of_a_deletion_in_doubt_go_when_the_catalog_was_opened_anew() {
        let dir = testing::dir();
        let ground = testing::ground(&dir);
        let body = testing::body_row(LogKind::Online).body_id;
        let (_, slot) = ground.keys.create(body).unwrap();
        let commit = move |tx: &mut Transaction<'_>| -> crate::Result<()> {
            rows::put(tx, SHREDS, body.to_bytes().to_vec(), &slot)
        };
        ground.committer.commit_blocking(commit).unwrap();
        let time = ManualClock::at(testing::NOW);
        let runner = Runner::new(&time.clock(), &ground.panics);
        runner.start(Shredding::of(&ground)).unwrap();
        // The deleting call destroys its keys; after an error nobody has.
        assert!(ground.keys.load(slot, body).is_ok());
        fail_and_mend(&ground);
        while ground.keys.load(slot, body).is_ok() {
            time.advance(JOB_TICK);
            std::thread::yield_now();
        }
        runner.stop();
        assert_eq!(runner.join(), 0);
    }
}

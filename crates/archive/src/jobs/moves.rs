//! Moves bodies to a tier of objects and removes them from it; each tier has a job.

use super::{Failed, Job, JobRun, Next, Pace};
use crate::limits::{JOB_TICK, TIER_BACKOFF, TIER_BACKOFF_MAX};
use crate::tiers::Mover;

#[derive(Debug)]
pub(super) struct MoveJob(pub(super) Mover);

impl Job for MoveJob {
    fn name(&self) -> String {
        format!("moving-{}", self.0.tier())
    }

    fn pace(&self) -> Pace {
        Pace { tick: Some(JOB_TICK), backoff: TIER_BACKOFF, backoff_max: TIER_BACKOFF_MAX }
    }

    fn failing(&self) -> &'static str {
        "a tier accepts nothing, and its bodies stay staged"
    }

    fn run(&mut self, run: &JobRun<'_>) -> Result<Next, Failed> {
        let worked = self.0.work(&|what| run.doing(what));
        self.0.notify_polled();
        Ok(if worked? { Next::Again } else { Next::Tick })
    }

    fn on_stop(&mut self) {
        self.0.notify_polled();
    }
}

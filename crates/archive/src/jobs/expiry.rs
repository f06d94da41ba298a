//! Removes expired restored copies, whatever else is running.

use std::sync::Arc;

use super::{Failed, Job, JobRun, Next, Pace};
use crate::expire::expire_due;
use crate::limits::{JOB_BACKOFF_MAX, JOB_TICK};
use crate::state::ArchiveState;

#[derive(Debug)]
pub(super) struct ExpiryJob(pub(super) Arc<ArchiveState>);

impl Job for ExpiryJob {
    fn name(&self) -> String {
        "expiring".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: Some(JOB_TICK), backoff: JOB_TICK, backoff_max: JOB_BACKOFF_MAX }
    }

    fn failing(&self) -> &'static str {
        "expired copies are not removed"
    }

    fn run(&mut self, run: &JobRun<'_>) -> Result<Next, Failed> {
        expire_due(&self.0, &mut || run.doing("dropping expired copies"))?;
        Ok(Next::Tick)
    }
}

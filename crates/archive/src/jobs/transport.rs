//! Carries redundancy platters to far libraries.

use fulgurite_glass::Carrier;

use super::{Failed, Job, JobRun, Next, Pace};
use crate::ArchiveError;
use crate::limits::{FAR_TICK, TIER_BACKOFF, TIER_BACKOFF_MAX};

#[derive(Debug)]
pub(super) struct TransportJob(pub(super) Carrier);

impl Job for TransportJob {
    fn name(&self) -> String {
        "carrying".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: Some(FAR_TICK), backoff: TIER_BACKOFF, backoff_max: TIER_BACKOFF_MAX }
    }

    fn failing(&self) -> &'static str {
        "platters are not carried to far libraries"
    }

    fn run(&mut self, run: &JobRun<'_>) -> Result<Next, Failed> {
        self.0.run(&|what| run.doing(what)).map_err(ArchiveError::from)?;
        Ok(Next::Tick)
    }
}

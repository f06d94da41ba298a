//! Seals staged bodies when the policy requires it, when a set was started, or on order.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use fulgurite_glass::{Bodies, SealTrigger};

use super::{Failed, Job, JobRun, Next, Pace, Reply};
use crate::limits::{JOB_TICK, SEAL_BACKOFF};
use crate::state::ArchiveState;
use crate::status::SealReport;
use crate::{ArchiveError, Result, policy};

/// Name of the job.
pub(super) const SEALING: &str = "sealing";

/// An order to seal: the reply to its caller.
pub(crate) type SealOrder = Reply<SealReport>;

#[derive(Debug)]
pub(super) struct SealJob {
    pub(super) state: Arc<ArchiveState>,
    pub(super) bodies: Arc<dyn Bodies>,
    pub(super) orders: Receiver<SealOrder>,
}

impl SealJob {
    /// Whether there is anything to seal. If the check fails, sealing is tried and reports why.
    fn is_due(&self) -> bool {
        let check = || policy::is_due(&self.state);
        self.state.runtime.panics.run(SEALING, check).unwrap_or(true)
    }

    /// After a failure it checks less often what is due, and the failure is shown.
    fn next(&self) -> Next {
        self.state.platters.oldest_failure().map_or(Next::Tick, Next::Deferred)
    }
}

impl Job for SealJob {
    fn name(&self) -> String {
        SEALING.to_owned()
    }

    fn pace(&self) -> Pace {
        // Each set has its own, growing backoff.
        Pace { tick: Some(JOB_TICK), backoff: SEAL_BACKOFF, backoff_max: SEAL_BACKOFF }
    }

    fn failing(&self) -> &'static str {
        "staged bodies are not sealed"
    }

    fn run(&mut self, run: &JobRun<'_>) -> Result<Next, Failed> {
        let order = self.orders.try_iter().find(SealOrder::is_awaited);
        let trigger = if order.is_some() { SealTrigger::Order } else { SealTrigger::Due };
        if trigger == SealTrigger::Due && !self.is_due() {
            return Ok(self.next());
        }
        run.doing(SEALING);
        // A panic becomes an error here, so that it reaches the caller.
        let sealed = self.state.platters.seal(&self.bodies, trigger);
        let outcome = sealed.map_err(ArchiveError::from);
        let next = match &outcome {
            Ok(_) => Ok(self.next()),
            Err(error) => Err(Failed::from_error(error)),
        };
        if let Some(reply) = order {
            run.after_run(move || reply.send(outcome));
        }
        next
    }
}

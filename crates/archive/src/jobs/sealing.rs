//! Seals staged bodies when the policy requires it, when a set was started, or on order.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use fulgurite_platters::{Bodies, Cause};

use super::{Failed, Job, Next, Pace, Reply, Turn};
use crate::ground::Ground;
use crate::limits::{JOB_TICK, SEAL_REST};
use crate::status::SealReport;
use crate::{ArchiveError, Result, policy};

/// Name of the job.
pub(super) const SEALING: &str = "sealing";

/// An order to seal: the reply to its caller.
pub(crate) type SealOrder = Reply<SealReport>;

#[derive(Debug)]
pub(super) struct Sealing {
    pub(super) ground: Arc<Ground>,
    pub(super) bodies: Arc<dyn Bodies>,
    pub(super) orders: Receiver<SealOrder>,
}

impl Sealing {
    /// Whether there is anything to seal. If the check fails, sealing is tried and reports why.
    fn is_due(&self) -> bool {
        let look = || policy::is_due(&self.ground);
        self.ground.panics.run(SEALING, look).unwrap_or(true)
    }

    /// After a failure it checks less often what is due, and the failure is shown.
    fn next(&self) -> Next {
        self.ground.platters.trouble().map_or(Next::Tick, Next::Waits)
    }
}

impl Job for Sealing {
    fn name(&self) -> String {
        SEALING.to_owned()
    }

    fn pace(&self) -> Pace {
        // Each set has its own, growing backoff.
        Pace { tick: Some(JOB_TICK), rest: SEAL_REST, rest_max: SEAL_REST }
    }

    fn failing(&self) -> &'static str {
        "what is staged is not sealed"
    }

    fn run(&mut self, turn: &Turn<'_>) -> Result<Next, Failed> {
        let order = self.orders.try_iter().find(SealOrder::is_awaited);
        let cause = if order.is_some() { Cause::Order } else { Cause::Due };
        if cause == Cause::Due && !self.is_due() {
            return Ok(self.next());
        }
        turn.doing(SEALING);
        // A panic becomes an error here, so that it reaches the caller.
        let sealed = self.ground.platters.seal(&self.bodies, cause);
        let outcome = sealed.map_err(ArchiveError::from);
        let next = match &outcome {
            Ok(_) => Ok(self.next()),
            Err(error) => Err(Failed::of(error)),
        };
        if let Some(reply) = order {
            turn.afterwards(move || reply.send(outcome));
        }
        next
    }
}

//! Staged bodies are sealed when the policy says so, when a set was begun, or on order.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use fulgurite_platters::{Bodies, Cause};

use super::{Failed, Job, Next, Pace, Reply, Turn};
use crate::ground::Ground;
use crate::limits::{JOB_TICK, SEAL_REST};
use crate::status::SealReport;
use crate::{ArchiveError, Result, policy};

/// Its name.
pub(super) const SEALING: &str = "sealing";

/// Who ordered it, and is told.
pub(crate) type SealOrder = Reply<SealReport>;

#[derive(Debug)]
pub(super) struct Sealing {
    pub(super) ground: Arc<Ground>,
    pub(super) bodies: Arc<dyn Bodies>,
    pub(super) orders: Receiver<SealOrder>,
}

impl Sealing {
    /// Whether there is something to seal; if that cannot be told, trying will tell why.
    fn is_due(&self) -> bool {
        let look = || policy::is_due(&self.ground);
        self.ground.panics.run(SEALING, look).unwrap_or(true)
    }

    /// With trouble it takes longer to find out what is due, and the trouble is shown.
    fn next(&self) -> Next {
        self.ground.platters.trouble().map_or(Next::Tick, Next::Waits)
    }
}

impl Job for Sealing {
    fn name(&self) -> String {
        SEALING.to_owned()
    }

    fn pace(&self) -> Pace {
        // Sets have rests of their own, which grow.
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
        // A panic in it is an error, so that whoever ordered it is told.
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

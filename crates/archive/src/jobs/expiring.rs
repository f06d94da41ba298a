//! Removes expired restored copies, whatever else is running.

use std::sync::Arc;

use super::{Failed, Job, Next, Pace, Turn};
use crate::expire::expire_due;
use crate::ground::Ground;
use crate::limits::{JOB_REST_MAX, JOB_TICK};

#[derive(Debug)]
pub(super) struct Expiring(pub(super) Arc<Ground>);

impl Job for Expiring {
    fn name(&self) -> String {
        "expiring".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: Some(JOB_TICK), rest: JOB_TICK, rest_max: JOB_REST_MAX }
    }

    fn failing(&self) -> &'static str {
        "expired copies stay"
    }

    fn run(&mut self, turn: &Turn<'_>) -> Result<Next, Failed> {
        expire_due(&self.0, &mut || turn.doing("dropping expired copies"))?;
        Ok(Next::Tick)
    }
}

//! Moves bodies to a tier of objects and removes them from it; each tier has a job.

use super::{Failed, Job, Next, Pace, Turn};
use crate::limits::{JOB_TICK, TIER_REST, TIER_REST_MAX};
use crate::tiers::Mover;

#[derive(Debug)]
pub(super) struct Moving(pub(super) Mover);

impl Job for Moving {
    fn name(&self) -> String {
        format!("moving-{}", self.0.tier())
    }

    fn pace(&self) -> Pace {
        Pace { tick: Some(JOB_TICK), rest: TIER_REST, rest_max: TIER_REST_MAX }
    }

    fn failing(&self) -> &'static str {
        "a tier takes nothing, and what is for it stays staged"
    }

    fn run(&mut self, turn: &Turn<'_>) -> Result<Next, Failed> {
        let worked = self.0.work(&|what| turn.doing(what));
        self.0.tell_looked();
        Ok(if worked? { Next::Again } else { Next::Tick })
    }

    fn stopped(&mut self) {
        self.0.tell_looked();
    }
}

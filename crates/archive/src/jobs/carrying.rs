//! Carries redundancy platters to far libraries.

use fulgurite_platters::Carrier;

use super::{Failed, Job, Next, Pace, Turn};
use crate::ArchiveError;
use crate::limits::{FAR_TICK, TIER_REST, TIER_REST_MAX};

#[derive(Debug)]
pub(super) struct Carrying(pub(super) Carrier);

impl Job for Carrying {
    fn name(&self) -> String {
        "carrying".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: Some(FAR_TICK), rest: TIER_REST, rest_max: TIER_REST_MAX }
    }

    fn failing(&self) -> &'static str {
        "platters that belong to far libraries stay at home"
    }

    fn run(&mut self, turn: &Turn<'_>) -> Result<Next, Failed> {
        self.0.run(&|what| turn.doing(what)).map_err(ArchiveError::from)?;
        Ok(Next::Tick)
    }
}

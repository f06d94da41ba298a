//! Looks after the data directory: the reserve, names that are to be forgotten, from where on a
//! start has to look for doubts, and the mark of the catalog.

use std::sync::Arc;

use fulgurite_units::Duration;

use super::{Failed, Job, Next, Pace, Turn};
use crate::bodies::forget::Forgetting;
use crate::ground::Ground;
use crate::limits::JOB_TICK;

#[derive(Debug)]
pub(super) struct Tending {
    ground: Arc<Ground>,
    forgetting: Forgetting,
}

impl Tending {
    pub(super) fn of(ground: &Arc<Ground>) -> Self {
        Self { ground: Arc::clone(ground), forgetting: Forgetting::default() }
    }
}

impl Job for Tending {
    fn name(&self) -> String {
        "tending".to_owned()
    }

    fn pace(&self) -> Pace {
        let within = self.ground.config.space.forget_within;
        // Rests do not grow: there is a time by which names must be gone.
        let tick = JOB_TICK.min(Duration::from_nanos(within.as_nanos() / 4));
        Pace { tick: Some(tick), rest: tick, rest_max: tick }
    }

    fn failing(&self) -> &'static str {
        "deleted names stay, the reserve is missing, the mark of the catalog stays older, or the \
         next start has more to read"
    }

    fn run(&mut self, turn: &Turn<'_>) -> Result<Next, Failed> {
        let ground = &self.ground;
        // Each is tried, whatever becomes of the others.
        let kept = ground.space.keep_reserve();
        let forgets = &mut || turn.doing("forgetting names of what was deleted");
        let forgot = self.forgetting.run_due(ground, forgets);
        let settled = ground.note_settled();
        let marked = ground.mark.note(false);
        kept.and(forgot).and(settled).and(marked)?;
        Ok(Next::Tick)
    }
}

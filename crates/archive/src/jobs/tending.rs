//! Looks after the data directory: whether its disk works, the reserve, names that are to be
//! forgotten, from where on a start has to look for doubts, and the mark of the catalog.

use std::sync::Arc;

use fulgurite_units::Duration;

use super::{Failed, Job, Next, Pace, Turn};
use crate::bodies::forget::Forgetting;
use crate::ground::{DAMAGED_CATALOG_REMEDY, Ground};
use crate::limits::JOB_TICK;

#[derive(Debug)]
pub(super) struct Tending {
    ground: Arc<Ground>,
    forgetting: Forgetting,
    /// Whether damage of the catalog was said.
    is_damage_said: bool,
}

impl Tending {
    pub(super) fn of(ground: &Arc<Ground>) -> Self {
        let forgetting = Forgetting::default();
        Self { ground: Arc::clone(ground), forgetting, is_damage_said: false }
    }

    /// Says how to mend a catalog of which a part could not be read.
    fn say_damage(&mut self) {
        let Some(damage) = self.ground.kv.damage().filter(|_| !self.is_damage_said) else { return };
        self.is_damage_said = true;
        let damage = damage.chain();
        tracing::error!(
            damage,
            "the catalog is damaged: stop the archive, and {DAMAGED_CATALOG_REMEDY}"
        );
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
        "its disk takes nothing, deleted names stay, the reserve is missing, the mark of the \
         catalog stays older, or the next start has more to read"
    }

    fn run(&mut self, turn: &Turn<'_>) -> Result<Next, Failed> {
        self.say_damage();
        let ground = &self.ground;
        // Each is tried, whatever becomes of the others.
        let kept = ground.space.keep_reserve();
        let forgets = &mut || turn.doing("forgetting names of what was deleted");
        let forgot = self.forgetting.run_due(ground, forgets);
        let settled = ground.note_settled();
        let marked = ground.mark.note(false);
        // First, since it says what the others met.
        ground.space.check_disk().and(kept).and(forgot).and(settled).and(marked)?;
        Ok(Next::Tick)
    }
}

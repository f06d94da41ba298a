//! Maintains the data directory: checks the disk, keeps the reserve, purges deleted names, records
//! from which segments on a start must look for unconfirmed bodies, and updates the catalog mark.

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
    /// Whether catalog damage was reported.
    is_damage_said: bool,
}

impl Tending {
    pub(super) fn of(ground: &Arc<Ground>) -> Self {
        let forgetting = Forgetting::default();
        Self { ground: Arc::clone(ground), forgetting, is_damage_said: false }
    }

    /// Logs how to repair a catalog that is partly unreadable.
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
        // The backoff does not grow: names must be gone by a stated time.
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
        // All are tried, whatever the outcome of the others.
        let kept = ground.space.keep_reserve();
        let forgets = &mut || turn.doing("forgetting names of what was deleted");
        let forgot = self.forgetting.run_due(ground, forgets);
        let settled = ground.note_settled();
        let marked = ground.mark.note(false);
        // The disk check comes first, because it explains the other failures.
        ground.space.check_disk().and(kept).and(forgot).and(settled).and(marked)?;
        Ok(Next::Tick)
    }
}

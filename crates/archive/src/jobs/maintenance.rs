//! Maintains the data directory: checks the disk, keeps the reserve, purges deleted names, records
//! from which segments on a start must scan for unconfirmed bodies, and updates the catalog mark.

use std::sync::Arc;

use fulgurite_units::Duration;

use super::{Failed, Job, JobRun, Next, Pace};
use crate::bodies::purge::NamePurge;
use crate::limits::JOB_TICK;
use crate::state::{ArchiveState, DAMAGED_CATALOG_REMEDY};

#[derive(Debug)]
pub(super) struct MaintenanceJob {
    state: Arc<ArchiveState>,
    purge_state: NamePurge,
    /// Whether catalog damage was reported.
    is_damage_logged: bool,
}

impl MaintenanceJob {
    pub(super) fn from_state(state: &Arc<ArchiveState>) -> Self {
        let purge_state = NamePurge::default();
        Self { state: Arc::clone(state), purge_state, is_damage_logged: false }
    }

    /// Logs how to repair a catalog that is partly unreadable.
    fn log_damage(&mut self) {
        let Some(damage) = self.state.kv.damage().filter(|_| !self.is_damage_logged) else {
            return;
        };
        self.is_damage_logged = true;
        let damage = damage.chain();
        tracing::error!(
            damage,
            "the catalog is damaged: stop the archive, and {DAMAGED_CATALOG_REMEDY}"
        );
    }
}

impl Job for MaintenanceJob {
    fn name(&self) -> String {
        "tending".to_owned()
    }

    fn pace(&self) -> Pace {
        let within = self.state.config.space.forget_within;
        // The backoff does not grow: names must be gone by a stated time.
        let tick = JOB_TICK.min(Duration::from_nanos(within.as_nanos() / 4));
        Pace { tick: Some(tick), backoff: tick, backoff_max: tick }
    }

    fn failing(&self) -> &'static str {
        "the disk cannot be written, deleted names are not purged, the reserve is missing, the \
         catalog mark is not updated, or the next start has more to read"
    }

    fn run(&mut self, run: &JobRun<'_>) -> Result<Next, Failed> {
        self.log_damage();
        let state = &self.state;
        // All are tried, whatever the outcome of the others.
        let reserved = state.space.keep_reserve();
        let on_begin = &mut || run.doing("purging the names of deleted objects");
        let purged = self.purge_state.run_due(state, on_begin);
        let settled = state.record_settled();
        let marked = state.mark.record(false);
        // The disk check comes first, because it explains the other failures.
        state.space.check_disk().and(reserved).and(purged).and(settled).and(marked)?;
        Ok(Next::Tick)
    }
}

//! Keys are destroyed that a crash cut short, and those whose destruction failed since.

use std::sync::Arc;

use super::{Failed, Job, Next, Pace, Turn};
use crate::ground::Ground;
use crate::limits::{JOB_REST_MAX, JOB_TICK};
use crate::startup;

#[derive(Debug)]
pub(super) struct Shredding {
    ground: Arc<Ground>,
    /// Keys of uploads that the run before this one cut short were looked for.
    has_swept: bool,
}

impl Shredding {
    pub(super) fn of(ground: &Arc<Ground>) -> Self {
        Self { ground: Arc::clone(ground), has_swept: false }
    }

    fn sweep(&mut self, turn: &Turn<'_>) -> crate::Result<()> {
        if self.has_swept {
            return Ok(());
        }
        turn.doing("looking for keys of uploads that a crash cut short");
        let count = startup::sweep_orphan_keys(&self.ground)?;
        if count > 0 {
            tracing::info!(count, "destroyed keys of uploads that a crash cut short");
        }
        self.has_swept = true;
        Ok(())
    }
}

impl Job for Shredding {
    fn name(&self) -> String {
        "shredding".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: Some(JOB_TICK), rest: JOB_TICK, rest_max: JOB_REST_MAX }
    }

    fn failing(&self) -> &'static str {
        "keys stay that are to be destroyed"
    }

    fn run(&mut self, turn: &Turn<'_>) -> Result<Next, Failed> {
        // Each is tried, whatever becomes of the other.
        let shredded = startup::finish_failed_shreds(&self.ground, &mut || {
            turn.doing("destroying keys");
        });
        self.sweep(turn).and(shredded)?;
        Ok(Next::Tick)
    }
}

//! The stages of a disk until it can be used, and until it is spun down again.
//!
//! ```text
//! up:    SpinUp --> Mount --> Identify (which disk is it?) --> active
//! down:  Unmount --> SpinDown --> Rest (standby)
//! ```
//!
//! Each stage is a call of the backend, followed by the delay that it returns. Calls to real disks
//! block, so each runs on a thread; simulated ones return at once.

use std::sync::Arc;

use fulgurite_disks::{Backend, Health, PlaceId, Power};
use fulgurite_units::{Duration, error_chain};

use crate::Fault;
use crate::work::{DiskContext, Identification, identify};

/// A stage of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Commands the disk to spin up.
    SpinUp,
    /// Mounts its file system.
    Mount,
    /// Identifies the disk.
    Identify,
    /// Unmounts its file system.
    Unmount,
    /// Commands the disk to spin down.
    SpinDown,
    /// The disk has spun down.
    Standby,
}

/// A stage that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) place: PlaceId,
    pub(super) stage: Stage,
    pub(super) result: StageResult,
}

/// How a stage ended.
#[derive(Debug)]
pub(super) enum StageResult {
    /// Succeeded; the next stage begins after this delay.
    Ok(Duration),
    /// The disk is active: what it was identified as, and the health it reported.
    Identified(Identification, Option<Health>),
    /// It is not the disk that belongs there, or cannot be identified.
    Wrong(Fault),
    /// The operation failed.
    Failed(String),
}

/// What a stage needs.
#[derive(Clone, Debug)]
pub(super) struct DiskWorker {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) ctx: Arc<DiskContext>,
}

impl DiskWorker {
    /// Performs a stage. Blocks as long as the disk takes.
    pub(super) fn run_stage(&self, place: PlaceId, stage: Stage, waiting: u32) -> Ended {
        let result = match stage {
            Stage::SpinUp => self.to_result(self.backend.spin_up(place)),
            Stage::Mount => self.to_result(self.backend.mount(place, waiting)),
            Stage::Identify => self.identify(place),
            Stage::Unmount => match self.ctx.guard.turn(place, Power::Unmounting) {
                Ok(()) => self.to_result(self.backend.unmount(place)),
                Err(error) => StageResult::Failed(error_chain(&error)),
            },
            Stage::SpinDown => self.to_result(self.backend.spin_down(place)),
            // A disk that another program spun up was never mounted.
            Stage::Standby if self.ctx.guard.power(place) == Some(Power::Standby) => {
                StageResult::Ok(Duration::ZERO)
            }
            Stage::Standby => match self.ctx.guard.turn(place, Power::Standby) {
                Ok(()) => StageResult::Ok(Duration::ZERO),
                Err(error) => StageResult::Failed(error_chain(&error)),
            },
        };
        Ended { place, stage, result }
    }

    fn to_result(&self, result: fulgurite_disks::Result<Duration>) -> StageResult {
        match result {
            Ok(time) => StageResult::Ok(time),
            Err(error) => StageResult::Failed(error_chain(&error)),
        }
    }

    fn identify(&self, place: PlaceId) -> StageResult {
        if let Err(error) = self.ctx.guard.turn(place, Power::Active) {
            return StageResult::Failed(error_chain(&error));
        }
        match identify(&self.ctx, place) {
            // The disk is usable without health; only its report is missing then.
            Ok(identification) => {
                StageResult::Identified(identification, self.backend.health(place).ok().flatten())
            }
            // May be transient: nothing says that this is another disk.
            Err(fault @ (Fault::Io { .. } | Fault::Exhausted { .. })) => {
                StageResult::Failed(fault.to_string())
            }
            Err(fault) => StageResult::Wrong(fault),
        }
    }

    /// Spins down a disk that did not come up or is not the right one, ignoring errors.
    pub(super) fn spin_down(&self, place: PlaceId) {
        let guard = &self.ctx.guard;
        if guard.power(place) == Some(Power::Active) {
            let _ = guard.turn(place, Power::Unmounting);
        }
        let unmounted = self.backend.unmount(place).map(|_| ());
        let down = unmounted.and_then(|()| self.backend.spin_down(place).map(|_| ()));
        if let Err(error) = down {
            tracing::debug!(%place, "cannot spin a disk down: {}", error_chain(&error));
        }
        if guard.power(place).is_some_and(|power| power != Power::Standby) {
            let _ = guard.turn(place, Power::Standby);
        }
    }
}

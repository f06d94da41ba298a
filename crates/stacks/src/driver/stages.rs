//! The stages of a disk until it can be used, and until it is spun down again.
//!
//! ```text
//! up:    TurnUp --> Mount --> Arrive (which disk is it?) --> active
//! down:  Unmount --> TurnDown --> Rest (standby)
//! ```
//!
//! Each stage is a call of the backend, followed by the delay that it returns. Calls to real disks
//! block, so each runs on a thread; simulated ones return at once.

use std::sync::Arc;

use fulgurite_disks::{Backend, Health, PlaceId, Power};
use fulgurite_units::{Duration, error_chain};

use crate::Fault;
use crate::work::{Arrival, Shop, arrive};

/// A stage of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Commands the disk to spin up.
    TurnUp,
    /// Mounts its file system.
    Mount,
    /// Identifies the disk.
    Arrive,
    /// Unmounts its file system.
    Unmount,
    /// Commands the disk to spin down.
    TurnDown,
    /// The disk has spun down.
    Rest,
}

/// A stage that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) place: PlaceId,
    pub(super) stage: Stage,
    pub(super) how: How,
}

/// How a stage ended.
#[derive(Debug)]
pub(super) enum How {
    /// Succeeded; the next stage begins after this delay.
    Well(Duration),
    /// The disk is active: what it was identified as, and the health it reported.
    Arrived(Arrival, Option<Health>),
    /// It is not the disk that belongs there, or cannot be identified.
    Wrong(Fault),
    /// The operation failed.
    Failed(String),
}

/// What a stage needs.
#[derive(Clone, Debug)]
pub(super) struct Stagehand {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) shop: Arc<Shop>,
}

impl Stagehand {
    /// Performs a stage. Blocks as long as the disk takes.
    pub(super) fn act(&self, place: PlaceId, stage: Stage, waiting: u32) -> Ended {
        let how = match stage {
            Stage::TurnUp => self.timed(self.backend.spin_up(place)),
            Stage::Mount => self.timed(self.backend.mount(place, waiting)),
            Stage::Arrive => self.arrive(place),
            Stage::Unmount => match self.shop.guard.turn(place, Power::Unmounting) {
                Ok(()) => self.timed(self.backend.unmount(place)),
                Err(error) => How::Failed(error_chain(&error)),
            },
            Stage::TurnDown => self.timed(self.backend.spin_down(place)),
            // A disk that another program spun up was never mounted.
            Stage::Rest if self.shop.guard.power(place) == Some(Power::Standby) => {
                How::Well(Duration::ZERO)
            }
            Stage::Rest => match self.shop.guard.turn(place, Power::Standby) {
                Ok(()) => How::Well(Duration::ZERO),
                Err(error) => How::Failed(error_chain(&error)),
            },
        };
        Ended { place, stage, how }
    }

    fn timed(&self, answer: fulgurite_disks::Result<Duration>) -> How {
        match answer {
            Ok(time) => How::Well(time),
            Err(error) => How::Failed(error_chain(&error)),
        }
    }

    fn arrive(&self, place: PlaceId) -> How {
        if let Err(error) = self.shop.guard.turn(place, Power::Active) {
            return How::Failed(error_chain(&error));
        }
        match arrive(&self.shop, place) {
            // The disk is usable without health; only its report is missing then.
            Ok(arrival) => How::Arrived(arrival, self.backend.health(place).ok().flatten()),
            // May be transient: nothing says that this is another disk.
            Err(fault @ (Fault::Io { .. } | Fault::Exhausted { .. })) => {
                How::Failed(fault.to_string())
            }
            Err(fault) => How::Wrong(fault),
        }
    }

    /// Spins down a disk that did not come up or is not the right one, ignoring errors.
    pub(super) fn put_down(&self, place: PlaceId) {
        let guard = &self.shop.guard;
        if guard.power(place) == Some(Power::Active) {
            let _ = guard.turn(place, Power::Unmounting);
        }
        let unmounted = self.backend.unmount(place).map(|_| ());
        let down = unmounted.and_then(|()| self.backend.spin_down(place).map(|_| ()));
        if let Err(error) = down {
            tracing::debug!(%place, "a disk is not put down: {}", error_chain(&error));
        }
        if guard.power(place).is_some_and(|power| power != Power::Standby) {
            let _ = guard.turn(place, Power::Standby);
        }
    }
}

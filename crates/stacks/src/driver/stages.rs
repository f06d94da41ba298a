//! What a disk goes through until it can be used, and until it stands still again.
//!
//! ```text
//! up:    TurnUp --> Mount --> Arrive (which disk is it?) --> active
//! down:  Unmount --> TurnDown --> Rest (standby)
//! ```
//!
//! Each is a call of the backend and then so much time as it says. The calls of real disks block,
//! so that each has a thread; simulated ones answer at once.

use std::sync::Arc;

use fulgurite_disks::{Backend, Health, PlaceId, Power};
use fulgurite_units::{Duration, error_chain};

use crate::Fault;
use crate::work::{Arrival, Shop, arrive};

/// A stage of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// It is told to turn.
    TurnUp,
    /// Its file system is made ready.
    Mount,
    /// It is looked which disk it is.
    Arrive,
    /// Its file system is put away.
    Unmount,
    /// It is told to stand still.
    TurnDown,
    /// It stands still.
    Rest,
}

/// A stage is over.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) place: PlaceId,
    pub(super) stage: Stage,
    pub(super) how: How,
}

/// How a stage ended.
#[derive(Debug)]
pub(super) enum How {
    /// Well, when this much time has passed.
    Well(Duration),
    /// It is active, and this is what it is and what it says of itself.
    Arrived(Arrival, Option<Health>),
    /// It is not the disk that belongs there, or cannot be told.
    Wrong(Fault),
    /// The disk does not do it.
    Failed(String),
}

/// Everything that a stage needs.
#[derive(Clone, Debug)]
pub(super) struct Stagehand {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) shop: Arc<Shop>,
}

impl Stagehand {
    /// Does a stage; it may take as long as the disk does.
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
            // Of a disk that another program woke nothing was mounted.
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
            // It is as good without: only what it says of itself is not known then.
            Ok(arrival) => How::Arrived(arrival, self.backend.health(place).ok().flatten()),
            // It may be well the next time: nothing says that it is another one.
            Err(fault @ (Fault::Io { .. } | Fault::Exhausted { .. })) => {
                How::Failed(fault.to_string())
            }
            Err(fault) => How::Wrong(fault),
        }
    }

    /// Puts down a disk that did not come up, or is not the right one, whatever it says.
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

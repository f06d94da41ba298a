//! What turns disks up and down: one trait for real disks and for simulated ones.

use std::fmt;

use fulgurite_units::{ByteCount, Duration};
use serde::{Deserialize, Serialize};

use crate::{Pace, PlaceId, Result};

/// What a disk was found doing, without waking it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Observed {
    /// Its platters stand still.
    Standby,
    /// They turn, whoever wanted it.
    Turning,
    /// No disk answers there.
    Absent,
}

/// What a disk says of itself, asked without waking it. What it did not say is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Who made it and what it is, in one line.
    pub model: Option<String>,
    /// Its maker's number for it, by which a disk put into the wrong place is known.
    pub serial: Option<String>,
    /// Its size.
    pub bytes: Option<ByteCount>,
    /// Whether it thinks that it will live.
    pub passes: Option<bool>,
    /// Times that its heads were loaded or its spindle was started, over its life.
    pub spin_ups: Option<u64>,
    /// Sectors that it put aside for good.
    pub reallocated: Option<u64>,
    /// Sectors that it could not read when it last tried.
    pub pending: Option<u64>,
    /// Degrees Celsius.
    pub celsius: Option<i16>,
    /// Hours that it was powered.
    pub hours: Option<u64>,
}

/// Turns disks up and down.
///
/// Times that come back are what is still to be waited, by whoever drives it: a real disk answers
/// when it is ready, and nothing is left; a simulated one answers at once and says when it will be.
/// So a call may block for as long as a disk takes: a driver has a thread for each disk of a group,
/// or calls only what is simulated.
pub trait Backend: Send + Sync + fmt::Debug {
    /// Has a disk turn; done already when it turns.
    ///
    /// # Errors
    /// When it does not ([`crate::DisksError::SpinUp`]), or there is none.
    fn spin_up(&self, place: PlaceId) -> Result<Duration>;

    /// Has its file system ready, `waiting` operations being in the queue.
    ///
    /// # Errors
    /// When it cannot be mounted, or does not turn.
    fn mount(&self, place: PlaceId, waiting: u32) -> Result<Duration>;

    /// Puts its file system away.
    ///
    /// # Errors
    /// When somebody uses it.
    fn unmount(&self, place: PlaceId) -> Result<Duration>;

    /// Has a disk stand still; done already when it does.
    ///
    /// # Errors
    /// When it does not, or there is none.
    fn spin_down(&self, place: PlaceId) -> Result<Duration>;

    /// What it does, without waking it.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn observe(&self, place: PlaceId) -> Result<Observed>;

    /// What it says of itself; none when it would have to be woken for that.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn health(&self, place: PlaceId) -> Result<Option<Health>>;

    /// How fast its disks would read, where they are directories and should be no faster; nothing
    /// of disks that take their time themselves.
    fn pace(&self) -> Option<Pace> {
        None
    }

    /// Whether nothing real turns.
    fn is_simulated(&self) -> bool;
}

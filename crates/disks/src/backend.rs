//! Spins disks up and down: one trait for real and for simulated disks.

use std::fmt;

use fulgurite_units::{ByteCount, Duration};
use serde::{Deserialize, Serialize};

use crate::{Pace, PlaceId, Result};

/// Power state of a disk, observed without spinning it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Observed {
    /// Its platters do not spin.
    Standby,
    /// They spin, whatever caused it.
    Turning,
    /// No disk responds there.
    Absent,
}

/// What a disk reports about itself, queried without spinning it up. Missing values are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Vendor and model, in one line.
    pub model: Option<String>,
    /// Serial number, which identifies a disk in the wrong place.
    pub serial: Option<String>,
    /// Its size.
    pub bytes: Option<ByteCount>,
    /// Whether its self-assessment passes (SMART).
    pub passes: Option<bool>,
    /// Head loads or spindle starts over its life.
    pub spin_ups: Option<u64>,
    /// Reallocated sectors.
    pub reallocated: Option<u64>,
    /// Pending sectors: unreadable at the last attempt.
    pub pending: Option<u64>,
    /// Temperature in degrees Celsius.
    pub celsius: Option<i16>,
    /// Power-on hours.
    pub hours: Option<u64>,
}

/// Spins disks up and down.
///
/// The returned times are delays that the driver still has to wait. A real disk returns when it is
/// ready, so none is left. A simulated one returns at once, with the delay. A call may therefore
/// block as long as a disk takes: a driver uses a thread for each disk of a group, or calls only
/// simulated disks.
pub trait Backend: Send + Sync + fmt::Debug {
    /// Spins a disk up. Idempotent.
    ///
    /// # Errors
    /// When it fails to ([`crate::DisksError::SpinUp`]), or there is none.
    fn spin_up(&self, place: PlaceId) -> Result<Duration>;

    /// Mounts its file system, while `waiting` operations are queued.
    ///
    /// # Errors
    /// When it cannot be mounted, or does not spin.
    fn mount(&self, place: PlaceId, waiting: u32) -> Result<Duration>;

    /// Unmounts its file system.
    ///
    /// # Errors
    /// When it is in use.
    fn unmount(&self, place: PlaceId) -> Result<Duration>;

    /// Spins a disk down. Idempotent.
    ///
    /// # Errors
    /// When it fails to, or there is none.
    fn spin_down(&self, place: PlaceId) -> Result<Duration>;

    /// Observes its power state without spinning it up.
    ///
    /// # Errors
    /// When it cannot be queried.
    fn observe(&self, place: PlaceId) -> Result<Observed>;

    /// Queries its health; none if that would spin it up.
    ///
    /// # Errors
    /// When it cannot be queried.
    fn health(&self, place: PlaceId) -> Result<Option<Health>>;

    /// Returns the read speed to simulate for disks that are directories; none for disks that have
    /// their own speed.
    fn pace(&self) -> Option<Pace> {
        None
    }

    /// Whether the disks are simulated.
    fn is_simulated(&self) -> bool;
}

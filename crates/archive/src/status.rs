//! What operators are shown: state of the archive, and reports of long operations.

use fulgurite_units::{PlatterId, SetId, UnixTime};
use serde::{Deserialize, Serialize};

/// The archive at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Software version.
    pub version: String,
    /// Archive id.
    pub archive: String,
    /// Platter profile of new sets.
    pub profile: String,
    /// Fidelity of the simulated medium: `sector` for now.
    pub fidelity: String,
    /// Objects by residence: STANDARD objects on disk.
    pub objects_online: u64,
    /// Archived objects still staged.
    pub objects_staged: u64,
    /// Archived objects on glass.
    pub objects_on_glass: u64,
    /// Plain bytes of staged bodies.
    pub staged_bytes: u64,
    /// When the oldest staged body came.
    pub staged_oldest: Option<UnixTime>,
    /// Bytes the staging, online and restored logs hold on disk.
    pub log_bytes: u64,
    /// Most they may hold.
    pub log_bytes_max: u64,
    /// Platter-sets by state name.
    pub sets: Vec<SetStatus>,
    /// Platters stored.
    pub platters: u64,
    /// Restores waiting or running.
    pub restores_waiting: u64,
    /// Restored copies held.
    pub restored_objects: u64,
    /// What the background pipeline is doing: `idle`, `sealing`, or the error it waits on.
    pub pipeline: String,
    /// Sectors that failed and were repaired since start, by layer of code.
    pub repaired_by_track: u64,
    /// Tracks that needed the large group.
    pub repaired_by_group: u64,
    /// Tracks that needed the platter-set.
    pub repaired_by_set: u64,
    /// Seconds of one restore day, when it is not 86,400.
    pub debug_day_seconds: Option<f64>,
}

/// One platter-set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetStatus {
    /// Its id.
    pub set: SetId,
    /// `planned`, `written`, `verified`, `stored` or `released`.
    pub state: String,
    /// Information platters written.
    pub information_platters: u32,
    /// Redundancy platters written.
    pub redundancy_platters: u32,
    /// User bytes (ciphertext) in it.
    pub bytes: u64,
}

/// What sealing did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SealReport {
    /// Sets sealed.
    pub sets: Vec<SetStatus>,
    /// Objects whose last body went to glass.
    pub objects: u64,
    /// Ciphertext bytes sealed.
    pub bytes: u64,
    /// Wall seconds.
    pub seconds: f64,
    /// Bodies that would not survive on their platter and stay staged.
    pub kept_staged: u64,
}

/// One platter read whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedPlatter {
    /// Which.
    pub platter: PlatterId,
    /// Of which set.
    pub set: SetId,
    /// Sectors read.
    pub sectors: u64,
    /// Sectors that could not be read.
    pub sectors_failed: u64,
    /// Smallest count of redundancy sectors left in any track.
    pub margin_min: u32,
    /// Tracks that needed the large group.
    pub tracks_by_group: u64,
    /// Tracks that this platter alone cannot give back.
    pub tracks_unreadable: u64,
    /// Why it could not be read at all, if so.
    pub error: Option<String>,
}

/// Where a piece of an object lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardPlace {
    /// Part of the object, from zero.
    pub body: u32,
    /// Platter, or `None` while staged or online.
    pub platter: Option<PlatterId>,
    /// Set of that platter.
    pub set: Option<SetId>,
    /// First information track.
    pub track_first: u32,
    /// Last information track.
    pub track_last: u32,
    /// Bytes of ciphertext.
    pub bytes: u64,
    /// `online`, `staged`, `glass`.
    pub residence: String,
    /// Storage slot in the library.
    pub slot: Option<u32>,
}

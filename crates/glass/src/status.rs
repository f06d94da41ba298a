//! The status of the glass tier for operators: sets, results and failures of sealing, results of
//! verification.

use fulgurite_platter::SectorMargins;
use fulgurite_units::{ByteCount, Duration, PlatterId, SetId, UnixTime};
use serde::{Deserialize, Serialize};

use crate::rows::{self, SetRow};
use crate::{DecodeStatus, FarStatus, GlassError, Result};

/// The state of a set whose row cannot be read.
const UNREADABLE: &str = "unreadable";

/// A snapshot of the glass tier.
#[derive(Clone, Debug)]
pub struct GlassStatus {
    /// Platter profile of new sets.
    pub profile: String,
    /// Fidelity of the simulated medium.
    pub fidelity: &'static str,
    /// Platter-sets.
    pub sets: Vec<SetStatus>,
    /// Platters stored.
    pub platters: u64,
    /// New platters that wait for verification, or are being verified.
    pub unverified_platters: u64,
    /// How long the oldest of them has waited.
    pub unverified_age: Option<Duration>,
    /// A warning if that is longer than the library's policy allows.
    pub unverified_failure: Option<String>,
    /// Bytes of tracks that the current sealing has done, and their total.
    pub seal_bytes: (u64, u64),
    /// Sets that wait for a retry, and bodies of sets that were given up, the oldest first.
    pub seal_failures: Vec<SealFailure>,
    /// Sets given up since start.
    pub sets_given_up: u64,
    /// Sectors repaired by their track since start, tracks repaired by their large group, and
    /// tracks repaired by their set.
    pub repaired: (u64, u64, u64),
    /// Libraries at other sites.
    pub far: Vec<FarStatus>,
    /// The decode service, where images are decoded.
    pub decode: Option<DecodeStatus>,
}

/// Where a shard is in the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnPlatter {
    /// The set of its platter.
    pub set: SetId,
    /// Its first information track.
    pub track_first: u32,
    /// Its last information track.
    pub track_last: u32,
    /// The slot of its platter.
    pub slot: Option<u32>,
}

/// A failure of sealing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealFailure {
    /// The set that waits; `None` for bodies whose set was given up.
    pub set: Option<SetId>,
    /// Failed tries in a row.
    pub tries: u32,
    /// The error of the last try.
    pub error: String,
    /// When it first failed.
    pub since: UnixTime,
    /// Seconds until the next retry.
    pub retry_seconds: u64,
    /// Ciphertext bytes that wait.
    pub bytes: u64,
}

impl std::fmt::Display for SealFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { tries, error, retry_seconds, .. } = self;
        let bytes = ByteCount::new(self.bytes);
        match self.set {
            Some(set) => write!(f, "set {set} ({bytes}) waits")?,
            None => write!(f, "{bytes} of a set that was given up wait")?,
        }
        write!(f, ", next try in {retry_seconds} s, after {tries} failed tries: {error}")
    }
}

/// One platter-set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetStatus {
    /// Its id.
    pub set: SetId,
    /// `planned`, `written`, `verified`, `stored` or `released`; `unreadable` when its row in the
    /// catalog is damaged, and then nothing else is known of it.
    pub state: String,
    /// Information platters written.
    pub information_platters: u32,
    /// Redundancy platters written.
    pub redundancy_platters: u32,
    /// User bytes (ciphertext) in it.
    pub bytes: u64,
}

/// The result of sealing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SealReport {
    /// Sets sealed.
    pub sets: Vec<SetStatus>,
    /// Objects whose last body went to glass.
    pub objects: u64,
    /// Ciphertext bytes sealed.
    pub bytes: u64,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Bodies that stay staged because they would not survive on their platter, or are damaged.
    pub kept_staged: u64,
    /// Bodies among them whose staged bytes are not what was ingested; they are set aside.
    #[serde(default)]
    pub damaged: u64,
}

/// The verification of one platter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedPlatter {
    /// The platter.
    pub platter: PlatterId,
    /// Its set.
    pub set: SetId,
    /// Sectors read.
    pub sectors: u64,
    /// Sectors that could not be read.
    pub sectors_failed: u64,
    /// Smallest number of redundancy sectors left in any track.
    pub margin_min: u32,
    /// Tracks that needed the large group.
    pub tracks_by_group: u64,
    /// Tracks that this platter alone cannot give.
    pub tracks_unreadable: u64,
    /// How far its sectors are from failing, in hundredths of the decoder's effort; `None` if the
    /// medium does not decode.
    #[serde(default)]
    pub sector_margins: Option<SectorMargins>,
    /// Why it could not be read at all, if it could not.
    pub error: Option<String>,
}

/// Returns the status of a set whose row cannot be read.
pub(crate) fn unreadable_set(key: &[u8]) -> Result<SetStatus> {
    Ok(SetStatus {
        set: SetId::from_bytes(rows::id(key)?),
        state: UNREADABLE.to_owned(),
        information_platters: 0,
        redundancy_platters: 0,
        bytes: 0,
    })
}

/// Returns the status of the set under this key.
pub(crate) fn set_status(key: &[u8], row: &SetRow) -> Result<SetStatus> {
    let id: [u8; 16] = key.try_into().map_err(|_| GlassError::Corrupt {
        what: "the key of a set row is not a set id".to_owned(),
    })?;
    let count = |ids: &[PlatterId]| u32::try_from(ids.len()).unwrap_or(u32::MAX);
    Ok(SetStatus {
        set: SetId::from_bytes(id),
        state: row.state.name().to_owned(),
        information_platters: count(&row.information),
        redundancy_platters: count(&row.redundancy),
        bytes: row.bytes,
    })
}

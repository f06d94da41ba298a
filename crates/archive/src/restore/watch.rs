//! Failed restores, and a subscription to those that are given up.

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// A failed restore with its last error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRestore {
    /// Bucket of the object.
    pub bucket: String,
    /// Object key.
    pub key: String,
    /// Number of failures.
    pub failures: u32,
    /// The last failure: platter and code layer.
    pub error: String,
    /// Whether it was given up: it is not retried until it is requested again.
    #[serde(default)]
    pub is_given_up: bool,
}

/// A subscription to restores that are given up. It never blocks them: if too many come at once the
/// subscriber misses the oldest, which the status still names.
#[derive(Debug)]
pub struct RestoreWatch(Receiver<FailedRestore>);

impl RestoreWatch {
    pub(crate) const fn new(given_up: Receiver<FailedRestore>) -> Self {
        Self(given_up)
    }

    /// Waits for the next restore that is given up; `None` when the archive is gone. Cancel safe.
    pub async fn next(&mut self) -> Option<FailedRestore> {
        loop {
            match self.0.recv().await {
                Ok(failed) => return Some(failed),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

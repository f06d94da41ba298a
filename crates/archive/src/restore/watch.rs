//! Restores that failed, and a watch of those that are given up.

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// A restore that failed, and why the last time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRestore {
    /// Bucket of the object.
    pub bucket: String,
    /// Its key.
    pub key: String,
    /// Times it failed.
    pub failures: u32,
    /// What failed: platter and layer of code.
    pub error: String,
    /// Whether it was given up: it is tried again when it is asked for again.
    #[serde(default)]
    pub is_given_up: bool,
}

/// A subscriber to restores that are given up, each as it happens. Nothing waits for it: of very
/// many at once it misses the first, which the status names all the same.
#[derive(Debug)]
pub struct RestoreWatch(Receiver<FailedRestore>);

impl RestoreWatch {
    pub(crate) const fn new(given_up: Receiver<FailedRestore>) -> Self {
        Self(given_up)
    }

    /// The next restore that is given up; none when the archive is gone. What is not waited for to
    /// the end is not lost.
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

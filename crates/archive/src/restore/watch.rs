//! Whoever watches restores: each that is given up, as it happens.

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::status::FailedRestore;

/// Somebody watches. Nothing waits for it: of very many at once it misses the first, which the
/// status names all the same.
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

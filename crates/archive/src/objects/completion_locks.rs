//! Serializes completions of an upload. A client that times out retries while its first request is
//! still running; without this both could claim the same bodies for two objects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_units::UploadId;
use tokio::sync::OwnedMutexGuard;

/// A mutex for each upload that is being completed.
#[derive(Debug, Default)]
pub(crate) struct CompletionLocks(Mutex<BTreeMap<UploadId, Arc<tokio::sync::Mutex<()>>>>);

/// The lock that one request holds.
#[derive(Debug)]
pub(crate) struct CompletionGuard<'a> {
    all: &'a CompletionLocks,
    upload: UploadId,
    guard: Option<OwnedMutexGuard<()>>,
}

impl CompletionLocks {
    /// Waits until no other request completes this upload.
    pub(crate) async fn turn(&self, upload: UploadId) -> CompletionGuard<'_> {
        let turn = Arc::clone(self.lock().entry(upload).or_default());
        let guard = Some(turn.lock_owned().await);
        CompletionGuard { all: self, upload, guard }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<UploadId, Arc<tokio::sync::Mutex<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CompletionGuard<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        self.guard = None;
        // A waiting request holds a clone as well, and removes the entry when it is done.
        if all.get(&self.upload).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            all.remove(&self.upload);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn completions_are_serialized_and_locks_removed() {
        let completing = CompletionLocks::default();
        let (one, other) = (UploadId::from_bytes([1; 16]), UploadId::from_bytes([2; 16]));
        let first = completing.turn(one).await;
        let of_other = completing.turn(other).await;
        let mut second = Box::pin(completing.turn(one));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        let second = second.await;
        drop((second, of_other));
        assert!(completing.lock().is_empty());
    }
}

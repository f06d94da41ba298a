//! Uploads that are being completed: each by one request at a time. A client that does not hear in
//! time asks again while the first request is still at work, and the two would say of the same
//! bodies that they are of two objects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_units::UploadId;
use tokio::sync::OwnedMutexGuard;

/// Who completes which upload.
#[derive(Debug, Default)]
pub(crate) struct Completing(Mutex<BTreeMap<UploadId, Arc<tokio::sync::Mutex<()>>>>);

/// The turn of one request.
#[derive(Debug)]
pub(crate) struct CompletingTurn<'a> {
    all: &'a Completing,
    upload: UploadId,
    held: Option<OwnedMutexGuard<()>>,
}

impl Completing {
    /// Waits until nobody else completes this upload.
    pub(crate) async fn turn(&self, upload: UploadId) -> CompletingTurn<'_> {
        let turn = Arc::clone(self.lock().entry(upload).or_default());
        let held = Some(turn.lock_owned().await);
        CompletingTurn { all: self, upload, held }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<UploadId, Arc<tokio::sync::Mutex<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CompletingTurn<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        self.held = None;
        // Those who wait have it as well, and forget it in their turn.
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
    async fn one_after_the_other_and_nothing_is_kept() {
        let completing = Completing::default();
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

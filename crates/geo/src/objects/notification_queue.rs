//! Notifies sites of decisions, with a bounded queue per site.
//!
//! ```text
//! notification --> room? --> waits for its turn --> written to the row
//!                    '-----> none: it is dropped, and counted
//! ```
//!
//! Nobody waits for a notification, and no guarantee depends on one. Rows that accepted a version
//! show it to every reader of a quorum, which settles what is open, and the next writer must know
//! it first. Notifications only report that the bytes of a version are written (`durable`), and let
//! reads take one round. So a site may miss its notifications. But if so many are dropped that a
//! reader may see no notified row, a hint is written for the object ([`is_tolerable`]). Processing
//! the hint notifies all rows, and reports the object as whole only if none was dropped. If a
//! garbage collection drops the notification that bytes are gone, a later one repeats it, as long
//! as none of the rows it reads was notified. A row that is never notified retains a dead version.
//!
//! Each site has its own queue: one that does not answer takes no room from others.

use std::sync::Arc;

use fulgurite_geo_core::Quorums;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::objects::limits::{NOTIFICATIONS_AT_ONCE, NOTIFICATIONS_MAX};

/// Notification queue of one site.
#[derive(Debug)]
pub(crate) struct NotificationQueue {
    room: Arc<Semaphore>,
    turns: Semaphore,
}

impl NotificationQueue {
    pub(crate) fn new() -> Self {
        let (room, turns) =
            (Semaphore::new(NOTIFICATIONS_MAX), Semaphore::new(NOTIFICATIONS_AT_ONCE));
        Self { room: Arc::new(room), turns }
    }

    /// Returns a place in the queue, if there is one.
    pub(crate) fn room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).try_acquire_owned().ok()
    }

    /// Waits for the turn of a queued notification.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }
}

/// Whether every reader still sees a notified row if so many notifications were dropped.
pub(crate) const fn is_tolerable(dropped: usize, quorums: Quorums) -> bool {
    dropped < quorums.read()
}

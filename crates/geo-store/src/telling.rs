//! Telling a site what is decided, so much at a time.
//!
//! ```text
//! telling --> room? --> waits for its turn --> written to the row
//!               '-----> none: it is left out, and counted
//! ```
//!
//! Nobody waits for a telling, and what is promised needs none: rows that accepted a version say so
//! to whoever reads enough of them, who decides what they leave open, and whoever writes next has
//! to know it before. What tellings alone bring is that the bytes of a version are written
//! (`durable`), and reads of one round. So a site may be down for its tellings. But where so many
//! are left out that a reader may meet no row that was told, the object is noted in a hint
//! ([`is_enough`]); whoever works it off tells all rows, and says that the object is whole only
//! when none was left out. What a collection leaves out, that bytes are gone, it finds again as
//! long as no row that it reads was told; a row that never is keeps a version that nobody asks
//! for.
//!
//! Each site has room of its own: one that does not answer keeps none from others.

use std::sync::Arc;

use fulgurite_geo::Quorums;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::limits::{TELLINGS_AT_ONCE, TELLINGS_MAX};

/// Room for tellings of one site.
#[derive(Debug)]
pub(crate) struct Tellings {
    room: Arc<Semaphore>,
    turns: Semaphore,
}

impl Tellings {
    pub(crate) fn new() -> Self {
        let (room, turns) = (Semaphore::new(TELLINGS_MAX), Semaphore::new(TELLINGS_AT_ONCE));
        Self { room: Arc::new(room), turns }
    }

    /// Room for one more, if there is any.
    pub(crate) fn room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).try_acquire_owned().ok()
    }

    /// The turn of one that has room.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }
}

/// Whether whoever reads meets a row that was told, when so many were left out.
pub(crate) const fn is_enough(left_out: usize, quorums: Quorums) -> bool {
    left_out < quorums.read()
}

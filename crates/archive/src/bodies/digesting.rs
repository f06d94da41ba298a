//! Digests of bodies that stream in, made beside their being written, those of several at once.
//!
//! ```text
//! body --piece--> queue (DIGESTS_AHEAD) --.
//! body --piece--> queue ------------------+--> ready --> a worker: a piece of each of LANES
//! body --piece--> queue ------------------'              of them, side by side
//! ```
//!
//! A worker is a task of the blocking pool that ends when no piece waits, so that a slow client
//! holds none. There is one for every two processors: the bodies' other work takes as long. A piece
//! that comes while all are busy waits, and is digested beside those that waited with it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_platters::{FailPoints, Panics};
use tokio::sync::oneshot;

use crate::bodies::digest::{BodyDigest, LANES};
use crate::limits::DIGESTS_AHEAD;
use crate::{ArchiveError, Result};

/// What digests all bodies of an archive.
#[derive(Debug)]
pub(crate) struct Digesting {
    ready: Mutex<Ready>,
    workers_max: usize,
    fail: Arc<FailPoints>,
    panics: Arc<Panics>,
}

#[derive(Debug, Default)]
struct Ready {
    /// Those with a piece that nobody works on.
    queues: VecDeque<Arc<Queue>>,
    workers: usize,
}

/// What waits of one body.
#[derive(Debug)]
struct Queue(Mutex<Pieces>);

#[derive(Debug)]
struct Pieces {
    /// Nothing while a worker has it, and after one panicked.
    digest: Option<Box<BodyDigest>>,
    waiting: VecDeque<Piece>,
    /// It is among those that are ready, or a worker has it.
    is_queued: bool,
}

#[derive(Debug)]
struct Piece {
    plain: Arc<Vec<u8>>,
    done: oneshot::Sender<()>,
}

/// A piece in a worker's hands.
struct Taken {
    queue: Arc<Queue>,
    digest: Box<BodyDigest>,
    piece: Piece,
}

/// The digest of one body, for whoever has its bytes.
#[derive(Debug)]
pub(crate) struct QueuedDigest {
    digesting: Arc<Digesting>,
    queue: Arc<Queue>,
    /// When the pieces that were given are done.
    given: VecDeque<oneshot::Receiver<()>>,
}

impl Digesting {
    pub(crate) fn new(fail: Arc<FailPoints>, panics: Arc<Panics>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self { ready: Mutex::default(), workers_max: processors.div_ceil(2), fail, panics }
    }

    /// Begins the digest of a body.
    pub(crate) fn begin(self: &Arc<Self>, digest: BodyDigest) -> QueuedDigest {
        let pieces =
            Pieces { digest: Some(Box::new(digest)), waiting: VecDeque::new(), is_queued: false };
        let queue = Arc::new(Queue(Mutex::new(pieces)));
        QueuedDigest { digesting: Arc::clone(self), queue, given: VecDeque::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Ready> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue has a piece to be worked on.
    fn offer(self: &Arc<Self>, queue: Arc<Queue>) {
        let mut ready = self.lock();
        ready.queues.push_back(queue);
        if ready.workers < self.workers_max {
            ready.workers += 1;
            let all = Arc::clone(self);
            drop(tokio::task::spawn_blocking(move || while all.work() {}));
        }
    }

    /// Digests a piece of each of some queues; false when there are none, and the worker ends.
    fn work(&self) -> bool {
        let queues: Vec<Arc<Queue>> = {
            let mut ready = self.lock();
            let some = ready.queues.len().min(LANES);
            if some == 0 {
                ready.workers -= 1;
                return false;
            }
            ready.queues.drain(..some).collect()
        };
        let mut taken: Vec<Taken> = queues.into_iter().filter_map(Queue::take).collect();
        // After a panic the digests are gone, and whoever waits for them is told.
        let digested = self.panics.run("digests of bodies", || -> Result<Vec<Taken>> {
            let mut all: Vec<(&mut BodyDigest, &[u8])> = taken
                .iter_mut()
                .map(|Taken { digest, piece, .. }| (&mut **digest, piece.plain.as_slice()))
                .collect();
            BodyDigest::update_all(&mut all);
            self.fail.pass("put-digested");
            Ok(taken)
        });
        for Taken { queue, digest, piece } in digested.unwrap_or_default() {
            if queue.give_back(digest) {
                self.lock().queues.push_back(queue);
            }
            drop(piece.plain);
            // Who does not wait any more has given its body up.
            let _ = piece.done.send(());
        }
        true
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Pieces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(self: Arc<Self>) -> Option<Taken> {
        let mut pieces = self.lock();
        let (digest, piece) = pieces.digest.take().zip(pieces.waiting.pop_front())?;
        drop(pieces);
        Some(Taken { queue: self, digest, piece })
    }

    /// Whether there is one more piece.
    fn give_back(&self, digest: Box<BodyDigest>) -> bool {
        let mut pieces = self.lock();
        pieces.digest = Some(digest);
        pieces.is_queued = !pieces.waiting.is_empty();
        pieces.is_queued
    }
}

impl QueuedDigest {
    /// Has the next piece digested; waits while there are too many.
    ///
    /// # Errors
    /// When a piece before it could not be.
    pub(crate) async fn give(&mut self, plain: Arc<Vec<u8>>) -> Result<()> {
        while self.given.len() >= DIGESTS_AHEAD {
            self.wait().await?;
        }
        let (done, given) = oneshot::channel();
        self.given.push_back(given);
        let mut pieces = self.queue.lock();
        pieces.waiting.push_back(Piece { plain, done });
        if !std::mem::replace(&mut pieces.is_queued, true) {
            drop(pieces);
            self.digesting.offer(Arc::clone(&self.queue));
        }
        Ok(())
    }

    /// Digests a small piece here and now, after those that were given.
    ///
    /// # Errors
    /// As of [`Self::give`].
    pub(crate) async fn update(&mut self, plain: &[u8]) -> Result<()> {
        let mut digest = self.take().await?;
        digest.update(plain);
        self.queue.lock().digest = Some(digest);
        Ok(())
    }

    /// The digest of all that was given.
    ///
    /// # Errors
    /// As of [`Self::give`].
    pub(crate) async fn take(&mut self) -> Result<Box<BodyDigest>> {
        while !self.given.is_empty() {
            self.wait().await?;
        }
        self.queue.lock().digest.take().ok_or_else(lost)
    }

    async fn wait(&mut self) -> Result<()> {
        match self.given.front_mut() {
            Some(done) => done.await.map_err(|_| lost())?,
            None => return Ok(()),
        }
        self.given.pop_front();
        Ok(())
    }
}

fn lost() -> ArchiveError {
    ArchiveError::Internal { what: "the digests of a body were lost".to_owned() }
}

#[cfg(test)]
mod tests;

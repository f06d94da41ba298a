//! Computes digests of incoming bodies in parallel with writing them, several bodies at once.
//!
//! ```text
//! body --piece--> queue (DIGESTS_AHEAD) --.
//! body --piece--> queue ------------------+--> ready --> a worker: a piece of each of LANES
//! body --piece--> queue ------------------'              of them, side by side
//! ```
//!
//! A worker is a task of the blocking pool that ends when no piece waits, so a slow client occupies
//! none. There is one for every two processors, because the other work on the bodies takes as long.
//! A piece that arrives while all are busy waits, and is digested together with the others that
//! waited.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_glass::Panics;
use fulgurite_tier::FailPoints;
use tokio::sync::oneshot;

use crate::bodies::digest::{BodyDigest, LANES};
use crate::limits::DIGESTS_AHEAD;
use crate::{ArchiveError, Result};

/// Computes the digests of all bodies of an archive.
#[derive(Debug)]
pub(crate) struct DigestPool {
    ready: Mutex<Ready>,
    workers_max: usize,
    fail: Arc<FailPoints>,
    panics: Arc<Panics>,
}

#[derive(Debug, Default)]
struct Ready {
    /// Queues with a piece that no worker has.
    queues: VecDeque<Arc<Queue>>,
    workers: usize,
}

/// The waiting pieces of one body.
#[derive(Debug)]
struct Queue(Mutex<Pieces>);

#[derive(Debug)]
struct Pieces {
    /// `None` while a worker has it, and after one panicked.
    digest: Option<Box<BodyDigest>>,
    waiting: VecDeque<Piece>,
    /// Whether it is in the ready list, or a worker has it.
    is_queued: bool,
}

#[derive(Debug)]
struct Piece {
    plain: Arc<Vec<u8>>,
    done: oneshot::Sender<()>,
}

/// A piece that a worker has taken.
struct ClaimedPiece {
    queue: Arc<Queue>,
    digest: Box<BodyDigest>,
    piece: Piece,
}

/// The digest of one body, for the task that receives its bytes.
#[derive(Debug)]
pub(crate) struct QueuedDigest {
    digest_pool: Arc<DigestPool>,
    queue: Arc<Queue>,
    /// One receiver for each piece that was queued and not awaited; it fires when the piece is
    /// digested.
    pending: VecDeque<oneshot::Receiver<()>>,
}

impl DigestPool {
    pub(crate) fn new(fail: Arc<FailPoints>, panics: Arc<Panics>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self { ready: Mutex::default(), workers_max: processors.div_ceil(2), fail, panics }
    }

    /// Starts the digest of a body.
    pub(crate) fn begin(self: &Arc<Self>, digest: BodyDigest) -> QueuedDigest {
        let pieces =
            Pieces { digest: Some(Box::new(digest)), waiting: VecDeque::new(), is_queued: false };
        let queue = Arc::new(Queue(Mutex::new(pieces)));
        QueuedDigest { digest_pool: Arc::clone(self), queue, pending: VecDeque::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Ready> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a queue with a waiting piece to the ready list, and starts a worker if one is free.
    fn offer(self: &Arc<Self>, queue: Arc<Queue>) {
        let mut ready = self.lock();
        ready.queues.push_back(queue);
        if ready.workers < self.workers_max {
            ready.workers += 1;
            let all = Arc::clone(self);
            drop(tokio::task::spawn_blocking(move || while all.work() {}));
        }
    }

    /// Digests one piece of each of up to `LANES` queues. Returns false when there are none, and
    /// the worker ends.
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
        let mut taken: Vec<ClaimedPiece> = queues.into_iter().filter_map(Queue::take).collect();
        // After a panic the digests are gone, and tasks that wait for them get an error.
        let digested = self.panics.run("digests of bodies", || -> Result<Vec<ClaimedPiece>> {
            let mut all: Vec<(&mut BodyDigest, &[u8])> = taken
                .iter_mut()
                .map(|ClaimedPiece { digest, piece, .. }| (&mut **digest, piece.plain.as_slice()))
                .collect();
            BodyDigest::update_all(&mut all);
            self.fail.pass("put-digested");
            Ok(taken)
        });
        for ClaimedPiece { queue, digest, piece } in digested.unwrap_or_default() {
            if queue.return_digest(digest) {
                self.lock().queues.push_back(queue);
            }
            drop(piece.plain);
            // A send fails only when the receiver has given up its body.
            let _ = piece.done.send(());
        }
        true
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Pieces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(self: Arc<Self>) -> Option<ClaimedPiece> {
        let mut pieces = self.lock();
        let (digest, piece) = pieces.digest.take().zip(pieces.waiting.pop_front())?;
        drop(pieces);
        Some(ClaimedPiece { queue: self, digest, piece })
    }

    /// Returns the digest to the queue. Returns whether another piece waits.
    fn return_digest(&self, digest: Box<BodyDigest>) -> bool {
        let mut pieces = self.lock();
        pieces.digest = Some(digest);
        pieces.is_queued = !pieces.waiting.is_empty();
        pieces.is_queued
    }
}

impl QueuedDigest {
    /// Queues the next piece; waits while too many are queued.
    ///
    /// # Errors
    /// When an earlier piece failed.
    pub(crate) async fn push(&mut self, plain: Arc<Vec<u8>>) -> Result<()> {
        while self.pending.len() >= DIGESTS_AHEAD {
            self.wait().await?;
        }
        let (done, pending) = oneshot::channel();
        self.pending.push_back(pending);
        let mut pieces = self.queue.lock();
        pieces.waiting.push_back(Piece { plain, done });
        if !std::mem::replace(&mut pieces.is_queued, true) {
            drop(pieces);
            self.digest_pool.offer(Arc::clone(&self.queue));
        }
        Ok(())
    }

    /// Digests a small piece immediately, after all queued ones.
    ///
    /// # Errors
    /// As of [`Self::push`].
    pub(crate) async fn update(&mut self, plain: &[u8]) -> Result<()> {
        let mut digest = self.take().await?;
        digest.update(plain);
        self.queue.lock().digest = Some(digest);
        Ok(())
    }

    /// Waits for all queued pieces and returns the digest.
    ///
    /// # Errors
    /// As of [`Self::push`].
    pub(crate) async fn take(&mut self) -> Result<Box<BodyDigest>> {
        while !self.pending.is_empty() {
            self.wait().await?;
        }
        self.queue.lock().digest.take().ok_or_else(lost)
    }

    async fn wait(&mut self) -> Result<()> {
        match self.pending.front_mut() {
            Some(done) => done.await.map_err(|_| lost())?,
            None => return Ok(()),
        }
        self.pending.pop_front();
        Ok(())
    }
}

fn lost() -> ArchiveError {
    ArchiveError::Internal { what: "the digests of a body were lost".to_owned() }
}

#[cfg(test)]
mod tests;

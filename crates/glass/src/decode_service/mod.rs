//! The decode service: workers between the drives, which take images, and the readers, which need
//! bytes.
//!
//! ```text
//! drive's track --parts--> urgent   --+--> threads of this process
//!                          deferred --+    or JetStream --> workers on other machines
//!        bytes, margins, lost sectors <--------'
//! ```
//!
//! Urgent parts go first: a restore never waits for verification, except for parts that are already
//! being decoded. Verification waits for a cheap hour if there is a [`Tariff`]. Workers start when
//! there is work and end after a time without any; those on other machines come and go as they
//! like. The queue is bounded by its callers: each waits for its own parts, and there are as many
//! callers as drives. A part whose worker dies is retried on another one; then its sectors count as
//! lost, which the erasure codes handle.

mod counters;
mod fuzz_api;
mod job;
mod mac;
mod nats;
mod queue;
mod tariff;
mod threads;
mod worker;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use fulgurite_decode::DecodeError;
use fulgurite_platter::{PlatterError, SectorExtent, SectorReading};

pub use counters::DecodeStatus;
pub(crate) use fuzz_api::check_message;
#[cfg(test)]
pub(crate) use fuzz_api::sample_messages;
pub(crate) use job::{MediumSettings, RATE, standard_model_for};
use nats::Dispatcher;
pub use nats::QueueAddress;
pub(crate) use queue::Urgency;
use queue::{Failure, Part, Shared};
pub use tariff::{HOURS, Tariff};
pub(crate) use threads::MakeReader;
use threads::Threads;
pub use worker::{DecodeWorker, Stop, WorkerOptions, WorkerTotals};

/// Parts of a track per thread, so that no thread waits long for the last one.
const PARTS_PER_WORKER: usize = 2;

/// Parts of a track for other machines, however many there are.
const REMOTE_PARTS: usize = 8;

/// Maximum bytes of a message; servers take a megabyte.
const MESSAGE_BYTES: usize = 768 << 10;

/// The workers that decode.
#[derive(Debug)]
enum Workers {
    Threads(Threads),
    Remote(Dispatcher),
}

/// The decode service.
#[derive(Debug)]
pub(crate) struct DecodeService {
    shared: Arc<Shared>,
    workers: Workers,
    drives: u32,
    reads: AtomicU64,
}

impl DecodeService {
    /// Creates a service of up to `workers_max` threads, for this many drives.
    ///
    /// # Errors
    /// When a worker cannot be made.
    pub(crate) fn threads(
        make: MakeReader,
        workers_max: usize,
        drives: u32,
        energy: Energy,
    ) -> Result<Self, DecodeError> {
        let names = make()?.decoders().into_iter().map(str::to_owned).collect();
        let shared = Arc::new(Shared::new(names, energy));
        let threads = Threads::new(Arc::clone(&shared), make, workers_max);
        Ok(Self::new(shared, Workers::Threads(threads), drives))
    }

    /// Creates a service whose workers are elsewhere and take their work from a queue.
    ///
    /// # Errors
    /// When the settings name no decoder.
    pub(crate) fn remote(
        address: QueueAddress,
        medium: MediumSettings,
        drives: u32,
        energy: Energy,
    ) -> Result<Self, DecodeError> {
        let names = vec!["linear".to_owned(), "learned".to_owned()];
        let shared = Arc::new(Shared::new(names, energy));
        let dispatcher = Dispatcher::start(Arc::clone(&shared), address, medium)?;
        Ok(Self::new(shared, Workers::Remote(dispatcher), drives))
    }

    fn new(shared: Arc<Shared>, workers: Workers, drives: u32) -> Self {
        Self { shared, workers, drives: drives.max(1), reads: AtomicU64::new(0) }
    }

    /// Reads sectors, as [`fulgurite_platter::Medium::read`] does, and blocks until they are
    /// decoded.
    pub(crate) fn read(
        &self,
        extent: SectorExtent,
        bytes: &mut [u8],
        readings: &mut Vec<SectorReading>,
        urgency: Urgency,
    ) -> Result<(), PlatterError> {
        let read = self.reads.fetch_add(1, Ordering::Relaxed);
        // The drive does not depend on the place: a platter is read by all of them in turn.
        let drive = u32::try_from(read % u64::from(self.drives)).unwrap_or(0);
        let count = bytes.len() / extent.sector_bytes;
        let each = self.part_sectors(count, extent.sector_bytes);
        let written = Arc::new(bytes.to_vec());
        let (reply, answers) = mpsc::channel();
        let release = match urgency {
            Urgency::Urgent => None,
            Urgency::Deferred => self.shared.release(count.div_ceil(each)),
        };
        let parts = (0..count).step_by(each).map(|first| Part {
            extent,
            bytes: Arc::clone(&written),
            wanted: first..(first + each).min(count),
            drive,
            read,
            has_failed: false,
            queued: Instant::now(),
            release,
            urgency,
            reply: reply.clone(),
        });
        let parts: Vec<Part> = parts.collect();
        drop(reply);
        let from = readings.len();
        readings.resize(from + count, SectorReading::Lost);
        self.shared.push(parts);
        self.wake();
        for (wanted, answer) in answers {
            match answer {
                Ok(decoded) => {
                    let found = &decoded.bytes;
                    bytes[wanted.start * extent.sector_bytes..][..found.len()]
                        .copy_from_slice(found);
                    for (number, sector) in wanted.zip(decoded.sectors) {
                        readings[from + number] = sector.reading();
                    }
                }
                // These sectors stay lost.
                Err(Failure::Dead) => {}
                Err(Failure::Refused(reason)) => {
                    return Err(PlatterError::Medium { platter: extent.platter, reason });
                }
            }
        }
        Ok(())
    }

    /// Whether deferred parts may wait for other machines or hours.
    pub(crate) fn can_defer_decoding(&self) -> bool {
        match &self.workers {
            Workers::Threads(_) => self.shared.can_hold(),
            Workers::Remote(_) => true,
        }
    }

    /// Ends all waits: refuses what is held, and everything that is not decoded here.
    pub(crate) fn stop(&self) {
        match &self.workers {
            Workers::Threads(_) => self.shared.close(true),
            Workers::Remote(dispatcher) => {
                self.shared.close(false);
                dispatcher.stop();
            }
        }
    }

    /// Returns its current and past work.
    pub(crate) fn status(&self) -> DecodeStatus {
        let (now, limit) = match &self.workers {
            Workers::Threads(threads) => {
                let (now, limit) = threads.count();
                (now, Some(limit))
            }
            Workers::Remote(dispatcher) => (dispatcher.workers(), None),
        };
        self.shared.status(now, limit)
    }

    /// Returns the number of sectors of a part.
    fn part_sectors(&self, count: usize, sector_bytes: usize) -> usize {
        match &self.workers {
            Workers::Threads(threads) => {
                count.div_ceil(threads.count().1 as usize * PARTS_PER_WORKER).max(1)
            }
            Workers::Remote(dispatcher) => {
                let neighbors = 2 * dispatcher.neighbors();
                let limit = (MESSAGE_BYTES / sector_bytes.max(1)).saturating_sub(neighbors);
                count.div_ceil(REMOTE_PARTS).clamp(1, limit.max(1))
            }
        }
    }

    fn wake(&self) {
        match &self.workers {
            Workers::Threads(threads) => threads.wake(),
            Workers::Remote(dispatcher) => dispatcher.wake(),
        }
    }
}

/// The cost of decoding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Energy {
    /// Prices, and how long verification may wait for low ones.
    pub(crate) tariff: Tariff,
    /// Watts of a busy worker.
    pub(crate) watts: f64,
}

#[cfg(test)]
mod tests;

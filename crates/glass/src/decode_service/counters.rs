//! Counters of the decode service.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fulgurite_platter::SectorReading;
use serde::{Deserialize, Serialize};

use super::job::Decoded;

/// Status of the decode service, for operators.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DecodeStatus {
    /// Workers running now; on other machines, those that answered in the last minute.
    pub workers: u32,
    /// Maximum number of workers; unknown on other machines.
    pub workers_max: Option<u32>,
    /// Parts of tracks that wait: urgent ones, deferred ones.
    pub queued: (u64, u64),
    /// Deferred parts that wait for a cheaper hour; `queued` includes them.
    pub held: u64,
    /// Parts that are with workers on other machines, or on the way.
    pub in_flight: u64,
    /// Seconds that the oldest part that is not held has waited.
    pub oldest_seconds: f64,
    /// Parts decoded since start.
    pub parts: u64,
    /// Sectors decoded since start, by the decoder that read them.
    pub sectors: Vec<(String, u64)>,
    /// Sectors that no decoder could read.
    pub lost: u64,
    /// Sectors whose images were taken more than once.
    pub reread: u64,
    /// Voxels decoded since start, counting repeats.
    pub voxels: u64,
    /// Busy seconds of all workers together.
    pub busy_seconds: f64,
    /// Workers that died over a part.
    pub deaths: u64,
    /// Answers to parts that were already answered.
    pub duplicates: u64,
    /// Answers without a valid MAC under the queue's key, which were dropped.
    #[serde(default)]
    pub forged: u64,
    /// Energy of busy workers, at the configured watts of one.
    pub joules: f64,
    /// Mean price of that energy over the mean of the configured prices of a day.
    pub price: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Counters {
    names: Vec<String>,
    by_decoder: Vec<AtomicU64>,
    parts: AtomicU64,
    lost: AtomicU64,
    reread: AtomicU64,
    voxels: AtomicU64,
    busy_us: AtomicU64,
    pub(super) deaths: AtomicU64,
    pub(super) duplicates: AtomicU64,
    pub(super) forged: AtomicU64,
    /// Seconds times price.
    paid: Mutex<f64>,
}

impl Counters {
    pub(super) fn new(names: Vec<String>) -> Self {
        let by_decoder = names.iter().map(|_| AtomicU64::new(0)).collect();
        let zero = || AtomicU64::new(0);
        Self {
            names,
            by_decoder,
            parts: zero(),
            lost: zero(),
            reread: zero(),
            voxels: zero(),
            busy_us: zero(),
            deaths: zero(),
            duplicates: zero(),
            forged: zero(),
            paid: Mutex::new(0.0),
        }
    }

    /// Counts busy time of a worker, at this price of energy.
    pub(super) fn busy(&self, took: Duration, price: f64) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.busy_us.fetch_add(micros, Ordering::Relaxed);
        let counted = Duration::from_micros(micros).as_secs_f64();
        *self.paid.lock().unwrap_or_else(PoisonError::into_inner) += counted * price;
    }

    /// Counts a decoded part.
    pub(super) fn decoded(&self, decoded: &Decoded) {
        self.parts.fetch_add(1, Ordering::Relaxed);
        for sector in &decoded.sectors {
            let read_by = self.by_decoder.get(usize::from(sector.decoder));
            let counter = match (sector.reading(), read_by) {
                (SectorReading::Read { .. }, Some(counter)) => counter,
                (SectorReading::Read { .. }, None) | (SectorReading::Lost, _) => &self.lost,
            };
            counter.fetch_add(1, Ordering::Relaxed);
            self.reread.fetch_add(u64::from(sector.reads > 1), Ordering::Relaxed);
            let voxels = decoded.voxels * u64::from(sector.decodes);
            self.voxels.fetch_add(voxels, Ordering::Relaxed);
        }
    }

    /// Returns the mean seconds of a part, from those decoded so far.
    pub(super) fn part_seconds(&self) -> f64 {
        let parts = self.parts.load(Ordering::Relaxed);
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let seconds = self.busy_us.load(Ordering::Relaxed) as f64 / 1e6 / parts.max(1) as f64;
        seconds
    }

    /// Returns everything that is counted here; the rest comes from the queue.
    pub(super) fn status(&self, watts: f64, price_mean: f64) -> DecodeStatus {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let busy = Duration::from_micros(get(&self.busy_us)).as_secs_f64();
        let paid = *self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        let sectors = self.names.iter().cloned().zip(self.by_decoder.iter().map(get));
        DecodeStatus {
            parts: get(&self.parts),
            sectors: sectors.collect(),
            lost: get(&self.lost),
            reread: get(&self.reread),
            voxels: get(&self.voxels),
            busy_seconds: busy,
            deaths: get(&self.deaths),
            duplicates: get(&self.duplicates),
            forged: get(&self.forged),
            joules: busy * watts,
            price: (busy > 0.0 && price_mean > 0.0).then(|| paid / busy / price_mean),
            ..DecodeStatus::default()
        }
    }
}

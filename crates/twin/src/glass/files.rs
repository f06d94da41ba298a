//! Reads of files, split into shards, and how unavailable platters are handled.

use fulgurite_glass_core::control::{RequestId, TrackSpan};
use fulgurite_units::{ByteCount, Duration, Instant, RandomStream, TrackIndex};

use crate::glass::scenario::Scenario;

/// A file that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) arrived: Instant,
    pub(crate) size: ByteCount,
    /// Shards not read yet.
    pub(crate) left: u32,
    pub(crate) measured: bool,
    pub(crate) failed: bool,
}

/// One request to the library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shard {
    pub(crate) file: u32,
    /// The platter to read it from.
    pub(crate) platter: u32,
    pub(crate) tracks: TrackSpan,
    /// How many more times it may be retried on another platter.
    pub(crate) retries: u8,
    /// Whether it is already part of a recovery.
    pub(crate) is_recovery: bool,
}

/// All files and shards in progress, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    pub(crate) files: Slab<File>,
    pub(crate) shards: Slab<Shard>,
}

/// Values by number; numbers of removed values are reused.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    values: Vec<Option<T>>,
    free_slots: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { values: Vec::new(), free_slots: Vec::new() }
    }
}

impl<T: Copy> Slab<T> {
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free_slots.pop() {
            self.values[number as usize] = Some(value);
            return number;
        }
        self.values.push(Some(value));
        u32::try_from(self.values.len() - 1).unwrap_or(u32::MAX)
    }

    pub(crate) fn remove(&mut self, number: u32) -> T {
        self.free_slots.push(number);
        let value = self.values[number as usize].take();
        value.unwrap_or_else(|| unreachable!("number {number} is in use"))
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> &mut T {
        let value = self.values[number as usize].as_mut();
        value.unwrap_or_else(|| unreachable!("number {number} is in use"))
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() - self.free_slots.len()
    }
}

/// Distinguishes requests of new platters from those of shards.
pub(crate) const NEW_PLATTER: u64 = 1 << 40;

/// Returns the shard of a request, if it is one.
pub(crate) fn shard_number(request: RequestId) -> Option<u32> {
    u32::try_from(request.get()).ok()
}

/// Returns the sizes of the shards of a file: as many full ones as fit, and the rest.
pub(crate) fn shard_sizes(
    size: ByteCount,
    shard_size: ByteCount,
) -> impl Iterator<Item = ByteCount> {
    let count = size.get().div_ceil(shard_size.get()).max(1);
    (0..count).map(move |index| {
        let from = index * shard_size.get();
        ByteCount::new((size.get() - from).min(shard_size.get()))
    })
}

/// Returns the whole tracks that hold `size` bytes, starting at a random place in a track.
pub(crate) fn tracks_of(
    scenario: &Scenario,
    size: ByteCount,
    random: &mut RandomStream,
) -> TrackSpan {
    span_of(scenario, size, random).0
}

/// Returns such tracks, and the byte offset in the platter of the first byte.
pub(crate) fn span_of(
    scenario: &Scenario,
    size: ByteCount,
    random: &mut RandomStream,
) -> (TrackSpan, ByteCount) {
    let track = scenario.track_size.get();
    let offset = random.below(track);
    let count = (offset + size.get()).div_ceil(track).max(1);
    let count = u32::try_from(count).unwrap_or(u32::MAX / 2);
    // The place on the platter does not matter: seeks are drawn regardless of distance.
    let first = u32::try_from(random.below(1 << 16)).unwrap_or(0);
    let span = TrackSpan::new(TrackIndex::new(first), count);
    (span, ByteCount::new(u64::from(first) * track + offset))
}

/// The objective of reads: 15 h (Silica, section 7.2).
pub(crate) const OBJECTIVE: Duration = Duration::from_secs(15 * 3600);

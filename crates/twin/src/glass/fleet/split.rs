//! Splits reads among libraries.

use std::ops::Range;

use fulgurite_units::{ByteCount, Instant, RandomStream, Seed};

use super::Fleet;
use crate::glass::shard_sizes;
use crate::workload::PlacementSampler;
use crate::{Error, TraceRead};

/// A request to one library.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) at: Instant,
    pub(super) size: ByteCount,
}

/// A read of several parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct MultipartRead {
    pub(super) arrived: Instant,
    pub(super) size: ByteCount,
    /// The end of the latest part so far.
    pub(super) latest: Instant,
    pub(super) failed: bool,
}

/// The work of one library.
#[derive(Clone, Debug, Default)]
pub(super) struct Share {
    pub(super) parts: Vec<Part>,
    /// Parts that are not a whole read: their number, and that of their multipart read.
    pub(super) multipart_reads: Vec<(u32, u32)>,
    /// Available platters.
    pub(super) platters: u32,
}

/// Splits reads, and keeps the parts of some libraries.
#[derive(Debug)]
pub(super) struct Splitter {
    library_range: Range<usize>,
    libraries: u32,
    shard_size: ByteCount,
    recovery_reads: u16,
    placement: PlacementSampler,
    unavailable: Vec<bool>,
    recovery: RandomStream,
    /// Library and size of each part of the current read.
    targets: Vec<(u32, ByteCount)>,
    pub(super) shares: Vec<Share>,
    pub(super) multipart_reads: Vec<MultipartRead>,
    multipart_count: u32,
    pub(super) parts: u64,
    pub(super) recovered: u64,
}

impl Splitter {
    pub(super) fn new(
        fleet: &Fleet,
        library_range: Range<usize>,
        seed: &Seed,
    ) -> Result<Self, Error> {
        let (each, libraries) = (&fleet.each, fleet.libraries);
        let too_many = || Error::Parameter {
            field: "platters",
            value: each.platters.to_string(),
            expected: "below 2^32 in all libraries together",
        };
        let platters = each.platters.checked_mul(libraries).ok_or_else(too_many)?;
        let placement = each.workload.placement;
        let placement = PlacementSampler::new(placement, platters, seed.child(b"placement"))?;
        let mut chance = seed.child(b"unavailable").stream();
        let share = each.unavailable.get();
        let unavailable: Vec<bool> = (0..platters).map(|_| chance.unit() < share).collect();
        let shares = library_range.clone().map(|library| {
            let own = unavailable.iter().skip(library).step_by(libraries as usize);
            let had = own.filter(|unavailable| !**unavailable).count();
            let platters = u32::try_from(had).unwrap_or(u32::MAX).max(1);
            Share { platters, ..Share::default() }
        });
        Ok(Self {
            shares: shares.collect(),
            library_range,
            libraries,
            shard_size: each.shard_size,
            recovery_reads: each.recovery_reads,
            placement,
            unavailable,
            recovery: seed.child(b"recovery").stream(),
            targets: Vec::new(),
            multipart_reads: Vec::new(),
            multipart_count: 0,
            parts: 0,
            recovered: 0,
        })
    }

    /// Reserves memory for the parts of this many reads.
    pub(super) fn expect(&mut self, reads: u64) {
        let each = usize::try_from(reads / u64::from(self.libraries)).unwrap_or(0);
        for share in &mut self.shares {
            share.parts.reserve(each + each / 16);
        }
    }

    /// Draws the places of the shards of a read. All draws are made, whichever libraries are kept.
    pub(super) fn split(&mut self, read: &TraceRead) {
        let mut targets = std::mem::take(&mut self.targets);
        for size in shard_sizes(read.size, self.shard_size) {
            let platter = self.placement.draw();
            let library = platter % self.libraries;
            if self.unavailable[platter as usize] {
                self.recovered += 1;
                self.recover(library, size, &mut targets);
            } else {
                targets.push((library, size));
            }
        }
        self.parts += targets.len() as u64;
        let multipart_read = (targets.len() > 1).then(|| self.multipart_read(read));
        for (library, size) in targets.drain(..) {
            let library = library as usize;
            if !self.library_range.contains(&library) {
                continue;
            }
            let share = &mut self.shares[library - self.library_range.start];
            if let Some(multipart_read) = multipart_read {
                let number = u32::try_from(share.parts.len()).unwrap_or(u32::MAX);
                share.multipart_reads.push((number, multipart_read));
            }
            share.parts.push(Part { at: read.at, size });
        }
        self.targets = targets;
    }

    /// Adds a multipart read. The first pass keeps them all; later ones only count.
    fn multipart_read(&mut self, read: &TraceRead) -> u32 {
        if self.library_range.start == 0 {
            let (arrived, size) = (read.at, read.size);
            self.multipart_reads.push(MultipartRead {
                arrived,
                size,
                latest: arrived,
                failed: false,
            });
        }
        self.multipart_count += 1;
        self.multipart_count - 1
    }

    /// Recovers an unavailable platter from others of its set, which lie in the other libraries,
    /// round robin.
    fn recover(&mut self, library: u32, size: ByteCount, targets: &mut Vec<(u32, ByteCount)>) {
        let others = self.libraries - 1;
        let reads = u32::from(self.recovery_reads);
        if others == 0 {
            targets.extend((0..reads).map(|_| (library, size)));
            return;
        }
        let first = u32::try_from(self.recovery.below(u64::from(others))).unwrap_or(0);
        for index in 0..reads {
            let step = 1 + (first + index) % others;
            targets.push(((library + step) % self.libraries, size));
        }
    }
}

//! Writes a blob: bytes to stripes, stripes to fragments, fragments to stacks.
//!
//! ```text
//! write --> | information, k fragments | redundancy, r |  one stripe, then the next
//!             |        |        |            |
//!           stack 0  stack 1  ...          stack k+r-1
//! ```
//!
//! A stack that cannot be written is dropped, as long as enough are left to read the blob. The
//! caller rebuilds it elsewhere.

use fulgurite_codes::small::SmallCode;
use fulgurite_units::ByteCount;

use crate::error::LostStack;
use crate::format::{FRAGMENT_BYTES, Header, Stripes, Trailer, running_sum};
use crate::stack::{Sink, StackWriter};
use crate::{Fault, RackError, Result};

/// Writes one blob.
pub struct BlobWriter<S> {
    header: Header,
    /// The group it goes to, for errors.
    group: String,
    code: SmallCode,
    stacks: Vec<Slot<S>>,
    /// One stripe, information before redundancy.
    stripe: Vec<u8>,
    /// How many bytes of it are filled.
    filled: usize,
    length: u64,
    sum: crc_fast::Digest,
}

#[derive(Debug)]
enum Slot<S> {
    Open { disk: String, stack: StackWriter<S> },
    Lost(LostStack),
}

/// A blob whose stacks are synced, except for the lost ones.
#[derive(Debug)]
pub struct Written {
    /// Bytes of the blob.
    pub length: ByteCount,
    /// CRC-64/NVME of them.
    pub sum: u64,
    /// Stacks that were dropped.
    pub lost: Vec<LostStack>,
}

impl<S> std::fmt::Debug for BlobWriter<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("BlobWriter");
        shown.field("blob", &self.header.blob).field("length", &self.length).finish_non_exhaustive()
    }
}

impl<S: Sink> BlobWriter<S> {
    /// Begins a blob. `sinks` has one entry for each stack in order of index: the name of its disk
    /// and its sink, or why there is none. The index in `header` is ignored.
    ///
    /// # Errors
    /// [`RackError::TooFewStacks`] when too few can be written.
    ///
    /// # Panics
    /// When the number of `sinks` is not the number of stacks of the coding.
    pub fn begin(
        header: Header,
        group: &str,
        sinks: Vec<(String, Result<S, Fault>)>,
    ) -> Result<Self> {
        let (information, count) = (header.coding.information(), header.coding.stacks());
        assert_eq!(sinks.len(), usize::from(count), "a sink for each stack");
        let code = SmallCode::new(usize::from(information), usize::from(count - information))?;
        let mut stacks = Vec::with_capacity(sinks.len());
        for (index, (disk, sink)) in (0..count).zip(sinks) {
            let begun = match sink {
                Ok(sink) => StackWriter::begin(sink, header.with_index(index))?,
                Err(fault) => Err(fault),
            };
            stacks.push(match begun {
                Ok(stack) => Slot::Open { disk, stack },
                Err(fault) => Slot::Lost(LostStack { index, disk, fault }),
            });
        }
        let stripe = vec![0; usize::from(count) * FRAGMENT_BYTES];
        let (group, sum) = (group.to_owned(), running_sum());
        let writer = Self { header, group, code, stacks, stripe, filled: 0, length: 0, sum };
        writer.check()?;
        Ok(writer)
    }

    /// Returns the number of stacks still being written.
    #[must_use]
    pub fn stacks_left(&self) -> usize {
        self.stacks.iter().filter(|slot| matches!(slot, Slot::Open { .. })).count()
    }

    /// Appends bytes to the blob.
    ///
    /// # Errors
    /// [`RackError::TooFewStacks`] when too few stacks can still be written.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let room = self.room();
            let (now, later) = bytes.split_at(room.len().min(bytes.len()));
            room[..now.len()].copy_from_slice(now);
            self.append(now.len())?;
            bytes = later;
        }
        Ok(())
    }

    /// Returns the buffer for the next bytes, one or more: the rest of a fragment. Reading into it
    /// and then [appending](Self::append) saves a copy.
    #[must_use]
    pub fn room(&mut self) -> &mut [u8] {
        let rest = FRAGMENT_BYTES - self.filled % FRAGMENT_BYTES;
        &mut self.stripe[self.filled..][..rest]
    }

    /// Appends the first `count` bytes of its [room](Self::room) to the blob.
    ///
    /// # Errors
    /// As for [`Self::write`].
    ///
    /// # Panics
    /// When `count` is larger than the room.
    pub fn append(&mut self, count: usize) -> Result<()> {
        assert!(count <= self.room().len(), "count exceeds the room");
        self.sum.update(&self.stripe[self.filled..][..count]);
        self.length += crate::format::bytes(count);
        self.filled += count;
        if self.filled == self.code.information() * FRAGMENT_BYTES {
            self.flush(FRAGMENT_BYTES)?;
        }
        Ok(())
    }

    /// Ends the blob: writes the last stripe and the trailers, and syncs all stacks in parallel.
    /// The caller must sync the folders that contain them.
    ///
    /// # Errors
    /// [`RackError::TooFewStacks`] when too few stacks could be written.
    pub fn finish(mut self, sequence: u64) -> Result<Written>
    where
        S: Send,
    {
        let length = ByteCount::new(self.length);
        let stripes = Stripes::new(self.header.coding, length);
        if self.filled > 0 {
            let fragment = stripes.fragment_bytes(stripes.count() - 1);
            let end = self.code.information() * fragment;
            self.stripe[self.filled..end].fill(0);
            self.flush(fragment)?;
        }
        let sum = std::mem::replace(&mut self.sum, running_sum()).finalize();
        let trailer = Trailer { blob: self.header.blob, index: 0, length, sequence, sum };
        let stacks = std::mem::take(&mut self.stacks);
        let end = |slot: Slot<S>| match slot {
            Slot::Open { disk, stack } => {
                let index = stack.index();
                let synced =
                    stack.finish(&Trailer { index, ..trailer }).and_then(|mut sink| sink.sync());
                synced.err().map(|fault| LostStack { index, disk, fault })
            }
            Slot::Lost(lost) => Some(lost),
        };
        // A sync waits for its disk; run them in parallel.
        let lost: Vec<LostStack> = std::thread::scope(|scope| {
            let ended: Vec<_> =
                stacks.into_iter().map(|slot| scope.spawn(move || end(slot))).collect();
            // After a sync that panicked nothing is known about what reached the disk: propagate
            // the panic.
            let joined = ended.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.flatten().collect()
        });
        self.check_enough(&lost)?;
        Ok(Written { length, sum, lost })
    }

    /// Encodes the stripe, whose fragments have this length, and appends it to all stacks.
    fn flush(&mut self, fragment: usize) -> Result<()> {
        let information = self.code.information() * fragment;
        let all = self.code.shards() * fragment;
        let (data, redundancy) = self.stripe[..all].split_at_mut(information);
        let data: Vec<&[u8]> = data.chunks_exact(fragment).collect();
        let mut redundancy: Vec<&mut [u8]> = redundancy.chunks_exact_mut(fragment).collect();
        self.code.encode(&data, &mut redundancy)?;
        for (slot, bytes) in self.stacks.iter_mut().zip(self.stripe[..all].chunks_exact(fragment)) {
            let Slot::Open { disk, stack } = slot else { continue };
            if let Err(fault) = stack.fragment(bytes) {
                let (index, disk) = (stack.index(), std::mem::take(disk));
                *slot = Slot::Lost(LostStack { index, disk, fault });
            }
        }
        self.filled = 0;
        self.check()
    }

    fn check(&self) -> Result<()> {
        let lost = self.stacks.iter().filter_map(|slot| match slot {
            Slot::Open { .. } => None,
            Slot::Lost(lost) => Some(lost.clone()),
        });
        self.check_enough(&lost.collect::<Vec<_>>())
    }

    /// Returns an error when too few stacks are left without `lost`.
    fn check_enough(&self, lost: &[LostStack]) -> Result<()> {
        let (have, need) = (self.code.shards() - lost.len(), self.code.information());
        if have >= need {
            return Ok(());
        }
        let (group, lost) = (self.group.clone(), lost.to_vec());
        Err(RackError::TooFewStacks { blob: self.header.blob, group, have, need, lost })
    }
}

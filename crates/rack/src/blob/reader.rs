//! Reads a blob: from all of its stacks, each checked, or from as many as are enough.
//!
//! A fragment that cannot be read, or whose checksum does not match, is an erasure of its stripe;
//! the stack is still used for other stripes. Faults are recorded for a repair.

use std::collections::BTreeMap;

use bytes::Bytes;
use fulgurite_codes::small::{Reconstruction, SmallCode};
use fulgurite_units::{BlobId, RackId};

use super::buffers::BufferPool;
use crate::error::LostStack;
use crate::format::{Coding, FRAGMENT_BYTES, Header, Stripes, Trailer};
use crate::limits::FAULTS_KEPT_MAX;
use crate::stack::{ReadAt, StackReader};
use crate::{Fault, RackError, Result};

/// Which stacks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// All, so that each is checked (Pelican, OSDI 2014, section 3.1).
    All,
    /// As many as are enough: information first, and redundancy in place of lost fragments (a
    /// degraded read).
    Enough,
}

/// What is known of a blob before any of its stacks is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The rack it belongs to.
    pub rack: RackId,
    /// The blob.
    pub blob: BlobId,
    /// How it is coded.
    pub coding: Coding,
}

/// A stack and the disk that holds it.
#[derive(Debug)]
pub struct Located<R> {
    /// The disk, for errors.
    pub disk: String,
    /// Its bytes, or why there are none.
    pub source: Result<R, Fault>,
}

/// Reads one blob.
pub struct BlobReader<R> {
    expected: Expected,
    group: String,
    mode: ReadMode,
    code: SmallCode,
    stripes: Stripes,
    trailer: Trailer,
    entry: Vec<u8>,
    stacks: Vec<Slot<R>>,
    /// One stripe, information before redundancy.
    stripe: Vec<u8>,
    /// Which of its fragments are present.
    present: Vec<bool>,
    /// Cached reconstruction of the last stripe with erasures: the fragments used, those rebuilt,
    /// and the plan.
    plan: Option<(Vec<usize>, Vec<usize>, Reconstruction)>,
    /// Pool for the buffers of stripes that were handed out.
    buffers: BufferPool,
}

struct Slot<R> {
    disk: String,
    stack: Result<StackReader<R>, Fault>,
    /// The first few faults of its fragments.
    faults: Vec<Fault>,
    /// Number of bad fragments.
    bad: u64,
}

impl<R> std::fmt::Debug for BlobReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("BlobReader");
        shown.field("expected", &self.expected).field("how", &self.mode).finish_non_exhaustive()
    }
}

impl<R: ReadAt + Sync> BlobReader<R> {
    /// Opens a blob. `stacks` has one entry for each index, in order.
    ///
    /// # Errors
    /// [`RackError::TooFewStacks`] when fewer can be used than are needed.
    ///
    /// # Panics
    /// When the number of `stacks` is not that of the coding.
    pub fn open(
        expected: Expected,
        group: &str,
        mode: ReadMode,
        stacks: Vec<Located<R>>,
    ) -> Result<Self> {
        let coding = expected.coding;
        assert_eq!(stacks.len(), usize::from(coding.stacks()), "one entry for each stack");
        let code =
            SmallCode::new(usize::from(coding.information()), usize::from(coding.redundancy()))?;
        let sources = stacks.iter().filter_map(|located| located.source.as_ref().ok());
        let (slow, fast): (Vec<&R>, Vec<&R>) = sources.partition(|source| source.waits_for(0, 1));
        fast.into_iter().for_each(StackReader::prefetch_ends);
        run_parallel(slow, StackReader::prefetch_ends);
        let mut stacks: Vec<Slot<R>> = (0..coding.stacks())
            .zip(stacks)
            .map(|(index, Located { disk, source })| {
                let stack = source.and_then(StackReader::open);
                let stack = stack.and_then(|stack| check_belongs(&expected, index, stack));
                Slot { disk, stack, faults: Vec::new(), bad: 0 }
            })
            .collect();
        let (trailer, entry) = majority(&expected, group, &mut stacks)?;
        let stripes = Stripes::new(coding, trailer.length);
        let present = vec![false; code.shards()];
        let stripe = vec![0; code.shards() * FRAGMENT_BYTES];
        let reader = Self {
            expected,
            group: group.to_owned(),
            mode,
            code,
            stripes,
            trailer,
            entry,
            stacks,
            stripe,
            present,
            plan: None,
            buffers: BufferPool::default(),
        };
        let have = reader.stacks.iter().filter(|slot| slot.stack.is_ok()).count();
        if have < reader.code.information() { Err(reader.too_few(have)) } else { Ok(reader) }
    }

    /// How the blob is divided into stripes.
    #[must_use]
    pub const fn stripes(&self) -> Stripes {
        self.stripes
    }

    /// Returns the trailer that its stacks agree on; its `index` has no meaning.
    #[must_use]
    pub const fn trailer(&self) -> &Trailer {
        &self.trailer
    }

    /// Returns the entry that the blob's writer supplied.
    #[must_use]
    pub fn entry(&self) -> &[u8] {
        &self.entry
    }

    /// Returns the header of its stack `index`.
    #[must_use]
    pub fn header(&self, index: u8) -> Header {
        let Expected { rack, blob, coding } = self.expected;
        Header { rack, blob, coding, index, entry: self.entry.clone() }
    }

    /// Returns the user bytes of stripe `stripe`, each verified or rebuilt.
    ///
    /// # Errors
    /// [`RackError::TooFewStacks`] when too few of its fragments can be used.
    pub fn stripe(&mut self, stripe: u64) -> Result<&[u8]> {
        self.load(stripe)?;
        let lost = (0..self.code.information()).filter(|&index| !self.present[index]).collect();
        self.reconstruct(stripe, lost)?;
        Ok(&self.stripe[..self.stripes.data_bytes(stripe)])
    }

    /// Like [`Self::stripe`], but gives the buffer away without a copy: the next stripe uses
    /// another.
    ///
    /// # Errors
    /// As for [`Self::stripe`].
    pub fn take_stripe(&mut self, stripe: u64) -> Result<Bytes> {
        let bytes = self.stripe(stripe)?.len();
        let next = self.buffers.next(self.stripe.len());
        let full = std::mem::replace(&mut self.stripe, next);
        Ok(self.buffers.lend(full).slice(..bytes))
    }

    /// Returns the fragments of stripe `stripe` whose indices are `wanted`.
    pub(super) fn fragments<'a>(
        &'a mut self,
        stripe: u64,
        wanted: &'a [u8],
    ) -> Result<impl Iterator<Item = &'a [u8]>> {
        self.load(stripe)?;
        let lost = wanted.iter().map(|&index| usize::from(index));
        let lost = lost.filter(|&index| !self.present[index]).collect();
        self.reconstruct(stripe, lost)?;
        let bytes = self.stripes.fragment_bytes(stripe);
        let stripe: &[u8] = &self.stripe;
        let fragment = move |index: u8| &stripe[usize::from(index) * bytes..][..bytes];
        Ok(wanted.iter().copied().map(fragment))
    }

    /// Compares the checksum of all its bytes with the one that was written.
    ///
    /// # Errors
    /// [`RackError::Corrupt`] when they differ.
    pub fn compare(&self, sum: u64) -> Result<()> {
        if sum == self.trailer.sum {
            return Ok(());
        }
        let detail =
            "all fragments are intact, but the checksum of the whole blob differs".to_owned();
        Err(RackError::Corrupt { blob: self.expected.blob, group: self.group.clone(), detail })
    }

    /// Returns the faulty stacks found so far, each with its first fault.
    #[must_use]
    pub fn lost(&self) -> Vec<LostStack> {
        (0..)
            .zip(&self.stacks)
            .filter_map(|(index, slot)| {
                let fault = slot.stack.as_ref().err().or_else(|| slot.faults.first())?.clone();
                Some(LostStack { index, disk: slot.disk.clone(), fault })
            })
            .collect()
    }

    /// Prefetches a stripe from disks that would block, all in parallel: one after the other, a
    /// blob would be read at the rate of one disk.
    fn prefetch(&self, stripe: u64) {
        let stacks = self.stacks.iter().filter_map(|slot| slot.stack.as_ref().ok());
        let slow: Vec<_> = stacks.filter(|stack| stack.waits_for(stripe)).collect();
        run_parallel(slow, |stack| stack.will_need(stripe));
    }

    /// Reads fragments of a stripe into place, and records which are present.
    fn load(&mut self, stripe: u64) -> Result<()> {
        assert!(stripe < self.stripes.count(), "stripe is beyond the end of the blob");
        self.prefetch(stripe);
        let bytes = self.stripes.fragment_bytes(stripe);
        let need = self.code.information();
        let mut have = 0;
        let fragments = self.stripe.chunks_exact_mut(bytes);
        for ((slot, present), fragment) in
            self.stacks.iter_mut().zip(&mut self.present).zip(fragments)
        {
            *present = false;
            if self.mode == ReadMode::Enough && have == need {
                continue;
            }
            let Ok(stack) = &slot.stack else { continue };
            match stack.fragment(stripe, fragment) {
                Ok(()) => {
                    *present = true;
                    have += 1;
                }
                Err(fault) => slot.record(fault),
            }
        }
        if have < need { Err(self.too_few(have)) } else { Ok(()) }
    }

    /// Reconstructs the fragments `lost` of the stripe in place from those that are present.
    fn reconstruct(&mut self, stripe: u64, lost: Vec<usize>) -> Result<()> {
        if lost.is_empty() {
            return Ok(());
        }
        let available: Vec<usize> =
            (0..self.code.shards()).filter(|&index| self.present[index]).collect();
        let is_same = |plan: &&(Vec<usize>, Vec<usize>, Reconstruction)| {
            plan.0 == available && plan.1 == lost
        };
        if self.plan.as_ref().filter(is_same).is_none() {
            let plan = self.code.plan(&available, &lost)?;
            self.plan = Some((available, lost, plan));
        }
        let Some((available, lost, plan)) = &self.plan else { return Ok(()) };
        let bytes = self.stripes.fragment_bytes(stripe);
        let mut parts: BTreeMap<usize, &mut [u8]> =
            self.stripe.chunks_exact_mut(bytes).take(self.code.shards()).enumerate().collect();
        let mut wanted: Vec<&mut [u8]> =
            lost.iter().filter_map(|index| parts.remove(index)).collect();
        let sources: Vec<&[u8]> =
            available.iter().filter_map(|index| parts.get(index).map(|part| &**part)).collect();
        plan.run(&sources, &mut wanted)?;
        Ok(())
    }

    fn too_few(&self, have: usize) -> RackError {
        let (blob, group) = (self.expected.blob, self.group.clone());
        let (need, lost) = (self.code.information(), self.lost());
        RackError::TooFewStacks { blob, group, have, need, lost }
    }
}

/// Runs `task` on each in parallel. Those for which no thread can be started are skipped, so it
/// must only be an optimization such as a prefetch.
fn run_parallel<T: Sync>(all: Vec<&T>, task: impl Fn(&T) + Sync) {
    let task = &task;
    std::thread::scope(|scope| {
        for one in all {
            let thread = std::thread::Builder::new().name("rack-read".to_owned());
            if let Err(error) = thread.spawn_scoped(scope, move || task(one)) {
                tracing::debug!(
                    "cannot start a thread, so disks are read one after the other: {error}"
                );
            }
        }
    });
}

impl<R> Slot<R> {
    fn record(&mut self, fault: Fault) {
        self.bad += 1;
        if self.faults.len() < FAULTS_KEPT_MAX {
            self.faults.push(fault);
        }
    }
}

/// Returns the stack if it is the one that belongs here.
fn check_belongs<R: ReadAt>(
    expected: &Expected,
    index: u8,
    stack: StackReader<R>,
) -> Result<StackReader<R>, Fault> {
    let header = stack.header();
    let detail = if header.rack != expected.rack {
        format!("a stack of rack {}", header.rack)
    } else if header.blob != expected.blob {
        format!("a stack of blob {}", header.blob)
    } else if header.index != index {
        format!("stack {} of the blob", header.index)
    } else if header.coding != expected.coding {
        format!("a stack of a blob in {} stacks", header.coding)
    } else {
        return Ok(stack);
    };
    Err(Fault::Mismatch { detail })
}

/// Returns what most stacks say about the blob; stacks that disagree become faults.
fn majority<R: ReadAt>(
    expected: &Expected,
    group: &str,
    stacks: &mut [Slot<R>],
) -> Result<(Trailer, Vec<u8>)> {
    let mut votes: BTreeMap<(u64, u64, u64, Vec<u8>), usize> = BTreeMap::new();
    let claim = |stack: &StackReader<R>| {
        let Trailer { length, sequence, sum, .. } = *stack.trailer();
        (length.get(), sequence, sum, stack.header().entry.clone())
    };
    for stack in stacks.iter().filter_map(|slot| slot.stack.as_ref().ok()) {
        *votes.entry(claim(stack)).or_default() += 1;
    }
    let most = votes.into_iter().max_by_key(|(_, count)| *count).map(|(detail, _)| detail);
    let mut agreed = None;
    for slot in stacks.iter_mut() {
        let Ok(stack) = &slot.stack else { continue };
        if Some(claim(stack)) == most {
            agreed = Some((*stack.trailer(), stack.header().entry.clone()));
        } else {
            let detail =
                "length, sequence or entry differ from those of the other stacks".to_owned();
            slot.stack = Err(Fault::Damaged { detail });
        }
    }
    agreed.ok_or_else(|| {
        let lost = (0..).zip(stacks).filter_map(|(index, slot)| {
            let fault = slot.stack.as_ref().err()?.clone();
            Some(LostStack { index, disk: slot.disk.clone(), fault })
        });
        RackError::TooFewStacks {
            blob: expected.blob,
            group: group.to_owned(),
            have: 0,
            need: usize::from(expected.coding.information()),
            lost: lost.collect(),
        }
    })
}

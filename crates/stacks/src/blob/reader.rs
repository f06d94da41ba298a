//! A blob as it is read: from all of its stacks, each checked, or from as many as are enough.
//!
//! A fragment that cannot be read, or is not what was written, is an erasure of its stripe; the
//! stack goes on being used for others. What was wrong is remembered for a repair.

use std::collections::BTreeMap;

use bytes::Bytes;
use fulgurite_codes::small::{Reconstruction, SmallCode};
use fulgurite_units::{BlobId, RackId};

use super::buffers::Buffers;
use crate::error::LostStack;
use crate::format::{Coding, FRAGMENT_BYTES, Header, Stripes, Trailer};
use crate::limits::FAULTS_KEPT_MAX;
use crate::stack::{ReadAt, StackReader};
use crate::{Fault, Result, StacksError};

/// Which stacks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// All, so that each is checked (Pelican, OSDI 2014, section 3.1).
    All,
    /// As many as are enough: information first, and redundancy in place of what is lost.
    Enough,
}

/// What is known of a blob before a stack of it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The rack that it is of.
    pub rack: RackId,
    /// The blob.
    pub blob: BlobId,
    /// How it is coded.
    pub coding: Coding,
}

/// A stack, and the disk that has it.
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
    how: How,
    code: SmallCode,
    stripes: Stripes,
    trailer: Trailer,
    entry: Vec<u8>,
    stacks: Vec<Slot<R>>,
    /// One stripe, information before redundancy.
    stripe: Vec<u8>,
    /// Which fragments of it are there.
    present: Vec<bool>,
    /// How the last stripe with something lost was reconstructed: from what to what.
    plan: Option<(Vec<usize>, Vec<usize>, Reconstruction)>,
    /// Where stripes that were given on come back to.
    buffers: Buffers,
}

struct Slot<R> {
    disk: String,
    stack: Result<StackReader<R>, Fault>,
    /// What was wrong with fragments of it, the first few.
    faults: Vec<Fault>,
    /// How many were.
    bad: u64,
}

impl<R> std::fmt::Debug for BlobReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("BlobReader");
        shown.field("expected", &self.expected).field("how", &self.how).finish_non_exhaustive()
    }
}

impl<R: ReadAt + Sync> BlobReader<R> {
    /// Opens a blob. `stacks` are one for each index, in their order.
    ///
    /// # Errors
    /// [`StacksError::TooFewStacks`] when fewer can be used than are needed.
    ///
    /// # Panics
    /// When `stacks` are not as many as the coding has.
    pub fn open(
        expected: Expected,
        group: &str,
        how: How,
        stacks: Vec<Located<R>>,
    ) -> Result<Self> {
        let coding = expected.coding;
        assert_eq!(stacks.len(), usize::from(coding.stacks()), "each stack or why it is none");
        let code =
            SmallCode::new(usize::from(coding.information()), usize::from(coding.redundancy()))?;
        let sources = stacks.iter().filter_map(|located| located.source.as_ref().ok());
        let (slow, fast): (Vec<&R>, Vec<&R>) = sources.partition(|source| source.waits_for(0, 1));
        fast.into_iter().for_each(StackReader::announce);
        side_by_side(slow, StackReader::announce);
        let mut stacks: Vec<Slot<R>> = (0..coding.stacks())
            .zip(stacks)
            .map(|(index, Located { disk, source })| {
                let stack = source.and_then(StackReader::open);
                let stack = stack.and_then(|stack| belongs(&expected, index, stack));
                Slot { disk, stack, faults: Vec::new(), bad: 0 }
            })
            .collect();
        let (trailer, entry) = agree(&expected, group, &mut stacks)?;
        let stripes = Stripes::new(coding, trailer.length);
        let present = vec![false; code.shards()];
        let stripe = vec![0; code.shards() * FRAGMENT_BYTES];
        let reader = Self {
            expected,
            group: group.to_owned(),
            how,
            code,
            stripes,
            trailer,
            entry,
            stacks,
            stripe,
            present,
            plan: None,
            buffers: Buffers::default(),
        };
        let have = reader.stacks.iter().filter(|slot| slot.stack.is_ok()).count();
        if have < reader.code.information() { Err(reader.too_few(have)) } else { Ok(reader) }
    }

    /// How the blob falls into stripes.
    #[must_use]
    pub const fn stripes(&self) -> Stripes {
        self.stripes
    }

    /// What all of its stacks say at their ends, but for the index.
    #[must_use]
    pub const fn trailer(&self) -> &Trailer {
        &self.trailer
    }

    /// What the blob's writer gave along.
    #[must_use]
    pub fn entry(&self) -> &[u8] {
        &self.entry
    }

    /// The header of its stack `index`.
    #[must_use]
    pub fn header(&self, index: u8) -> Header {
        let Expected { rack, blob, coding } = self.expected;
        Header { rack, blob, coding, index, entry: self.entry.clone() }
    }

    /// The user bytes of stripe `stripe`, each of them checked.
    ///
    /// # Errors
    /// [`StacksError::TooFewStacks`] when too few of its fragments can be used.
    pub fn stripe(&mut self, stripe: u64) -> Result<&[u8]> {
        self.load(stripe)?;
        let lost = (0..self.code.information()).filter(|&index| !self.present[index]).collect();
        self.reconstruct(stripe, lost)?;
        Ok(&self.stripe[..self.stripes.data_bytes(stripe)])
    }

    /// The same to be kept, without a copy: the next stripe goes to another buffer.
    ///
    /// # Errors
    /// As of [`Self::stripe`].
    pub fn take_stripe(&mut self, stripe: u64) -> Result<Bytes> {
        let bytes = self.stripe(stripe)?.len();
        let next = self.buffers.next(self.stripe.len());
        let full = std::mem::replace(&mut self.stripe, next);
        Ok(self.buffers.lend(full).slice(..bytes))
    }

    /// The fragment `index` of stripe `stripe`, for each of `wanted`.
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
        let of = move |index: u8| &stripe[usize::from(index) * bytes..][..bytes];
        Ok(wanted.iter().copied().map(of))
    }

    /// Compares the sum of all its bytes with the one that was written.
    ///
    /// # Errors
    /// [`StacksError::Corrupt`] when they are not the same.
    pub fn compare(&self, sum: u64) -> Result<()> {
        if sum == self.trailer.sum {
            return Ok(());
        }
        let what = "all fragments are as they were written, and together another blob".to_owned();
        Err(StacksError::Corrupt { blob: self.expected.blob, group: self.group.clone(), what })
    }

    /// What is wrong with its stacks as far as they were read: for each that has something the
    /// first of it.
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

    /// Has the disks of stacks that wait for them read what comes next, all at once: one after the
    /// other a blob would come as fast as from one disk.
    fn bring(&self, stripe: u64) {
        let stacks = self.stacks.iter().filter_map(|slot| slot.stack.as_ref().ok());
        let slow: Vec<_> = stacks.filter(|stack| stack.waits_for(stripe)).collect();
        side_by_side(slow, |stack| stack.will_need(stripe));
    }

    /// Reads fragments of a stripe into place, and notes which are there.
    fn load(&mut self, stripe: u64) -> Result<()> {
        assert!(stripe < self.stripes.count(), "a stripe of the blob");
        self.bring(stripe);
        let bytes = self.stripes.fragment_bytes(stripe);
        let need = self.code.information();
        let mut have = 0;
        let fragments = self.stripe.chunks_exact_mut(bytes);
        for ((slot, present), fragment) in
            self.stacks.iter_mut().zip(&mut self.present).zip(fragments)
        {
            *present = false;
            if self.how == How::Enough && have == need {
                continue;
            }
            let Ok(stack) = &slot.stack else { continue };
            match stack.fragment(stripe, fragment) {
                Ok(()) => {
                    *present = true;
                    have += 1;
                }
                Err(fault) => slot.note(fault),
            }
        }
        if have < need { Err(self.too_few(have)) } else { Ok(()) }
    }

    /// Makes the fragments `lost` of the stripe in place from those that are there.
    fn reconstruct(&mut self, stripe: u64, lost: Vec<usize>) -> Result<()> {
        if lost.is_empty() {
            return Ok(());
        }
        let given: Vec<usize> =
            (0..self.code.shards()).filter(|&index| self.present[index]).collect();
        let is_same =
            |plan: &&(Vec<usize>, Vec<usize>, Reconstruction)| plan.0 == given && plan.1 == lost;
        if self.plan.as_ref().filter(is_same).is_none() {
            let plan = self.code.plan(&given, &lost)?;
            self.plan = Some((given, lost, plan));
        }
        let Some((given, lost, plan)) = &self.plan else { return Ok(()) };
        let bytes = self.stripes.fragment_bytes(stripe);
        let mut parts: BTreeMap<usize, &mut [u8]> =
            self.stripe.chunks_exact_mut(bytes).take(self.code.shards()).enumerate().collect();
        let mut wanted: Vec<&mut [u8]> =
            lost.iter().filter_map(|index| parts.remove(index)).collect();
        let sources: Vec<&[u8]> =
            given.iter().filter_map(|index| parts.get(index).map(|part| &**part)).collect();
        plan.run(&sources, &mut wanted)?;
        Ok(())
    }

    fn too_few(&self, have: usize) -> StacksError {
        let (blob, group) = (self.expected.blob, self.group.clone());
        let (need, lost) = (self.code.information(), self.lost());
        StacksError::TooFewStacks { blob, group, have, need, lost }
    }
}

/// Has something done with each at once, as far as there are threads for it. It is done by nobody
/// where there is none: it may only be what makes the next faster.
fn side_by_side<T: Sync>(all: Vec<&T>, does: impl Fn(&T) + Sync) {
    let does = &does;
    std::thread::scope(|scope| {
        for one in all {
            let thread = std::thread::Builder::new().name("rack-read".to_owned());
            if let Err(error) = thread.spawn_scoped(scope, move || does(one)) {
                tracing::debug!("read one after the other: no thread: {error}");
            }
        }
    });
}

impl<R> Slot<R> {
    fn note(&mut self, fault: Fault) {
        self.bad += 1;
        if self.faults.len() < FAULTS_KEPT_MAX {
            self.faults.push(fault);
        }
    }
}

/// The stack, if it is the one that belongs here.
fn belongs<R: ReadAt>(
    expected: &Expected,
    index: u8,
    stack: StackReader<R>,
) -> Result<StackReader<R>, Fault> {
    let header = stack.header();
    let what = if header.rack != expected.rack {
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
    Err(Fault::Stranger { what })
}

/// What most stacks say of the blob; the others become faults.
fn agree<R: ReadAt>(
    expected: &Expected,
    group: &str,
    stacks: &mut [Slot<R>],
) -> Result<(Trailer, Vec<u8>)> {
    let mut told: BTreeMap<(u64, u64, u64, Vec<u8>), usize> = BTreeMap::new();
    let says = |stack: &StackReader<R>| {
        let Trailer { length, sequence, sum, .. } = *stack.trailer();
        (length.get(), sequence, sum, stack.header().entry.clone())
    };
    for stack in stacks.iter().filter_map(|slot| slot.stack.as_ref().ok()) {
        *told.entry(says(stack)).or_default() += 1;
    }
    let most = told.into_iter().max_by_key(|(_, count)| *count).map(|(what, _)| what);
    let mut agreed = None;
    for slot in stacks.iter_mut() {
        let Ok(stack) = &slot.stack else { continue };
        if Some(says(stack)) == most {
            agreed = Some((*stack.trailer(), stack.header().entry.clone()));
        } else {
            let what = "length, sequence or entry are not those of the other stacks".to_owned();
            slot.stack = Err(Fault::Damaged { what });
        }
    }
    agreed.ok_or_else(|| {
        let lost = (0..).zip(stacks).filter_map(|(index, slot)| {
            let fault = slot.stack.as_ref().err()?.clone();
            Some(LostStack { index, disk: slot.disk.clone(), fault })
        });
        StacksError::TooFewStacks {
            blob: expected.blob,
            group: group.to_owned(),
            have: 0,
            need: usize::from(expected.coding.information()),
            lost: lost.collect(),
        }
    })
}

//! Rebuild of a region from the others of its group, with two disks spinning at a time.
//!
//! ```text
//! sources, one after the other:   read its region --> sum += factor * block, block by block
//! the first only writes, each other reads and writes:  n writes, n - 1 reads per block
//! checkpoint: which sources are in the sum.   at the end: check the root against the codeword
//! ```
//!
//! (Pergamum (FAST 2008), section 4.3.2.) When a source is lost before it was added, another takes
//! its place, and the factors of all others change. The sum is then corrected: sources already in
//! it spin once more and add the difference of their factors. That takes no fewer spin-ups than a
//! restart, for with such a code every factor changes, but no more either, and keeps what has been
//! written. If one of those sources is lost itself, the rebuild restarts.
//!
//! The value is the checkpoint: it is kept in the metadata store after each source. Not here: which
//! tomes are asked to spin up, and the blocks themselves.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_codes::Signature;
use fulgurite_codes::small::SmallCode;
use serde::{Deserialize, Serialize};

use crate::syndrome::{Verdict, locate};
use crate::{CodeParams, GroupId, Member, Result, TomeError};

/// How a region of a group is rebuilt, and its progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuild {
    group: GroupId,
    split: CodeParams,
    target: Member,
    /// Final factor of each source.
    factors: BTreeMap<Member, u8>,
    /// Factor of each source in the sum now.
    folded: BTreeMap<Member, u8>,
}

/// One source to read completely and add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The source.
    pub source: Member,
    /// The factor of its blocks.
    pub factor: u8,
    /// Whether the sum must be read; if not, it is zeros and is only written.
    pub reads: bool,
}

/// The cost of losing a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceLoss {
    /// Nothing: it is in the sum, or was not needed.
    None,
    /// This many sources that were in the sum must spin once more.
    SpinAgain(usize),
    /// The sum is discarded.
    Restart,
}

impl Rebuild {
    /// Plans to rebuild the region of `target` from those of `available` members.
    ///
    /// # Errors
    /// [`TomeError::GroupLost`] when too few are left.
    pub fn new(
        group: GroupId,
        split: CodeParams,
        target: Member,
        available: &BTreeSet<Member>,
    ) -> Result<Self> {
        let factors = choose(group, split, target, available, &BTreeMap::new())?;
        Ok(Self { group, split, target, factors, folded: BTreeMap::new() })
    }

    /// The member that is rebuilt.
    #[must_use]
    pub const fn target(&self) -> Member {
        self.target
    }

    /// Returns the source to read next; `None` when the sum is complete.
    #[must_use]
    pub fn next(&self) -> Option<Step> {
        let members: BTreeSet<Member> =
            self.factors.keys().chain(self.folded.keys()).copied().collect();
        let step = |source: Member| {
            let factor_in =
                |factors: &BTreeMap<Member, u8>| factors.get(&source).copied().unwrap_or(0);
            let factor = factor_in(&self.factors) ^ factor_in(&self.folded);
            (factor != 0).then_some(Step { source, factor, reads: !self.folded.is_empty() })
        };
        members.into_iter().find_map(step)
    }

    /// Records that the whole region of a source was added as [`Self::next`] requested.
    pub fn record_added(&mut self, source: Member) {
        match self.factors.get(&source) {
            Some(factor) => self.folded.insert(source, *factor),
            None => self.folded.remove(&source),
        };
    }

    /// Replans with the members that are still available.
    ///
    /// # Errors
    /// [`TomeError::GroupLost`] when too few are left; then nothing is changed.
    pub fn lost(&mut self, available: &BTreeSet<Member>) -> Result<SourceLoss> {
        let missing = |(source, factor): (&Member, &u8)| {
            !available.contains(source) && self.folded.get(source) != Some(factor)
        };
        if !self.factors.iter().any(missing) {
            return Ok(SourceLoss::None);
        }
        let factors = choose(self.group, self.split, self.target, available, &self.folded)?;
        let changes = |(source, factor): &(&Member, &u8)| factors.get(source) != Some(factor);
        let changed: Vec<Member> =
            self.folded.iter().filter(changes).map(|(source, _)| *source).collect();
        self.factors = factors;
        if changed.iter().all(|source| available.contains(source)) {
            return Ok(SourceLoss::SpinAgain(changed.len()));
        }
        self.folded.clear();
        Ok(SourceLoss::Restart)
    }

    /// Returns how many sources have their final factor in the sum, and how many there are.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        let is_done = |(source, factor): &(&Member, &u8)| self.folded.get(source) == Some(*factor);
        (self.factors.iter().filter(is_done).count(), self.factors.len())
    }

    /// Returns the members that are read.
    pub fn sources(&self) -> impl Iterator<Item = Member> {
        self.factors.keys().copied()
    }

    /// Verifies the result against its sources: signatures of sums are sums of signatures.
    ///
    /// # Errors
    /// [`TomeError::RebuildMismatch`] when the sum differs, or sources are missing in it.
    pub fn verify_sum(&self, result: Signature, roots: &BTreeMap<Member, Signature>) -> Result<()> {
        let terms = self.factors.iter().map(|(source, factor)| {
            let root = roots.get(source).copied()?;
            Some(root.scale8(*factor))
        });
        let sum = terms.into_iter().try_fold(Signature::ZERO, |sum, term| Some(sum ^ term?));
        if self.next().is_none() && sum == Some(result) {
            return Ok(());
        }
        Err(TomeError::RebuildMismatch { group: self.group })
    }

    /// Verifies the result as part of a codeword. `roots` has the root of each member, with the
    /// result in place of the target.
    ///
    /// # Errors
    /// [`TomeError::RebuildMismatch`] when they do not form a codeword, or sources are missing in
    /// the sum.
    pub fn verify(&self, roots: &[Signature]) -> Result<()> {
        let is_whole = self.next().is_none();
        match locate(self.split, roots)? {
            Verdict::Consistent if is_whole => Ok(()),
            Verdict::Consistent | Verdict::Wrong(_) | Verdict::Unnamed => {
                Err(TomeError::RebuildMismatch { group: self.group })
            }
        }
    }
}

/// Chooses the sources and their factors: those already in the sum first, then data, since parities
/// are written more and may have deltas in flight.
fn choose(
    group: GroupId,
    split: CodeParams,
    target: Member,
    available: &BTreeSet<Member>,
    added: &BTreeMap<Member, u8>,
) -> Result<BTreeMap<Member, u8>> {
    let (have, need) = (available.len(), split.data() as usize);
    let others = available.iter().filter(|member| **member != target);
    let (known, new): (Vec<Member>, Vec<Member>) =
        others.copied().partition(|member| added.contains_key(member));
    let sources: Vec<Member> = known.into_iter().chain(new).take(need).collect();
    if sources.len() < need {
        return Err(TomeError::GroupLost { group, have, need });
    }
    let code = SmallCode::new(split.data() as usize, split.parity() as usize)?;
    let indexes: Vec<usize> = sources.iter().map(|member| member.as_usize()).collect();
    // Running the code on unit rows gives the row of their factors.
    let rows: Vec<Vec<u8>> =
        (0..need).map(|row| (0..need).map(|column| u8::from(column == row)).collect()).collect();
    let mut factors = [vec![0; need]];
    code.plan(&indexes, &[target.as_usize()])?.run(&rows, &mut factors)?;
    let [factors] = factors;
    Ok(sources.into_iter().zip(factors).filter(|(_, factor)| *factor != 0).collect())
}

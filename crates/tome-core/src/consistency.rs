//! Checks whether the members of a group agree, by signatures alone and without a spin-up.
//!
//! ```text
//! reports    k roots, each with its in-flight deltas       O(k)
//! deltas     in flight, as reported by both sides
//! descent    nodes of one level of all members, of what is inconsistent only     O(k log n)
//! findings   offsets, each with the wrong member, where two parities or more can locate it
//! ```
//!
//! (Pergamum (FAST 2008), section 4.2.) The paper compares roots of a quiescent group. Here a
//! member reports with its root what went into it: a data member its last version, and the changes
//! that each parity has not confirmed; a parity the changes that it has applied. What one side has
//! and the other lacks is added to the parity's nodes exactly, so that an in-flight delta accounts
//! for itself and hides nothing else. A change that is neither listed nor applied was lost, and
//! shows.
//!
//! Reports and nodes carry the epoch of their region, which counts its changes: if a region changed
//! while nodes were exchanged, the check restarts. Not here: the exchange, and what is done about
//! findings.

use fulgurite_codes::Signature;
use serde::{Deserialize, Serialize};

use crate::limits::DESCENT_NODES_MAX;
use crate::syndrome::{Verdict, locate};
use crate::tree::shifted;
use crate::{CodeParams, Epoch, InSegment, Layout, Member, Offset, Result, TomeError, Version};

/// A change of one data block of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The block.
    pub offset: Offset,
    /// The version that it wrote.
    pub version: Version,
    /// The signature of the change.
    #[serde(with = "crate::wire::signature")]
    pub signature: Signature,
}

/// A change by a data member that some parity has not confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unconfirmed {
    /// The change.
    pub change: Change,
    /// Parities that have not confirmed it, counted from zero.
    pub missing: Vec<u8>,
}

/// Changes that a parity has applied of one data member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedSummary {
    /// Every delta below this version is applied.
    pub floor: Version,
    /// Applied changes from there on.
    pub above: Vec<Change>,
}

impl AppliedSummary {
    /// Returns whether a version is applied.
    #[must_use]
    pub fn has(&self, version: Version) -> bool {
        version < self.floor || self.above.iter().any(|change| change.version == version)
    }
}

/// What a member reports of its region at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// How often the region had changed.
    pub epoch: Epoch,
    /// The root of its tree.
    #[serde(with = "crate::wire::signature")]
    pub root: Signature,
    /// What went into the root.
    pub side: Side,
}

/// What went into a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// A region with data.
    Data {
        /// The last version written.
        latest: Version,
        /// Changes that not all parities have confirmed.
        unconfirmed: Vec<Unconfirmed>,
    },
    /// A region with parity: the changes applied of each data member.
    Parity(Vec<AppliedSummary>),
}

/// An in-flight delta: a change that either a data member's signatures or a parity's include, but
/// not both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InFlightDelta {
    /// The parity whose nodes are corrected.
    parity: Member,
    offset: Offset,
    /// Added to the signature of its block.
    change: Signature,
}

/// One block of a group that is not a codeword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Finding {
    /// The block.
    pub offset: Offset,
    /// The wrong member, if it can be located.
    pub verdict: Verdict,
}

/// A check of a group, from the roots down to the wrong blocks. It asks for nodes
/// ([`Descent::wants`]) and takes the members' answers ([`Descent::take`]), a level at a time.
#[derive(Clone, Debug)]
pub struct Descent {
    group: CodeParams,
    layout: Layout,
    epochs: Vec<Epoch>,
    in_flight: Vec<InFlightDelta>,
    /// Level of the nodes asked for.
    level: u32,
    wanted: Vec<u32>,
    exchanged: u64,
    findings: Vec<Finding>,
    is_cut: bool,
}

/// One member's nodes, in the order in which they were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nodes {
    /// How often its region had changed.
    pub epoch: Epoch,
    /// One for each node asked for; zero where its tree has none.
    #[serde(with = "crate::wire::signatures")]
    pub signatures: Vec<Signature>,
}

impl Descent {
    /// Compares the roots of all members, given in order. If they agree, the check is done.
    ///
    /// # Errors
    /// [`TomeError::Count`] when members are missing or a report has the wrong role.
    pub fn new(group: CodeParams, layout: Layout, reports: &[Report]) -> Result<Self> {
        let mut descent = Self {
            group,
            layout,
            epochs: reports.iter().map(|report| report.epoch).collect(),
            in_flight: in_flight(group, &layout, reports)?,
            level: depth(layout.region_blocks()),
            wanted: vec![0],
            exchanged: 0,
            findings: Vec::new(),
            is_cut: false,
        };
        let of_report =
            |report: &Report| Nodes { epoch: report.epoch, signatures: vec![report.root] };
        descent.take(&reports.iter().map(of_report).collect::<Vec<_>>())?;
        Ok(descent)
    }

    /// Returns the level and the node numbers to ask every member for; `None` when done.
    #[must_use]
    pub fn wants(&self) -> Option<(u32, &[u32])> {
        (!self.wanted.is_empty()).then_some((self.level, &self.wanted))
    }

    /// Takes the members' answers, in order.
    ///
    /// # Errors
    /// [`TomeError::Moved`] when a region changed since it reported its root: start over.
    /// [`TomeError::Count`] when answers are missing.
    pub fn take(&mut self, answers: &[Nodes]) -> Result<()> {
        self.check_answers(answers)?;
        self.exchanged += (self.wanted.len() * answers.len()) as u64;
        let wanted = std::mem::take(&mut self.wanted);
        for (position, &index) in wanted.iter().enumerate() {
            let mut word: Vec<Signature> =
                answers.iter().map(|nodes| nodes.signatures[position]).collect();
            self.delta(index, &mut word)?;
            match locate(self.group, &word)? {
                Verdict::Consistent => {}
                verdict if self.level == 0 => {
                    self.findings.push(Finding { offset: Offset::new(index), verdict });
                }
                Verdict::Wrong(_) | Verdict::Unnamed => self.descend(index),
            }
        }
        self.level = self.level.saturating_sub(1);
        Ok(())
    }

    /// Number of signatures exchanged so far.
    #[must_use]
    pub const fn exchanged(&self) -> u64 {
        self.exchanged
    }

    /// Findings, complete once no more nodes are wanted.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether more was inconsistent than one descent follows.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn check_answers(&self, answers: &[Nodes]) -> Result<()> {
        let (have, need) = (answers.len(), self.group.total() as usize);
        if have != need {
            return Err(TomeError::Count { what: "members", have, need });
        }
        let need = self.wanted.len();
        for (nodes, epoch) in answers.iter().zip(&self.epochs) {
            if nodes.epoch != *epoch {
                return Err(TomeError::Moved);
            }
            let have = nodes.signatures.len();
            if have != need {
                return Err(TomeError::Count { what: "nodes", have, need });
            }
        }
        Ok(())
    }

    /// Adds in-flight deltas to the nodes of parities.
    fn delta(&self, index: u32, word: &mut [Signature]) -> Result<()> {
        let first = u64::from(index) << self.level;
        for delta in &self.in_flight {
            let offset = u64::from(delta.offset.get());
            if offset >> self.level == u64::from(index) {
                let before = (offset - first) * self.layout.block_bytes();
                word[delta.parity.as_usize()] ^= shifted(delta.change, before)?;
            }
        }
        Ok(())
    }

    /// Asks for both children of a node.
    fn descend(&mut self, index: u32) {
        let level = self.level - 1;
        let nodes = self.layout.region_blocks().div_ceil(1 << level);
        for child in [2 * index, 2 * index + 1] {
            if self.wanted.len() == DESCENT_NODES_MAX {
                self.is_cut = true;
            } else if child < nodes {
                self.wanted.push(child);
            }
        }
    }
}

/// Returns the levels below the root of a tree of this many blocks.
fn depth(blocks: u32) -> u32 {
    blocks.next_power_of_two().trailing_zeros()
}

/// Returns the in-flight deltas: those that a parity lacks, and those that it applied before the
/// data member reported them.
fn in_flight(group: CodeParams, layout: &Layout, reports: &[Report]) -> Result<Vec<InFlightDelta>> {
    let (have, need) = (reports.len(), group.total() as usize);
    if have != need {
        return Err(TomeError::Count { what: "reports", have, need });
    }
    let (data, parity) = reports.split_at(group.data() as usize);
    let mut in_flight = Vec::new();
    for (j, report) in parity.iter().enumerate() {
        let Side::Parity(folded) = &report.side else { return Err(wrong_role("parity")) };
        let (have, need) = (folded.len(), data.len());
        if have != need {
            return Err(TomeError::Count { what: "lists of applied changes", have, need });
        }
        for (i, (report, folded)) in data.iter().zip(folded).enumerate() {
            let Side::Data { latest, unconfirmed } = &report.side else {
                return Err(wrong_role("data"));
            };
            let behind = unconfirmed.iter().filter(|listed| {
                let misses = listed.missing.iter().any(|missing| usize::from(*missing) == j);
                misses && !folded.has(listed.change.version)
            });
            let ahead = folded.above.iter().filter(|change| change.version > *latest);
            for change in behind.map(|listed| &listed.change).chain(ahead) {
                let scaled = change.signature.scale8(group.coefficient(j, i));
                in_flight.extend(with_segment_parity(layout, change.offset, scaled)?.map(
                    |(offset, change)| {
                        let parity = Member::at(group.data() as usize + j);
                        InFlightDelta { parity, offset, change }
                    },
                ));
            }
        }
    }
    Ok(in_flight)
}

const fn wrong_role(what: &'static str) -> TomeError {
    TomeError::Count { what, have: 0, need: 1 }
}

/// Returns a change of a data block, and the changes that follow in its segment's parity blocks.
fn with_segment_parity(
    layout: &Layout,
    offset: Offset,
    change: Signature,
) -> Result<impl Iterator<Item = (Offset, Signature)> + use<>> {
    let at = layout.in_segment(offset)?;
    let (split, layout) = (layout.segment(), *layout);
    if at.position >= split.data() {
        return Err(TomeError::OffsetOutOfRange { offset, blocks: layout.region_data_blocks() });
    }
    let parity = (0..split.parity()).map(move |q| {
        let position = split.data() + q;
        let factor = split.coefficient(q as usize, at.position as usize);
        (layout.offset(InSegment { segment: at.segment, position }), change.scale8(factor))
    });
    Ok(std::iter::once((offset, change)).chain(parity))
}

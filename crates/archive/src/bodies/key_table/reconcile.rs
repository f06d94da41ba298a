//! Reconciles the copies of the key table at startup: one table, in all of them.
//!
//! ```text
//! current copies               others                 what all copies get
//! a whole slot                 -                      that slot (of two, the one of the later run)
//! only damaged, one repairable -                      the repaired slot
//! only damaged, none is        a whole slot           that slot
//! only damaged, none is        none                   nothing: each keeps what it has
//! empty                        -                      empty
//! ```
//!
//! A copy is current when its probe names the latest run of all: every start writes it to each
//! copy. A copy that missed a run is older, and keys that only it holds were destroyed since.
//! Between current copies a whole slot wins over an empty one. Either a crash came while its key
//! was created, and nothing names it; or while it was being destroyed, and the catalog has recorded
//! that; or the empty one is damage.

use std::ops::ControlFlow;

use super::copies::{Copy, for_each_slot};
use super::slot::{self, Content, EMPTY, Slot};
use crate::Result;
use crate::bodies::cipher::SecretKey;

/// The table that all copies agree on, as far as possible.
#[derive(Debug, Default)]
pub(super) struct Reconciled {
    /// Slots without a key, lowest first.
    pub(super) free: Vec<u32>,
    /// Number of slots, used or free.
    pub(super) count: u32,
    /// Latest run of any key.
    pub(super) run_max: u64,
    /// Slots that were rewritten in some copy.
    pub(super) repaired: u64,
    /// Slots that are not empty but hold no key that opens, in any copy.
    pub(super) lost: Vec<u32>,
}

/// The decision for one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every copy gets this slot.
    Use(Slot),
    /// Two copies hold keys of the same run for different bodies; a load checks both.
    Conflict,
    /// Unrecoverable.
    Lost,
}

/// Makes all copies equal. `is_current` states which of them are current.
pub(super) fn reconcile(
    copies: &[Copy],
    is_current: &[bool],
    master: &SecretKey,
    count: u32,
) -> Result<Reconciled> {
    let mut out = Reconciled { count, ..Reconciled::default() };
    for_each_slot(copies, count, |index, found| {
        out.take(index, decide(found, is_current, master), found, copies)?;
        Ok(ControlFlow::Continue(()))
    })?;
    if out.repaired > 0 {
        copies.iter().try_for_each(Copy::sync_blocking)?;
    }
    Ok(out)
}

impl Reconciled {
    fn take(
        &mut self,
        index: u32,
        verdict: Verdict,
        found: &[Slot],
        copies: &[Copy],
    ) -> Result<()> {
        match verdict {
            Verdict::Use(slot) => {
                let mut is_repaired = false;
                for (copy, _) in copies.iter().zip(found).filter(|(_, found)| **found != slot) {
                    copy.write(index, &slot)?;
                    is_repaired = true;
                }
                self.repaired += u64::from(is_repaired);
                match slot::content(&slot) {
                    Content::Valid { run, .. } if index > 0 => self.run_max = self.run_max.max(run),
                    Content::Valid { .. } | Content::Damaged => {}
                    Content::Empty => self.free.push(index),
                }
            }
            Verdict::Conflict => {
                let runs = found.iter().filter_map(|slot| match slot::content(slot) {
                    Content::Valid { run, .. } => Some(run),
                    Content::Empty | Content::Damaged => None,
                });
                self.run_max = self.run_max.max(runs.max().unwrap_or(0));
            }
            Verdict::Lost => self.lost.push(index),
        }
        Ok(())
    }
}

/// Decides the content of a slot, given `found` in each copy.
pub(super) fn decide(found: &[Slot], is_current: &[bool], master: &SecretKey) -> Verdict {
    if found.iter().all(|slot| *slot == found[0]) && slot::content(&found[0]) != Content::Damaged {
        return Verdict::Use(found[0]);
    }
    let slots_where =
        |current: bool| found.iter().zip(is_current).filter(move |(_, is)| **is == current);
    let mut best: Option<(u64, Slot)> = None;
    for (candidate, _) in slots_where(true) {
        let Content::Valid { run, .. } = slot::content(candidate) else { continue };
        match best {
            Some((other, slot)) if other == run && slot != *candidate => return Verdict::Conflict,
            Some((other, _)) if other >= run => {}
            Some(_) | None => best = Some((run, *candidate)),
        }
    }
    if let Some((_, slot)) = best {
        return Verdict::Use(slot);
    }
    let mut damaged =
        slots_where(true).map(|(slot, _)| slot).filter(|slot| **slot != EMPTY).peekable();
    if damaged.peek().is_none() {
        return Verdict::Use(EMPTY);
    }
    let valid = |slot: &&Slot| matches!(slot::content(slot), Content::Valid { .. });
    damaged
        .find_map(|slot| slot::repair(master, slot))
        .or_else(|| slots_where(false).map(|(slot, _)| slot).find(valid).copied())
        .map_or(Verdict::Lost, Verdict::Use)
}

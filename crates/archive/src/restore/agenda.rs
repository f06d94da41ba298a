//! Which restores come next: a lane for each retrieval, in the order of their requests.
//!
//! ```text
//! rows in restores -- look --> lane: waiting -- begin, take --> a batch -- end --> gone, or later
//! ```
//!
//! Everything here can be lost: the rows say what is wanted. A look goes over all of them and
//! holds the first of each retrieval; it is taken when something may have come, and not so often
//! that it costs more than a part of the time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use fulgurite_units::{ObjectId, UnixTime};

use super::Wanted;
use crate::Result;
use crate::limits::{
    RESTORE_AGENDA_MAX, RESTORE_BATCH_OBJECTS_MAX, RESTORE_LOOK_PAUSE, RESTORE_OBJECTS_MAX,
};
use crate::object::Retrieval;

/// What is to be restored, and what is being restored.
#[derive(Debug)]
pub(super) struct Agenda {
    lanes: BTreeMap<Retrieval, Lane>,
    under_way: BTreeSet<ObjectId>,
    /// Restores that failed and when they are tried again.
    later: BTreeMap<ObjectId, Instant>,
    /// Batches of a retrieval that may be under way.
    batches_max: usize,
    /// When the next look may be taken.
    look_at: Instant,
    /// Something may have come since the last look, which was too short a time ago for another.
    looks_again: bool,
}

/// What is wanted of one retrieval.
#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<Wanted>,
    /// The last look found more than is held here.
    has_more: bool,
    /// Batches under way.
    batches: usize,
}

impl Lane {
    /// More is known to be there than is held.
    fn is_short(&self) -> bool {
        self.has_more && self.waiting.is_empty()
    }
}

impl Agenda {
    /// An agenda for so many drives.
    pub(super) fn new(drives: usize) -> Self {
        Self {
            lanes: Retrieval::URGENT_FIRST
                .into_iter()
                .map(|retrieval| (retrieval, Lane::default()))
                .collect(),
            under_way: BTreeSet::new(),
            later: BTreeMap::new(),
            batches_max: drives.max(1),
            look_at: Instant::now(),
            looks_again: false,
        }
    }

    fn lane(&mut self, retrieval: Retrieval) -> &mut Lane {
        self.lanes.entry(retrieval).or_default()
    }

    /// Looks at all requests, which `each` names one by one, if it is time for that.
    pub(super) fn look(
        &mut self,
        each: impl FnOnce(&mut dyn FnMut(Wanted)) -> Result<()>,
    ) -> Result<()> {
        let begun = Instant::now();
        if begun < self.look_at && !self.lanes.values().any(Lane::is_short) {
            self.looks_again = true;
            return Ok(());
        }
        self.looks_again = false;
        self.look_now(begun, RESTORE_AGENDA_MAX, each)?;
        self.look_at = Instant::now() + begun.elapsed() * RESTORE_LOOK_PAUSE;
        Ok(())
    }

    /// How long until a look is taken that could not be taken yet.
    pub(super) fn look_due(&self) -> Option<Duration> {
        self.looks_again.then(|| self.look_at.saturating_duration_since(Instant::now()))
    }

    fn look_now(
        &mut self,
        now: Instant,
        held_max: usize,
        each: impl FnOnce(&mut dyn FnMut(Wanted)) -> Result<()>,
    ) -> Result<()> {
        self.later.retain(|_, at| *at > now);
        let mut first: BTreeMap<Retrieval, BTreeMap<(UnixTime, ObjectId), Wanted>> =
            BTreeMap::new();
        let mut has_more = BTreeSet::new();
        each(&mut |wanted| {
            let id = wanted.object_id;
            if self.under_way.contains(&id) || self.later.contains_key(&id) {
                return;
            }
            let retrieval = wanted.row.mark.retrieval;
            let lane = first.entry(retrieval).or_default();
            lane.insert((wanted.row.mark.requested, id), wanted);
            if lane.len() > held_max {
                lane.pop_last();
                has_more.insert(retrieval);
            }
        })?;
        for (retrieval, lane) in &mut self.lanes {
            lane.waiting = first.remove(retrieval).unwrap_or_default().into_values().collect();
            lane.has_more = has_more.contains(retrieval);
        }
        Ok(())
    }

    /// Whether another batch of a retrieval may begin, and has something to do.
    pub(super) fn may_begin(&mut self, retrieval: Retrieval) -> bool {
        let batches_max = self.batches_max;
        let lane = self.lane(retrieval);
        lane.batches < batches_max && !lane.waiting.is_empty()
    }

    /// Begins a batch; how many objects it may take. Of Expedited each batch takes its share of
    /// what waits, so that one object waits for as few others as can be.
    pub(super) fn begin(&mut self, retrieval: Retrieval) -> usize {
        let batches_max = self.batches_max;
        let lane = self.lane(retrieval);
        assert!(lane.batches < batches_max, "no more batches than may be under way");
        let free = batches_max - lane.batches;
        lane.batches += 1;
        let share = match retrieval {
            Retrieval::Expedited => lane.waiting.len().div_ceil(free),
            Retrieval::Standard | Retrieval::Bulk => usize::MAX,
        };
        share.min(RESTORE_OBJECTS_MAX / batches_max).clamp(1, RESTORE_BATCH_OBJECTS_MAX)
    }

    /// The next restore of a retrieval, for the batch that begins.
    pub(super) fn take(&mut self, retrieval: Retrieval) -> Option<Wanted> {
        let wanted = self.lane(retrieval).waiting.pop_front()?;
        let is_new = self.under_way.insert(wanted.object_id);
        assert!(is_new, "object {} is restored once at a time", wanted.object_id);
        Some(wanted)
    }

    /// A batch ended; with `again`, what is still wanted of it waits until then.
    pub(super) fn end(&mut self, retrieval: Retrieval, batch: &[Wanted], again: Option<Instant>) {
        self.lane(retrieval).batches -= 1;
        for Wanted { object_id, .. } in batch {
            let was_there = self.under_way.remove(object_id);
            assert!(was_there, "object {object_id} is under way until its batch ends");
            if let Some(again) = again {
                self.later.entry(*object_id).or_insert(again);
            }
        }
    }

    /// A restore failed, and is not tried before `at`.
    pub(super) fn put_off(&mut self, object: ObjectId, at: Instant) {
        self.later.insert(object, at);
    }
}

#[cfg(test)]
mod tests;

//! Gives up a set: its bodies go back to the queue, to be planned again on other platters.
//!
//! ```text
//! files scrapped -> bodies get new places at the queue's end -> one transaction removes the set,
//!                   its platters, their slots and the count of its faults -> plan rows go
//! ```
//!
//! Every step is idempotent after a crash: until the transaction the set exists and is given up
//! again, after it only orphan plan rows are left. Platter ids are random and never reused. A set
//! of which anything was released is not given up: rows point at it.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use fulgurite_catalog::{Direction, KeyRange, Transaction};
use fulgurite_units::{PlatterId, SetId};

use super::Sealer;
use crate::limits::ROWS_PER_TRANSACTION_MAX;
use crate::plan::drop_plan;
use crate::rows::{
    self, FAULTS, PLANS, PLATTERS, PlanRow, PlatterRow, SETS, SLOTS, SetRow, SetState,
};
use crate::{GlassError, Result, verification};

/// Rows that change per body.
const ROWS_PER_BODY: usize = 4;

impl Sealer {
    /// Counts a fault of the set itself, which has to be written again. Returns how many it had.
    pub(super) fn count_fault(&self, set: SetId) -> Result<u32> {
        self.context.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<u32> {
            let key = set.to_bytes().to_vec();
            let faults = rows::get::<u32>(tx, FAULTS, &key)?.unwrap_or(0) + 1;
            rows::put(tx, FAULTS, key.clone(), &faults)?;
            if let Some(mut row) = rows::get::<SetRow>(tx, SETS, &key)? {
                assert!(row.state < SetState::Verified, "set {set} was verified and has no faults");
                row.state = SetState::Planned;
                rows::put(tx, SETS, key, &row)?;
            }
            Ok(faults)
        })
    }

    /// Returns the places in the queue that the bodies of a set were planned from, in order.
    pub(super) fn places(&self, set: SetId) -> Result<Vec<u64>> {
        let mut places = Vec::new();
        self.each_planned(set, &mut |row| {
            places.push(row.place);
            Ok(ControlFlow::Continue(()))
        })?;
        places.sort_unstable();
        places.dedup();
        Ok(places)
    }

    /// Whether a body of the set still exists and waits for it.
    pub(super) fn is_wanted(&self, set: SetId) -> Result<bool> {
        let mut is_wanted = false;
        self.each_planned(set, &mut |row| {
            is_wanted = self.bodies.body(row.place)?.is_some();
            Ok(if is_wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(is_wanted)
    }

    fn each_planned(
        &self,
        set: SetId,
        each: &mut dyn FnMut(&PlanRow) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut failure = None;
        let range = KeyRange::prefix(&set.to_bytes());
        // From one snapshot, because `each` reads as well.
        let view = self.context.catalog.snapshot();
        view.scan(PLANS, &range, Direction::Ascending, &mut |_, value| {
            let next = rows::decode::<PlanRow>(PLANS, value).and_then(|row| each(&row));
            next.unwrap_or_else(|error| {
                failure = Some(error);
                ControlFlow::Break(())
            })
        })?;
        failure.map_or(Ok(()), Err)
    }

    /// Gives up every set whose planned geometry is impossible: a header has the description of the
    /// format, which may be longer since. Its bodies get the current geometry.
    pub(super) fn give_up_unwritable(&self) -> Result<()> {
        for set in super::unfinished(&self.context)? {
            let row = self.row(set)?;
            if row.state != SetState::Planned {
                continue;
            }
            if let Err(error) = row.geometry.validate() {
                self.give_up(set, &row)?;
                self.failures.forget_set(set);
                tracing::warn!(%set, %error, "a set cannot be written; replanning its bodies");
            }
        }
        Ok(())
    }

    /// Gives up a set; returns the old and the new places of its bodies in the queue.
    pub(super) fn give_up(
        &self,
        set: SetId,
        row: &SetRow,
    ) -> Result<(Vec<u64>, Vec<RangeInclusive<u64>>)> {
        assert!(row.state < SetState::Verified, "no part of set {set} was released");
        for (_, platter) in row.platters() {
            self.files.scrap(platter)?;
        }
        let old = self.places(set)?;
        let mut new = Vec::new();
        for places in old.chunks(ROWS_PER_TRANSACTION_MAX / ROWS_PER_BODY) {
            let (places, bodies) = (places.to_vec(), Arc::clone(&self.bodies));
            let commit = move |tx: &mut Transaction<'_>| bodies.requeue(tx, &places);
            new.extend(self.context.committer.commit_blocking(commit)?);
        }
        for (_, platter) in row.platters() {
            verification::forget(&self.context, platter)?;
        }
        let platters: Vec<PlatterId> = row.platters().map(|(_, platter)| platter).collect();
        let commit = move |tx: &mut Transaction<'_>| forget(tx, set, &platters);
        self.context.committer.commit_blocking(commit)?;
        drop_plan(&self.context, set)?;
        Ok((old, new))
    }
}

/// Removes the rows of a set that was given up.
fn forget(tx: &mut Transaction<'_>, set: SetId, platters: &[PlatterId]) -> Result<()> {
    let key = set.to_bytes().to_vec();
    let state = rows::get::<SetRow>(tx, SETS, &key)?.map(|row| row.state);
    if state.is_none_or(|state| state >= SetState::Verified) {
        return Err(GlassError::Internal { what: format!("set {set} cannot be given up") });
    }
    for platter in platters {
        let id = platter.to_bytes();
        let slot = rows::get::<PlatterRow>(tx, PLATTERS, &id)?.and_then(|row| row.slot);
        if let Some(slot) = slot {
            let slot = rows::slot_key(slot);
            if rows::get::<PlatterId>(tx, SLOTS, &slot)? == Some(*platter) {
                tx.delete(SLOTS, slot)?;
            }
        }
        tx.delete(PLATTERS, id)?;
    }
    tx.delete(FAULTS, key.clone())?;
    Ok(tx.delete(SETS, key)?)
}

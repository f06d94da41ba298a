//! Plans a platter-set: chooses the staged bodies that go on it, and writes the rows of the plan.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use fulgurite_catalog::{Direction, KeyRange, Transaction, keys};
use fulgurite_glass_core::plan::{Push, SetPlan, SetPlanner, StagedBody};
use fulgurite_platter::{Geometry, list_entry_bytes};
use fulgurite_units::{ObjectId, PlatterId, SetId};

use crate::limits::{PLAN_BODIES_MAX, ROWS_PER_TRANSACTION_MAX};
use crate::rows::{self, PLANS, PLATTERS, PlanRow, PlatterRow, SETS, SetRow, SetState};
use crate::seal::Excluded;
use crate::{Bodies, Context, GlassError, Result, WaitingBody};

/// Returns staged bodies in order of arrival up to the place `until`, enough to fill a set.
fn candidates(
    bodies: &dyn Bodies,
    geometry: &Geometry,
    until: u64,
    excluded: &Excluded,
) -> Result<Vec<WaitingBody>> {
    let mut found = Vec::new();
    let mut bytes = 0;
    let wanted = |place| !excluded.contains(place);
    bodies.waiting(until, &wanted, &mut |body| {
        bytes += left(&body) + list_entry_bytes(body.entry_bytes);
        found.push(body);
        if bytes >= geometry.set_user_bytes() || found.len() >= PLAN_BODIES_MAX {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Returns the bytes of a body that are not on glass yet.
const fn left(body: &WaitingBody) -> u64 {
    body.bytes - body.from
}

/// Plans the next set from what is staged up to the place `until`, except what is `excluded`, and
/// writes its rows. Returns `None` when nothing is staged.
pub(crate) fn plan_set(
    context: &Context,
    bodies: &dyn Bodies,
    until: u64,
    excluded: &Excluded,
) -> Result<Option<SetId>> {
    let geometry = &context.geometry;
    let found = candidates(bodies, geometry, until, excluded)?;
    if found.is_empty() {
        return Ok(None);
    }
    let mut waiting: BTreeMap<ObjectId, u64> = BTreeMap::new();
    for body in &found {
        *waiting.entry(body.file).or_default() += left(body);
    }
    let staged = found.iter().map(|body| StagedBody {
        object: body.body,
        affinity_key: &body.affinity_key,
        file: body.file,
        file_bytes: waiting[&body.file],
        bytes: body.bytes,
        from: body.from,
        entry_bytes: list_entry_bytes(body.entry_bytes),
    });
    let mut ordered: Vec<StagedBody<'_>> = staged.collect();
    StagedBody::sort(&mut ordered);
    let mut planner = SetPlanner::new(geometry, context.shard_size);
    for body in &ordered {
        match planner.push(body).map_err(internal)? {
            Push::Placed => {}
            Push::Partial { .. } | Push::Full => break,
        }
    }
    let plan = planner.finish();
    Ok(Some(write_plan(context, &found, &plan)?))
}

/// Returns an id from the operating system's entropy source.
pub(crate) fn random_id() -> Result<[u8; 16]> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| GlassError::Internal {
        what: format!("the operating system gives no entropy: {error}"),
    })?;
    Ok(id)
}

fn internal(error: impl std::fmt::Display) -> GlassError {
    GlassError::Internal { what: format!("planning: {error}") }
}

fn write_plan(context: &Context, found: &[WaitingBody], plan: &SetPlan) -> Result<SetId> {
    let set = SetId::from_random(random_id()?);
    let geometry = &context.geometry;
    let fresh = || Ok::<_, GlassError>(PlatterId::from_random(random_id()?));
    let information: Vec<PlatterId> =
        plan.platters.iter().map(|_| fresh()).collect::<Result<_>>()?;
    let redundancy: Vec<PlatterId> =
        (0..geometry.set_redundancy_platters).map(|_| fresh()).collect::<Result<_>>()?;
    let by_body: BTreeMap<ObjectId, &WaitingBody> =
        found.iter().map(|waiting| (waiting.body, waiting)).collect();
    for (position, platter) in (0u16..).zip(&plan.platters) {
        let rows: Vec<(Vec<u8>, PlanRow)> = (0u32..)
            .zip(&platter.shards)
            .map(|(entry, shard)| {
                let waiting = by_body[&shard.object];
                let row = PlanRow {
                    place: waiting.place,
                    body_id: waiting.body,
                    body_bytes: shard.body_bytes,
                    offset: shard.offset,
                    body_offset: shard.body_offset,
                    bytes: shard.length,
                    sealed_bytes: waiting.entry_bytes,
                    crc: None,
                };
                (rows::plan_key(set, position, entry), row)
            })
            .collect();
        for batch in rows.chunks(ROWS_PER_TRANSACTION_MAX) {
            let batch = batch.to_vec();
            context.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
                batch.into_iter().try_for_each(|(key, row)| rows::put(tx, PLANS, key, &row))
            })?;
        }
    }
    let row = SetRow {
        state: SetState::Planned,
        geometry: geometry.clone(),
        created: context.now(),
        generation: 0,
        information,
        redundancy,
        bytes: plan.platters.iter().map(|platter| platter.data_bytes).sum(),
        redundancy_bytes: plan.redundancy_bytes,
        damaged: Vec::new(),
    };
    commit_set(context, set, row, plan)?;
    context.fail.pass("seal-planned");
    Ok(set)
}

fn commit_set(context: &Context, set: SetId, row: SetRow, plan: &SetPlan) -> Result<()> {
    let mut platters = Vec::new();
    for (position, platter) in row.platters() {
        let planned = plan.platters.get(usize::from(position));
        platters.push((
            platter,
            PlatterRow {
                set,
                position,
                slot: None,
                data_bytes: planned.map_or(row.redundancy_bytes, |p| p.data_bytes),
                list_bytes: planned.map_or(0, fulgurite_glass_core::plan::PlatterPlan::list_bytes),
                list_entries: planned
                    .map_or(0, |p| u32::try_from(p.shards.len()).unwrap_or(u32::MAX)),
                live_bytes: 0,
                unreadable_tracks: Vec::new(),
            },
        ));
    }
    context.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
        for (platter, platter_row) in platters {
            rows::put(tx, PLATTERS, platter.to_bytes().to_vec(), &platter_row)?;
        }
        rows::put(tx, SETS, set.to_bytes().to_vec(), &row)
    })
}

/// Removes plan rows that a crash left behind: before their set's row was written, or after the set
/// was released.
pub(crate) fn drop_orphan_plans(context: &Context) -> Result<()> {
    let mut range = KeyRange::prefix(b"");
    while let Some((key, _)) = context.catalog.range(PLANS, &range, Direction::Ascending, 1)?.pop()
    {
        let set = SetId::from_bytes(keys::KeyReader::new(&key).fixed::<16>()?);
        let row = rows::get_readable::<SetRow>(&*context.catalog, SETS, &set.to_bytes())?;
        // Nothing is known of a set whose row cannot be read, so its plan stays.
        if row.is_ok_and(|row| row.is_none_or(|row| row.state == SetState::Released)) {
            drop_plan(context, set)?;
        }
        let Some(next) = keys::prefix_successor(&set.to_bytes()) else { break };
        range = KeyRange::from(next);
    }
    Ok(())
}

/// Removes all plan rows of a set.
pub(crate) fn drop_plan(context: &Context, set: SetId) -> Result<()> {
    let range = KeyRange::prefix(&set.to_bytes());
    loop {
        let found =
            context.catalog.range(PLANS, &range, Direction::Ascending, ROWS_PER_TRANSACTION_MAX)?;
        if found.is_empty() {
            return Ok(());
        }
        context.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            found.into_iter().try_for_each(|(key, _)| Ok(tx.delete(PLANS, key)?))
        })?;
    }
}

//! Planning a platter-set: which staged bodies go on it, and the rows that say so.

use std::collections::BTreeMap;
use std::sync::Arc;

use fulgurite_catalog::{Direction, KeyRange, KeyValue as _, ReadView, Transaction, keys};
use fulgurite_glass::{Geometry, list_entry_bytes};
use fulgurite_layout::{Push, SetPlan, SetPlanner, StagedBody};
use fulgurite_units::{ObjectId, PlatterId, SetId};

use crate::body::{cipher_bytes, random_bytes};
use crate::commit::{find_object, rows_in};
use crate::entry::Entry;
use crate::ground::Ground;
use crate::limits::{PLAN_BODIES_MAX, ROWS_PER_TRANSACTION_MAX};
use crate::rows::{
    self, BODIES, BodyRow, ObjectRow, PLANS, PLATTERS, PlanRow, PlatterRow, QUEUE, QueueRow, SETS,
    SetRow, SetState,
};
use crate::seal::Excluded;
use crate::{ArchiveError, Result};

/// A staged body with all that planning needs of it.
#[derive(Debug)]
struct Candidate {
    sequence: u64,
    queue: QueueRow,
    body: BodyRow,
    sealed_bytes: u32,
    from: u64,
}

impl Candidate {
    /// Bytes that have no place yet.
    const fn left(&self) -> u64 {
        cipher_bytes(self.body.bytes) - self.from
    }
}

/// Bytes of a body from its start that lie on glass without a gap.
pub(crate) fn placed_bytes(body: &BodyRow) -> u64 {
    body.shards.iter().fold(
        0,
        |end, shard| {
            if shard.body_offset == end { end + shard.bytes } else { end }
        },
    )
}

fn object_of(view: &dyn ReadView, queue: &QueueRow) -> Result<Option<ObjectRow>> {
    let found = find_object(view, &queue.name.bucket, &queue.name.key)?;
    Ok(found.filter(|row| row.object_id == queue.object_id))
}

/// The object and body that a queue row stands for, as long as both are there.
pub(crate) fn queued_body(
    view: &dyn ReadView,
    sequence: u64,
) -> Result<Option<(QueueRow, ObjectRow, BodyRow)>> {
    let queue: Option<QueueRow> = rows::get(view, QUEUE, &rows::sequence_key(sequence))?;
    let Some(queue) = queue else { return Ok(None) };
    let Some(object) = object_of(view, &queue)? else { return Ok(None) };
    let body: Option<BodyRow> =
        rows::get(view, BODIES, &rows::body_key(queue.object_id, queue.index))?;
    Ok(body.map(|body| (queue, object, body)))
}

/// Staged bodies in order of arrival up to sequence `until`, enough to fill a set.
fn candidates(
    view: &dyn ReadView,
    geometry: &Geometry,
    until: u64,
    excluded: &Excluded,
) -> Result<Vec<Candidate>> {
    let mut found = Vec::new();
    let (mut bytes, mut from) = (0, Vec::new());
    while found.len() < PLAN_BODIES_MAX {
        let range = KeyRange::between(from, rows::sequence_key(until + 1));
        let queued: Vec<(Vec<u8>, QueueRow)> =
            rows_in(view, QUEUE, &range, ROWS_PER_TRANSACTION_MAX)?;
        let Some((last, _)) = queued.last() else { break };
        from = rows::sequence_key(keys::KeyReader::new(last).u64()? + 1);
        for (key, _) in queued {
            if bytes >= geometry.set_user_bytes() || found.len() >= PLAN_BODIES_MAX {
                return Ok(found);
            }
            let sequence = keys::KeyReader::new(&key).u64()?;
            if excluded.contains(sequence) {
                continue;
            }
            let Some((queue, object, body)) = queued_body(view, sequence)? else { continue };
            let entry = Entry::new(view, &queue.name, &object, queue.index, &body)?;
            let sealed_bytes = u32::try_from(entry.sealed_bytes()?).unwrap_or(u32::MAX);
            let from = placed_bytes(&body);
            let candidate = Candidate { sequence, queue, body, sealed_bytes, from };
            bytes += candidate.left() + list_entry_bytes(sealed_bytes);
            found.push(candidate);
        }
    }
    Ok(found)
}

/// Plans the next set from what is staged up to sequence `until`, but for what is `excluded`, and
/// writes its rows. `None` when nothing is staged.
pub(crate) fn plan_set(
    ground: &Arc<Ground>,
    until: u64,
    excluded: &Excluded,
) -> Result<Option<SetId>> {
    let geometry = &ground.config.geometry;
    let mut found = candidates(&*ground.kv.snapshot(), geometry, until, excluded)?;
    if found.is_empty() {
        return Ok(None);
    }
    // Together what is of one bucket and near in name; a body begun in an earlier set first.
    found.sort_by(|a, b| {
        (a.from == 0, &a.queue.name, a.queue.index).cmp(&(
            b.from == 0,
            &b.queue.name,
            b.queue.index,
        ))
    });
    let mut waiting: BTreeMap<ObjectId, u64> = BTreeMap::new();
    for candidate in &found {
        *waiting.entry(candidate.queue.object_id).or_default() += candidate.left();
    }
    let mut planner = SetPlanner::new(geometry, ground.config.shard_size);
    for candidate in &found {
        let staged = StagedBody {
            object: candidate.body.body_id,
            account: candidate.queue.name.bucket.as_str(),
            key: candidate.queue.name.key.as_str(),
            file: candidate.queue.object_id,
            file_bytes: waiting[&candidate.queue.object_id],
            bytes: cipher_bytes(candidate.body.bytes),
            from: candidate.from,
            entry_bytes: list_entry_bytes(candidate.sealed_bytes),
        };
        match planner.push(&staged).map_err(internal)? {
            Push::Placed => {}
            Push::Partial { .. } | Push::Full => break,
        }
    }
    let plan = planner.finish();
    Ok(Some(write_plan(ground, &found, &plan)?))
}

fn internal(error: impl std::fmt::Display) -> ArchiveError {
    ArchiveError::Internal { what: format!("planning: {error}") }
}

fn write_plan(ground: &Arc<Ground>, found: &[Candidate], plan: &SetPlan) -> Result<SetId> {
    let set = SetId::from_random(random_bytes()?);
    let geometry = &ground.config.geometry;
    let fresh = || Ok::<_, ArchiveError>(PlatterId::from_random(random_bytes()?));
    let information: Vec<PlatterId> =
        plan.platters.iter().map(|_| fresh()).collect::<Result<_>>()?;
    let redundancy: Vec<PlatterId> =
        (0..geometry.set_redundancy_platters).map(|_| fresh()).collect::<Result<_>>()?;
    let by_body: BTreeMap<ObjectId, &Candidate> =
        found.iter().map(|candidate| (candidate.body.body_id, candidate)).collect();
    for (position, platter) in (0u16..).zip(&plan.platters) {
        let rows: Vec<(Vec<u8>, PlanRow)> = (0u32..)
            .zip(&platter.shards)
            .map(|(entry, shard)| {
                let candidate = by_body[&shard.object];
                let row = PlanRow {
                    place: candidate.sequence,
                    body_id: candidate.body.body_id,
                    body_bytes: shard.body_bytes,
                    offset: shard.offset,
                    body_offset: shard.body_offset,
                    bytes: shard.length,
                    sealed_bytes: candidate.sealed_bytes,
                    crc: None,
                };
                (rows::plan_key(set, position, entry), row)
            })
            .collect();
        for batch in rows.chunks(ROWS_PER_TRANSACTION_MAX) {
            let batch = batch.to_vec();
            ground.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
                batch.into_iter().try_for_each(|(key, row)| rows::put(tx, PLANS, key, &row))
            })?;
        }
    }
    let row = SetRow {
        state: SetState::Planned,
        geometry: geometry.clone(),
        created: ground.now(),
        generation: 0,
        information,
        redundancy,
        bytes: plan.platters.iter().map(|platter| platter.data_bytes).sum(),
        redundancy_bytes: plan.redundancy_bytes,
        damaged: Vec::new(),
    };
    commit_set(ground, set, row, plan)?;
    ground.fail.pass("seal-planned");
    Ok(set)
}

fn commit_set(ground: &Arc<Ground>, set: SetId, row: SetRow, plan: &SetPlan) -> Result<()> {
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
                list_bytes: planned.map_or(0, fulgurite_layout::PlatterPlan::list_bytes),
                list_entries: planned
                    .map_or(0, |p| u32::try_from(p.shards.len()).unwrap_or(u32::MAX)),
                live_bytes: 0,
                unreadable_tracks: Vec::new(),
            },
        ));
    }
    ground.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
        for (platter, platter_row) in platters {
            rows::put(tx, PLATTERS, platter.to_bytes().to_vec(), &platter_row)?;
        }
        rows::put(tx, SETS, set.to_bytes().to_vec(), &row)
    })
}

/// Removes plan rows that a crash left behind: before their set's row was written, or after the set
/// was released.
pub(crate) fn drop_orphan_plans(ground: &Arc<Ground>) -> Result<()> {
    let mut range = KeyRange::prefix(b"");
    while let Some((key, _)) = ground.kv.range(PLANS, &range, Direction::Ascending, 1)?.pop() {
        let set = SetId::from_bytes(keys::KeyReader::new(&key).fixed::<16>()?);
        let row = rows::get::<SetRow>(&*ground.kv, SETS, &set.to_bytes())?;
        if row.is_none_or(|row| row.state == SetState::Released) {
            drop_plan(ground, set)?;
        }
        let Some(next) = keys::prefix_successor(&set.to_bytes()) else { break };
        range = KeyRange::from(next);
    }
    Ok(())
}

/// Removes all plan rows of a set.
pub(crate) fn drop_plan(ground: &Arc<Ground>, set: SetId) -> Result<()> {
    let range = KeyRange::prefix(&set.to_bytes());
    loop {
        let found =
            ground.kv.range(PLANS, &range, Direction::Ascending, ROWS_PER_TRANSACTION_MAX)?;
        if found.is_empty() {
            return Ok(());
        }
        ground.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            found.into_iter().try_for_each(|(key, _)| Ok(tx.delete(PLANS, key)?))
        })?;
    }
}

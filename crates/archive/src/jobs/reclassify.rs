//! Changes the storage class of objects on order: each is copied onto itself with its new class,
//! and the old one is removed, as when a client overwrites it.
//!
//! An order is processed in batches of objects; several orders take turns. No state survives a
//! stop: when the order is repeated, objects that were moved already are skipped.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use fulgurite_tier::Progress;
use fulgurite_units::{ErrorKind, error_chain};
use tokio::runtime::Handle;

use super::{Failed, Job, JobRun, Next, Pace, Reply};
use crate::limits::{
    JOB_BACKOFF_MAX, JOB_TICK, MOVE_KEYS_LISTED, MOVES_AT_ONCE, SKIPPED_OBJECTS_MAX,
};
use crate::model::classes::Home;
use crate::model::names::{BucketName, ObjectKey};
use crate::model::object::{
    BodyClaim, ListPage, ListQuery, ObjectSelection, PutOptions, StorageClass, WriteCondition,
};
use crate::objects::list::list;
use crate::objects::put;
use crate::rows::ObjectRow;
use crate::rows::lookup::{find_object, require_object};
use crate::state::ArchiveState;
use crate::status::{MoveReport, SkippedObject};
use crate::{ArchiveError, Result};

/// Which objects get which class.
#[derive(Debug)]
pub(crate) struct MoveOrder {
    pub(crate) bucket: BucketName,
    pub(crate) chosen: ObjectSelection,
    pub(crate) class: StorageClass,
    pub(crate) progress: Arc<Progress>,
    pub(crate) reply: Reply<MoveReport>,
}

/// The remaining objects of an order, and how far they were listed.
#[derive(Debug)]
struct Remaining {
    home: Home,
    keys: VecDeque<String>,
    /// The next page of the listing; `None` at its end.
    next_query: Option<ListQuery>,
    /// Total bytes of all objects.
    total: u64,
}

/// An order in progress.
#[derive(Debug)]
struct ActiveOrder {
    order: MoveOrder,
    remaining: Remaining,
    done: u64,
    report: MoveReport,
}

#[derive(Debug)]
pub(super) struct ReclassifyJob {
    state: Arc<ArchiveState>,
    orders: Receiver<MoveOrder>,
    /// Runs reads and writes of bodies, as for clients.
    runtime: Handle,
    active: VecDeque<ActiveOrder>,
}

/// Returns the next page of a listing, and the query for the page after it.
fn next_page(
    state: &ArchiveState,
    bucket: &BucketName,
    query: &ListQuery,
) -> Result<(ListPage, Option<ListQuery>)> {
    state.check_stopping()?;
    let page = list(state, bucket, query)?;
    let next_query =
        page.next.clone().map(|after| ListQuery { after: Some(after), ..query.clone() });
    Ok((page, next_query))
}

impl Remaining {
    fn for_order(state: &ArchiveState, order: &MoveOrder) -> Result<Self> {
        let home = state.config.classes.home(order.class)?.clone();
        let prefix = match &order.chosen {
            ObjectSelection::One(key) => {
                let total = require_object(&*state.kv, &order.bucket, key)?.bytes;
                return Ok(Self { home, keys: [key.to_string()].into(), next_query: None, total });
            }
            ObjectSelection::Prefix(prefix) => prefix.clone(),
        };
        let first = ListQuery { prefix, limit: MOVE_KEYS_LISTED, ..ListQuery::default() };
        let (mut next_query, mut total) = (Some(first.clone()), 0);
        while let Some(query) = next_query {
            let (page, following) = next_page(state, &order.bucket, &query)?;
            total += page.objects.iter().map(|object| object.bytes).sum::<u64>();
            next_query = following;
        }
        Ok(Self { home, keys: VecDeque::new(), next_query: Some(first), total })
    }

    fn next_key(&mut self, state: &ArchiveState, bucket: &BucketName) -> Result<Option<ObjectKey>> {
        while self.keys.is_empty()
            && let Some(query) = self.next_query.take()
        {
            let (page, next_query) = next_page(state, bucket, &query)?;
            self.keys.extend(page.objects.into_iter().map(|object| object.key));
            self.next_query = next_query;
        }
        self.keys.pop_front().map(|key| ObjectKey::new(&key)).transpose()
    }
}

impl ActiveOrder {
    /// Moves the next batch of objects, so that they share syncs; `false` when there are none.
    fn piece(&mut self, state: &Arc<ArchiveState>, runtime: &Handle) -> Result<bool> {
        let mut copies = Vec::new();
        while copies.len() < MOVES_AT_ONCE
            && let Some(key) = self.remaining.next_key(state, &self.order.bucket)?
        {
            // Deleted meanwhile: nothing to move.
            let Some(row) = find_object(&*state.kv, &self.order.bucket, &key)? else { continue };
            if row.class == self.order.class && row.home == self.remaining.home {
                self.report.objects_there += 1;
                self.done += row.bytes;
            } else {
                copies.push((key, row));
            }
        }
        let is_more = !copies.is_empty();
        let (bucket, class) = (&self.order.bucket, self.order.class);
        let copies = copies.into_iter().map(|(key, row)| async move {
            let bytes = row.bytes;
            let copied = copy(state, bucket, &key, row, class).await;
            (key, bytes, copied)
        });
        let copied = runtime.block_on(futures::future::join_all(copies));
        for (key, bytes, copied) in copied {
            match copied {
                Ok(()) => {
                    self.report.objects += 1;
                    self.report.bytes += bytes;
                }
                Err(error) => self.record_skipped(&key, error)?,
            }
            self.done += bytes;
        }
        self.order.progress.set(self.done, self.remaining.total);
        Ok(is_more)
    }

    /// Records an object that keeps its class. Failures that would affect all others end the order.
    fn record_skipped(&mut self, key: &ObjectKey, error: ArchiveError) -> Result<()> {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Corrupt | ErrorKind::Invalid => {
            }
            ErrorKind::Unavailable | ErrorKind::Internal => return Err(error),
            // The enum may grow.
            _ => return Err(error),
        }
        self.report.objects_left += 1;
        if self.report.left.len() < SKIPPED_OBJECTS_MAX {
            let (bucket, key) = (self.order.bucket.to_string(), key.to_string());
            self.report.left.push(SkippedObject { bucket, key, error: error_chain(&error) });
        }
        Ok(())
    }
}

/// Copies an object onto itself, on the condition that it has not been replaced.
async fn copy(
    state: &Arc<ArchiveState>,
    bucket: &BucketName,
    key: &ObjectKey,
    row: ObjectRow,
    class: StorageClass,
) -> Result<()> {
    let condition = WriteCondition { object: Some(row.object_id), ..WriteCondition::default() };
    let algorithm = row.checksum.as_ref().map(|checksum| checksum.algorithm);
    let claim = BodyClaim { algorithm, ..BodyClaim::default() };
    let options = PutOptions { class, meta: row.meta, condition, claim };
    put::copy(state, (bucket, key), (bucket, key), options).await.map(drop)
}

impl ReclassifyJob {
    pub(super) fn new(
        state: &Arc<ArchiveState>,
        orders: Receiver<MoveOrder>,
        runtime: &Handle,
    ) -> Self {
        let (state, runtime) = (Arc::clone(state), runtime.clone());
        Self { state, orders, runtime, active: VecDeque::new() }
    }
}

impl Job for ReclassifyJob {
    fn name(&self) -> String {
        "reclassifying".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: None, backoff: JOB_TICK, backoff_max: JOB_BACKOFF_MAX }
    }

    fn failing(&self) -> &'static str {
        "no object changes its class"
    }

    fn run(&mut self, run: &JobRun<'_>) -> Result<Next, Failed> {
        while let Some(order) = self.orders.try_iter().find(|order| order.reply.is_awaited()) {
            match Remaining::for_order(&self.state, &order) {
                Ok(remaining) => {
                    order.progress.set(0, remaining.total);
                    let report = MoveReport::default();
                    self.active.push_back(ActiveOrder { order, remaining, done: 0, report });
                }
                Err(error) => order.reply.send(Err(error)),
            }
        }
        let Some(mut active) = self.active.pop_front() else { return Ok(Next::Tick) };
        run.doing(format!("moving objects to class {}", active.order.class.name()));
        let work = || active.piece(&self.state, &self.runtime);
        // A failure goes only to the caller that ordered the move.
        match self.state.runtime.panics.run("reclassifying", work) {
            Ok(true) => self.active.push_back(active),
            ended => {
                let ActiveOrder { order, report, .. } = active;
                run.after_run(move || order.reply.send(ended.map(|_| report)));
            }
        }
        self.state.check_stopping()?;
        Ok(Next::Again)
    }
}

#[cfg(test)]
mod tests;

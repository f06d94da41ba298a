//! Changes the storage class of objects on order: each is copied onto itself with its new class,
//! and the old one is removed, as when a client overwrites it.
//!
//! An order is processed in batches of objects; several orders take turns. No state survives a
//! stop: when the order is repeated, objects that were moved already are skipped.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use fulgurite_platters::Progress;
use fulgurite_units::{ErrorKind, error_chain};
use tokio::runtime::Handle;

use super::{Failed, Job, Next, Pace, Reply, Turn};
use crate::ground::Ground;
use crate::limits::{JOB_REST_MAX, JOB_TICK, LEFT_OBJECTS_MAX, MOVE_KEYS_LISTED, MOVES_AT_ONCE};
use crate::objects::classes::Home;
use crate::objects::commit::{find_object, require_object};
use crate::objects::list::list;
use crate::objects::names::{BucketName, ObjectKey};
use crate::objects::object::{
    BodyClaim, Chosen, ListPage, ListQuery, PutOptions, StorageClass, WriteCondition,
};
use crate::objects::put;
use crate::rows::ObjectRow;
use crate::status::{LeftObject, MoveReport};
use crate::{ArchiveError, Result};

/// Which objects get which class.
#[derive(Debug)]
pub(crate) struct MoveOrder {
    pub(crate) bucket: BucketName,
    pub(crate) chosen: Chosen,
    pub(crate) class: StorageClass,
    pub(crate) progress: Arc<Progress>,
    pub(crate) reply: Reply<MoveReport>,
}

/// The remaining objects of an order, and how far they were listed.
#[derive(Debug)]
struct Ahead {
    home: Home,
    keys: VecDeque<String>,
    /// The next page of the listing; `None` at its end.
    rest: Option<ListQuery>,
    /// Total bytes of all objects.
    total: u64,
}

/// An order in progress.
#[derive(Debug)]
struct Begun {
    order: MoveOrder,
    ahead: Ahead,
    done: u64,
    report: MoveReport,
}

#[derive(Debug)]
pub(super) struct Reclassifying {
    ground: Arc<Ground>,
    orders: Receiver<MoveOrder>,
    /// Runs reads and writes of bodies, as for clients.
    runtime: Handle,
    begun: VecDeque<Begun>,
}

/// Returns the next page of a listing, and the query for the page after it.
fn next_page(
    ground: &Ground,
    bucket: &BucketName,
    query: &ListQuery,
) -> Result<(ListPage, Option<ListQuery>)> {
    ground.check_stopping()?;
    let page = list(ground, bucket, query)?;
    let rest = page.next.clone().map(|after| ListQuery { after: Some(after), ..query.clone() });
    Ok((page, rest))
}

impl Ahead {
    fn of(ground: &Ground, order: &MoveOrder) -> Result<Self> {
        let home = ground.config.classes.home(order.class)?.clone();
        let prefix = match &order.chosen {
            Chosen::One(key) => {
                let total = require_object(&*ground.kv, &order.bucket, key)?.bytes;
                return Ok(Self { home, keys: [key.to_string()].into(), rest: None, total });
            }
            Chosen::Below(prefix) => prefix.clone(),
        };
        let first = ListQuery { prefix, limit: MOVE_KEYS_LISTED, ..ListQuery::default() };
        let (mut rest, mut total) = (Some(first.clone()), 0);
        while let Some(query) = rest {
            let (page, behind) = next_page(ground, &order.bucket, &query)?;
            total += page.objects.iter().map(|object| object.bytes).sum::<u64>();
            rest = behind;
        }
        Ok(Self { home, keys: VecDeque::new(), rest: Some(first), total })
    }

    fn next_key(&mut self, ground: &Ground, bucket: &BucketName) -> Result<Option<ObjectKey>> {
        while self.keys.is_empty()
            && let Some(query) = self.rest.take()
        {
            let (page, rest) = next_page(ground, bucket, &query)?;
            self.keys.extend(page.objects.into_iter().map(|object| object.key));
            self.rest = rest;
        }
        self.keys.pop_front().map(|key| ObjectKey::new(&key)).transpose()
    }
}

impl Begun {
    /// Moves the next batch of objects, so that they share syncs; `false` when there are none.
    fn piece(&mut self, ground: &Arc<Ground>, runtime: &Handle) -> Result<bool> {
        let mut copies = Vec::new();
        while copies.len() < MOVES_AT_ONCE
            && let Some(key) = self.ahead.next_key(ground, &self.order.bucket)?
        {
            // Deleted meanwhile: nothing to move.
            let Some(row) = find_object(&*ground.kv, &self.order.bucket, &key)? else { continue };
            if row.class == self.order.class && row.home == self.ahead.home {
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
            let copied = copy(ground, bucket, &key, row, class).await;
            (key, bytes, copied)
        });
        let copied = runtime.block_on(futures::future::join_all(copies));
        for (key, bytes, copied) in copied {
            match copied {
                Ok(()) => {
                    self.report.objects += 1;
                    self.report.bytes += bytes;
                }
                Err(error) => self.leave(&key, error)?,
            }
            self.done += bytes;
        }
        self.order.progress.set(self.done, self.ahead.total);
        Ok(is_more)
    }

    /// Records an object that keeps its class. Failures that would affect all others end the order.
    fn leave(&mut self, key: &ObjectKey, error: ArchiveError) -> Result<()> {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Corrupt | ErrorKind::Invalid => {
            }
            ErrorKind::Unavailable | ErrorKind::Internal => return Err(error),
            // The enum may grow.
            _ => return Err(error),
        }
        self.report.objects_left += 1;
        if self.report.left.len() < LEFT_OBJECTS_MAX {
            let (bucket, key) = (self.order.bucket.to_string(), key.to_string());
            self.report.left.push(LeftObject { bucket, key, error: error_chain(&error) });
        }
        Ok(())
    }
}

/// Copies an object onto itself, on the condition that it has not been replaced.
async fn copy(
    ground: &Arc<Ground>,
    bucket: &BucketName,
    key: &ObjectKey,
    row: ObjectRow,
    class: StorageClass,
) -> Result<()> {
    let condition = WriteCondition { object: Some(row.object_id), ..WriteCondition::default() };
    let algorithm = row.checksum.as_ref().map(|checksum| checksum.algorithm);
    let claim = BodyClaim { algorithm, ..BodyClaim::default() };
    let options = PutOptions { class, meta: row.meta, condition, claim };
    put::copy(ground, (bucket, key), (bucket, key), options).await.map(drop)
}

impl Reclassifying {
    pub(super) fn new(ground: &Arc<Ground>, orders: Receiver<MoveOrder>, runtime: &Handle) -> Self {
        let (ground, runtime) = (Arc::clone(ground), runtime.clone());
        Self { ground, orders, runtime, begun: VecDeque::new() }
    }
}

impl Job for Reclassifying {
    fn name(&self) -> String {
        "reclassifying".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: None, rest: JOB_TICK, rest_max: JOB_REST_MAX }
    }

    fn failing(&self) -> &'static str {
        "no object gets another class"
    }

    fn run(&mut self, turn: &Turn<'_>) -> Result<Next, Failed> {
        while let Some(order) = self.orders.try_iter().find(|order| order.reply.is_awaited()) {
            match Ahead::of(&self.ground, &order) {
                Ok(ahead) => {
                    order.progress.set(0, ahead.total);
                    let report = MoveReport::default();
                    self.begun.push_back(Begun { order, ahead, done: 0, report });
                }
                Err(error) => order.reply.send(Err(error)),
            }
        }
        let Some(mut begun) = self.begun.pop_front() else { return Ok(Next::Tick) };
        turn.doing(format!("moving objects to class {}", begun.order.class.name()));
        let work = || begun.piece(&self.ground, &self.runtime);
        // A failure goes only to the caller that ordered the move.
        match self.ground.panics.run("reclassifying", work) {
            Ok(true) => self.begun.push_back(begun),
            ended => {
                let Begun { order, report, .. } = begun;
                turn.afterwards(move || order.reply.send(ended.map(|_| report)));
            }
        }
        self.ground.check_stopping()?;
        Ok(Next::Again)
    }
}

#[cfg(test)]
mod tests;

//! Restore: from a request row to a readable copy with an expiry.
//!
//! ```text
//! RestoreObject -> row in restores, object marked ongoing -> 202
//! restoring thread: agenda -> batches of requests of one retrieval, each on a thread of its own:
//!     shards by platter -> library -> drive -> tracks -> restored log (ciphertext as it lies on
//!     glass) -> CRC -> sync -> copies committed
//! ```
//!
//! Of each retrieval as many batches as there are drives are under way, so that the library knows
//! of work for all of them; it serves what is due first, counted from the request. All shards a
//! batch wants of one platter are read in one mount, each track once. A track that its own platter
//! cannot give back is recovered from the platter's set. A restore that fails stays requested: its
//! row says why, and it is tried again.

mod agenda;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

use fulgurite_catalog::keys::KeyReader;
use fulgurite_catalog::{Direction, KeyRange, KeyValue as _, ReadView as _, Transaction};
use fulgurite_platters::library_driver::LiveLibrary;
use fulgurite_platters::{Panics, PlatterFiles, cipher_crc, joined_crc};
use fulgurite_units::{ObjectId, UnixTime, error_chain};

use self::agenda::Agenda;
use crate::body::cipher_bytes;
use crate::commit::{account, bodies, find_object, require_object};
use crate::config::ExpeditedPolicy;
use crate::ground::Ground;
use crate::limits::{
    CHUNK_BYTES, RESTORE_BATCH_BYTES, RESTORE_DAYS_MAX, RESTORE_QUEUE_MAX, RESTORE_RETRY,
    RESTORE_RETRY_SOON,
};
use crate::log::{Extent, LogKind, LogReader, LogWriter};
use crate::names::{BucketName, ObjectKey, ObjectName};
use crate::object::{RestoreOutcome, RestoreRequest, Retrieval, StorageClass};
use crate::rows::{
    self, BODIES, BodyRow, EXPIRIES, ExpiryRow, OBJECTS, RESTORES, RestoreMark, RestoreRow,
};
use crate::shard_reader::{ShardReader, ShardWish};
use crate::space::Admission;
use crate::{ArchiveError, Result, copies};

/// The end of a copy's life: `days` days of length `day` after `from`, rounded up to the next
/// midnight UTC.
pub(crate) fn expiry(from: UnixTime, days: u32, day: fulgurite_units::Duration) -> UnixTime {
    let day_ms = (day.as_nanos() / 1_000_000).max(1);
    let end = from.as_millis().saturating_add(day_ms.saturating_mul(u64::from(days)));
    UnixTime::from_millis(end.div_ceil(day_ms).saturating_mul(day_ms))
}

fn effective_retrieval(
    ground: &Ground,
    class: StorageClass,
    retrieval: Retrieval,
) -> Result<Retrieval> {
    match (class, retrieval, ground.config.expedited) {
        (StorageClass::DeepArchive, Retrieval::Expedited, ExpeditedPolicy::Refuse) => {
            Err(ArchiveError::ExpeditedNotAvailable { class: class.name() })
        }
        (StorageClass::DeepArchive, Retrieval::Expedited, ExpeditedPolicy::Standard) => {
            Ok(Retrieval::Standard)
        }
        _ => Ok(retrieval),
    }
}

/// RestoreObject.
pub(crate) async fn request(
    ground: &Arc<Ground>,
    bucket: &BucketName,
    key: &ObjectKey,
    request: RestoreRequest,
) -> Result<RestoreOutcome> {
    if !(1..=RESTORE_DAYS_MAX).contains(&request.days) {
        return Err(ArchiveError::InvalidArgument {
            what: format!("Days is a whole number from 1 to {RESTORE_DAYS_MAX}"),
        });
    }
    let current = require_object(&*ground.kv, bucket, key)?;
    if !current.class.is_archived() {
        return Err(ArchiveError::NotArchived { class: current.class.name() });
    }
    let retrieval = effective_retrieval(ground, current.class, request.retrieval)?;
    if current.restore.is_none() {
        ground.space.check(cipher_bytes(current.bytes))?;
    }
    let now = ground.now();
    // A copy is not promised for longer before somebody looked at it.
    if current.restore.is_some_and(|mark| mark.expiry.is_some()) {
        let (ground, bucket, key) = (Arc::clone(ground), bucket.clone(), key.clone());
        let look = move || copies::look_before_extending(&ground, &bucket, &key);
        let looked = tokio::task::spawn_blocking(look).await;
        looked.map_err(|e| ArchiveError::Internal { what: format!("a look died: {e}") })??;
    }
    let mark = RestoreMark { days: request.days, retrieval, requested: now, expiry: None };
    let day = ground.config.day;
    let (bucket, key) = (bucket.clone(), key.clone());
    let commit = move |tx: &mut Transaction<'_>| {
        accept(tx, &bucket, &key, mark, expiry(now, mark.days, day))
    };
    let outcome = ground.committer.commit(commit).await?;
    if outcome == RestoreOutcome::Accepted {
        ground.fail.pass("restore-accepted");
        ground.wake_restore();
    }
    Ok(outcome)
}

fn accept(
    tx: &mut Transaction<'_>,
    bucket: &BucketName,
    key: &ObjectKey,
    mark: RestoreMark,
    new_expiry: UnixTime,
) -> Result<RestoreOutcome> {
    let mut object = require_object(tx, bucket, key)?;
    if !object.class.is_archived() {
        return Err(ArchiveError::NotArchived { class: object.class.name() });
    }
    let name = ObjectName::new(bucket, key, object.version);
    let object_key = rows::object_key_of(&name);
    match object.restore {
        Some(RestoreMark { expiry: Some(old), .. }) if old > mark.requested => {
            tx.delete(EXPIRIES, rows::expiry_key(old, object.object_id))?;
            rows::put(
                tx,
                EXPIRIES,
                rows::expiry_key(new_expiry, object.object_id),
                &ExpiryRow { name },
            )?;
            object.restore = Some(RestoreMark { expiry: Some(new_expiry), ..mark });
            rows::put(tx, OBJECTS, object_key, &object)?;
            return Ok(RestoreOutcome::Extended);
        }
        Some(RestoreMark { expiry: Some(old), .. }) => {
            // Expired but not yet swept: what is left of the copy is used again.
            tx.delete(EXPIRIES, rows::expiry_key(old, object.object_id))?;
            rows::with_totals(tx, |totals| {
                totals.restored -= 1;
                totals.restores_waiting += 1;
            })?;
        }
        Some(ongoing) if mark.retrieval > ongoing.retrieval && mark.days == ongoing.days => {}
        Some(_) => return Err(ArchiveError::RestoreAlreadyInProgress),
        None => {
            let waiting = rows::with_totals(tx, |totals| {
                totals.restores_waiting += 1;
                totals.restores_waiting
            })?;
            if waiting > RESTORE_QUEUE_MAX as u64 {
                return Err(ArchiveError::Busy { what: "restores".to_owned() });
            }
        }
    }
    object.restore = Some(mark);
    rows::put(tx, OBJECTS, object_key, &object)?;
    let row = RestoreRow { name, mark, failures: 0, error: None };
    rows::put(tx, RESTORES, object.object_id.to_bytes().to_vec(), &row)?;
    Ok(RestoreOutcome::Accepted)
}

/// A body on its way from glass, or from staging, to the restored log.
#[derive(Debug)]
struct Copying {
    object: ObjectId,
    due: UnixTime,
    index: u32,
    body: BodyRow,
    writer: Arc<LogWriter>,
    /// Until the copy is committed: its bytes are on the disk only after the last of them.
    _room: Admission,
}

/// A restore that is to be done.
#[derive(Clone, Debug)]
struct Wanted {
    object_id: ObjectId,
    row: RestoreRow,
}

/// Works restores off.
#[derive(Debug)]
pub(crate) struct Restorer {
    ground: Arc<Ground>,
    shards: ShardReader,
    agenda: Mutex<Agenda>,
}

impl Restorer {
    pub(crate) fn new(ground: &Arc<Ground>, library: &LiveLibrary, files: &PlatterFiles) -> Self {
        let shards = ShardReader::new(ground, library, files);
        let shape = &ground.config.library.shape;
        let agenda = Agenda::new(usize::from(shape.drives_per_panel() * shape.panels));
        Self { ground: Arc::clone(ground), shards, agenda: Mutex::new(agenda) }
    }

    pub(crate) fn panics(&self) -> &Panics {
        &self.ground.panics
    }

    /// When there is something to begin without being told; nothing if that is not known.
    pub(crate) fn begins_in(&self) -> Option<Duration> {
        self.lock().look_due()
    }

    fn lock(&self) -> MutexGuard<'_, Agenda> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins as many batches as may be under way, of restores that are requested and not waiting
    /// for another try. Each rings the bell when it is done.
    pub(crate) fn begin_batches<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<()> {
        self.lock().look(|seen| self.each_request(seen))?;
        for retrieval in Retrieval::URGENT_FIRST {
            while self.lock().may_begin(retrieval) {
                self.ground.check_stopping()?;
                let batch = self.next_batch(retrieval);
                let begun = Arc::clone(&batch);
                let run = move || self.work(retrieval, &begun);
                let spawned =
                    Builder::new().name("restore-batch".to_owned()).spawn_scoped(scope, run);
                if let Err(error) = spawned {
                    self.lock().end(retrieval, &batch, Some(Instant::now() + RESTORE_RETRY_SOON));
                    return Err(ArchiveError::Internal { what: format!("no thread: {error}") });
                }
            }
        }
        Ok(())
    }

    /// Takes the next restores of a retrieval that are worth a sync.
    fn next_batch(&self, retrieval: Retrieval) -> Arc<Vec<Wanted>> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        let mut agenda = self.lock();
        let objects_max = agenda.begin(retrieval);
        while bytes < RESTORE_BATCH_BYTES
            && batch.len() < objects_max
            && let Some(wanted) = agenda.take(retrieval)
        {
            // What is wrong with one shows when it is its turn.
            bytes += self.bytes_of(&wanted).unwrap_or(0);
            batch.push(wanted);
        }
        Arc::new(batch)
    }

    fn bytes_of(&self, wanted: &Wanted) -> Result<u64> {
        let name = &wanted.row.name;
        Ok(find_object(&*self.ground.kv, &name.bucket, &name.key)?.map_or(0, |object| object.bytes))
    }

    /// Restores a batch, and makes place for the next.
    fn work(&self, retrieval: Retrieval, batch: &[Wanted]) {
        let worked = self.ground.panics.catch("restoring", || self.restore(batch));
        let worked = worked.unwrap_or_else(|_| self.restore_apart(batch));
        let again = worked.as_ref().err().map(|_| Instant::now() + RESTORE_RETRY_SOON);
        self.lock().end(retrieval, batch, again);
        match worked {
            Ok(()) => self.ground.wake_restore(),
            Err(ArchiveError::Stopping) => {}
            Err(error) => {
                let error = error_chain(&error);
                tracing::error!(error, "restoring failed; it is tried again");
            }
        }
    }

    /// Restores each of a batch by itself, for a bug shows over one of them: that one fails, the
    /// others come.
    fn restore_apart(&self, batch: &[Wanted]) -> Result<()> {
        for wanted in batch {
            self.ground.check_stopping()?;
            let alone = std::slice::from_ref(wanted);
            match self.ground.panics.catch("restoring", || self.restore(alone)) {
                Ok(restored) => restored?,
                Err(error) => self.note_failure(wanted, &error.to_string())?,
            }
        }
        Ok(())
    }

    /// Names every request there is.
    fn each_request(&self, seen: &mut dyn FnMut(Wanted)) -> Result<()> {
        let mut failure = None;
        let all = KeyRange::prefix(b"");
        self.ground.kv.scan(RESTORES, &all, Direction::Ascending, &mut |key, value| {
            let found = KeyReader::new(key).fixed::<16>().map_err(ArchiveError::from);
            let row = rows::decode::<RestoreRow>(RESTORES, value);
            match found.and_then(|id| Ok((ObjectId::from_bytes(id), row?))) {
                Ok((object_id, row)) => {
                    seen(Wanted { object_id, row });
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failure.map_or(Ok(()), Err)
    }

    fn restore(&self, batch: &[Wanted]) -> Result<()> {
        let mut copying = Vec::new();
        let mut failed: BTreeMap<ObjectId, String> = BTreeMap::new();
        for wanted in batch {
            match self.begin(wanted) {
                Ok(begun) => copying.extend(begun),
                Err(error) => {
                    failed.insert(wanted.object_id, error.to_string());
                }
            }
        }
        self.copy(&mut copying, &mut failed)?;
        copying.retain(|c| !failed.contains_key(&c.object));
        self.commit(batch, copying, &failed)
    }

    /// Makes room for the bodies of one object.
    fn begin(&self, wanted: &Wanted) -> Result<Vec<Copying>> {
        let name = &wanted.row.name;
        // One view: the object may be put again between the look at it and at its bodies.
        let view = self.ground.kv.snapshot();
        let found = find_object(&*view, &name.bucket, &name.key)?;
        let Some(object) = found.filter(|row| row.object_id == wanted.object_id) else {
            return Ok(Vec::new());
        };
        let due = wanted.row.mark.retrieval.due(wanted.row.mark.requested);
        (0..)
            .zip(bodies(&*view, &object)?)
            .filter(|(_, body)| body.restored.is_none())
            .map(|(index, body)| {
                let bytes = cipher_bytes(body.bytes);
                let room = self.ground.space.admit(bytes)?;
                let mut writer = self.ground.restored.writer(body.body_id, bytes)?;
                writer.set_written(bytes);
                let writer = Arc::new(writer);
                Ok(Copying { object: wanted.object_id, due, index, body, writer, _room: room })
            })
            .collect()
    }

    /// Brings the ciphertext of every body into its room.
    fn copy(&self, copying: &mut [Copying], failed: &mut BTreeMap<ObjectId, String>) -> Result<()> {
        let mut wishes = Vec::new();
        for (number, body) in copying.iter_mut().enumerate() {
            if let Some(reader) = self.pin_staged(body)? {
                if let Err(error) = copy_staged(body, reader) {
                    failed.insert(body.object, error.to_string());
                }
                continue;
            }
            for &shard in &body.body.shards {
                let room = Arc::clone(&body.writer);
                wishes.push(ShardWish { number, shard, room, due: body.due });
            }
        }
        let read = self.shards.read(wishes)?;
        self.ground.fail.pass("restore-read");
        for (number, error) in read.errors {
            failed.entry(copying[number].object).or_insert(error);
        }
        for (number, pieces) in read.pieces {
            let body = &copying[number];
            let joined = joined_crc(&pieces, cipher_bytes(body.body.bytes));
            let is_right = joined == Some(body.body.digest)
                || (body.body.bytes == 0 && pieces.iter().all(|&(_, bytes, _)| bytes == 0));
            if !is_right {
                let text =
                    format!("body {} read from glass is not what was ingested", body.body.body_id);
                failed.entry(body.object).or_insert(text);
            }
        }
        Ok(())
    }

    /// The staged bytes of a body, pinned, as long as they are there. The row is looked at again
    /// after the pin, for sealing may have released the bytes to glass before it.
    fn pin_staged(&self, copying: &mut Copying) -> Result<Option<LogReader>> {
        let Some((kind, extents)) = copying.body.log.clone() else { return Ok(None) };
        let reader = self.ground.log(kind).reader(extents);
        let key = rows::body_key(copying.object, copying.index);
        if let Some(row) = rows::get(&*self.ground.kv, BODIES, &key)? {
            copying.body = row;
        }
        Ok(copying.body.log.is_some().then_some(reader))
    }

    fn commit(
        &self,
        batch: &[Wanted],
        copying: Vec<Copying>,
        failed: &BTreeMap<ObjectId, String>,
    ) -> Result<()> {
        let mut copies: BTreeMap<ObjectId, Vec<(u32, ObjectId, Vec<Extent>)>> = BTreeMap::new();
        let mut writers: BTreeMap<ObjectId, Vec<Arc<LogWriter>>> = BTreeMap::new();
        for copy in copying {
            let extents = copy.writer.extents();
            copies.entry(copy.object).or_default().push((copy.index, copy.body.body_id, extents));
            writers.entry(copy.object).or_default().push(copy.writer);
        }
        LogWriter::sync_many(writers.values().flatten().map(|writer| &**writer))?;
        for wanted in batch {
            if let Some(error) = failed.get(&wanted.object_id) {
                self.note_failure(wanted, error)?;
            }
        }
        // All are handed in before the first answer is waited for, so that they share syncs.
        let mut waiting = Vec::new();
        for wanted in batch.iter().filter(|wanted| !failed.contains_key(&wanted.object_id)) {
            let copied = copies.remove(&wanted.object_id).unwrap_or_default();
            let (object_id, row) = (wanted.object_id, wanted.row.clone());
            let (now, day) = (self.ground.now(), self.ground.config.day);
            let commit = move |tx: &mut Transaction<'_>| -> Result<bool> {
                commit_copies(tx, object_id, &row, copied, now, day)
            };
            let room = writers.remove(&wanted.object_id).unwrap_or_default();
            waiting.push((self.ground.committer.submit_blocking(commit), room));
        }
        let mut result = Ok(());
        for (ticket, room) in waiting {
            let outcome = ticket.wait();
            // When the catalog failed while it wrote nobody knows whether the rows are there.
            let is_kept = match &outcome {
                Ok(is_there) => *is_there,
                Err(ArchiveError::Catalog(error)) => error.leaves_doubt(),
                Err(_) => false,
            };
            if is_kept {
                room.iter().for_each(|writer| writer.keep());
            }
            self.ground.fail.pass("restore-committed");
            if let Err(error) = outcome {
                result = Err(error);
            }
        }
        result
    }

    fn note_failure(&self, wanted: &Wanted, error: &str) -> Result<()> {
        // Not by its name, which would outlive the object in the log.
        let object = wanted.object_id;
        tracing::error!(%object, error, "an object cannot be restored; it is tried again");
        self.lock().put_off(wanted.object_id, Instant::now() + RESTORE_RETRY);
        let (id, error) = (wanted.object_id.to_bytes().to_vec(), error.to_owned());
        self.ground.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            if let Some(mut row) = rows::get::<RestoreRow>(tx, RESTORES, &id)? {
                row.failures += 1;
                row.error = Some(error);
                rows::put(tx, RESTORES, id, &row)?;
            }
            Ok(())
        })
    }
}

/// Copies a body that is still staged.
fn copy_staged(copying: &Copying, mut reader: LogReader) -> Result<()> {
    let bytes = cipher_bytes(copying.body.bytes);
    let mut crc = cipher_crc();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut done = 0;
    while done < bytes {
        let now = usize::try_from(bytes - done).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        reader.read_at(done, &mut buffer[..now])?;
        crc.update(&buffer[..now]);
        copying.writer.write_at(done, &buffer[..now])?;
        done += now as u64;
    }
    if crc.finalize() != copying.body.digest {
        return Err(ArchiveError::Corrupt {
            what: format!("staged body {} is not what was ingested", copying.body.body_id),
        });
    }
    Ok(())
}

/// Makes the copies of one object readable; `false` when the object is gone.
fn commit_copies(
    tx: &mut Transaction<'_>,
    object_id: ObjectId,
    row: &RestoreRow,
    copied: Vec<(u32, ObjectId, Vec<Extent>)>,
    now: UnixTime,
    day: fulgurite_units::Duration,
) -> Result<bool> {
    let name = &row.name;
    let found =
        find_object(tx, &name.bucket, &name.key)?.filter(|object| object.object_id == object_id);
    let Some((mut object, mark)) =
        found.and_then(|object| object.restore.map(|mark| (object, mark)))
    else {
        tx.delete(RESTORES, object_id.to_bytes())?;
        return Ok(false);
    };
    for (index, body_id, extents) in copied {
        let body_key = rows::body_key(object_id, index);
        let Some(mut body) = rows::get::<BodyRow>(tx, BODIES, &body_key)? else { continue };
        assert_eq!(body.body_id, body_id, "a body keeps its place in its object");
        account(tx, LogKind::Restored, &extents, true)?;
        body.restored = Some(extents);
        rows::put(tx, BODIES, body_key, &body)?;
    }
    // The days count from the request, but a copy that comes late still lives its days.
    let from_request = expiry(mark.requested, mark.days, day);
    let end = if from_request > now { from_request } else { expiry(now, mark.days, day) };
    object.restore = Some(RestoreMark { expiry: Some(end), ..mark });
    rows::put(tx, OBJECTS, rows::object_key_of(name), &object)?;
    let place = ExpiryRow { name: name.clone() };
    rows::put(tx, EXPIRIES, rows::expiry_key(end, object_id), &place)?;
    tx.delete(RESTORES, object_id.to_bytes())?;
    rows::with_totals(tx, |totals| {
        totals.restores_waiting -= 1;
        totals.restored += 1;
    })?;
    Ok(true)
}

#[cfg(test)]
mod tests;

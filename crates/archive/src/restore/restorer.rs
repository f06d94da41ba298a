//! Restoring: a job that drives the restore controller.
//!
//! ```text
//! inbox: Asked -----> queue ---(the first of each retrieval)---> Asked ---.
//!        Visited, Brought, ... ---------------------> Came, Failed -------+--> Restores::step
//!        Ended --------------------------------> Committed, Lost ---------'          |
//! Fetch --> rooms, then: library (read_platter on a drive's thread)                  |
//!                        bench (copies staged bodies; reconstructs shards from sets)  <-- Fetch
//! Commit --> the commit job                                                  <-----  Commit
//! ```
//!
//! A run processes all messages, steps the controller, and ends: the work that it started answers
//! by message. No state here needs to survive: after a restart, or a panic of this job, it starts
//! from the rows again.
//!
//! The inbox needs no bound of its own, because every sender has one. There is one answer for each
//! piece or copy, of which the controller has a limited number in flight (its `limits`), and the
//! answers of one fetch come together or in a few batches. A row is announced when it is created
//! and at most twice more, because it can be made faster only twice, and there are at most
//! [`RESTORE_QUEUE_MAX`] rows. That leaves rows that are deleted as fast as they are created: each
//! takes its client two commits, and a run empties the inbox before it does anything else.
//!
//! [`RESTORE_QUEUE_MAX`]: crate::limits::RESTORE_QUEUE_MAX

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use fulgurite_catalog::Transaction;
use fulgurite_glass::{Fetched, PlatterVisit, SetRecovery, ShardRequest};
use fulgurite_restore::{Capacity, Command, Event, PieceId, Place, RestoreId, Restores};
use fulgurite_units::{
    ByteCount, Controller as _, Duration, Instant, ObjectId, Outbox, UnixTime, error_chain,
};

use super::commit_job::{CommitJob, CopyOutcome};
use super::copy_task::{CompleteCopy, CopyTask, Source, copy_staged, platter};
use super::give_up::give_up;
use super::log_file::{LogFile, PendingLog};
use super::queue::Queue;
use super::worker_pool::WorkerPool;
use crate::jobs::{Failed, Job, JobHandle, JobRun, JobSender, Next, Pace, Runner};
use crate::limits::{
    JOB_TICK, RESTORE_ROOM_MAX, RESTORE_ROOM_STEP, RESTORE_WORKERS, RESTORES_SUBMITTED_MAX,
};
use crate::model::object::Retrieval;
use crate::rows::{self, RESTORES, RestoreRow};
use crate::state::ArchiveState;
use crate::{ArchiveError, ErrorKind, Result};

/// Interval for updating the space for copies.
const TICK: Duration = JOB_TICK;

/// A message to the restoring job.
#[derive(Debug)]
pub(crate) enum Message {
    /// A row requests this object.
    Asked(ObjectId),
    /// The pieces that a drive read from a platter.
    PlatterVisit(PlatterVisit<PieceId>),
    /// The library fetched the platters of a set, or failed to.
    Brought(Box<SetRecovery<PieceId>>),
    /// The shards reconstructed from a set.
    Reconstructed(Fetched<PieceId>),
    /// The outcome of copying a piece: its CRC.
    Copied(PieceId, Result<u64>),
    /// A piece that was to be copied is not staged any more.
    Moved(PieceId),
    /// The outcomes of copies.
    Ended(Vec<(RestoreId, CopyOutcome)>),
}

/// Shared context of the job and its driver.
#[derive(Debug)]
struct Context {
    state: Arc<ArchiveState>,
    /// Glass, then the tiers of objects by name.
    tiers: Vec<Capacity>,
}

impl Context {
    fn row(&self, object: ObjectId) -> Result<Option<RestoreRow>> {
        rows::get(&*self.state.kv, RESTORES, &object.to_bytes())
    }
}

/// Drives restores.
#[derive(Debug)]
pub(crate) struct Restorer {
    ctx: Arc<Context>,
    /// Log file of the first controller; one that restarts after a bug has none.
    log: Option<PendingLog>,
    inbox: Receiver<Message>,
    worker_pool: WorkerPool,
    commits: JobSender<(RestoreId, CompleteCopy)>,
    /// `None` before the first run, and after a failed one.
    driver: Option<Driver>,
    /// Ids are never reused, so that late answers are not mistaken for others.
    first_id: u64,
}

/// The controller with its driver's state. All of it is expendable.
#[derive(Debug)]
struct Driver {
    ctx: Arc<Context>,
    restores: Restores,
    log: LogFile,
    started: Instant,
    next_poll: Instant,
    queue: Queue,
    /// How often the catalog had been reopened when the rows were read.
    reopens: u64,
    known: BTreeMap<RestoreId, CopyTask>,
    by_object: BTreeMap<ObjectId, RestoreId>,
    next: u64,
    /// Events for the controller.
    events: VecDeque<Event>,
    room: ByteCount,
    worker_pool: WorkerPool,
    commits: JobSender<(RestoreId, CompleteCopy)>,
    inbox: JobSender<Message>,
}

impl Restorer {
    /// Starts the restoring job with its helper jobs.
    pub(crate) fn start(
        runner: &Runner,
        state: &Arc<ArchiveState>,
        inbox: Receiver<Message>,
    ) -> Result<()> {
        let of_objects = state.tiers.iter().map(|tier| tier.capacity());
        let glass = Capacity::for_drives(state.platters.drives());
        let tiers = std::iter::once(glass).chain(of_objects).collect();
        let log = PendingLog::create(state.config.restore_log.as_deref())?;
        let ctx = Arc::new(Context { state: Arc::clone(state), tiers });
        let job_handles = [(); RESTORE_WORKERS].map(|()| JobHandle::new(state.clock()));
        let worker_pool = WorkerPool::new(job_handles.to_vec());
        for (number, handle) in (1..).zip(&job_handles) {
            runner.start_at(handle, worker_pool.worker(number))?;
        }
        let (commits, whole) = JobSender::new(&JobHandle::new(state.clock()));
        runner.start_at(commits.handle(), CommitJob::new(state, whole))?;
        let restorer = Self { ctx, log, inbox, worker_pool, commits, driver: None, first_id: 0 };
        runner.start_at(state.runtime.job_handles.restore.handle(), restorer)
    }

    /// Creates a driver that starts from the rows.
    fn begin(&mut self) -> Result<Driver> {
        // Requests are in the rows, and answers are for another driver.
        while self.inbox.try_recv().is_ok() {}
        let first_id = self.first_id;
        self.first_id += 1 << 32;
        let restores = Restores::with_tiers(self.ctx.tiers.clone());
        let log = LogFile::new(self.log.take(), &restores);
        let now = self.ctx.state.clock().passed();
        // Read first: rows written in between are found twice, not missed.
        let reopens = self.ctx.state.catalog_reopens();
        Ok(Driver {
            ctx: Arc::clone(&self.ctx),
            restores,
            log,
            started: now,
            next_poll: now,
            queue: Queue::from_rows(&self.ctx.state)?,
            reopens,
            known: BTreeMap::new(),
            by_object: BTreeMap::new(),
            next: first_id,
            events: VecDeque::new(),
            room: ByteCount::new(u64::MAX),
            worker_pool: self.worker_pool.clone(),
            commits: self.commits.clone(),
            inbox: self.ctx.state.runtime.job_handles.restore.clone(),
        })
    }
}

impl Job for Restorer {
    fn name(&self) -> String {
        "restoring".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: Some(TICK), backoff: TICK, backoff_max: TICK }
    }

    fn failing(&self) -> &'static str {
        "all restores start over"
    }

    fn run(&mut self, run: &JobRun<'_>) -> Result<Next, Failed> {
        let mut driver = match self.driver.take() {
            Some(driver) => driver,
            None => self.begin()?,
        };
        // After an error the driver is discarded.
        let next = driver.serve(&self.inbox)?;
        let count: usize =
            Retrieval::URGENT_FIRST.map(|retrieval| driver.restores.count(retrieval)).iter().sum();
        run.ongoing((count > 0).then(|| format!("{count} restores")));
        self.driver = Some(driver);
        Ok(next)
    }

    fn on_stop(&mut self) {
        if let Some(driver) = &mut self.driver {
            driver.log.on_stop();
        }
    }
}

impl Driver {
    /// Returns the controller's time, which starts with its driver.
    fn now(&self) -> Instant {
        Instant::from_nanos(self.passed().since(self.started).as_nanos())
    }

    fn passed(&self) -> Instant {
        self.ctx.state.clock().passed()
    }

    /// Processes all messages and steps the controller; returns when it must run again.
    fn serve(&mut self, inbox: &Receiver<Message>) -> Result<Next> {
        // Messages that arrived together are handled in one run.
        for message in inbox.try_iter() {
            self.take(message)?;
        }
        if self.restores.deadline().is_some_and(|due| due <= self.now()) {
            self.events.push_back(Event::Timer);
        }
        if self.next_poll <= self.passed() {
            self.report_room()?;
            self.requeue_unconfirmed()?;
            self.next_poll = self.passed() + TICK;
        }
        self.step_all()?;
        let due = self.restores.deadline().map(|due| self.started + due.since(Instant::ZERO));
        Ok(Next::NoLaterThan(due.map_or(self.next_poll, |due| due.min(self.next_poll))))
    }

    /// Reads the rows again after the catalog was reopened: it may have requests whose commits had
    /// an unknown outcome. Repeating a known request changes nothing.
    fn requeue_unconfirmed(&mut self) -> Result<()> {
        let reopens = self.ctx.state.catalog_reopens();
        if reopens != self.reopens {
            self.queue = Queue::from_rows(&self.ctx.state)?;
            self.reopens = reopens;
        }
        Ok(())
    }

    /// Steps the controller through all events, and submits further restores while there is room.
    fn step_all(&mut self) -> Result<()> {
        let mut out = Outbox::new();
        loop {
            while let Some(event) = self.events.pop_front() {
                let now = self.now();
                self.log.event(now, &event);
                self.restores.step(now, event, &mut out);
                for command in out.drain().collect::<Vec<_>>() {
                    self.log.command(&command);
                    self.execute(command)?;
                }
            }
            self.log.flush();
            self.submit_more()?;
            if self.events.is_empty() {
                return Ok(());
            }
        }
    }

    /// Submits the first waiting restores of each retrieval class to the controller.
    fn submit_more(&mut self) -> Result<()> {
        for retrieval in Retrieval::URGENT_FIRST {
            while self.events.is_empty()
                && self.restores.count(retrieval) < RESTORES_SUBMITTED_MAX
                && let Some(object) = self.queue.take(retrieval)
            {
                self.submit(object)?;
            }
        }
        Ok(())
    }

    fn submit(&mut self, object: ObjectId) -> Result<()> {
        let Some(row) = self.ctx.row(object)? else { return Ok(()) };
        let (retrieval, at) = (row.mark.retrieval, row.mark.requested);
        if let Some(&restore) = self.by_object.get(&object) {
            // The controller has the pieces of a repeated request already.
            self.events.push_back(Event::Asked { restore, retrieval, at, pieces: Vec::new() });
            return Ok(());
        }
        let copy_task = match CopyTask::find(&self.ctx.state, object, row.clone()) {
            Ok(Some(copy_task)) => copy_task,
            Ok(None) => return Ok(()),
            // The error appears when its turn comes.
            Err(_) => CopyTask::unknown(object, row),
        };
        let restore = RestoreId::new(self.next);
        self.next += 1;
        let pieces = copy_task.pieces();
        self.by_object.insert(object, restore);
        self.known.insert(restore, copy_task);
        self.events.push_back(Event::Asked { restore, retrieval, at, pieces });
        Ok(())
    }

    /// Reports the space for copies to the controller, if it changed.
    fn report_room(&mut self) -> Result<()> {
        let free = self.ctx.state.room_for_copies()?;
        let bytes = free.saturating_add(self.restores.reserved().get()).min(RESTORE_ROOM_MAX);
        let bytes = ByteCount::new(bytes / RESTORE_ROOM_STEP * RESTORE_ROOM_STEP);
        if bytes != self.room {
            self.room = bytes;
            self.events.push_back(Event::Room { bytes });
        }
        Ok(())
    }

    /// Converts a message to events.
    fn take(&mut self, message: Message) -> Result<()> {
        match message {
            Message::Asked(object) => {
                if let Some(row) = self.ctx.row(object)? {
                    self.queue.add(object, row.mark);
                }
            }
            Message::PlatterVisit(visited) => self.visited(visited)?,
            Message::Brought(recovery) => self.recover_shards(*recovery),
            Message::Reconstructed(fetched) => self.fetched(fetched),
            Message::Copied(piece, Ok(crc)) => self.piece_arrived(piece, crc),
            Message::Copied(piece, Err(error)) => self.failed(piece, &error),
            Message::Moved(piece) => self.resubmit(piece)?,
            Message::Ended(ended) => {
                for (restore, end) in ended {
                    self.ended(restore, &end)?;
                }
            }
        }
        Ok(())
    }

    fn visited(&mut self, mut visited: PlatterVisit<PieceId>) -> Result<()> {
        self.ctx.state.runtime.fail.pass("restore-read");
        let arrived = std::mem::take(&mut visited.completed);
        arrived.into_iter().for_each(|(piece, crc)| self.piece_arrived(piece, crc));
        visited.remaining.retain(|request| self.restores.is_in_flight(request.piece));
        if visited.remaining.is_empty() {
            return Ok(());
        }
        let pieces: Vec<PieceId> = visited.remaining.iter().map(|request| request.piece).collect();
        let inbox = self.inbox.clone();
        let then = move |recovery| inbox.send(Message::Brought(Box::new(recovery)));
        if let Err(error) = self.ctx.state.platters.bring_set(visited, then) {
            self.ctx.state.check_stopping()?;
            let (reason, kind) = (error_chain(&error), error.kind());
            pieces.into_iter().for_each(|piece| self.fail_piece(piece, &reason, kind));
        }
        Ok(())
    }

    /// Queues the reconstruction of shards from their set.
    fn recover_shards(&self, recovery: SetRecovery<PieceId>) {
        let due = recovery.due().unwrap_or(UnixTime::from_millis(0));
        let state = Arc::clone(&self.ctx.state);
        let inbox = self.inbox.clone();
        let work = move || {
            let fetched =
                state.runtime.panics.run("restoring", || state.platters.recover_shards(&recovery));
            let fetched = fetched.unwrap_or_else(|error| {
                let error = Arc::new(error);
                let requests = recovery.requests.iter();
                let failed = requests.map(|request| (request.piece, Arc::clone(&error))).collect();
                Fetched { completed: Vec::new(), failed }
            });
            inbox.send(Message::Reconstructed(fetched));
        };
        self.worker_pool.add(due, Box::new(work));
    }

    fn fetched(&mut self, fetched: Fetched<PieceId>) {
        fetched.completed.into_iter().for_each(|(piece, crc)| self.piece_arrived(piece, crc));
        for (piece, error) in fetched.failed {
            self.fail_piece(piece, &error_chain(&*error), error.kind());
        }
    }

    /// Reports an arrived piece to the controller, if that waits for it.
    fn piece_arrived(&mut self, piece: PieceId, crc: u64) {
        if self.restores.is_in_flight(piece) {
            if let Some(copy_task) = self.known.get_mut(&piece.restore) {
                copy_task.record_piece(piece.index, crc);
            }
            self.events.push_back(Event::Came { piece });
        }
    }

    fn failed(&mut self, piece: PieceId, error: &ArchiveError) {
        self.fail_piece(piece, &error.to_string(), error.kind());
    }

    fn fail_piece(&mut self, piece: PieceId, error: &str, kind: ErrorKind) {
        if !self.restores.is_in_flight(piece) {
            return;
        }
        if let Some(copy_task) = self.known.get_mut(&piece.restore) {
            copy_task.tries.failed(error, kind);
        }
        self.record_failure(piece.restore, error);
        self.events.push_back(Event::Failed { piece });
    }

    fn ended(&mut self, restore: RestoreId, end: &CopyOutcome) -> Result<()> {
        if !self.restores.is_complete(restore) {
            return Ok(());
        }
        match end {
            CopyOutcome::Lost => self.events.push_back(Event::Lost { restore }),
            CopyOutcome::Done => {
                self.events.push_back(Event::Committed { restore });
                if let Some(copy_task) = self.known.remove(&restore) {
                    self.by_object.remove(&copy_task.object);
                    // It may have been requested again since.
                    if let Some(row) = self.ctx.row(copy_task.object)? {
                        self.queue.add(copy_task.object, row.mark);
                    }
                }
            }
        }
        Ok(())
    }

    /// Requests a restore again because one of its pieces is not where it was.
    fn resubmit(&mut self, piece: PieceId) -> Result<()> {
        let object = self.discard(piece.restore);
        if self.restores.is_in_flight(piece) {
            self.events.push_back(Event::Failed { piece });
        }
        object.map_or(Ok(()), |object| self.submit(object))
    }

    /// Cancels a restore that is not wanted any more, or changed.
    fn discard(&mut self, restore: RestoreId) -> Option<ObjectId> {
        let copy_task = self.known.remove(&restore)?;
        self.by_object.remove(&copy_task.object);
        self.events.push_back(Event::Forgotten { restore });
        Some(copy_task.object)
    }

    fn execute(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Fetch { place, pieces, due } => self.fetch(place, pieces, due),
            Command::Commit { restore } => self.commit(restore),
            Command::Forget { restore } => {
                let Some(copy_task) = self.known.get_mut(&restore) else { return Ok(()) };
                copy_task.discard();
                match copy_task.tries.end_round() {
                    Some(error) => self.give_up(restore, error),
                    None => Ok(()),
                }
            }
        }
    }

    fn fetch(&mut self, place: Option<Place>, pieces: Vec<PieceId>, due: UnixTime) -> Result<()> {
        let mut requests = Vec::new();
        for piece in pieces {
            let Some(copy_task) = self.known.get_mut(&piece.restore) else {
                // An earlier piece of this fetch canceled its restore.
                self.events.push_back(Event::Failed { piece });
                continue;
            };
            match copy_task.begin(&self.ctx.state) {
                Ok(true) if copy_task.has_failed_writer() => {
                    // Other pieces may still be written to the old space, so it cannot be reused.
                    self.resubmit(piece)?;
                    continue;
                }
                Ok(true) => {}
                Ok(false) => {
                    self.discard(piece.restore);
                    self.events.push_back(Event::Failed { piece });
                    continue;
                }
                Err(error) => {
                    self.failed(piece, &error);
                    continue;
                }
            }
            match copy_task.source(piece.index) {
                Source::Glass { part, shard } => {
                    let room = copy_task.writer(part);
                    requests.push(ShardRequest { piece, shard, room, due });
                }
                Source::Whole { part } => self.copy(piece, part, due),
                Source::Tier { part, .. } => self.fetch_from_tier(piece, part, due),
                Source::Nothing => self.events.push_back(Event::Came { piece }),
                Source::Unknown => self.replan(piece)?,
            }
        }
        match place {
            Some(place) if !requests.is_empty() => {
                let inbox = self.inbox.clone();
                let then = move |visited| inbox.send(Message::PlatterVisit(visited));
                Ok(self.ctx.state.platters.fetch(platter(place), requests, then)?)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Queues the copy of a body that needs no drive.
    fn copy(&self, piece: PieceId, part: usize, due: UnixTime) {
        let Some(copy_task) = self.known.get(&piece.restore) else { return };
        let (object, body) = (copy_task.object, copy_task.part(part).clone());
        let (writer, state) = (copy_task.writer(part), Arc::clone(&self.ctx.state));
        let inbox = self.inbox.clone();
        let work = move || {
            let copied = state
                .runtime
                .panics
                .run("restoring", || copy_staged(&state, object, &body, &writer));
            let message = match copied {
                Ok(None) => Message::Moved(piece),
                Ok(Some(crc)) => Message::Copied(piece, Ok(crc)),
                Err(error) => Message::Copied(piece, Err(error)),
            };
            inbox.send(message);
        };
        self.worker_pool.add(due, Box::new(work));
    }

    /// Fetches a body from its tier of objects.
    fn fetch_from_tier(&mut self, piece: PieceId, part: usize, due: UnixTime) {
        let Some(copy_task) = self.known.get(&piece.restore) else { return };
        let (body, writer) = (copy_task.part(part).body.clone(), copy_task.writer(part));
        let state = Arc::clone(&self.ctx.state);
        let tier = match &body.place {
            rows::Place::Tier(tier) => Some(state.tiers.get(tier)),
            rows::Place::Log(_) | rows::Place::Glass(_) => None,
        };
        let inbox = self.inbox.clone();
        match tier {
            Some(Ok(tier)) => tier.fetch(body, writer, due, move |copied| {
                inbox.send(Message::Copied(piece, copied));
            }),
            Some(Err(error)) => self.failed(piece, &error),
            None => {
                let error = "its body is no longer in a tier";
                self.fail_piece(piece, error, ErrorKind::Unavailable);
            }
        }
    }

    /// Tries again to determine the sources of a restore.
    fn replan(&mut self, piece: PieceId) -> Result<()> {
        let Some(copy_task) = self.known.get(&piece.restore) else { return Ok(()) };
        let (object, row) = (copy_task.object, copy_task.row.clone());
        match CopyTask::find(&self.ctx.state, object, row) {
            Err(error) => self.failed(piece, &error),
            Ok(_) => self.resubmit(piece)?,
        }
        Ok(())
    }

    fn commit(&mut self, restore: RestoreId) -> Result<()> {
        let Some(copy_task) = self.known.get_mut(&restore) else { return Ok(()) };
        match copy_task.finish() {
            Ok(whole) => {
                self.commits.send((restore, whole));
            }
            Err(error) => {
                let last = copy_task.tries.record_mismatch(&error);
                self.record_failure(restore, &error);
                if let Some(error) = last {
                    return self.give_up(restore, error);
                }
                self.events.push_back(Event::Lost { restore });
            }
        }
        Ok(())
    }

    /// Gives up a restore that failed too often. It is not retried until it is requested again.
    fn give_up(&mut self, restore: RestoreId, error: String) -> Result<()> {
        let Some(object) = self.discard(restore) else { return Ok(()) };
        tracing::error!(%object, error, "a restore is given up; request it again to retry");
        let end = move |tx: &mut Transaction<'_>| give_up(tx, object, error);
        // Awaited, so that a client that repeats its request meanwhile still finds the restore in
        // progress.
        let failed = self.ctx.state.committer.commit_blocking(end)?;
        if let Some(failed) = failed {
            // Fails only if there is no subscriber.
            let _ = self.ctx.state.runtime.given_up.send(failed);
        }
        Ok(())
    }

    /// Records why a restore failed, once for all of its pieces that fail together. Not awaited:
    /// the restore is retried in any case.
    fn record_failure(&mut self, restore: RestoreId, error: &str) {
        let now = self.passed();
        let Some(copy_task) = self.known.get_mut(&restore) else { return };
        if copy_task.recorded.is_some_and(|at| now.since(at) < TICK) {
            return;
        }
        copy_task.recorded = Some(now);
        // Logged by id, because a name in the log would outlive the object.
        let object = copy_task.object;
        tracing::error!(%object, error, "an object cannot be restored yet; the restore is retried");
        let (id, error) = (object.to_bytes().to_vec(), error.to_owned());
        let note = move |tx: &mut Transaction<'_>| -> Result<()> {
            if let Some(mut row) = rows::get::<RestoreRow>(tx, RESTORES, &id)? {
                row.failures += 1;
                row.error = Some(error);
                rows::put(tx, RESTORES, id, &row)?;
            }
            Ok(())
        };
        drop(self.ctx.state.committer.submit_blocking(note));
    }
}

//! Restoring: a job that drives the restore controller.
//!
//! ```text
//! inbox: Asked -----> queue ---(the first of each retrieval)---> Asked ---.
//!        Visited, Brought, ... ---------------------> Came, Failed -------+--> Restores::step
//!        Ended --------------------------------> Committed, Lost ---------'          |
//! Fetch --> rooms, then: library (read_platter on a drive's thread)                  |
//!                        bench (copies staged bodies; reconstructs shards from sets)  <-- Fetch
//! Commit --> the committing job                                              <-----  Commit
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
use fulgurite_platters::{Fetched, SetBrought, Visited, Wish};
use fulgurite_restore::{Capacity, Command, Event, PieceId, Place, RestoreId, Restores};
use fulgurite_units::{
    ByteCount, Controller as _, Duration, Instant, ObjectId, Outbox, UnixTime, error_chain,
};

use super::bench::Bench;
use super::committing::{Committing, End};
use super::copying::{Copying, Source, Whole, copy_whole, platter};
use super::failing::give_up;
use super::log_file::{Begun, LogFile};
use super::queue::Queue;
use crate::ground::Ground;
use crate::jobs::{Bell, Failed, Job, Mail, Next, Pace, Runner, Turn};
use crate::limits::{
    JOB_TICK, RESTORE_ROOM_MAX, RESTORE_ROOM_STEP, RESTORE_WORKERS, RESTORES_HELD_MAX,
};
use crate::objects::object::Retrieval;
use crate::rows::{self, RESTORES, RestoreRow};
use crate::{ArchiveError, ErrorKind, Result};

/// Interval for updating the space for copies.
const TICK: Duration = JOB_TICK;

/// A message to the restoring job.
#[derive(Debug)]
pub(crate) enum Message {
    /// A row requests this object.
    Asked(ObjectId),
    /// The pieces that a drive read from a platter.
    Visited(Visited<PieceId>),
    /// The platters of a set were brought, or failed to be.
    Brought(Box<SetBrought<PieceId>>),
    /// The shards reconstructed from a set.
    PutTogether(Fetched<PieceId>),
    /// The outcome of copying a piece: its CRC.
    Copied(PieceId, Result<u64>),
    /// A piece that was to be copied is not staged any more.
    Moved(PieceId),
    /// The outcomes of copies.
    Ended(Vec<(RestoreId, End)>),
}

/// Shared context of the job and its driver.
#[derive(Debug)]
struct Means {
    ground: Arc<Ground>,
    /// Glass, then the tiers of objects by name.
    tiers: Vec<Capacity>,
}

impl Means {
    fn row(&self, object: ObjectId) -> Result<Option<RestoreRow>> {
        rows::get(&*self.ground.kv, RESTORES, &object.to_bytes())
    }
}

/// Drives restores.
#[derive(Debug)]
pub(crate) struct Restorer {
    of: Arc<Means>,
    /// Log file of the first controller; one that restarts after a bug has none.
    log: Option<Begun>,
    inbox: Receiver<Message>,
    bench: Bench,
    commits: Mail<(RestoreId, Whole)>,
    /// `None` before the first run, and after a failed one.
    driver: Option<Driver>,
    /// Ids are never reused, so that late answers are not mistaken for others.
    first_id: u64,
}

/// The controller with its driver's state. All of it is expendable.
#[derive(Debug)]
struct Driver {
    of: Arc<Means>,
    restores: Restores,
    log: LogFile,
    started: Instant,
    looks_at: Instant,
    queue: Queue,
    /// How often the catalog had been reopened when the rows were read.
    mended: u64,
    known: BTreeMap<RestoreId, Copying>,
    by_object: BTreeMap<ObjectId, RestoreId>,
    next: u64,
    /// Events for the controller.
    events: VecDeque<Event>,
    room: ByteCount,
    bench: Bench,
    commits: Mail<(RestoreId, Whole)>,
    inbox: Mail<Message>,
}

impl Restorer {
    /// Starts the restoring job with its helper jobs.
    pub(crate) fn start(
        runner: &Runner,
        ground: &Arc<Ground>,
        inbox: Receiver<Message>,
    ) -> Result<()> {
        let of_objects = ground.tiers.iter().map(|tier| tier.capacity());
        let glass = Capacity::of_drives(ground.platters.drives());
        let tiers = std::iter::once(glass).chain(of_objects).collect();
        let log = Begun::at(ground.config.restore_log.as_deref())?;
        let of = Arc::new(Means { ground: Arc::clone(ground), tiers });
        let bells = [(); RESTORE_WORKERS].map(|()| Bell::new(ground.clock()));
        let bench = Bench::new(bells.to_vec());
        for (number, bell) in (1..).zip(&bells) {
            runner.start_at(bell, bench.worker(number))?;
        }
        let (commits, whole) = Mail::new(&Bell::new(ground.clock()));
        runner.start_at(commits.bell(), Committing::new(ground, whole))?;
        let restorer = Self { of, log, inbox, bench, commits, driver: None, first_id: 0 };
        runner.start_at(ground.bells.restore.bell(), restorer)
    }

    /// Creates a driver that starts from the rows.
    fn begin(&mut self) -> Result<Driver> {
        // Requests are in the rows, and answers are for another driver.
        while self.inbox.try_recv().is_ok() {}
        let first_id = self.first_id;
        self.first_id += 1 << 32;
        let restores = Restores::of_tiers(self.of.tiers.clone());
        let log = LogFile::new(self.log.take(), &restores);
        let now = self.of.ground.clock().passed();
        // Read first: rows written in between are found twice, not missed.
        let mended = self.of.ground.catalog_mended();
        Ok(Driver {
            of: Arc::clone(&self.of),
            restores,
            log,
            started: now,
            looks_at: now,
            queue: Queue::of_rows(&self.of.ground)?,
            mended,
            known: BTreeMap::new(),
            by_object: BTreeMap::new(),
            next: first_id,
            events: VecDeque::new(),
            room: ByteCount::new(u64::MAX),
            bench: self.bench.clone(),
            commits: self.commits.clone(),
            inbox: self.of.ground.bells.restore.clone(),
        })
    }
}

impl Job for Restorer {
    fn name(&self) -> String {
        "restoring".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: Some(TICK), rest: TICK, rest_max: TICK }
    }

    fn failing(&self) -> &'static str {
        "restoring begins anew"
    }

    fn run(&mut self, turn: &Turn<'_>) -> Result<Next, Failed> {
        let mut driver = match self.driver.take() {
            Some(driver) => driver,
            None => self.begin()?,
        };
        // After an error the driver is discarded.
        let next = driver.serve(&self.inbox)?;
        let count: usize = Retrieval::URGENT_FIRST.map(|of| driver.restores.count(of)).iter().sum();
        turn.under_way((count > 0).then(|| format!("{count} restores")));
        self.driver = Some(driver);
        Ok(next)
    }

    fn stopped(&mut self) {
        if let Some(driver) = &mut self.driver {
            driver.log.stopped();
        }
    }
}

impl Driver {
    /// Returns the controller's time, which starts with its driver.
    fn now(&self) -> Instant {
        Instant::from_nanos(self.passed().since(self.started).as_nanos())
    }

    fn passed(&self) -> Instant {
        self.of.ground.clock().passed()
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
        if self.looks_at <= self.passed() {
            self.tell_room()?;
            self.find_doubtful()?;
            self.looks_at = self.passed() + TICK;
        }
        self.step_all()?;
        let due = self.restores.deadline().map(|due| self.started + due.since(Instant::ZERO));
        Ok(Next::By(due.map_or(self.looks_at, |due| due.min(self.looks_at))))
    }

    /// Reads the rows again after the catalog was reopened: it may have requests whose commits had
    /// an unknown outcome. Repeating a known request changes nothing.
    fn find_doubtful(&mut self) -> Result<()> {
        let mended = self.of.ground.catalog_mended();
        if mended != self.mended {
            self.queue = Queue::of_rows(&self.of.ground)?;
            self.mended = mended;
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
                    self.carry_out(command)?;
                }
            }
            self.log.flush();
            self.ask_more()?;
            if self.events.is_empty() {
                return Ok(());
            }
        }
    }

    /// Submits the first waiting restores of each retrieval class to the controller.
    fn ask_more(&mut self) -> Result<()> {
        for retrieval in Retrieval::URGENT_FIRST {
            while self.events.is_empty()
                && self.restores.count(retrieval) < RESTORES_HELD_MAX
                && let Some(object) = self.queue.take(retrieval)
            {
                self.ask(object)?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, object: ObjectId) -> Result<()> {
        let Some(row) = self.of.row(object)? else { return Ok(()) };
        let (retrieval, at) = (row.mark.retrieval, row.mark.requested);
        if let Some(&restore) = self.by_object.get(&object) {
            // The controller has the pieces of a repeated request already.
            self.events.push_back(Event::Asked { restore, retrieval, at, pieces: Vec::new() });
            return Ok(());
        }
        let copying = match Copying::find(&self.of.ground, object, row.clone()) {
            Ok(Some(copying)) => copying,
            Ok(None) => return Ok(()),
            // The error appears when its turn comes.
            Err(_) => Copying::unknown(object, row),
        };
        let restore = RestoreId::new(self.next);
        self.next += 1;
        let pieces = copying.pieces();
        self.by_object.insert(object, restore);
        self.known.insert(restore, copying);
        self.events.push_back(Event::Asked { restore, retrieval, at, pieces });
        Ok(())
    }

    /// Reports the space for copies to the controller, if it changed.
    fn tell_room(&mut self) -> Result<()> {
        let free = self.of.ground.room_for_copies()?;
        let bytes = free.saturating_add(self.restores.taken().get()).min(RESTORE_ROOM_MAX);
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
                if let Some(row) = self.of.row(object)? {
                    self.queue.add(object, row.mark);
                }
            }
            Message::Visited(visited) => self.visited(visited)?,
            Message::Brought(recovery) => self.put_together(*recovery),
            Message::PutTogether(fetched) => self.fetched(fetched),
            Message::Copied(piece, Ok(crc)) => self.came(piece, crc),
            Message::Copied(piece, Err(error)) => self.failed(piece, &error),
            Message::Moved(piece) => self.ask_anew(piece)?,
            Message::Ended(ended) => {
                for (restore, end) in ended {
                    self.ended(restore, &end)?;
                }
            }
        }
        Ok(())
    }

    fn visited(&mut self, mut visited: Visited<PieceId>) -> Result<()> {
        self.of.ground.fail.pass("restore-read");
        let came = std::mem::take(&mut visited.came);
        came.into_iter().for_each(|(piece, crc)| self.came(piece, crc));
        visited.left.retain(|wish| self.restores.is_under_way(wish.piece));
        if visited.left.is_empty() {
            return Ok(());
        }
        let pieces: Vec<PieceId> = visited.left.iter().map(|wish| wish.piece).collect();
        let inbox = self.inbox.clone();
        let then = move |recovery| inbox.send(Message::Brought(Box::new(recovery)));
        if let Err(error) = self.of.ground.platters.bring_set(visited, then) {
            self.of.ground.check_stopping()?;
            let (reason, kind) = (error_chain(&error), error.kind());
            pieces.into_iter().for_each(|piece| self.failed_with(piece, &reason, kind));
        }
        Ok(())
    }

    /// Queues the reconstruction of shards from their set.
    fn put_together(&self, recovery: SetBrought<PieceId>) {
        let due = recovery.due().unwrap_or(UnixTime::from_millis(0));
        let ground = Arc::clone(&self.of.ground);
        let inbox = self.inbox.clone();
        let work = move || {
            let fetched =
                ground.panics.run("restoring", || ground.platters.put_together(&recovery));
            let fetched = fetched.unwrap_or_else(|error| {
                let error = Arc::new(error);
                let wishes = recovery.wishes.iter();
                let failed = wishes.map(|wish| (wish.piece, Arc::clone(&error))).collect();
                Fetched { came: Vec::new(), failed }
            });
            inbox.send(Message::PutTogether(fetched));
        };
        self.bench.add(due, Box::new(work));
    }

    fn fetched(&mut self, fetched: Fetched<PieceId>) {
        fetched.came.into_iter().for_each(|(piece, crc)| self.came(piece, crc));
        for (piece, error) in fetched.failed {
            self.failed_with(piece, &error_chain(&*error), error.kind());
        }
    }

    /// Reports an arrived piece to the controller, if that waits for it.
    fn came(&mut self, piece: PieceId, crc: u64) {
        if self.restores.is_under_way(piece) {
            if let Some(copying) = self.known.get_mut(&piece.restore) {
                copying.came(piece.index, crc);
            }
            self.events.push_back(Event::Came { piece });
        }
    }

    fn failed(&mut self, piece: PieceId, error: &ArchiveError) {
        self.failed_with(piece, &error.to_string(), error.kind());
    }

    fn failed_with(&mut self, piece: PieceId, error: &str, kind: ErrorKind) {
        if !self.restores.is_under_way(piece) {
            return;
        }
        if let Some(copying) = self.known.get_mut(&piece.restore) {
            copying.tries.failed(error, kind);
        }
        self.note_failure(piece.restore, error);
        self.events.push_back(Event::Failed { piece });
    }

    fn ended(&mut self, restore: RestoreId, end: &End) -> Result<()> {
        if !self.restores.is_complete(restore) {
            return Ok(());
        }
        match end {
            End::Lost => self.events.push_back(Event::Lost { restore }),
            End::Done => {
                self.events.push_back(Event::Committed { restore });
                if let Some(copying) = self.known.remove(&restore) {
                    self.by_object.remove(&copying.object);
                    // It may have been requested again since.
                    if let Some(row) = self.of.row(copying.object)? {
                        self.queue.add(copying.object, row.mark);
                    }
                }
            }
        }
        Ok(())
    }

    /// Requests a restore again because one of its pieces is not where it was.
    fn ask_anew(&mut self, piece: PieceId) -> Result<()> {
        let object = self.forget(piece.restore);
        if self.restores.is_under_way(piece) {
            self.events.push_back(Event::Failed { piece });
        }
        object.map_or(Ok(()), |object| self.ask(object))
    }

    /// Cancels a restore that is not wanted any more, or changed.
    fn forget(&mut self, restore: RestoreId) -> Option<ObjectId> {
        let copying = self.known.remove(&restore)?;
        self.by_object.remove(&copying.object);
        self.events.push_back(Event::Forgotten { restore });
        Some(copying.object)
    }

    fn carry_out(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Fetch { place, pieces, due } => self.fetch(place, pieces, due),
            Command::Commit { restore } => self.commit(restore),
            Command::Forget { restore } => {
                let Some(copying) = self.known.get_mut(&restore) else { return Ok(()) };
                copying.forget();
                match copying.tries.end_round() {
                    Some(error) => self.give_up(restore, error),
                    None => Ok(()),
                }
            }
        }
    }

    fn fetch(&mut self, place: Option<Place>, pieces: Vec<PieceId>, due: UnixTime) -> Result<()> {
        let mut wishes = Vec::new();
        for piece in pieces {
            let Some(copying) = self.known.get_mut(&piece.restore) else {
                // An earlier piece of this fetch canceled its restore.
                self.events.push_back(Event::Failed { piece });
                continue;
            };
            match copying.begin(&self.of.ground) {
                Ok(true) if copying.is_spoiled() => {
                    // Other pieces may still be written to the old space, so it cannot be reused.
                    self.ask_anew(piece)?;
                    continue;
                }
                Ok(true) => {}
                Ok(false) => {
                    self.forget(piece.restore);
                    self.events.push_back(Event::Failed { piece });
                    continue;
                }
                Err(error) => {
                    self.failed(piece, &error);
                    continue;
                }
            }
            match copying.source(piece.index) {
                Source::Glass { part, shard } => {
                    let room = copying.writer(part);
                    wishes.push(Wish { piece, shard, room, due });
                }
                Source::Whole { part } => self.copy(piece, part, due),
                Source::Tier { part, .. } => self.fetch_whole(piece, part, due),
                Source::Nothing => self.events.push_back(Event::Came { piece }),
                Source::Unknown => self.look_again(piece)?,
            }
        }
        match place {
            Some(place) if !wishes.is_empty() => {
                let inbox = self.inbox.clone();
                let then = move |visited| inbox.send(Message::Visited(visited));
                Ok(self.of.ground.platters.fetch(platter(place), wishes, then)?)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Queues the copy of a body that needs no drive.
    fn copy(&self, piece: PieceId, part: usize, due: UnixTime) {
        let Some(copying) = self.known.get(&piece.restore) else { return };
        let (object, body) = (copying.object, copying.part(part).clone());
        let (writer, ground) = (copying.writer(part), Arc::clone(&self.of.ground));
        let inbox = self.inbox.clone();
        let work = move || {
            let copied =
                ground.panics.run("restoring", || copy_whole(&ground, object, &body, &writer));
            let message = match copied {
                Ok(None) => Message::Moved(piece),
                Ok(Some(crc)) => Message::Copied(piece, Ok(crc)),
                Err(error) => Message::Copied(piece, Err(error)),
            };
            inbox.send(message);
        };
        self.bench.add(due, Box::new(work));
    }

    /// Fetches a body from its tier of objects.
    fn fetch_whole(&mut self, piece: PieceId, part: usize, due: UnixTime) {
        let Some(copying) = self.known.get(&piece.restore) else { return };
        let (body, writer) = (copying.part(part).body.clone(), copying.writer(part));
        let ground = Arc::clone(&self.of.ground);
        let tier = body.tier.as_ref().map(|tier| ground.tiers.get(tier));
        let inbox = self.inbox.clone();
        match tier {
            Some(Ok(tier)) => tier.fetch(body, writer, due, move |copied| {
                inbox.send(Message::Copied(piece, copied));
            }),
            Some(Err(error)) => self.failed(piece, &error),
            None => {
                let error = "its body is in no tier any more";
                self.failed_with(piece, error, ErrorKind::Unavailable);
            }
        }
    }

    /// Tries again to determine the sources of a restore.
    fn look_again(&mut self, piece: PieceId) -> Result<()> {
        let Some(copying) = self.known.get(&piece.restore) else { return Ok(()) };
        let (object, row) = (copying.object, copying.row.clone());
        match Copying::find(&self.of.ground, object, row) {
            Err(error) => self.failed(piece, &error),
            Ok(_) => self.ask_anew(piece)?,
        }
        Ok(())
    }

    fn commit(&mut self, restore: RestoreId) -> Result<()> {
        let Some(copying) = self.known.get_mut(&restore) else { return Ok(()) };
        match copying.finish() {
            Ok(whole) => {
                self.commits.send((restore, whole));
            }
            Err(error) => {
                let last = copying.tries.spoiled(&error);
                self.note_failure(restore, &error);
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
        let Some(object) = self.forget(restore) else { return Ok(()) };
        tracing::error!(%object, error, "a restore is given up; asked for again it is tried again");
        let end = move |tx: &mut Transaction<'_>| give_up(tx, object, error);
        // Awaited, so that a client that repeats its request meanwhile still finds the restore in
        // progress.
        let failed = self.of.ground.committer.commit_blocking(end)?;
        if let Some(failed) = failed {
            // Fails only if there is no subscriber.
            let _ = self.of.ground.given_up.send(failed);
        }
        Ok(())
    }

    /// Records why a restore failed, once for all of its pieces that fail together. Not awaited:
    /// the restore is retried in any case.
    fn note_failure(&mut self, restore: RestoreId, error: &str) {
        let now = self.passed();
        let Some(copying) = self.known.get_mut(&restore) else { return };
        if copying.noted.is_some_and(|at| now.since(at) < TICK) {
            return;
        }
        copying.noted = Some(now);
        // Logged by id, because a name in the log would outlive the object.
        let object = copying.object;
        tracing::error!(%object, error, "an object cannot be restored; it is tried again");
        let (id, error) = (object.to_bytes().to_vec(), error.to_owned());
        let note = move |tx: &mut Transaction<'_>| -> Result<()> {
            if let Some(mut row) = rows::get::<RestoreRow>(tx, RESTORES, &id)? {
                row.failures += 1;
                row.error = Some(error);
                rows::put(tx, RESTORES, id, &row)?;
            }
            Ok(())
        };
        drop(self.of.ground.committer.submit_blocking(note));
    }
}

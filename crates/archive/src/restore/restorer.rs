//! The restoring thread: drives the controller of restores.
//!
//! ```text
//! inbox: Asked -----> queue ---(the first of each retrieval)---> Asked ---.
//!        Visited, Brought, Read --------------------> Came, Failed -------+--> Restores::step
//!        Ended --------------------------------> Committed, Lost ---------'          |
//! Fetch --> rooms, then: library (read_platter on a drive's thread)                  |
//!                        bench (what is staged; sets that shards are put together of) <-- Fetch
//! Commit --> the committing thread                                           <-----  Commit
//! ```
//!
//! Nothing here would be missed: a restart, or a panic of this thread, begins with the rows again.
//! The inbox has no bound of its own: each message answers something that is under way, or says of
//! a row that it is there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

use fulgurite_catalog::Transaction;
use fulgurite_platters::PlatterFiles;
use fulgurite_platters::library_driver::LiveLibrary;
use fulgurite_restore::{Command, Event, PieceId, Place, RestoreId, Restores};
use fulgurite_units::{ByteCount, Controller as _, ObjectId, Outbox, UnixTime, error_chain};

use super::bench::Bench;
use super::committing::{self, End};
use super::copying::{Copying, Source, Whole, copy_whole, platter};
use super::log_file::{Begun, LogFile};
use super::queue::Queue;
use crate::ground::Ground;
use crate::limits::{RESTORE_ROOM_MAX, RESTORE_ROOM_STEP, RESTORE_WORKERS, RESTORES_HELD_MAX};
use crate::object::Retrieval;
use crate::rows::{self, RESTORES, RestoreRow};
use crate::shard_reader::{ReadShards, Recovery, ShardReader, ShardWish, Visited};
use crate::{ArchiveError, Result};

/// How often it looks whether there is more room.
const TICK: Duration = Duration::from_secs(1);

/// What the restoring thread is told.
#[derive(Debug)]
pub(crate) enum Message {
    /// A row asks for this object.
    Asked(ObjectId),
    /// What a drive gave of a platter.
    Visited(Visited),
    /// The platters of a set were brought, or were not.
    Brought(Box<Recovery>),
    /// What was put together of a set, or copied.
    Read(ReadShards),
    /// A piece was to be copied that is not staged any more.
    Moved(PieceId),
    /// What became of copies.
    Ended(Vec<(RestoreId, End)>),
    /// The archive stops.
    Stop,
}

/// Drives restores.
#[derive(Debug)]
pub(crate) struct Restorer {
    ground: Arc<Ground>,
    shards: ShardReader,
    drives: usize,
    /// Of the first controller: one that begins anew after a bug has none.
    log: Mutex<Option<Begun>>,
}

/// What a driver knows beside its controller. All of it can be lost.
struct Driver<'a> {
    of: &'a Restorer,
    restores: Restores,
    log: LogFile,
    started: Instant,
    queue: Queue,
    known: BTreeMap<RestoreId, Copying>,
    by_object: BTreeMap<ObjectId, RestoreId>,
    next: u64,
    /// What the controller is to be told.
    events: VecDeque<Event>,
    room: ByteCount,
    bench: &'a Bench,
    commits: &'a Sender<(RestoreId, Whole)>,
    inbox: &'a Sender<Message>,
}

impl Restorer {
    pub(crate) fn new(
        ground: &Arc<Ground>,
        library: &LiveLibrary,
        files: &PlatterFiles,
        answers: tokio::runtime::Handle,
    ) -> Result<Self> {
        let shards = ShardReader::new(ground, library, files, answers);
        let shape = &ground.config.library.shape;
        let drives = usize::from(shape.drives_per_panel() * shape.panels).max(1);
        let log = Mutex::new(Begun::at(ground.config.restore_log.as_deref())?);
        Ok(Self { ground: Arc::clone(ground), shards, drives, log })
    }

    /// Works until it is told to stop.
    pub(crate) fn run(&self, inbox: &Receiver<Message>) {
        let answers = &self.ground.bells.restore;
        let (bench, (commits, whole)) = (Bench::default(), std::sync::mpsc::channel());
        std::thread::scope(|scope| {
            // Both are closed behind the loop, and then their threads end.
            let (bench, commits) = (bench, commits);
            if let Err(error) = self.start_helpers(scope, &bench, whole) {
                tracing::error!(%error, "nothing is restored until a restart");
                return;
            }
            let mut first_id = 0;
            loop {
                let ran = self.ground.panics.run("restoring", || {
                    Driver::new(self, first_id, &bench, &commits, answers)?.serve(inbox)
                });
                // No number is used again: late answers must not be taken for others.
                first_id += 1 << 32;
                match ran {
                    Ok(()) => return,
                    Err(_) if self.ground.check_stopping().is_err() => return,
                    Err(error) => {
                        let error = error_chain(&error);
                        tracing::error!(error, "restoring begins anew");
                        if self.rests(inbox) {
                            return;
                        }
                    }
                }
            }
        });
    }

    /// The threads beside this one.
    fn start_helpers<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        bench: &Bench,
        whole: Receiver<(RestoreId, Whole)>,
    ) -> Result<()> {
        let failed = |e| ArchiveError::Internal { what: format!("no thread: {e}") };
        for _ in 0..RESTORE_WORKERS {
            let shared = bench.shared();
            let work = move || shared.run();
            Builder::new()
                .name("restore-bench".to_owned())
                .spawn_scoped(scope, work)
                .map_err(failed)?;
        }
        let commit = move || committing::run(&self.ground, &whole, &self.ground.bells.restore);
        Builder::new()
            .name("restore-commit".to_owned())
            .spawn_scoped(scope, commit)
            .map_err(failed)?;
        Ok(())
    }

    /// Waits a moment before it begins anew; `true` when the archive stops.
    fn rests(&self, inbox: &Receiver<Message>) -> bool {
        let until = Instant::now() + TICK;
        loop {
            match inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return true,
                // What was asked for is in the rows, and what is answered was asked before.
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return self.ground.check_stopping().is_err(),
            }
        }
    }

    fn row(&self, object: ObjectId) -> Result<Option<RestoreRow>> {
        rows::get(&*self.ground.kv, RESTORES, &object.to_bytes())
    }
}

impl<'a> Driver<'a> {
    fn new(
        of: &'a Restorer,
        first_id: u64,
        bench: &'a Bench,
        commits: &'a Sender<(RestoreId, Whole)>,
        inbox: &'a Sender<Message>,
    ) -> Result<Self> {
        let restores = Restores::new(of.drives);
        let begun = of.log.lock().unwrap_or_else(PoisonError::into_inner).take();
        let log = LogFile::new(begun, &restores);
        Ok(Self {
            of,
            restores,
            log,
            started: Instant::now(),
            queue: Queue::of_rows(&of.ground)?,
            known: BTreeMap::new(),
            by_object: BTreeMap::new(),
            next: first_id,
            events: VecDeque::new(),
            room: ByteCount::new(u64::MAX),
            bench,
            commits,
            inbox,
        })
    }

    fn now(&self) -> fulgurite_units::Instant {
        let passed = self.started.elapsed().as_nanos();
        fulgurite_units::Instant::from_nanos(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    fn serve(&mut self, inbox: &Receiver<Message>) -> Result<()> {
        let mut looks_at = Instant::now();
        loop {
            if looks_at <= Instant::now() {
                self.tell_room()?;
                looks_at = Instant::now() + TICK;
            }
            self.step_all()?;
            let due = self.restores.deadline().map(|due| Duration::from(due.since(self.now())));
            let look = looks_at.saturating_duration_since(Instant::now());
            match inbox.recv_timeout(due.map_or(look, |due| due.min(look))) {
                Ok(message) => {
                    // What came together is answered together.
                    for message in std::iter::once(message).chain(inbox.try_iter()) {
                        if !self.take(message)? {
                            self.log.stopped();
                            return Ok(());
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if self.restores.deadline().is_some_and(|due| due <= self.now()) {
                self.events.push_back(Event::Timer);
            }
        }
    }

    /// Steps the controller until it has been told everything, and asks for more as it ends.
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

    /// Tells the controller of the first that wait of each retrieval.
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
            // What is asked for again has its pieces known.
            self.events.push_back(Event::Asked { restore, retrieval, at, pieces: Vec::new() });
            return Ok(());
        }
        let copying = match Copying::find(&self.of.ground, object, row.clone()) {
            Ok(Some(copying)) => copying,
            Ok(None) => return Ok(()),
            // What is wrong with it shows when it is its turn.
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

    /// Tells how much room there is for copies, if that is another number than before.
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

    /// Turns a message into events; `false` when the archive stops.
    fn take(&mut self, message: Message) -> Result<bool> {
        match message {
            Message::Stop => return Ok(false),
            Message::Asked(object) => {
                if let Some(row) = self.of.row(object)? {
                    self.queue.add(object, row.mark);
                }
            }
            Message::Visited(visited) => self.visited(visited)?,
            Message::Brought(recovery) => self.put_together(*recovery),
            Message::Read(read) => self.read(read),
            Message::Moved(piece) => self.ask_anew(piece)?,
            Message::Ended(ended) => {
                for (restore, end) in ended {
                    self.ended(restore, &end)?;
                }
            }
        }
        Ok(true)
    }

    fn visited(&mut self, mut visited: Visited) -> Result<()> {
        self.of.ground.fail.pass("restore-read");
        let came = std::mem::take(&mut visited.came);
        self.read(ReadShards { came, failed: Vec::new() });
        visited.left.retain(|wish| self.restores.is_under_way(wish.piece));
        if visited.left.is_empty() {
            return Ok(());
        }
        let pieces: Vec<PieceId> = visited.left.iter().map(|wish| wish.piece).collect();
        let inbox = self.inbox.clone();
        let then = move |recovery| {
            // The restoring thread may be gone already.
            let _ = inbox.send(Message::Brought(Box::new(recovery)));
        };
        if let Err(error) = self.of.shards.ask_set(visited, then) {
            self.of.ground.check_stopping()?;
            let reason = error_chain(&error);
            let failed = pieces.into_iter().map(|piece| (piece, reason.clone())).collect();
            self.read(ReadShards { came: Vec::new(), failed });
        }
        Ok(())
    }

    /// Has shards put together from their set.
    fn put_together(&self, recovery: Recovery) {
        let due = recovery.due().unwrap_or(UnixTime::from_millis(0));
        let (shards, ground) = (self.of.shards.clone(), Arc::clone(&self.of.ground));
        let inbox = self.inbox.clone();
        let work = move || {
            let read = ground.panics.catch("restoring", || shards.read_from_set(&recovery));
            let read = read.unwrap_or_else(|error| {
                let failed = recovery.wishes.iter().map(|wish| (wish.piece, error.to_string()));
                ReadShards { came: Vec::new(), failed: failed.collect() }
            });
            let _ = inbox.send(Message::Read(read));
        };
        self.bench.add(due, Box::new(work));
    }

    /// Tells the controller what came and what did not, of what it waits for.
    fn read(&mut self, read: ReadShards) {
        for (piece, crc) in read.came {
            if self.restores.is_under_way(piece) {
                if let Some(copying) = self.known.get_mut(&piece.restore) {
                    copying.came(piece.index, crc);
                }
                self.events.push_back(Event::Came { piece });
            }
        }
        for (piece, error) in read.failed {
            self.failed(piece, &error);
        }
    }

    fn failed(&mut self, piece: PieceId, error: &str) {
        if !self.restores.is_under_way(piece) {
            return;
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
                    // It may have been asked for anew since.
                    if let Some(row) = self.of.row(copying.object)? {
                        self.queue.add(copying.object, row.mark);
                    }
                }
            }
        }
        Ok(())
    }

    /// A piece is not where it was: its restore is asked for anew.
    fn ask_anew(&mut self, piece: PieceId) -> Result<()> {
        let object = self.forget(piece.restore);
        if self.restores.is_under_way(piece) {
            self.events.push_back(Event::Failed { piece });
        }
        object.map_or(Ok(()), |object| self.ask(object))
    }

    /// A restore is not wanted any more, or not as it was.
    fn forget(&mut self, restore: RestoreId) -> Option<ObjectId> {
        let copying = self.known.remove(&restore)?;
        self.by_object.remove(&copying.object);
        self.events.push_back(Event::Forgotten { restore });
        Some(copying.object)
    }

    fn carry_out(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Fetch { place, pieces, due } => self.fetch(place, pieces, due),
            Command::Commit { restore } => {
                self.commit(restore);
                Ok(())
            }
            Command::Forget { restore } => {
                if let Some(copying) = self.known.get_mut(&restore) {
                    copying.forget();
                }
                Ok(())
            }
        }
    }

    fn fetch(&mut self, place: Option<Place>, pieces: Vec<PieceId>, due: UnixTime) -> Result<()> {
        let mut wishes = Vec::new();
        for piece in pieces {
            let Some(copying) = self.known.get_mut(&piece.restore) else {
                // Its restore was forgotten by a piece before it.
                self.events.push_back(Event::Failed { piece });
                continue;
            };
            match copying.begin(&self.of.ground) {
                Ok(true) => {}
                Ok(false) => {
                    self.forget(piece.restore);
                    self.events.push_back(Event::Failed { piece });
                    continue;
                }
                Err(error) => {
                    self.failed(piece, &error.to_string());
                    continue;
                }
            }
            match copying.source(piece.index) {
                Source::Glass { part, shard } => {
                    wishes.push(ShardWish { piece, shard, room: copying.writer(part), due });
                }
                Source::Whole { part } => self.copy(piece, part, due),
                Source::Nothing => self.events.push_back(Event::Came { piece }),
                Source::Unknown => self.look_again(piece)?,
            }
        }
        match place {
            Some(place) if !wishes.is_empty() => {
                let inbox = self.inbox.clone();
                let then = move |visited| {
                    // The restoring thread may be gone already.
                    let _ = inbox.send(Message::Visited(visited));
                };
                self.of.shards.visit(platter(place), wishes, then)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Has a body copied that needs no drive.
    fn copy(&self, piece: PieceId, part: usize, due: UnixTime) {
        let Some(copying) = self.known.get(&piece.restore) else { return };
        let (object, body) = (copying.object, copying.part(part).clone());
        let (writer, ground) = (copying.writer(part), Arc::clone(&self.of.ground));
        let inbox = self.inbox.clone();
        let work = move || {
            let copied =
                ground.panics.run("restoring", || copy_whole(&ground, object, &body, &writer));
            let message = match copied {
                Ok(Some(crc)) => {
                    Message::Read(ReadShards { came: vec![(piece, crc)], failed: Vec::new() })
                }
                Ok(None) => Message::Moved(piece),
                Err(error) => {
                    let failed = vec![(piece, error.to_string())];
                    Message::Read(ReadShards { came: Vec::new(), failed })
                }
            };
            let _ = inbox.send(message);
        };
        self.bench.add(due, Box::new(work));
    }

    /// What is to be fetched for a restore could not be found out; perhaps now it can.
    fn look_again(&mut self, piece: PieceId) -> Result<()> {
        let Some(copying) = self.known.get(&piece.restore) else { return Ok(()) };
        let (object, row) = (copying.object, copying.row.clone());
        match Copying::find(&self.of.ground, object, row) {
            Err(error) => self.failed(piece, &error.to_string()),
            Ok(_) => self.ask_anew(piece)?,
        }
        Ok(())
    }

    fn commit(&mut self, restore: RestoreId) {
        let Some(copying) = self.known.get_mut(&restore) else { return };
        match copying.finish() {
            Ok(whole) => {
                // The committing thread ends behind this one.
                let _ = self.commits.send((restore, whole));
            }
            Err(error) => {
                self.note_failure(restore, &error);
                self.events.push_back(Event::Lost { restore });
            }
        }
    }

    /// Writes down why a restore failed, once for all of its pieces that fail together. Not waited
    /// for: it is tried again in any case.
    fn note_failure(&mut self, restore: RestoreId, error: &str) {
        let Some(copying) = self.known.get_mut(&restore) else { return };
        let is_new = |at: &Instant| at.elapsed() >= TICK;
        if !copying.noted.as_ref().is_none_or(is_new) {
            return;
        }
        copying.noted = Some(Instant::now());
        // Not by its name, which would outlive the object in the log.
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

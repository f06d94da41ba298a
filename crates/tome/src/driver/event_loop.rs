//! The thread of a tome: it turns messages into events, and carries out commands.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};

use fulgurite_disks::{Cause, Observed, PlaceId, Power, SpinUp, Totals};
use fulgurite_tome_core::metadata::{Row, TomeMetadata};
use fulgurite_tome_core::token::TokenId;
use fulgurite_tome_core::{
    Alarm, Answer, Command, Epoch, Event, PhysicalBlock, RegionIndex, RequestId, Tome, TomeError,
    TomeId,
};
use fulgurite_units::{Controller as _, Duration, Instant, Outbox, UnixTime, error_chain};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::commit_batch::CommitBatch;
use super::disk_worker::{Stage, StageEnd, begin};
use super::member_slots::{Checked, data_blocks};
use super::recovery::{Failure, Failures, Health, new_core};
use super::reports::LastReported;
use super::status::{ListedObject, ObjectPage};
use super::{Done, DriverMessage, Holdings, Parts, Reply, TomeRequest};
use crate::disk::{Disk, Label};
use crate::faults::InjectedFault;
use crate::limits::{
    ALARMS_MAX, MESSAGES_PER_COMMIT_MAX, SPIN_UP_BACKOFF, SPIN_UP_TRIES_MAX, TIMER_INTERVAL_MIN,
};
use crate::piece_store::ObjectLocation;
use crate::watch::TomeEvent;
use crate::{Result, TomesError};

/// Longest sleep when nothing is due.
const IDLE: Duration = Duration::from_secs(3600);

/// State of the thread.
pub(super) struct Loop {
    pub(super) parts: Parts,
    pub(super) tome: Tome,
    inbox: SyncSender<DriverMessage>,
    /// Wall-clock time at the start, in nanoseconds since 1970, and the monotonic time then.
    start: (Instant, Instant),
    /// Open while the disk spins.
    disk: Option<Disk>,
    pub(super) batch: CommitBatch,
    /// Next step of the disk, and when it is due.
    pub(super) alarm: Option<(Instant, DiskStep)>,
    pub(super) tries: u32,
    /// The core gets no timer event before then.
    pub(super) timer_from: Instant,
    next_request: u64,
    waiting: BTreeMap<RequestId, Waiter>,
    /// Requests that wait for an object to be protected.
    protecting: BTreeMap<String, Vec<Reply<()>>>,
    /// Why the tome is given up, if it is.
    pub(super) failure: Option<Failure>,
    pub(super) failures: Failures,
    /// The same, for the choice of a tome.
    pub(super) health: watch::Sender<Health>,
    /// Alarms, with the segment that has more bad blocks than parity, if any: it may be repaired.
    alarms: VecDeque<(String, Option<(RegionIndex, u32)>)>,
    pub(super) healed: u64,
    pub(super) last_reported: LastReported,
    is_stopping: bool,
    /// The disk may still spin: it did not confirm that it stopped.
    pub(super) may_be_spinning: bool,
}

/// The next step of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiskStep {
    Begin(Stage),
    SpunUp,
    SpinUpFailed,
    SpunDown,
}

/// Recipient of the answer to a request.
enum Waiter {
    Put { name: String, done: Done<Option<ObjectLocation>>, permit: OwnedSemaphorePermit },
    Get { is_own: bool, reply: Reply<Vec<u8>> },
    Hold(Reply<Holdings>),
    Scrub(Reply<()>),
    Check(Reply<Checked>),
    Delete(Done),
    Adopt { reply: Reply<Vec<String>>, names: Vec<String> },
}

impl Loop {
    pub(super) fn new(
        mut parts: Parts,
        inbox: SyncSender<DriverMessage>,
        health: watch::Sender<Health>,
    ) -> Result<Self> {
        // The core owns the state from here on: at 24 bytes a block, a second copy is too large.
        let nothing = TomeMetadata::new(parts.identity.tome, parts.identity.layout);
        let (metadata, clock) = (std::mem::replace(&mut parts.metadata, nothing), &parts.clock);
        let wall = Instant::from_nanos(clock.now().as_millis().saturating_mul(1_000_000));
        Ok(Self {
            tome: new_core(&parts, wall, metadata, parts.seed)?,
            inbox,
            start: (wall, clock.passed()),
            disk: None,
            batch: CommitBatch::default(),
            alarm: None,
            tries: 0,
            timer_from: Instant::ZERO,
            next_request: 0,
            waiting: BTreeMap::new(),
            protecting: BTreeMap::new(),
            failure: None,
            failures: Failures::default(),
            health,
            alarms: VecDeque::new(),
            healed: 0,
            last_reported: LastReported::default(),
            is_stopping: false,
            may_be_spinning: false,
            parts,
        })
    }

    pub(super) fn run(mut self, messages: &Receiver<DriverMessage>) {
        self.spin_down_leftover();
        // A timer event starts what it has to do on its own.
        self.step(Event::Timer);
        self.settle();
        while !(self.is_stopping && self.is_still()) {
            match self.next(messages) {
                Ok(message) => self.handle_message(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            // Messages that already wait share a commit.
            for message in messages.try_iter().take(MESSAGES_PER_COMMIT_MAX) {
                self.handle_message(message);
            }
            self.pass_time();
            self.settle();
        }
        self.refuse_all(|| TomesError::Stopped);
    }

    pub(super) fn id(&self) -> TomeId {
        self.parts.identity.tome
    }

    pub(super) fn place(&self) -> PlaceId {
        PlaceId::new(self.id().get())
    }

    pub(super) fn power(&self) -> Power {
        self.parts.guard.power(self.place()).unwrap_or(Power::Absent)
    }

    pub(super) fn is_still(&self) -> bool {
        !self.power().is_spinning()
    }

    /// Returns the time on the core's axis: since 1970.
    pub(super) fn now(&self) -> Instant {
        self.start.0 + self.parts.clock.passed().since(self.start.1)
    }

    /// Receives the next message; times out when something is due before one arrives.
    fn next(&self, messages: &Receiver<DriverMessage>) -> Result<DriverMessage, RecvTimeoutError> {
        let now = self.now();
        let core = self.tome.deadline().map(|at| at.max(self.timer_from));
        let core = core.filter(|_| self.is_live() && !self.is_stopping);
        let reopens = self.reopens_at().filter(|_| !self.is_stopping);
        let due = core.into_iter().chain(self.alarm.map(|(at, _)| at)).chain(reopens).min();
        let until = due.unwrap_or(now + IDLE);
        match self.parts.clock.sleep_until(self.start.1 + until.since(self.start.0)) {
            Some(time) => messages.recv_timeout(time.into()),
            // With a manual clock time passes only when it is advanced, which arrives as a message.
            None if due.is_some_and(|due| due <= now) => Err(RecvTimeoutError::Timeout),
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn handle_message(&mut self, message: DriverMessage) {
        match message {
            DriverMessage::Received { from, message } => {
                self.step(Event::Received { from, message })
            }
            DriverMessage::TokenManager(message) => self.step(Event::TokenManager(message)),
            DriverMessage::TomeRequest(request) => {
                // Clients only see committed state.
                self.settle();
                self.handle_request(request);
                self.settle();
            }
            DriverMessage::Stage(end) => self.stage_ended(end),
            DriverMessage::ClockAdvanced(waits) => waits.store(false, Ordering::Release),
            DriverMessage::Retired => {
                self.settle();
                self.retire();
            }
            DriverMessage::Stop => {
                self.settle();
                self.is_stopping = true;
                self.spin_down();
            }
        }
    }

    fn pass_time(&mut self) {
        let now = self.now();
        while let Some((_, due)) = self.alarm.take_if(|(at, _)| *at <= now) {
            match due {
                DiskStep::Begin(stage) => self.begin(stage),
                DiskStep::SpunUp => self.spun_up(),
                DiskStep::SpinUpFailed => self.step(Event::SpinUpFailed),
                DiskStep::SpunDown => self.spun_down(),
            }
        }
        if self.reopens_at().is_some_and(|at| at <= now) && !self.is_stopping {
            self.reopen();
        }
        let is_due = |at: Instant| at <= now && self.timer_from <= now;
        if self.tome.deadline().is_some_and(is_due) {
            self.timer_from = now + TIMER_INTERVAL_MIN;
            self.step(Event::Timer);
        }
    }

    fn handle_request(&mut self, request: TomeRequest) {
        let refusal = match self.answerable() {
            _ if self.is_stopping => Some(TomesError::Stopped),
            Err(_) if self.is_probing() && may_wait(&request) => None,
            answerable => answerable.err(),
        };
        // The requester may be gone.
        if let TomeRequest::Status(reply) = request {
            let _ = reply.send(self.status());
        } else if let TomeRequest::SpinUps(reply) = request {
            let _ = reply.send(self.parts.ledger.ledger().recent().cloned().collect());
        } else if let Some(error) = refusal {
            request.refuse(error);
        } else {
            self.dispatch(request);
        }
    }

    fn dispatch(&mut self, request: TomeRequest) {
        self.next_request += 1;
        let id = RequestId(self.next_request);
        match request {
            TomeRequest::Put { name, bytes, avoided, permit, done } => {
                self.waiting.insert(id, Waiter::Put { name: name.clone(), done, permit });
                self.step(Event::Put { request: id, name, bytes, avoided });
            }
            TomeRequest::Get { name, is_own, reply } => {
                self.waiting.insert(id, Waiter::Get { is_own, reply });
                self.step(Event::Get { request: id, name });
            }
            TomeRequest::Hold { group, offsets, may_spin_up, reply } => {
                if may_spin_up || self.power() == Power::Active {
                    self.waiting.insert(id, Waiter::Hold(reply));
                    self.step(Event::Hold { request: id, group, offsets });
                } else {
                    let (tome, why) = (self.id(), "its disk is not spinning".to_owned());
                    drop(reply.send(Err(TomesError::Away { tome, why })));
                }
            }
            TomeRequest::Scrub { reply } => {
                self.waiting.insert(id, Waiter::Scrub(reply));
                self.step(Event::Scrub { request: id });
            }
            TomeRequest::Check { group, reply } => {
                self.waiting.insert(id, Waiter::Check(reply));
                self.step(Event::Check { request: id, group });
            }
            TomeRequest::Delete { name, done } => {
                self.waiting.insert(id, Waiter::Delete(done));
                self.step(Event::Delete { request: id, name });
            }
            TomeRequest::Protected { name, reply } => {
                self.protecting.entry(name).or_default().push(reply);
                self.answer_protected();
            }
            TomeRequest::ObjectPage { after, max, reply } => {
                drop(reply.send(Ok(self.object_page(after, max))))
            }
            TomeRequest::Rebuild { planned, group, reply } => {
                self.step(Event::Rebuild { planned, group });
                drop(reply.send(self.answerable()));
            }
            TomeRequest::Absent { tomes, reply } => {
                self.step(Event::Absent { tomes });
                drop(reply.send(self.answerable()));
            }
            TomeRequest::MemberSlot { region, group, reply } => {
                drop(reply.send(Ok(self.membership_status(region, group))))
            }
            TomeRequest::Adopt { region, objects, reply } => {
                let (intact, names) = self.intact_objects(objects);
                self.waiting.insert(id, Waiter::Adopt { reply, names });
                self.step(Event::Adopt { request: id, region, objects: intact });
            }
            TomeRequest::Status(_) | TomeRequest::SpinUps(_) => {}
        }
    }

    /// Passes an event to the core, and carries out its commands and the events that follow.
    pub(super) fn step(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            if !self.is_live() || self.is_stopping {
                return;
            }
            let mut out = Outbox::new();
            self.tome.step(self.now(), event, &mut out);
            let commands: VecDeque<Command> = out.drain().collect();
            if let Err(error) = self.carry_out(commands, &mut events) {
                self.give_up(&error);
            }
        }
    }

    /// Carries out commands in order. Rows that must be durable before anything depends on them are
    /// held, with the messages that follow.
    fn carry_out(
        &mut self,
        mut commands: VecDeque<Command>,
        events: &mut VecDeque<Event>,
    ) -> Result<()> {
        while let Some(command) = commands.pop_front() {
            match command {
                Command::Write { physical_block, bytes } => {
                    // Only after that commit is the physical block free.
                    self.commit_batch()?;
                    let label = label_of(physical_block, &commands);
                    let (tome, fail) = (self.id(), &self.parts.fail);
                    self.parts.faults.pass(tome, InjectedFault::Write)?;
                    self.parts.faults.pass(tome, InjectedFault::Room)?;
                    open(&mut self.disk, tome)?.write(physical_block, label, &bytes, fail)?;
                }
                Command::Commit(rows) => self.batch.add_rows(rows),
                Command::Read { job, physical_blocks } => {
                    let tome = self.id();
                    let disk = open(&mut self.disk, tome)?;
                    let read = |block| Ok(disk.read(block)?.map(|(_, block)| block));
                    let blocks = physical_blocks.into_iter().map(read).collect::<Result<_>>()?;
                    events.push_back(Event::Read { job, blocks });
                }
                Command::ReadObject { job, physical_blocks, wanted } => {
                    let tome = self.id();
                    let whole =
                        open(&mut self.disk, tome)?.read_object(&physical_blocks, wanted)?;
                    events.push_back(Event::ObjectRead { job, whole });
                }
                Command::SpinUp { token, epoch } => {
                    self.commit_batch()?;
                    self.spin_up(token, epoch)?;
                }
                Command::SpinDown => {
                    self.commit_batch()?;
                    self.spin_down();
                }
                Command::Answer { request, answer } => {
                    // The client must not wait for what follows.
                    self.commit_batch()?;
                    self.answer(request, answer);
                }
                Command::Send { .. } | Command::TokenManager(_) | Command::Alarm(_) => {
                    if self.batch.is_empty() {
                        self.emit(command);
                    } else {
                        self.batch.add_command(command);
                    }
                }
            }
            if self.batch.is_full() {
                self.commit_batch()?;
            }
        }
        Ok(())
    }

    /// Commits what is held, or gives the tome up.
    pub(super) fn settle(&mut self) {
        if !self.is_live() {
            return;
        }
        if let Err(error) = self.commit_batch() {
            self.give_up(&error);
        }
    }

    /// Syncs written blocks, commits held rows, and sends the messages that waited for that.
    fn commit_batch(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            // Consecutive block writes share a sync: no two share a physical block, and no row
            // refers to them yet.
            return Ok(());
        }
        self.sync()?;
        let (rows, commands) = self.batch.take();
        self.parts.faults.pass(self.id(), InjectedFault::Commit)?;
        self.parts.store.commit(&rows, &self.parts.fail)?;
        self.publish_committed(&rows);
        for command in commands {
            self.emit(command);
        }
        let may_protect = |row: &Row| matches!(row, Row::Confirmed { .. } | Row::Removed { .. });
        if rows.iter().any(may_protect) {
            self.answer_protected();
        }
        Ok(())
    }

    fn emit(&mut self, command: Command) {
        match command {
            Command::Send { to, message } => {
                self.parts.fail.pass("tomes-notifying");
                if !self.parts.faults.has(self.id(), InjectedFault::Send) {
                    self.parts.network.send(self.id(), to, message);
                }
            }
            Command::TokenManager(message) => {
                self.parts.network.send_to_token_manager(self.id(), message)
            }
            Command::Alarm(alarm) => self.handle_alarm(&alarm),
            Command::Answer { .. }
            | Command::Write { .. }
            | Command::Commit(_)
            | Command::Read { .. }
            | Command::ReadObject { .. }
            | Command::SpinUp { .. }
            | Command::SpinDown => unreachable!("this command is carried out, not sent"),
        }
    }

    fn sync(&mut self) -> Result<()> {
        let Some(disk) = self.disk.as_mut().filter(|disk| disk.is_unsynced()) else {
            return Ok(());
        };
        self.parts.faults.pass(self.parts.identity.tome, InjectedFault::Sync)?;
        disk.sync()?;
        self.parts.fail.pass("tomes-synced");
        Ok(())
    }

    fn answer(&mut self, request: RequestId, answer: Answer) {
        // Protection is reported by `TomeRequest::Protected`, whenever the object was put.
        if answer == Answer::Protected {
            return;
        }
        self.parts.fail.pass("tomes-answering");
        let Some(waiter) = self.waiting.remove(&request) else { return };
        let wrong =
            || TomesError::Invalid { what: "the answer does not match the request".to_owned() };
        // The requester may be gone.
        match (waiter, answer) {
            (waiter, Answer::Refused(error)) => waiter.refuse(error.into()),
            (Waiter::Put { name, done, permit }, Answer::Local) => {
                let (tome, placed) = (self.id(), self.placed(&name));
                let bytes = placed.as_ref().map_or(0, |placed| placed.object.bytes);
                done.send(Ok(placed));
                self.parts.events.send(|| TomeEvent::Local { tome, bytes });
                drop(permit);
            }
            (Waiter::Get { reply, .. }, Answer::Bytes(bytes)) => drop(reply.send(Ok(bytes))),
            (Waiter::Hold(reply), Answer::Held { member, held }) => {
                drop(reply.send(Ok((member, held))));
            }
            (Waiter::Scrub(reply), Answer::Scrubbed) => drop(reply.send(Ok(()))),
            (Waiter::Check(reply), Answer::Checked { findings, exchanged }) => {
                drop(reply.send(Ok(Checked { findings, exchanged })));
            }
            (Waiter::Delete(done), Answer::Deleted) => done.send(Ok(())),
            (Waiter::Adopt { reply, names }, Answer::Adopted) => {
                let metadata = self.tome.metadata();
                let missing = names.into_iter().filter(|name| metadata.object(name).is_none());
                drop(reply.send(Ok(missing.collect())));
            }
            (waiter, _) => waiter.refuse(wrong()),
        }
    }

    /// Answers requests for objects that are now protected, or gone.
    fn answer_protected(&mut self) {
        let metadata = self.tome.metadata();
        for (name, replies) in std::mem::take(&mut self.protecting) {
            match metadata.object(&name) {
                Some(_) if !metadata.is_protected(&name) => {
                    self.protecting.insert(name, replies);
                }
                Some(_) => replies.into_iter().for_each(|reply| drop(reply.send(Ok(())))),
                None => replies.into_iter().for_each(|reply| {
                    let error = TomeError::NoObject { name: name.clone() };
                    drop(reply.send(Err(error.into())));
                }),
            }
        }
    }

    fn handle_alarm(&mut self, alarm: &Alarm) {
        let tome = self.id();
        self.parts.events.send(|| TomeEvent::Alarm { tome, alarm: alarm.clone() });
        let mut lost = None;
        let text = match alarm {
            Alarm::Healed { region, blocks } => {
                tracing::warn!(%tome, %region, blocks, "bad blocks were rebuilt");
                self.healed += *blocks as u64;
                return;
            }
            Alarm::SegmentLost { region, segment } => {
                lost = Some((*region, *segment));
                format!("segment {segment} of region {region} is beyond its parity")
            }
            Alarm::ChangeLost { region, version } => {
                format!("change {version} of region {region} cannot be computed any more")
            }
            Alarm::Rebuilt { region, group } => {
                tracing::info!(%tome, %region, %group, "a region was rebuilt and is now a member");
                return;
            }
            Alarm::RebuildDropped { region, group } => {
                tracing::info!(%tome, %region, %group, "not rebuilt: the old member is back");
                return;
            }
            Alarm::SlotLost { region, group } => {
                tracing::warn!(%tome, %region, %group, "another tome took over a member slot");
                return;
            }
            Alarm::Foreign { from, group } => {
                format!("tome {from} sent an unauthorized or false message about group {group}")
            }
        };
        tracing::error!(%tome, "{text}");
        if self.alarms.len() == ALARMS_MAX {
            self.alarms.pop_front();
        }
        self.alarms.push_back((text, lost));
    }

    /// Returns alarms that are not storage failures.
    pub(super) fn alarms(&self) -> Vec<String> {
        let is_current = |lost: &Option<(RegionIndex, u32)>| {
            lost.is_none_or(|(region, segment)| self.tome.is_segment_lost(region, segment))
        };
        self.alarms
            .iter()
            .filter(|(_, lost)| is_current(lost))
            .map(|(text, _)| text.clone())
            .collect()
    }

    fn spin_up(&mut self, token: TokenId, epoch: Epoch) -> Result<()> {
        let tome = self.id();
        if let Err(error) = self.parts.gate.admit(token, epoch, tome) {
            tracing::warn!(%tome, "spin-up not admitted: {error}");
            self.alarm = Some((self.now() + SPIN_UP_BACKOFF, DiskStep::SpinUpFailed));
            return Ok(());
        }
        let (at, cause) = (self.parts.clock.now(), self.cause());
        self.parts.ledger.record(SpinUp { at, group: None, places: vec![self.place()], cause })?;
        self.parts.fail.pass("tomes-spin-up-recorded");
        self.set_power(Power::SpinningUp, Some(cause))?;
        self.begin(Stage::SpinUp);
        Ok(())
    }

    /// Returns the cause of a spin-up: the request that waited longest, else deltas, else a scrub.
    fn cause(&self) -> Cause {
        let cause = |(request, waiter): (&RequestId, &Waiter)| match waiter {
            Waiter::Put { .. } | Waiter::Adopt { .. } => Some(Cause::Write(request.0)),
            Waiter::Get { is_own: true, .. } => Some(Cause::Verify(request.0)),
            Waiter::Get { .. } | Waiter::Hold(_) => Some(Cause::Request(request.0)),
            Waiter::Delete(_) => Some(Cause::Delete(request.0)),
            // Another request or deltas may be the cause.
            Waiter::Scrub(_) | Waiter::Check(_) => None,
        };
        let mut regions = self.tome.metadata().regions();
        let has_deltas = regions.any(|(_, region)| {
            let has_pending = region.pending().is_some_and(|pending| !pending.is_empty());
            has_pending || region.stored().any(|(_, _, stored)| !stored.is_applied)
        });
        let background = if has_deltas { Cause::Write(0) } else { Cause::Scrub };
        self.waiting.iter().find_map(cause).unwrap_or(background)
    }

    fn begin(&mut self, stage: Stage) {
        if let Err(error) = begin(stage, self.place(), &self.parts.backend, &self.inbox) {
            // Handled like a disk that does not answer.
            let place = self.place();
            let reason = error_chain(&error);
            let after = Err(fulgurite_disks::DisksError::SpinUp { place, reason });
            self.stage_ended(StageEnd { stage, after });
        }
    }

    /// Handles the end of a disk stage.
    fn stage_ended(&mut self, end: StageEnd) {
        let StageEnd { stage, after } = end;
        self.may_be_spinning |= stage == Stage::SpinDown && after.is_err();
        let next = match (stage, &after) {
            (Stage::SpinUp, Ok(_)) => DiskStep::Begin(Stage::Mount),
            (Stage::Mount, Ok(_)) => DiskStep::SpunUp,
            (Stage::Unmount, _) => DiskStep::Begin(Stage::SpinDown),
            (Stage::SpinDown, _) => DiskStep::SpunDown,
            (Stage::SpinUp | Stage::Mount, Err(error)) => {
                return self.spin_up_failed(&error_chain(error));
            }
        };
        let wait = after.unwrap_or_else(|error| {
            self.give_up_for(error_chain(&error), true);
            Duration::ZERO
        });
        self.alarm = Some((self.now() + wait, next));
    }

    /// The disk did not spin up: retries a limited number of times.
    fn spin_up_failed(&mut self, why: &str) {
        tracing::warn!(tome = %self.id(), "{why}");
        self.record_standby();
        self.tries += 1;
        if self.tries < SPIN_UP_TRIES_MAX && !self.is_probing() {
            self.alarm = Some((self.now() + SPIN_UP_BACKOFF, DiskStep::SpinUpFailed));
            return;
        }
        self.give_up_for(why.to_owned(), true);
    }

    /// The disk is up: verifies its identity, probes it if needed, and hands it to the core.
    fn spun_up(&mut self) {
        let opened = self.acquire().and_then(|disk| self.probe(&disk).map(|()| disk));
        match opened {
            Ok(disk) => {
                self.parts.fail.pass("tomes-up");
                (self.disk, self.tries) = (Some(disk), 0);
                if self.is_stopping || !self.is_live() {
                    return self.spin_down();
                }
                self.step(Event::SpunUp);
            }
            Err(error) => self.give_up(&error),
        }
    }

    fn acquire(&self) -> Result<Disk> {
        self.set_power(Power::Active, None)?;
        Disk::open(self.parts.guard.acquire(self.place())?, &self.parts.identity)
    }

    /// Spins the disk down, if it is up. During a spin-up that follows when it is up.
    pub(super) fn spin_down(&mut self) {
        self.disk = None;
        if self.power() != Power::Active {
            return;
        }
        match self.set_power(Power::Unmounting, None) {
            Ok(()) => self.begin(Stage::Unmount),
            Err(error) => tracing::error!(tome = %self.id(), "{}", error_chain(&error)),
        }
    }

    /// Spins down a disk that still spins because the previous process was killed.
    fn spin_down_leftover(&mut self) {
        let (place, backend) = (self.place(), &self.parts.backend);
        if !backend.observe(place).is_ok_and(|observed| observed == Observed::Turning) {
            return;
        }
        tracing::warn!(tome = %self.id(), "its disk was left spinning: spinning it down");
        if let Err(error) = backend.spin_down(place) {
            self.give_up_for(error_chain(&error), true);
        }
    }

    fn spun_down(&mut self) {
        self.record_standby();
        self.parts.fail.pass("tomes-down");
        self.step(Event::SpunDown);
    }

    /// Records that the disk stands still.
    fn record_standby(&mut self) {
        if self.power() != Power::Standby
            && let Err(error) = self.set_power(Power::Standby, None)
        {
            tracing::error!(tome = %self.id(), "{}", error_chain(&error));
        }
        self.parts.gate.stopped(self.id());
        if !self.is_live() || self.is_stopping {
            self.return_token();
        }
    }

    /// Releases the token of a disk that will not spin again, so that no tome waits for the lease
    /// to expire.
    pub(super) fn return_token(&mut self) {
        let message = if self.may_be_spinning { None } else { self.tome.release_token() };
        if let Some(message) = message {
            self.parts.network.send_to_token_manager(self.id(), message);
        }
    }

    pub(super) fn refuse_all(&mut self, error: impl Fn() -> TomesError) {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_values().for_each(|waiter| waiter.refuse(error()));
        let protecting = std::mem::take(&mut self.protecting);
        for reply in protecting.into_values().flatten() {
            drop(reply.send(Err(error())));
        }
    }

    fn object_page(&self, after: Option<String>, max: usize) -> ObjectPage {
        let metadata = self.tome.metadata();
        let objects = metadata.objects_after(after.as_deref()).take(max);
        let listed =
            |(name, object): (&str, &fulgurite_tome_core::metadata::Object)| ListedObject {
                name: name.to_owned(),
                blocks: object.blocks.len() as u64,
                placed: Some(ObjectLocation::new(metadata, object)),
            };
        ObjectPage {
            data_blocks: data_blocks(metadata),
            regions: metadata.regions().count(),
            objects: objects.map(listed).collect(),
        }
    }
}

impl Waiter {
    fn refuse(self, error: TomesError) {
        // The requester may be gone.
        match self {
            Self::Put { done, .. } => done.send(Err(error)),
            Self::Delete(done) => done.send(Err(error)),
            Self::Get { reply, .. } => drop(reply.send(Err(error))),
            Self::Hold(reply) => drop(reply.send(Err(error))),
            Self::Scrub(reply) => drop(reply.send(Err(error))),
            Self::Check(reply) => drop(reply.send(Err(error))),
            Self::Adopt { reply, .. } => drop(reply.send(Err(error))),
        }
    }
}

/// Whether a request may wait while the disk is probed: those that need no disk, and those sent
/// before the failure. Readers get an error and read from the group.
const fn may_wait(request: &TomeRequest) -> bool {
    matches!(
        request,
        TomeRequest::ObjectPage { .. }
            | TomeRequest::MemberSlot { .. }
            | TomeRequest::Put { .. }
            | TomeRequest::Delete { .. }
    )
}

/// Returns the disk's spin-ups of the last day, on the core's axis.
pub(super) fn recent_spin_ups(parts: &Parts) -> Vec<Instant> {
    let totals = parts.ledger.ledger().disk_totals(PlaceId::new(parts.identity.tome.get()));
    // Only the end of each hour is known, so the day is never too short.
    let hours = totals.into_iter().flat_map(Totals::hours);
    let at = |end: UnixTime| Instant::from_nanos(end.as_millis().saturating_mul(1_000_000));
    hours.flat_map(|(end, count)| std::iter::repeat_n(at(end), count as usize)).collect()
}

fn open(disk: &mut Option<Disk>, tome: TomeId) -> Result<&mut Disk> {
    let why = "its disk is needed but is not spinning".to_owned();
    disk.as_mut().ok_or(TomesError::GivenUp { tome, why })
}

/// Returns the label of a physical block, from the commit that follows.
fn label_of(physical_block: PhysicalBlock, after: &VecDeque<Command>) -> Label {
    for command in after {
        let Command::Commit(rows) = command else { continue };
        for row in rows {
            if let Row::Block { region, offset, physical_block: written, version, .. } = row
                && *written == physical_block
            {
                return Label { region: *region, offset: *offset, version: *version };
            }
        }
    }
    Label::UNKNOWN
}

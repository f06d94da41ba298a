//! The thread of a tome: it turns messages into events, and carries out commands.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};

use fulgurite_disks::{Cause, Observed, PlaceId, Power, Totals, Wake};
use fulgurite_tome::awake::{Awake, Row};
use fulgurite_tome::token::TokenId;
use fulgurite_tome::{
    Alarm, Answer, Command, Epoch, Event, RegionIndex, RequestId, Spot, Tome, TomeError, TomeId,
};
use fulgurite_units::{Controller as _, Duration, Instant, Outbox, UnixTime, error_chain};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::hand::{Ended, Stage, begin};
use super::held::Held;
use super::recovery::{Failure, Failures, Health, core};
use super::seats::{Checked, data_blocks};
use super::status::{Listed, Look};
use super::told::Told;
use super::{Ask, Done, Holdings, Letter, Parts, Reply};
use crate::disk::{Disk, Label};
use crate::injected::Failing;
use crate::limits::{ALARMS_KEPT, LETTERS_SHARED_MAX, SPIN_UP_REST, SPIN_UP_TRIES_MAX, TIMER_REST};
use crate::piece_store::Placed;
use crate::watch::Happening;
use crate::{Result, TomesError};

/// Longest sleep when nothing is due.
const IDLE: Duration = Duration::from_secs(3600);

/// State of the thread.
pub(super) struct Loop {
    pub(super) parts: Parts,
    pub(super) tome: Tome,
    inbox: SyncSender<Letter>,
    /// Wall-clock time at the start, in nanoseconds since 1970, and the monotonic time then.
    start: (Instant, Instant),
    /// Open while the disk spins.
    disk: Option<Disk>,
    pub(super) held: Held,
    /// Next step of the disk, and when it is due.
    pub(super) alarm: Option<(Instant, Due)>,
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
    pub(super) told: Told,
    is_stopping: bool,
    /// The disk may still spin: it did not confirm that it stopped.
    pub(super) may_turn: bool,
}

/// The next step of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Begin(Stage),
    Up,
    UpFailed,
    Down,
}

/// Recipient of the answer to a request.
enum Waiter {
    Put { name: String, done: Done<Option<Placed>>, held: OwnedSemaphorePermit },
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
        inbox: SyncSender<Letter>,
        health: watch::Sender<Health>,
    ) -> Result<Self> {
        // The core owns the state from here on: at 24 bytes a block, a second copy is too large.
        let nothing = Awake::new(parts.identity.tome, parts.identity.layout);
        let (awake, clock) = (std::mem::replace(&mut parts.awake, nothing), &parts.clock);
        let wall = Instant::from_nanos(clock.now().as_millis().saturating_mul(1_000_000));
        Ok(Self {
            tome: core(&parts, wall, awake, parts.seed)?,
            inbox,
            start: (wall, clock.passed()),
            disk: None,
            held: Held::default(),
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
            told: Told::default(),
            is_stopping: false,
            may_turn: false,
            parts,
        })
    }

    pub(super) fn run(mut self, letters: &Receiver<Letter>) {
        self.begin_still();
        // A timer event starts what it has to do on its own.
        self.step(Event::Timer);
        self.settle();
        while !(self.is_stopping && self.is_still()) {
            match self.next(letters) {
                Ok(letter) => self.take(letter),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            // Messages that already wait share a commit.
            for letter in letters.try_iter().take(LETTERS_SHARED_MAX) {
                self.take(letter);
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
        !self.power().turns()
    }

    /// Returns the time on the core's axis: since 1970.
    pub(super) fn now(&self) -> Instant {
        self.start.0 + self.parts.clock.passed().since(self.start.1)
    }

    /// Receives the next message; times out when something is due before one arrives.
    fn next(&self, letters: &Receiver<Letter>) -> Result<Letter, RecvTimeoutError> {
        let now = self.now();
        let core = self.tome.deadline().map(|at| at.max(self.timer_from));
        let core = core.filter(|_| self.is_live() && !self.is_stopping);
        let reopens = self.reopens_at().filter(|_| !self.is_stopping);
        let due = core.into_iter().chain(self.alarm.map(|(at, _)| at)).chain(reopens).min();
        let until = due.unwrap_or(now + IDLE);
        match self.parts.clock.sleep_until(self.start.1 + until.since(self.start.0)) {
            Some(time) => letters.recv_timeout(time.into()),
            // With a manual clock time passes only when it is advanced, which arrives as a message.
            None if due.is_some_and(|due| due <= now) => Err(RecvTimeoutError::Timeout),
            None => letters.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn take(&mut self, letter: Letter) {
        match letter {
            Letter::Told { from, message } => self.step(Event::Told { from, message }),
            Letter::Keeper(message) => self.step(Event::Keeper(message)),
            Letter::Ask(ask) => {
                // Clients only see committed state.
                self.settle();
                self.asked(ask);
                self.settle();
            }
            Letter::Stage(ended) => self.ended(ended),
            Letter::Turned(waits) => waits.store(false, Ordering::Release),
            Letter::Retired => {
                self.settle();
                self.retire();
            }
            Letter::Stop => {
                self.settle();
                self.is_stopping = true;
                self.put_down();
            }
        }
    }

    fn pass_time(&mut self) {
        let now = self.now();
        while let Some((_, due)) = self.alarm.take_if(|(at, _)| *at <= now) {
            match due {
                Due::Begin(stage) => self.begin(stage),
                Due::Up => self.up(),
                Due::UpFailed => self.step(Event::UpFailed),
                Due::Down => self.down(),
            }
        }
        if self.reopens_at().is_some_and(|at| at <= now) && !self.is_stopping {
            self.reopen();
        }
        let is_due = |at: Instant| at <= now && self.timer_from <= now;
        if self.tome.deadline().is_some_and(is_due) {
            self.timer_from = now + TIMER_REST;
            self.step(Event::Timer);
        }
    }

    fn asked(&mut self, ask: Ask) {
        let refusal = match self.answerable() {
            _ if self.is_stopping => Some(TomesError::Stopped),
            Err(_) if self.is_probing() && may_wait(&ask) => None,
            answerable => answerable.err(),
        };
        // The requester may be gone.
        if let Ask::Status(reply) = ask {
            let _ = reply.send(self.status());
        } else if let Ask::Wakes(reply) = ask {
            let _ = reply.send(self.parts.ledger.ledger().recent().cloned().collect());
        } else if let Some(error) = refusal {
            ask.refuse(error);
        } else {
            self.wanted(ask);
        }
    }

    fn wanted(&mut self, ask: Ask) {
        self.next_request += 1;
        let request = RequestId(self.next_request);
        match ask {
            Ask::Put { name, bytes, avoided, held, done } => {
                self.waiting.insert(request, Waiter::Put { name: name.clone(), done, held });
                self.step(Event::Put { request, name, bytes, avoided });
            }
            Ask::Get { name, is_own, reply } => {
                self.waiting.insert(request, Waiter::Get { is_own, reply });
                self.step(Event::Get { request, name });
            }
            Ask::Hold { group, offsets, may_wake, reply } => {
                if may_wake || self.power() == Power::Active {
                    self.waiting.insert(request, Waiter::Hold(reply));
                    self.step(Event::Hold { request, group, offsets });
                } else {
                    let (tome, why) = (self.id(), "its disk does not turn".to_owned());
                    drop(reply.send(Err(TomesError::Away { tome, why })));
                }
            }
            Ask::Scrub { reply } => {
                self.waiting.insert(request, Waiter::Scrub(reply));
                self.step(Event::Scrub { request });
            }
            Ask::Check { group, reply } => {
                self.waiting.insert(request, Waiter::Check(reply));
                self.step(Event::Check { request, group });
            }
            Ask::Delete { name, done } => {
                self.waiting.insert(request, Waiter::Delete(done));
                self.step(Event::Delete { request, name });
            }
            Ask::Protected { name, reply } => {
                self.protecting.entry(name).or_default().push(reply);
                self.look_for_protected();
            }
            Ask::Look { after, max, reply } => drop(reply.send(Ok(self.look(after, max)))),
            Ask::Rebuild { planned, group, reply } => {
                self.step(Event::Rebuild { planned, group });
                drop(reply.send(self.answerable()));
            }
            Ask::Absent { tomes, reply } => {
                self.step(Event::Absent { tomes });
                drop(reply.send(self.answerable()));
            }
            Ask::Seat { region, group, reply } => drop(reply.send(Ok(self.seated(region, group)))),
            Ask::Adopt { region, objects, reply } => {
                let (whole, names) = self.whole(objects);
                self.waiting.insert(request, Waiter::Adopt { reply, names });
                self.step(Event::Adopt { request, region, objects: whole });
            }
            Ask::Status(_) | Ask::Wakes(_) => {}
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
                Command::Write { spot, bytes } => {
                    // Only after that commit is the physical block free.
                    self.keep()?;
                    let label = label_of(spot, &commands);
                    let (tome, fail) = (self.id(), &self.parts.fail);
                    self.parts.injected.pass(tome, Failing::Write)?;
                    self.parts.injected.pass(tome, Failing::Room)?;
                    open(&mut self.disk, tome)?.write(spot, label, &bytes, fail)?;
                }
                Command::Commit(rows) => self.held.keep(rows),
                Command::Read { job, spots } => {
                    let tome = self.id();
                    let disk = open(&mut self.disk, tome)?;
                    let read = |spot| Ok(disk.read(spot)?.map(|(_, block)| block));
                    let blocks = spots.into_iter().map(read).collect::<Result<_>>()?;
                    events.push_back(Event::Read { job, blocks });
                }
                Command::Gather { job, spots, wanted } => {
                    let tome = self.id();
                    let whole = open(&mut self.disk, tome)?.gather(&spots, wanted)?;
                    events.push_back(Event::Gathered { job, whole });
                }
                Command::SpinUp { token, epoch } => {
                    self.keep()?;
                    self.spin_up(token, epoch)?;
                }
                Command::SpinDown => {
                    self.keep()?;
                    self.put_down();
                }
                Command::Answer { request, answer } => {
                    // The client must not wait for what follows.
                    self.keep()?;
                    self.answer(request, answer);
                }
                Command::Tell { .. } | Command::Keeper(_) | Command::Alarm(_) => {
                    if self.held.is_empty() {
                        self.say(command);
                    } else {
                        self.held.say(command);
                    }
                }
            }
            if self.held.is_full() {
                self.keep()?;
            }
        }
        Ok(())
    }

    /// Commits what is held, or gives the tome up.
    pub(super) fn settle(&mut self) {
        if !self.is_live() {
            return;
        }
        if let Err(error) = self.keep() {
            self.give_up(&error);
        }
    }

    /// Syncs written blocks, commits held rows, and sends the messages that waited for that.
    fn keep(&mut self) -> Result<()> {
        if self.held.is_empty() {
            // Consecutive block writes share a sync: no two share a physical block, and no row
            // refers to them yet.
            return Ok(());
        }
        self.sync()?;
        let (rows, said) = self.held.take();
        self.parts.injected.pass(self.id(), Failing::Commit)?;
        self.parts.store.commit(&rows, &self.parts.fail)?;
        self.tell_kept(&rows);
        for command in said {
            self.say(command);
        }
        let is_one = |row: &Row| matches!(row, Row::Confirmed { .. } | Row::Removed { .. });
        if rows.iter().any(is_one) {
            self.look_for_protected();
        }
        Ok(())
    }

    fn say(&mut self, command: Command) {
        match command {
            Command::Tell { to, message } => {
                self.parts.fail.pass("tomes-telling");
                if !self.parts.injected.has(self.id(), Failing::Tell) {
                    self.parts.network.tell(self.id(), to, message);
                }
            }
            Command::Keeper(message) => self.parts.network.tell_keeper(self.id(), message),
            Command::Alarm(alarm) => self.alarmed(&alarm),
            Command::Answer { .. }
            | Command::Write { .. }
            | Command::Commit(_)
            | Command::Read { .. }
            | Command::Gather { .. }
            | Command::SpinUp { .. }
            | Command::SpinDown => unreachable!("it is done and not said"),
        }
    }

    fn sync(&mut self) -> Result<()> {
        let Some(disk) = self.disk.as_mut().filter(|disk| disk.is_unsynced()) else {
            return Ok(());
        };
        self.parts.injected.pass(self.parts.identity.tome, Failing::Sync)?;
        disk.sync()?;
        self.parts.fail.pass("tomes-synced");
        Ok(())
    }

    fn answer(&mut self, request: RequestId, answer: Answer) {
        // Protection is reported by `Ask::Protected`, whenever the object was put.
        if answer == Answer::Protected {
            return;
        }
        self.parts.fail.pass("tomes-answering");
        let Some(waiter) = self.waiting.remove(&request) else { return };
        let wrong = || TomesError::Invalid { what: "another answer than was asked for".to_owned() };
        // The requester may be gone.
        match (waiter, answer) {
            (waiter, Answer::Refused(error)) => waiter.refuse(error.into()),
            (Waiter::Put { name, done, held }, Answer::Local) => {
                let (tome, placed) = (self.id(), self.placed(&name));
                let bytes = placed.as_ref().map_or(0, |placed| placed.object.bytes);
                done.tell(Ok(placed));
                self.parts.watched.tell(|| Happening::Local { tome, bytes });
                drop(held);
            }
            (Waiter::Get { reply, .. }, Answer::Bytes(bytes)) => drop(reply.send(Ok(bytes))),
            (Waiter::Hold(reply), Answer::Held { member, held }) => {
                drop(reply.send(Ok((member, held))));
            }
            (Waiter::Scrub(reply), Answer::Scrubbed) => drop(reply.send(Ok(()))),
            (Waiter::Check(reply), Answer::Checked { findings, exchanged }) => {
                drop(reply.send(Ok(Checked { findings, exchanged })));
            }
            (Waiter::Delete(done), Answer::Deleted) => done.tell(Ok(())),
            (Waiter::Adopt { reply, names }, Answer::Adopted) => {
                let awake = self.tome.awake();
                let missing = names.into_iter().filter(|name| awake.object(name).is_none());
                drop(reply.send(Ok(missing.collect())));
            }
            (waiter, _) => waiter.refuse(wrong()),
        }
    }

    /// Answers requests for objects that are now protected, or gone.
    fn look_for_protected(&mut self) {
        let awake = self.tome.awake();
        for (name, replies) in std::mem::take(&mut self.protecting) {
            match awake.object(&name) {
                Some(_) if !awake.is_protected(&name) => {
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

    fn alarmed(&mut self, alarm: &Alarm) {
        let tome = self.id();
        self.parts.watched.tell(|| Happening::Alarm { tome, alarm: alarm.clone() });
        let mut lost = None;
        let text = match alarm {
            Alarm::Healed { region, blocks } => {
                tracing::warn!(%tome, %region, blocks, "bad blocks were made anew");
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
                tracing::info!(%tome, %region, %group, "a region was made anew and has its seat");
                return;
            }
            Alarm::RebuildDropped { region, group } => {
                tracing::info!(%tome, %region, %group, "not made anew: who had the seat is back");
                return;
            }
            Alarm::SeatLost { region, group } => {
                tracing::warn!(%tome, %region, %group, "another tome has the seat of a region");
                return;
            }
            Alarm::Foreign { from, group } => {
                format!("tome {from} said of group {group} what is not its to say, or not true")
            }
        };
        tracing::error!(%tome, "{text}");
        if self.alarms.len() == ALARMS_KEPT {
            self.alarms.pop_front();
        }
        self.alarms.push_back((text, lost));
    }

    /// Returns alarms that are not storage failures.
    pub(super) fn alarms(&self) -> Vec<String> {
        let is_so = |lost: &Option<(RegionIndex, u32)>| {
            lost.is_none_or(|(region, segment)| self.tome.is_broken(region, segment))
        };
        self.alarms.iter().filter(|(_, lost)| is_so(lost)).map(|(text, _)| text.clone()).collect()
    }

    fn spin_up(&mut self, token: TokenId, epoch: Epoch) -> Result<()> {
        let tome = self.id();
        if let Err(error) = self.parts.gate.admit(token, epoch, tome) {
            tracing::warn!(%tome, "not let to turn: {error}");
            self.alarm = Some((self.now() + SPIN_UP_REST, Due::UpFailed));
            return Ok(());
        }
        let (at, cause) = (self.parts.clock.now(), self.cause());
        self.parts.ledger.note(Wake { at, group: None, places: vec![self.place()], cause })?;
        self.parts.fail.pass("tomes-wake-noted");
        self.turn(Power::SpinningUp, Some(cause))?;
        self.begin(Stage::SpinUp);
        Ok(())
    }

    /// Returns the cause of a spin-up: the request that waited longest, else deltas, else a scrub.
    fn cause(&self) -> Cause {
        let of = |(request, waiter): (&RequestId, &Waiter)| match waiter {
            Waiter::Put { .. } | Waiter::Adopt { .. } => Some(Cause::Write(request.0)),
            Waiter::Get { is_own: true, .. } => Some(Cause::Verify(request.0)),
            Waiter::Get { .. } | Waiter::Hold(_) => Some(Cause::Request(request.0)),
            Waiter::Delete(_) => Some(Cause::Delete(request.0)),
            // Another request or deltas may be the cause.
            Waiter::Scrub(_) | Waiter::Check(_) => None,
        };
        let mut regions = self.tome.awake().regions();
        let has_deltas = regions.any(|(_, region)| {
            let has_pending = region.pending().is_some_and(|pending| !pending.is_empty());
            has_pending || region.stored().any(|(_, _, stored)| !stored.is_folded)
        });
        let own = if has_deltas { Cause::Write(0) } else { Cause::Scrub };
        self.waiting.iter().find_map(of).unwrap_or(own)
    }

    fn begin(&mut self, stage: Stage) {
        if let Err(error) = begin(stage, self.place(), &self.parts.backend, &self.inbox) {
            // Handled like a disk that does not answer.
            let place = self.place();
            let reason = error_chain(&error);
            let after = Err(fulgurite_disks::DisksError::SpinUp { place, reason });
            self.ended(Ended { stage, after });
        }
    }

    /// Handles the end of a disk stage.
    fn ended(&mut self, ended: Ended) {
        let Ended { stage, after } = ended;
        self.may_turn |= stage == Stage::SpinDown && after.is_err();
        let next = match (stage, &after) {
            (Stage::SpinUp, Ok(_)) => Due::Begin(Stage::Mount),
            (Stage::Mount, Ok(_)) => Due::Up,
            (Stage::Unmount, _) => Due::Begin(Stage::SpinDown),
            (Stage::SpinDown, _) => Due::Down,
            (Stage::SpinUp | Stage::Mount, Err(error)) => return self.not_up(&error_chain(error)),
        };
        let wait = after.unwrap_or_else(|error| {
            self.give_up_for(error_chain(&error), true);
            Duration::ZERO
        });
        self.alarm = Some((self.now() + wait, next));
    }

    /// The disk did not spin up: retries a limited number of times.
    fn not_up(&mut self, why: &str) {
        tracing::warn!(tome = %self.id(), "{why}");
        self.stand();
        self.tries += 1;
        if self.tries < SPIN_UP_TRIES_MAX && !self.is_probing() {
            self.alarm = Some((self.now() + SPIN_UP_REST, Due::UpFailed));
            return;
        }
        self.give_up_for(why.to_owned(), true);
    }

    /// The disk is up: verifies its identity, probes it if needed, and hands it to the core.
    fn up(&mut self) {
        let opened = self.enter().and_then(|disk| self.probe(&disk).map(|()| disk));
        match opened {
            Ok(disk) => {
                self.parts.fail.pass("tomes-up");
                (self.disk, self.tries) = (Some(disk), 0);
                if self.is_stopping || !self.is_live() {
                    return self.put_down();
                }
                self.step(Event::Up);
            }
            Err(error) => self.give_up(&error),
        }
    }

    fn enter(&self) -> Result<Disk> {
        self.turn(Power::Active, None)?;
        Disk::open(self.parts.guard.enter(self.place())?, &self.parts.identity)
    }

    /// Spins the disk down, if it is up. During a spin-up that follows when it is up.
    pub(super) fn put_down(&mut self) {
        self.disk = None;
        if self.power() != Power::Active {
            return;
        }
        match self.turn(Power::Unmounting, None) {
            Ok(()) => self.begin(Stage::Unmount),
            Err(error) => tracing::error!(tome = %self.id(), "{}", error_chain(&error)),
        }
    }

    /// Spins down a disk that still spins because the previous process was killed.
    fn begin_still(&mut self) {
        let (place, backend) = (self.place(), &self.parts.backend);
        if !backend.observe(place).is_ok_and(|observed| observed == Observed::Turning) {
            return;
        }
        tracing::warn!(tome = %self.id(), "its disk turns, and is put down");
        if let Err(error) = backend.spin_down(place) {
            self.give_up_for(error_chain(&error), true);
        }
    }

    fn down(&mut self) {
        self.stand();
        self.parts.fail.pass("tomes-down");
        self.step(Event::Down);
    }

    /// Records that the disk stands still.
    fn stand(&mut self) {
        if self.power() != Power::Standby
            && let Err(error) = self.turn(Power::Standby, None)
        {
            tracing::error!(tome = %self.id(), "{}", error_chain(&error));
        }
        self.parts.gate.stopped(self.id());
        if !self.is_live() || self.is_stopping {
            self.give_token_back();
        }
    }

    /// Releases the token of a disk that will not spin again, so that no tome waits for the lease
    /// to expire.
    pub(super) fn give_token_back(&mut self) {
        let message = if self.may_turn { None } else { self.tome.lets_go() };
        if let Some(message) = message {
            self.parts.network.tell_keeper(self.id(), message);
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

    fn look(&self, after: Option<String>, max: usize) -> Look {
        let awake = self.tome.awake();
        let objects = awake.objects_after(after.as_deref()).take(max);
        let listed = |(name, object): (&str, &fulgurite_tome::awake::Object)| Listed {
            name: name.to_owned(),
            blocks: object.blocks.len() as u64,
            placed: Some(Placed::of(awake, object)),
        };
        Look {
            data_blocks: data_blocks(awake),
            regions: awake.regions().count(),
            objects: objects.map(listed).collect(),
        }
    }
}

impl Waiter {
    fn refuse(self, error: TomesError) {
        // The requester may be gone.
        match self {
            Self::Put { done, .. } => done.tell(Err(error)),
            Self::Delete(done) => done.tell(Err(error)),
            Self::Get { reply, .. } => drop(reply.send(Err(error))),
            Self::Hold(reply) => drop(reply.send(Err(error))),
            Self::Scrub(reply) => drop(reply.send(Err(error))),
            Self::Check(reply) => drop(reply.send(Err(error))),
            Self::Adopt { reply, .. } => drop(reply.send(Err(error))),
        }
    }
}

/// Whether a request may wait while the disk is probed: those that need no disk, and those sent
/// before the failure. Readers are told to read from the group.
const fn may_wait(ask: &Ask) -> bool {
    matches!(ask, Ask::Look { .. } | Ask::Seat { .. } | Ask::Put { .. } | Ask::Delete { .. })
}

/// Returns the disk's spin-ups of the last day, on the core's axis.
pub(super) fn wakes_of(parts: &Parts) -> Vec<Instant> {
    let totals = parts.ledger.ledger().of(PlaceId::new(parts.identity.tome.get()));
    // Only the end of each hour is known, so the day is never too short.
    let hours = totals.into_iter().flat_map(Totals::hours);
    let at = |end: UnixTime| Instant::from_nanos(end.as_millis().saturating_mul(1_000_000));
    hours.flat_map(|(end, count)| std::iter::repeat_n(at(end), count as usize)).collect()
}

fn open(disk: &mut Option<Disk>, tome: TomeId) -> Result<&mut Disk> {
    let why = "its disk is to be used and does not turn".to_owned();
    disk.as_mut().ok_or(TomesError::GivenUp { tome, why })
}

/// Returns the label of a physical block, from the commit that follows.
fn label_of(spot: Spot, after: &VecDeque<Command>) -> Label {
    for command in after {
        let Command::Commit(rows) = command else { continue };
        for row in rows {
            if let Row::Block { region, offset, spot: of, version, .. } = row
                && *of == spot
            {
                return Label { region: *region, offset: *offset, version: *version };
            }
        }
    }
    Label::UNKNOWN
}

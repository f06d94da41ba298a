//! A glass library in a run: the controller, the machines around it, and the reads in progress.

use fulgurite_library::{
    Action, CommandId, Destination, Event, Library, Machine, Outcome, Output, PanelIndex,
    RailPosition, RequestId, Source, TrackSpan,
};
use fulgurite_restore::{self as restore, Command, Piece, TierIndex};
use fulgurite_units::{
    ByteCount, Controller as _, DriveIndex, Instant, Outbox, PlatterId, RandomStream, Seed,
    ShuttleIndex,
};

use super::accounts::Accounts;
use super::arrivals::{Arrival, Arrivals};
use super::batteries::{Batteries, LOOK};
use super::customers::{Customers, instant, place_of, platter_of};
use super::files::{
    File, Files, NEW_PLATTER, OBJECTIVE, Shard, shard_number, shard_sizes, span_of, tracks_of,
};
use super::machines::{Device, Machines, Work};
use super::restoring::{Part, Told, Wanted};
use super::supply::{Supply, is_new, number_of, stored_id};
use crate::Error;
use crate::engine::{self, Agenda, Ended, Observer, Stage, System};
use crate::glass::result::RunResult;
use crate::glass::scenario::{Scenario, Writes};
use crate::workload::PlacementSampler;

/// How many times a part of a recovery may be retried on another platter, drawn at random. The
/// platters of a set are in different blast zones, so one failure leaves 16 of 19 available, but
/// some draws hit an unavailable one.
const RECOVERY_RETRIES: u8 = 16;

/// What can be observed of a glass library.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// An event for the controller.
    Event(&'a Event),
    /// An output of the controller.
    Output(&'a Output),
    /// The controller has handled an event.
    Stepped(&'a Library),
    /// An event for the restore controller, where reads are restores.
    Told(&'a restore::Event),
    /// A command of the restore controller.
    Decided(&'a Command),
}

/// Runs a scenario.
///
/// # Errors
/// When a parameter is out of range.
pub fn run(scenario: &Scenario, seed: u64) -> Result<RunResult, Error> {
    engine::run::<Glass>(scenario, seed)
}

/// Runs a scenario with an observer.
///
/// # Errors
/// When a parameter is out of range.
pub fn run_observed<O: Observer<Glass>>(
    scenario: &Scenario,
    seed: u64,
    observer: &mut O,
) -> Result<RunResult, Error> {
    engine::run_observed::<Glass, O>(scenario, seed, observer)
}

/// Returns how many platters of a scenario cannot be fetched in a run with this seed.
///
/// # Errors
/// When there are more platters than slots.
pub(crate) fn unavailable_platters(scenario: &Scenario, seed: u64) -> Result<usize, Error> {
    let supply = Supply::new(scenario, &Seed::new(seed).child(b"supply"))?;
    Ok((0..scenario.platters).filter(|&platter| supply.is_unavailable(platter)).count())
}

/// A pending event.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// A machine completes a command.
    Done(CommandId, Device),
    /// A drive checks whether its pass is over.
    Alarm(DriveIndex),
    /// A shuttle passes a position that it has to report.
    Passed(CommandId, Device, RailPosition),
    /// A machine breaks.
    Break(Machine),
    /// A machine is repaired.
    Repair(Machine),
    /// A flat battery is replaced.
    Swap(ShuttleIndex),
    /// All battery levels are polled.
    Look,
    /// A new platter is ejected, on this panel.
    Write(PanelIndex),
    /// The controller's timer fires.
    Timer,
    /// The restore controller's timer fires.
    Rested,
}

/// Precedes events of the restore controller in the hash of a run; no library event has this
/// discriminant.
const OF_RESTORES: u64 = u64::MAX;

/// A glass library with simulated machines.
#[derive(Debug)]
pub struct Glass {
    scenario: Scenario,
    library: Library,
    machines: Machines,
    supply: Supply,
    files: Files,
    placement: PlacementSampler,
    offsets: RandomStream,
    accounts: Accounts,
    batteries: Batteries,
    /// Present if reads are restores.
    customers: Option<Box<Customers>>,
    out: Outbox<Output>,
    pending: Vec<Event>,
    timer: Option<Instant>,
    drives: usize,
}

/// The stage of a library's run.
type On<'o, O> = Stage<'o, Glass, O>;

impl System for Glass {
    const NAME: &'static str = "glass";
    type Scenario = Scenario;
    type Arrival = Arrival;
    type Next = Next;
    type Seen<'a> = Seen<'a>;
    type Result = RunResult;

    fn new(scenario: &Scenario, seed: &Seed, agenda: &mut Agenda<Next>) -> Result<Self, Error> {
        scenario.validate()?;
        let library = Library::with_policy(&scenario.library, scenario.policy.clone())?;
        let shape = &scenario.library;
        let drives = usize::from(shape.drives_per_panel() * shape.panels);
        let placement = scenario.workload.placement;
        let placement =
            PlacementSampler::new(placement, scenario.platters, seed.child(b"placement"))?;
        for fault in &scenario.faults {
            agenda.push(Instant::ZERO + fault.at, Next::Break(fault.machine));
            if let Some(repaired) = fault.repaired_at {
                agenda.push(Instant::ZERO + repaired, Next::Repair(fault.machine));
            }
        }
        begin_writes(scenario, agenda);
        if scenario.battery.is_some() {
            agenda.push(Instant::ZERO, Next::Look);
        }
        Ok(Self {
            machines: Machines::new(scenario, drives, &seed.child(b"machines")),
            supply: Supply::new(scenario, &seed.child(b"supply"))?,
            accounts: Accounts::new(scenario),
            batteries: Batteries::new(scenario),
            customers: Customers::new(scenario, drives).map(Box::new),
            files: Files::default(),
            offsets: seed.child(b"offsets").stream(),
            out: Outbox::new(),
            pending: Vec::new(),
            timer: None,
            scenario: scenario.clone(),
            library,
            placement,
            drives,
        })
    }

    fn arrivals(scenario: &Scenario, seed: &Seed) -> Result<impl Iterator<Item = Arrival>, Error> {
        Arrivals::new(scenario, seed)
    }

    fn arrives_at(arrival: &Arrival) -> Instant {
        arrival.read.at
    }

    /// Reads a file: sends a request for each shard of it.
    fn arrive<O: Observer<Self>>(&mut self, arrival: &Arrival, stage: &mut On<'_, O>) {
        if self.customers.is_some() {
            return self.arrive_at_archive(arrival, stage);
        }
        let read = &arrival.read;
        let measured = self.accounts.is_measured(read.at);
        let shard_size = self.scenario.shard_size;
        let sizes = shard_sizes(read.size, shard_size);
        let (arrived, size) = (read.at, read.size);
        // The file itself counts as a shard until all are requested.
        let file = File { arrived, size, left: 1, measured, failed: false };
        let file = self.files.files.insert(file);
        for size in sizes {
            let platter = self.placement.draw();
            if self.supply.is_unavailable(platter) {
                self.recover(file, platter, size, stage);
            } else {
                let tracks = tracks_of(&self.scenario, size, &mut self.offsets);
                self.request(file, platter, tracks, false, stage);
            }
        }
        self.accounts.queue_max = self.accounts.queue_max.max(self.files.shards.len());
        self.shard_ended(file, true, stage.now());
    }

    fn happen<O: Observer<Self>>(&mut self, next: Next, stage: &mut On<'_, O>) {
        let at = stage.now();
        match next {
            Next::Done(command, device) => {
                if let Some(work) = self.machines.done(command, device) {
                    self.ended(&work, stage);
                }
            }
            Next::Alarm(drive) => {
                if let Some(work) = self.machines.alarm(at, drive, stage.agenda()) {
                    self.ended(&work, stage);
                }
            }
            Next::Passed(command, device, at) => {
                if self.machines.is_under_way(command, device) {
                    self.step(Event::Passed { command, at }, stage);
                }
            }
            Next::Break(machine) => {
                self.machines.break_down(machine);
                self.step(Event::Broke { machine }, stage);
            }
            Next::Repair(machine) => {
                self.machines.repair(machine);
                self.step(Event::Repaired { machine }, stage);
                if let Machine::Shuttle(shuttle) = machine {
                    self.batteries.tell_again(shuttle);
                    self.report(shuttle, stage);
                }
            }
            Next::Swap(shuttle) => {
                self.batteries.swap(shuttle, at);
                self.happen(Next::Repair(Machine::Shuttle(shuttle)), stage);
            }
            Next::Look => {
                for shuttle in self.batteries.shuttles() {
                    self.look(shuttle, None, stage);
                }
                stage.put(at + LOOK, Next::Look);
            }
            Next::Write(panel) => self.write(panel, stage),
            Next::Timer => {
                if self.timer == Some(at) {
                    self.timer = None;
                    self.step(Event::Timer, stage);
                }
            }
            Next::Rested => {
                if let Some(customers) = &mut self.customers
                    && customers.timer == Some(at)
                {
                    customers.timer = None;
                    customers.restoring.tell(restore::Event::Timer);
                    self.settle(stage);
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        self.files.files.len() == 0
    }

    fn result(mut self, ended: Ended) -> RunResult {
        if let Some(since) = self.supply.backlog.oldest() {
            self.note_unverified(since, ended.at);
        }
        let shortfall = self.supply.backlog.shortfall();
        let track_size = self.scenario.track_size.get();
        let Self { scenario, library, batteries, drives, accounts, customers, .. } = self;
        let counters = *library.counters();
        let result = accounts.result(&scenario, &counters, &batteries, drives, ended);
        RunResult {
            verify_shortfall_bytes: shortfall.map(|tracks| tracks.saturating_mul(track_size)),
            restores: customers.map(|customers| customers.result()),
            ..result
        }
    }
}

impl Glass {
    /// Requests a file as a restore; the restore controller decides when its pieces are read.
    fn arrive_at_archive<O: Observer<Self>>(&mut self, arrival: &Arrival, stage: &mut On<'_, O>) {
        let Arrival { read, retrieval } = *arrival;
        let Some(customers) = &mut self.customers else { return };
        let measured = self.accounts.is_measured(read.at);
        let file = File { arrived: read.at, size: read.size, left: 1, measured, failed: false };
        let file = self.files.files.insert(file);
        let parts = shard_sizes(read.size, self.scenario.shard_size).map(|bytes| {
            let place = Some(place_of(self.placement.draw()));
            let (tracks, offset) = span_of(&self.scenario, bytes, &mut self.offsets);
            Part {
                piece: Piece { tier: TierIndex::default(), place, offset: Some(offset), bytes },
                tracks,
            }
        });
        customers.ask(file, retrieval, read.at, parts.collect());
        let open = customers.restoring.pieces_open();
        self.accounts.queue_max = self.accounts.queue_max.max(open);
        self.settle(stage);
    }

    /// Returns the next read that restores need from the library.
    fn next_read<O: Observer<Self>>(&mut self, stage: &mut On<'_, O>) -> Option<Event> {
        loop {
            let Self { customers, supply, .. } = self;
            let customers = customers.as_mut()?;
            let now = stage.now();
            let wanted = customers.restoring.next(now, supply, |told| match told {
                Told::Event(event) => {
                    stage.note(&(OF_RESTORES, event));
                    stage.show(Seen::Told(event));
                }
                Told::Command(command) => {
                    let is_visit = |command: &Command| {
                        matches!(command, Command::Fetch { place: Some(_), .. })
                    };
                    customers.visits += u64::from(is_visit(command));
                    stage.show(Seen::Decided(command));
                }
            })?;
            match wanted {
                Wanted::Read { request, place, tracks, due } => {
                    let platter = platter_of(place);
                    return Some(Event::Read {
                        request,
                        platter: stored_id(platter),
                        slot: self.supply.slot(platter),
                        tracks,
                        deadline: instant(due),
                    });
                }
                Wanted::Restored(restore) => {
                    let files = &mut self.files.files;
                    let took = |file| {
                        let file = files.get_mut(file);
                        file.measured.then(|| now.since(file.arrived))
                    };
                    if let Some(file) = customers.restored(restore, took) {
                        self.shard_ended(file, true, now);
                    }
                }
                Wanted::GaveUp(restore) => {
                    if let Some(file) = customers.gave_up(restore, now) {
                        self.shard_ended(file, false, now);
                    }
                }
            }
        }
    }

    /// Ejects a new platter, and schedules the next one.
    fn write<O: Observer<Self>>(&mut self, panel: PanelIndex, stage: &mut On<'_, O>) {
        if let Writes::Every { interval, .. } = self.scenario.writes {
            let next = (panel.get() + 1) % self.scenario.library.panels;
            stage.put(stage.now() + interval, Next::Write(PanelIndex::new(next)));
            if stage.now() <= Instant::ZERO + self.scenario.measure_until {
                let under_way = self.machines.passing_tracks(stage.now());
                self.supply.backlog.window_ends(stage.now(), under_way);
            }
        }
        let event = self.supply.new_platter(panel, stage.now());
        let most = self.supply.waiting.iter().copied().max().unwrap_or(0);
        self.accounts.eject_bay_max = self.accounts.eject_bay_max.max(most);
        self.step(event, stage);
    }

    /// Updates and reports the level of a battery. A flat one stops its shuttle; returns whether it
    /// did.
    fn look<O: Observer<Self>>(
        &mut self,
        shuttle: ShuttleIndex,
        operation: Option<(&Action, Instant)>,
        stage: &mut On<'_, O>,
    ) -> bool {
        let machine = Machine::Shuttle(shuttle);
        if self.machines.is_broken(machine) {
            return false;
        }
        let flat = self.batteries.passed(shuttle, stage.now(), operation);
        if let Some(battery) = self.batteries.of().filter(|_| flat) {
            stage.put(stage.now() + battery.swap, Next::Swap(shuttle));
            self.machines.break_down(machine);
            self.step(Event::Broke { machine }, stage);
        } else {
            self.report(shuttle, stage);
        }
        flat
    }

    fn report<O: Observer<Self>>(&mut self, shuttle: ShuttleIndex, stage: &mut On<'_, O>) {
        if let Some(event) = self.batteries.news(shuttle) {
            self.step(event, stage);
        }
    }

    fn ended<O: Observer<Self>>(&mut self, work: &Work, stage: &mut On<'_, O>) {
        let action = work.command.action;
        if let Machine::Shuttle(shuttle) = action.machine()
            && self.look(shuttle, Some((&action, work.started)), stage)
        {
            return;
        }
        let new = match action {
            Action::Mount { platter, .. }
            | Action::Unmount { platter, .. }
            | Action::VerifyPass { platter, .. }
            | Action::Pick { platter, .. }
            | Action::Place { platter, .. } => is_new(platter),
            Action::Move { .. }
            | Action::Crab { .. }
            | Action::Charge { .. }
            | Action::Switch { .. }
            | Action::Seek { .. }
            | Action::Read { .. } => false,
        };
        self.accounts.worked(&action, new, work.started, stage.now());
        if new {
            self.handled_new(&action, work, stage.now());
        }
        let answer = self.machines.answer(work);
        self.step(answer, stage);
    }

    /// Notes that a new platter was moved, or that a pass over it ended.
    fn handled_new(&mut self, action: &Action, work: &Work, now: Instant) {
        let backlog = &mut self.supply.backlog;
        match *action {
            Action::VerifyPass { platter, .. } => {
                let tracks = self.machines.tracks_done(work);
                backlog.passed(number_of(platter), tracks);
                if self.accounts.is_measured(now) {
                    self.accounts.verified_tracks += u64::from(tracks);
                }
            }
            Action::Place { platter, to: Destination::Drive(..), .. }
            | Action::Mount { platter, .. } => backlog.moved(number_of(platter), true),
            Action::Pick { platter, from: Source::Drive(..), .. } => {
                backlog.moved(number_of(platter), false);
            }
            Action::Place { .. }
            | Action::Pick { .. }
            | Action::Move { .. }
            | Action::Crab { .. }
            | Action::Charge { .. }
            | Action::Unmount { .. }
            | Action::Switch { .. }
            | Action::Seek { .. }
            | Action::Read { .. } => {}
        }
    }

    /// Reads other platters instead: from one set, the same tracks of each.
    fn recover<O: Observer<Self>>(
        &mut self,
        file: u32,
        platter: u32,
        size: ByteCount,
        stage: &mut On<'_, O>,
    ) {
        let stand_ins = self.supply.stand_ins(platter);
        self.files.files.get_mut(file).failed |= stand_ins.is_empty();
        let mut tracks = None;
        for platter in stand_ins {
            let drawn = tracks.filter(|_| self.supply.has_sets());
            let drawn = drawn.unwrap_or_else(|| tracks_of(&self.scenario, size, &mut self.offsets));
            tracks = Some(drawn);
            self.request(file, platter, drawn, true, stage);
        }
    }

    fn request<O: Observer<Self>>(
        &mut self,
        file: u32,
        platter: u32,
        tracks: TrackSpan,
        recovers: bool,
        stage: &mut On<'_, O>,
    ) {
        let retries = if recovers { RECOVERY_RETRIES } else { 1 };
        self.files.files.get_mut(file).left += 1;
        self.ask(Shard { file, platter, tracks, retries, recovers }, stage);
    }

    fn ask<O: Observer<Self>>(&mut self, shard: Shard, stage: &mut On<'_, O>) {
        let deadline = self.files.files.get_mut(shard.file).arrived + OBJECTIVE;
        let number = self.files.shards.insert(shard);
        let event = Event::Read {
            request: RequestId::new(u64::from(number)),
            platter: stored_id(shard.platter),
            slot: self.supply.slot(shard.platter),
            tracks: shard.tracks,
            deadline,
        };
        self.step(event, stage);
    }

    /// Steps the controller with an event, and executes its outputs.
    fn step<O: Observer<Self>>(&mut self, event: Event, stage: &mut On<'_, O>) {
        self.step_once(event, stage);
        self.settle(stage);
    }

    /// Steps the controller with the events that follow from its outputs.
    fn settle<O: Observer<Self>>(&mut self, stage: &mut On<'_, O>) {
        while let Some(event) = self.pending.pop().or_else(|| self.next_read(stage)) {
            self.step_once(event, stage);
        }
        self.set_timer(stage);
    }

    fn step_once<O: Observer<Self>>(&mut self, event: Event, stage: &mut On<'_, O>) {
        stage.note(&event);
        stage.show(Seen::Event(&event));
        if let Some(customers) = &mut self.customers {
            customers.busy.event(stage.now(), &event);
        }
        self.library.step(stage.now(), event, &mut self.out);
        stage.show(Seen::Stepped(&self.library));
        let mut out = std::mem::take(&mut self.out);
        for output in out.as_slice() {
            stage.show(Seen::Output(output));
            if let Some(customers) = &mut self.customers {
                customers.busy.output(stage.now(), output);
            }
            self.carry_out(output, stage);
        }
        out.clear();
        self.out = out;
    }

    fn set_timer<O: Observer<Self>>(&mut self, stage: &mut On<'_, O>) {
        if let Some(due) = self.library.deadline()
            && self.timer.is_none_or(|timer| due < timer)
        {
            self.timer = Some(due);
            stage.put(due, Next::Timer);
        }
        if let Some(customers) = &mut self.customers
            && let Some(due) = customers.restoring.deadline()
            && customers.timer.is_none_or(|timer| due < timer)
        {
            customers.timer = Some(due);
            stage.put(due, Next::Rested);
        }
    }

    fn carry_out<O: Observer<Self>>(&mut self, output: &Output, stage: &mut On<'_, O>) {
        match *output {
            Output::Do(ref command) => {
                if let Action::Mount { platter, slot: _, .. } = command.action
                    && is_new(platter)
                {
                    self.mounts_new(platter, stage);
                }
                self.machines.start(stage.now(), command, stage.agenda());
            }
            Output::Halt { command } => self.machines.halt(stage.now(), command, stage.agenda()),
            Output::Traveled(ref travel) => {
                self.accounts.traveled(travel, &self.scenario, stage.now());
            }
            Output::Finished { request, outcome } => self.finished(request, outcome, stage.now()),
            Output::Rejected { request, .. } => self.unavailable(request, stage.now()),
        }
    }

    /// Notes that a new platter is being mounted; if for the first time, the next may be ejected.
    fn mounts_new<O: Observer<Self>>(&mut self, platter: PlatterId, stage: &mut On<'_, O>) {
        let Some(panel) = self.supply.mounted(platter) else { return };
        if matches!(self.scenario.writes, Writes::Saturated { .. }) && stage.more_to_come() {
            stage.put(stage.now(), Next::Write(panel));
        }
    }

    fn finished(&mut self, request: RequestId, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Read => {
                if let Some(customers) = &mut self.customers {
                    customers.restoring.ended(request, true, &mut self.supply);
                } else if let Some(number) = shard_number(request) {
                    let shard = self.files.shards.remove(number);
                    self.shard_ended(shard.file, true, now);
                }
            }
            Outcome::Verified => {
                if let Some(since) = self.supply.verified(request) {
                    self.note_unverified(since, now);
                }
                if let Some(event) = self.supply.store(request) {
                    self.pending.push(event);
                }
            }
            Outcome::Stored | Outcome::Canceled => {}
            Outcome::Failed(_) => self.unavailable(request, now),
        }
    }

    /// Counts how long a new platter was unverified, up to the end of the window.
    fn note_unverified(&mut self, since: Instant, until: Instant) {
        let end = Instant::ZERO + self.scenario.measure_until;
        let age = until.min(end).since(since);
        self.accounts.unverified_age_max = self.accounts.unverified_age_max.max(age);
    }

    /// Handles a request that cannot be served: reads other platters of the set instead.
    fn unavailable(&mut self, request: RequestId, now: Instant) {
        if request.get() >= NEW_PLATTER {
            return;
        }
        if let Some(customers) = &mut self.customers {
            customers.restoring.ended(request, false, &mut self.supply);
            return;
        }
        let Some(number) = shard_number(request) else { return };
        let shard = self.files.shards.remove(number);
        let stand_ins = match shard.retries {
            0 => Vec::new(),
            _ if shard.recovers => self.supply.stand_in(shard.platter).into_iter().collect(),
            _ => self.supply.stand_ins(shard.platter),
        };
        let reads = u32::try_from(stand_ins.len()).unwrap_or(u32::MAX);
        self.files.files.get_mut(shard.file).left += reads;
        for platter in stand_ins {
            let retries = if shard.recovers { shard.retries - 1 } else { RECOVERY_RETRIES };
            let part = Shard { platter, retries, recovers: true, ..shard };
            let deadline = self.files.files.get_mut(part.file).arrived + OBJECTIVE;
            let number = self.files.shards.insert(part);
            self.pending.push(Event::Read {
                request: RequestId::new(u64::from(number)),
                platter: stored_id(platter),
                slot: self.supply.slot(platter),
                tracks: part.tracks,
                deadline,
            });
        }
        self.shard_ended(shard.file, reads > 0, now);
    }

    fn shard_ended(&mut self, file: u32, read: bool, now: Instant) {
        let state = self.files.files.get_mut(file);
        state.left -= 1;
        state.failed |= !read;
        if state.left > 0 {
            return;
        }
        let file = self.files.files.remove(file);
        self.accounts.last_end = now;
        if !file.measured {
            return;
        }
        if file.failed {
            self.accounts.failed += 1;
            return;
        }
        self.accounts.reads += 1;
        self.accounts.bytes += file.size.get();
        self.accounts.completion.add(now.since(file.arrived));
    }
}

/// Schedules the first of the new platters that need no trigger.
fn begin_writes(scenario: &Scenario, agenda: &mut Agenda<Next>) {
    let panels = (0..scenario.library.panels).map(PanelIndex::new);
    match scenario.writes {
        Writes::None => {}
        Writes::Saturated { .. } => {
            // One for each drive, and one more.
            for panel in panels {
                for _ in 0..=scenario.library.drives_per_panel() {
                    agenda.push(Instant::ZERO, Next::Write(panel));
                }
            }
        }
        Writes::Every { .. } => agenda.push(Instant::ZERO, Next::Write(PanelIndex::new(0))),
    }
}

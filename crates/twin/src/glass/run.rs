//! A glass library in a run: the controller, the machines around it, and the reads in progress.

use fulgurite_glass_core::control::{
    Action, CommandId, Destination, Event, Library, Machine, Outcome, Output, PanelIndex,
    RailPosition, RequestId, Source, TrackSpan,
};
use fulgurite_restore::{self as restore, Command, Piece, TierIndex};
use fulgurite_units::{
    ByteCount, Controller as _, DriveIndex, Instant, Outbox, PlatterId, RandomStream, Seed,
    ShuttleIndex,
};

use super::arrivals::{Arrival, Arrivals};
use super::batteries::{BATTERY_POLL_INTERVAL, Batteries};
use super::customers::{Customers, instant, place_of, platter_of};
use super::files::{
    File, Files, NEW_PLATTER, OBJECTIVE, Shard, shard_number, shard_sizes, span_of, tracks_of,
};
use super::machines::{Device, Machines, Work};
use super::restore_driver::{ControllerTrace, Part, RestoreOutput};
use super::stats::Stats;
use super::supply::{Supply, is_new, number_of, stored_id};
use crate::Error;
use crate::engine::{self, Context, Ended, EventQueue, Observer, System};
use crate::glass::result::RunResult;
use crate::glass::scenario::{Scenario, Writes};
use crate::workload::PlacementSampler;

/// How many times a part of a recovery may be retried on another platter, drawn at random. The
/// platters of a set are in different blast zones, so one failure leaves 16 of 19 available, but
/// some draws hit an unavailable one.
const RECOVERY_RETRIES: u8 = 16;

/// What can be observed of a glass library.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// An event for the controller.
    Event(&'a Event),
    /// An output of the controller.
    Output(&'a Output),
    /// The controller has handled an event.
    Stepped(&'a Library),
    /// An event for the restore controller, where reads are restores.
    RestoreEvent(&'a restore::Event),
    /// A command of the restore controller.
    RestoreCommand(&'a Command),
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
pub enum PendingEvent {
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
    PollBatteries,
    /// A new platter is ejected, on this panel.
    Write(PanelIndex),
    /// The controller's timer fires.
    Timer,
    /// The restore controller's timer fires.
    RestoreTimer,
}

/// Precedes events of the restore controller in the hash of a run; no library event has this
/// discriminant.
const RESTORE_EVENT_TAG: u64 = u64::MAX;

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
    stats: Stats,
    batteries: Batteries,
    /// Present if reads are restores.
    customers: Option<Box<Customers>>,
    out: Outbox<Output>,
    pending: Vec<Event>,
    timer: Option<Instant>,
    drives: usize,
}

/// The engine context of a library's run.
type GlassContext<'o, O> = Context<'o, Glass, O>;

impl System for Glass {
    type Scenario = Scenario;
    type Arrival = Arrival;
    type PendingEvent = PendingEvent;
    type Observation<'a> = Observation<'a>;
    type Result = RunResult;

    fn new(
        scenario: &Scenario,
        seed: &Seed,
        event_queue: &mut EventQueue<PendingEvent>,
    ) -> Result<Self, Error> {
        scenario.validate()?;
        let library = Library::with_policy(&scenario.library, scenario.policy.clone())?;
        let shape = &scenario.library;
        let drives = usize::from(shape.drives_per_panel() * shape.panels);
        let placement = scenario.workload.placement;
        let placement =
            PlacementSampler::new(placement, scenario.platters, seed.child(b"placement"))?;
        for fault in &scenario.faults {
            event_queue.push(Instant::ZERO + fault.at, PendingEvent::Break(fault.machine));
            if let Some(repaired) = fault.repaired_at {
                event_queue.push(Instant::ZERO + repaired, PendingEvent::Repair(fault.machine));
            }
        }
        begin_writes(scenario, event_queue);
        if scenario.battery.is_some() {
            event_queue.push(Instant::ZERO, PendingEvent::PollBatteries);
        }
        Ok(Self {
            machines: Machines::new(scenario, drives, &seed.child(b"machines")),
            supply: Supply::new(scenario, &seed.child(b"supply"))?,
            stats: Stats::new(scenario),
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

    fn arrival_time(arrival: &Arrival) -> Instant {
        arrival.read.at
    }

    /// Reads a file: sends a request for each shard of it.
    fn handle_arrival<O: Observer<Self>>(
        &mut self,
        arrival: &Arrival,
        ctx: &mut GlassContext<'_, O>,
    ) {
        if self.customers.is_some() {
            return self.request_restore(arrival, ctx);
        }
        let read = &arrival.read;
        let measured = self.stats.is_measured(read.at);
        let shard_size = self.scenario.shard_size;
        let sizes = shard_sizes(read.size, shard_size);
        let (arrived, size) = (read.at, read.size);
        // The file itself counts as a shard until all are requested.
        let file = File { arrived, size, left: 1, measured, failed: false };
        let file = self.files.files.insert(file);
        for size in sizes {
            let platter = self.placement.draw();
            if self.supply.is_unavailable(platter) {
                self.recover(file, platter, size, ctx);
            } else {
                let tracks = tracks_of(&self.scenario, size, &mut self.offsets);
                self.request(file, platter, tracks, false, ctx);
            }
        }
        self.stats.queue_max = self.stats.queue_max.max(self.files.shards.len());
        self.shard_ended(file, true, ctx.now());
    }

    fn handle_event<O: Observer<Self>>(
        &mut self,
        next: PendingEvent,
        ctx: &mut GlassContext<'_, O>,
    ) {
        let at = ctx.now();
        match next {
            PendingEvent::Done(command, device) => {
                if let Some(work) = self.machines.done(command, device) {
                    self.ended(&work, ctx);
                }
            }
            PendingEvent::Alarm(drive) => {
                if let Some(work) = self.machines.alarm(at, drive, ctx.event_queue()) {
                    self.ended(&work, ctx);
                }
            }
            PendingEvent::Passed(command, device, at) => {
                if self.machines.is_under_way(command, device) {
                    self.step(Event::Passed { command, at }, ctx);
                }
            }
            PendingEvent::Break(machine) => {
                self.machines.break_down(machine);
                self.step(Event::Broke { machine }, ctx);
            }
            PendingEvent::Repair(machine) => {
                self.machines.repair(machine);
                self.step(Event::Repaired { machine }, ctx);
                if let Machine::Shuttle(shuttle) = machine {
                    self.batteries.report_again(shuttle);
                    self.report(shuttle, ctx);
                }
            }
            PendingEvent::Swap(shuttle) => {
                self.batteries.swap(shuttle, at);
                self.handle_event(PendingEvent::Repair(Machine::Shuttle(shuttle)), ctx);
            }
            PendingEvent::PollBatteries => {
                for shuttle in self.batteries.shuttles() {
                    self.poll_battery(shuttle, None, ctx);
                }
                ctx.put(at + BATTERY_POLL_INTERVAL, PendingEvent::PollBatteries);
            }
            PendingEvent::Write(panel) => self.write(panel, ctx),
            PendingEvent::Timer => {
                if self.timer == Some(at) {
                    self.timer = None;
                    self.step(Event::Timer, ctx);
                }
            }
            PendingEvent::RestoreTimer => {
                if let Some(customers) = &mut self.customers
                    && customers.timer == Some(at)
                {
                    customers.timer = None;
                    customers.restore_driver.pass_event(restore::Event::Timer);
                    self.settle(ctx);
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        self.files.files.len() == 0
    }

    fn result(mut self, ended: Ended) -> RunResult {
        if let Some(since) = self.supply.backlog.oldest() {
            self.record_unverified(since, ended.at);
        }
        let shortfall = self.supply.backlog.shortfall();
        let track_size = self.scenario.track_size.get();
        let Self { scenario, library, batteries, drives, stats, customers, .. } = self;
        let counters = *library.counters();
        let result = stats.result(&scenario, &counters, &batteries, drives, ended);
        RunResult {
            verify_shortfall_bytes: shortfall.map(|tracks| tracks.saturating_mul(track_size)),
            restores: customers.map(|customers| customers.result()),
            ..result
        }
    }
}

impl Glass {
    /// Requests a file as a restore; the restore controller decides when its pieces are read.
    fn request_restore<O: Observer<Self>>(
        &mut self,
        arrival: &Arrival,
        ctx: &mut GlassContext<'_, O>,
    ) {
        let Arrival { read, retrieval } = *arrival;
        let Some(customers) = &mut self.customers else { return };
        let measured = self.stats.is_measured(read.at);
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
        customers.request(file, retrieval, read.at, parts.collect());
        let open = customers.restore_driver.pieces_open();
        self.stats.queue_max = self.stats.queue_max.max(open);
        self.settle(ctx);
    }

    /// Returns the next read that restores need from the library.
    fn next_read<O: Observer<Self>>(&mut self, ctx: &mut GlassContext<'_, O>) -> Option<Event> {
        loop {
            let Self { customers, supply, .. } = self;
            let customers = customers.as_mut()?;
            let now = ctx.now();
            let wanted = customers.restore_driver.next(now, supply, |trace| match trace {
                ControllerTrace::Event(event) => {
                    ctx.record(&(RESTORE_EVENT_TAG, event));
                    ctx.notify(Observation::RestoreEvent(event));
                }
                ControllerTrace::Command(command) => {
                    let is_visit = |command: &Command| {
                        matches!(command, Command::Fetch { place: Some(_), .. })
                    };
                    customers.visits += u64::from(is_visit(command));
                    ctx.notify(Observation::RestoreCommand(command));
                }
            })?;
            match wanted {
                RestoreOutput::Read { request, place, tracks, due } => {
                    let platter = platter_of(place);
                    return Some(Event::Read {
                        request,
                        platter: stored_id(platter),
                        slot: self.supply.slot(platter),
                        tracks,
                        deadline: instant(due),
                    });
                }
                RestoreOutput::Restored(restore) => {
                    let files = &mut self.files.files;
                    let took = |file| {
                        let file = files.get_mut(file);
                        file.measured.then(|| now.since(file.arrived))
                    };
                    if let Some(file) = customers.restored(restore, took) {
                        self.shard_ended(file, true, now);
                    }
                }
                RestoreOutput::GaveUp(restore) => {
                    if let Some(file) = customers.give_up(restore, now) {
                        self.shard_ended(file, false, now);
                    }
                }
            }
        }
    }

    /// Ejects a new platter, and schedules the next one.
    fn write<O: Observer<Self>>(&mut self, panel: PanelIndex, ctx: &mut GlassContext<'_, O>) {
        if let Writes::Every { interval, .. } = self.scenario.writes {
            let next = (panel.get() + 1) % self.scenario.library.panels;
            ctx.put(ctx.now() + interval, PendingEvent::Write(PanelIndex::new(next)));
            if ctx.now() <= Instant::ZERO + self.scenario.measure_until {
                let under_way = self.machines.passing_tracks(ctx.now());
                self.supply.backlog.window_ends(ctx.now(), under_way);
            }
        }
        let event = self.supply.new_platter(panel, ctx.now());
        let most = self.supply.waiting.iter().copied().max().unwrap_or(0);
        self.stats.eject_bay_max = self.stats.eject_bay_max.max(most);
        self.step(event, ctx);
    }

    /// Updates and reports the level of a battery. A flat one stops its shuttle; returns whether it
    /// did.
    fn poll_battery<O: Observer<Self>>(
        &mut self,
        shuttle: ShuttleIndex,
        operation: Option<(&Action, Instant)>,
        ctx: &mut GlassContext<'_, O>,
    ) -> bool {
        let machine = Machine::Shuttle(shuttle);
        if self.machines.is_broken(machine) {
            return false;
        }
        let flat = self.batteries.passed(shuttle, ctx.now(), operation);
        if let Some(battery) = self.batteries.model().filter(|_| flat) {
            ctx.put(ctx.now() + battery.swap, PendingEvent::Swap(shuttle));
            self.machines.break_down(machine);
            self.step(Event::Broke { machine }, ctx);
        } else {
            self.report(shuttle, ctx);
        }
        flat
    }

    fn report<O: Observer<Self>>(&mut self, shuttle: ShuttleIndex, ctx: &mut GlassContext<'_, O>) {
        if let Some(event) = self.batteries.level_report(shuttle) {
            self.step(event, ctx);
        }
    }

    fn ended<O: Observer<Self>>(&mut self, work: &Work, ctx: &mut GlassContext<'_, O>) {
        let action = work.command.action;
        if let Machine::Shuttle(shuttle) = action.machine()
            && self.poll_battery(shuttle, Some((&action, work.started)), ctx)
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
        self.stats.worked(&action, new, work.started, ctx.now());
        if new {
            self.new_platter_handled(&action, work, ctx.now());
        }
        let answer = self.machines.answer(work);
        self.step(answer, ctx);
    }

    /// Records that a new platter was moved, or that a pass over it ended.
    fn new_platter_handled(&mut self, action: &Action, work: &Work, now: Instant) {
        let backlog = &mut self.supply.backlog;
        match *action {
            Action::VerifyPass { platter, .. } => {
                let tracks = self.machines.tracks_done(work);
                backlog.passed(number_of(platter), tracks);
                if self.stats.is_measured(now) {
                    self.stats.verified_tracks += u64::from(tracks);
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
        ctx: &mut GlassContext<'_, O>,
    ) {
        let recovery_sources = self.supply.recovery_sources(platter);
        self.files.files.get_mut(file).failed |= recovery_sources.is_empty();
        let mut tracks = None;
        for platter in recovery_sources {
            let drawn = tracks.filter(|_| self.supply.has_sets());
            let drawn = drawn.unwrap_or_else(|| tracks_of(&self.scenario, size, &mut self.offsets));
            tracks = Some(drawn);
            self.request(file, platter, drawn, true, ctx);
        }
    }

    fn request<O: Observer<Self>>(
        &mut self,
        file: u32,
        platter: u32,
        tracks: TrackSpan,
        is_recovery: bool,
        ctx: &mut GlassContext<'_, O>,
    ) {
        let retries = if is_recovery { RECOVERY_RETRIES } else { 1 };
        self.files.files.get_mut(file).left += 1;
        self.request_shard(Shard { file, platter, tracks, retries, is_recovery }, ctx);
    }

    fn request_shard<O: Observer<Self>>(&mut self, shard: Shard, ctx: &mut GlassContext<'_, O>) {
        let deadline = self.files.files.get_mut(shard.file).arrived + OBJECTIVE;
        let number = self.files.shards.insert(shard);
        let event = Event::Read {
            request: RequestId::new(u64::from(number)),
            platter: stored_id(shard.platter),
            slot: self.supply.slot(shard.platter),
            tracks: shard.tracks,
            deadline,
        };
        self.step(event, ctx);
    }

    /// Steps the controller with an event, and executes its outputs.
    fn step<O: Observer<Self>>(&mut self, event: Event, ctx: &mut GlassContext<'_, O>) {
        self.step_once(event, ctx);
        self.settle(ctx);
    }

    /// Steps the controller with the events that follow from its outputs.
    fn settle<O: Observer<Self>>(&mut self, ctx: &mut GlassContext<'_, O>) {
        while let Some(event) = self.pending.pop().or_else(|| self.next_read(ctx)) {
            self.step_once(event, ctx);
        }
        self.set_timer(ctx);
    }

    fn step_once<O: Observer<Self>>(&mut self, event: Event, ctx: &mut GlassContext<'_, O>) {
        ctx.record(&event);
        ctx.notify(Observation::Event(&event));
        if let Some(customers) = &mut self.customers {
            customers.busy.event(ctx.now(), &event);
        }
        self.library.step(ctx.now(), event, &mut self.out);
        ctx.notify(Observation::Stepped(&self.library));
        let mut out = std::mem::take(&mut self.out);
        for output in out.as_slice() {
            ctx.notify(Observation::Output(output));
            if let Some(customers) = &mut self.customers {
                customers.busy.output(ctx.now(), output);
            }
            self.execute(output, ctx);
        }
        out.clear();
        self.out = out;
    }

    fn set_timer<O: Observer<Self>>(&mut self, ctx: &mut GlassContext<'_, O>) {
        if let Some(due) = self.library.deadline()
            && self.timer.is_none_or(|timer| due < timer)
        {
            self.timer = Some(due);
            ctx.put(due, PendingEvent::Timer);
        }
        if let Some(customers) = &mut self.customers
            && let Some(due) = customers.restore_driver.deadline()
            && customers.timer.is_none_or(|timer| due < timer)
        {
            customers.timer = Some(due);
            ctx.put(due, PendingEvent::RestoreTimer);
        }
    }

    fn execute<O: Observer<Self>>(&mut self, output: &Output, ctx: &mut GlassContext<'_, O>) {
        match *output {
            Output::Do(ref command) => {
                if let Action::Mount { platter, slot: _, .. } = command.action
                    && is_new(platter)
                {
                    self.new_platter_mounted(platter, ctx);
                }
                self.machines.start(ctx.now(), command, ctx.event_queue());
            }
            Output::Halt { command } => self.machines.halt(ctx.now(), command, ctx.event_queue()),
            Output::Traveled(ref travel) => {
                self.stats.traveled(travel, &self.scenario, ctx.now());
            }
            Output::Finished { request, outcome } => self.finished(request, outcome, ctx.now()),
            Output::Rejected { request, .. } => self.unavailable(request, ctx.now()),
        }
    }

    /// Records that a new platter is being mounted; if for the first time, the next may be ejected.
    fn new_platter_mounted<O: Observer<Self>>(
        &mut self,
        platter: PlatterId,
        ctx: &mut GlassContext<'_, O>,
    ) {
        let Some(panel) = self.supply.mounted(platter) else { return };
        if matches!(self.scenario.writes, Writes::Saturated { .. }) && ctx.has_more_arrivals() {
            ctx.put(ctx.now(), PendingEvent::Write(panel));
        }
    }

    fn finished(&mut self, request: RequestId, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Read => {
                if let Some(customers) = &mut self.customers {
                    customers.restore_driver.ended(request, true, &mut self.supply);
                } else if let Some(number) = shard_number(request) {
                    let shard = self.files.shards.remove(number);
                    self.shard_ended(shard.file, true, now);
                }
            }
            Outcome::Verified => {
                if let Some(since) = self.supply.verified(request) {
                    self.record_unverified(since, now);
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
    fn record_unverified(&mut self, since: Instant, until: Instant) {
        let end = Instant::ZERO + self.scenario.measure_until;
        let age = until.min(end).since(since);
        self.stats.unverified_age_max = self.stats.unverified_age_max.max(age);
    }

    /// Handles a request that cannot be served: reads other platters of the set instead.
    fn unavailable(&mut self, request: RequestId, now: Instant) {
        if request.get() >= NEW_PLATTER {
            return;
        }
        if let Some(customers) = &mut self.customers {
            customers.restore_driver.ended(request, false, &mut self.supply);
            return;
        }
        let Some(number) = shard_number(request) else { return };
        let shard = self.files.shards.remove(number);
        let recovery_sources = match shard.retries {
            0 => Vec::new(),
            _ if shard.is_recovery => self.supply.replacement(shard.platter).into_iter().collect(),
            _ => self.supply.recovery_sources(shard.platter),
        };
        let reads = u32::try_from(recovery_sources.len()).unwrap_or(u32::MAX);
        self.files.files.get_mut(shard.file).left += reads;
        for platter in recovery_sources {
            let retries = if shard.is_recovery { shard.retries - 1 } else { RECOVERY_RETRIES };
            let part = Shard { platter, retries, is_recovery: true, ..shard };
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
        self.stats.last_end = now;
        if !file.measured {
            return;
        }
        if file.failed {
            self.stats.failed += 1;
            return;
        }
        self.stats.reads += 1;
        self.stats.bytes += file.size.get();
        self.stats.completion.add(now.since(file.arrived));
    }
}

/// Schedules the first of the new platters that need no trigger.
fn begin_writes(scenario: &Scenario, event_queue: &mut EventQueue<PendingEvent>) {
    let panels = (0..scenario.library.panels).map(PanelIndex::new);
    match scenario.writes {
        Writes::None => {}
        Writes::Saturated { .. } => {
            // One for each drive, and one more.
            for panel in panels {
                for _ in 0..=scenario.library.drives_per_panel() {
                    event_queue.push(Instant::ZERO, PendingEvent::Write(panel));
                }
            }
        }
        Writes::Every { .. } => {
            event_queue.push(Instant::ZERO, PendingEvent::Write(PanelIndex::new(0)))
        }
    }
}

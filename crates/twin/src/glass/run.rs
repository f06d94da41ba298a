//! One run: events in order, until nothing is left to be done.

use fulgurite_library::{
    Action, CommandId, Destination, Event, Library, Machine, Outcome, Output, PanelIndex,
    RailPosition, RequestId, Source, TrackSpan,
};
use fulgurite_units::{
    ByteCount, Controller as _, DriveIndex, Instant, Outbox, RandomStream, Seed, ShuttleIndex,
};

use super::accounts::Accounts;
use super::batteries::{Batteries, LOOK};
use super::files::{
    File, Files, NEW_PLATTER, OBJECTIVE, Shard, shard_number, shard_sizes, tracks_of,
};
use super::machines::{Device, Machines, Work};
use super::supply::{Supply, is_new, number_of, stored_id};
use crate::engine::Agenda;
use crate::glass::result::RunResult;
use crate::glass::scenario::{Scenario, Writes};
use crate::workload::PlacementSampler;
use crate::{Error, TraceRead};

/// Times a part of a recovery may be asked of another platter, which is drawn at random: the
/// platters of a set stand in different blast zones, so that one failure leaves 16 of 19 within
/// reach, but some draws are lost.
const RECOVERY_RETRIES: u8 = 16;

/// Watches a run, event by event.
pub trait Observer {
    /// The controller is told something.
    fn event(&mut self, now: Instant, event: &Event);
    /// The controller answered.
    fn output(&mut self, now: Instant, output: &Output);
    /// The controller has taken an event.
    fn stepped(&mut self, library: &Library);
    /// Whether enough was seen: the run ends here, whatever is still to come.
    fn has_enough(&self) -> bool {
        false
    }
}

/// Watches nothing, at no cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&mut self, _: Instant, _: &Event) {}
    fn output(&mut self, _: Instant, _: &Output) {}
    fn stepped(&mut self, _: &Library) {}
}

/// Watches if there is somebody.
impl<O: Observer> Observer for Option<O> {
    fn event(&mut self, now: Instant, event: &Event) {
        self.iter_mut().for_each(|one| one.event(now, event));
    }

    fn output(&mut self, now: Instant, output: &Output) {
        self.iter_mut().for_each(|one| one.output(now, output));
    }

    fn stepped(&mut self, library: &Library) {
        self.iter_mut().for_each(|one| one.stepped(library));
    }

    fn has_enough(&self) -> bool {
        self.as_ref().is_some_and(Observer::has_enough)
    }
}

/// Two watch; either may end the run.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn event(&mut self, now: Instant, event: &Event) {
        self.0.event(now, event);
        self.1.event(now, event);
    }

    fn output(&mut self, now: Instant, output: &Output) {
        self.0.output(now, output);
        self.1.output(now, output);
    }

    fn stepped(&mut self, library: &Library) {
        self.0.stepped(library);
        self.1.stepped(library);
    }

    fn has_enough(&self) -> bool {
        self.0.has_enough() || self.1.has_enough()
    }
}

/// Runs a scenario.
///
/// # Errors
/// When a parameter is out of range.
pub fn run(scenario: &Scenario, seed: u64) -> Result<RunResult, Error> {
    run_observed(scenario, seed, &mut Silent)
}

/// Runs a scenario that somebody watches.
///
/// # Errors
/// When a parameter is out of range.
pub fn run_observed<O: Observer>(
    scenario: &Scenario,
    seed: u64,
    observer: &mut O,
) -> Result<RunResult, Error> {
    let reads = scenario.workload.reads(Seed::new(seed).child(b"workload"))?;
    run_reads(scenario, seed, reads, observer)
}

/// Runs a scenario with these reads, in the order of time, in place of those of its workload, of
/// which only the placement counts.
///
/// # Errors
/// When a parameter is out of range.
pub fn run_reads<O: Observer>(
    scenario: &Scenario,
    seed: u64,
    reads: impl Iterator<Item = TraceRead>,
    observer: &mut O,
) -> Result<RunResult, Error> {
    let root = Seed::new(seed);
    let mut run = Run::new(scenario, &root, observer)?;
    run.play(reads);
    if let Some(since) = run.supply.backlog.oldest() {
        run.note_unverified(since, run.now);
    }
    let drives = run.drives;
    let counters = *run.library.counters();
    let shortfall = run.supply.backlog.shortfall();
    let mut result = run.accounts.result(scenario, &counters, &run.batteries, drives, seed);
    result.verify_shortfall_bytes =
        shortfall.map(|tracks| tracks.saturating_mul(scenario.track_size.get()));
    Ok(result)
}

/// Platters of a scenario that cannot be fetched in a run with this seed.
///
/// # Errors
/// When there are more platters than slots.
pub(crate) fn unavailable_platters(scenario: &Scenario, seed: u64) -> Result<usize, Error> {
    let supply = Supply::new(scenario, &Seed::new(seed).child(b"supply"))?;
    Ok((0..scenario.platters).filter(|&platter| supply.is_unavailable(platter)).count())
}

/// Whether a scenario can be run, without running it.
///
/// # Errors
/// When a parameter is out of range.
pub fn check(scenario: &Scenario) -> Result<(), Error> {
    scenario.workload.reads(Seed::new(0))?;
    Run::new(scenario, &Seed::new(0), &mut Silent).map(|_| ())
}

/// Something on the agenda.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    Done(CommandId, Device),
    Alarm(DriveIndex),
    Passed(CommandId, Device, RailPosition),
    Break(Machine),
    Repair(Machine),
    /// A flat battery is changed.
    Swap(ShuttleIndex),
    /// All batteries are looked at.
    Look,
    /// A new platter comes out, on this panel.
    Write(PanelIndex),
    Timer,
}

struct Run<'a, O> {
    scenario: &'a Scenario,
    observer: &'a mut O,
    library: Library,
    machines: Machines,
    agenda: Agenda<Next>,
    supply: Supply,
    files: Files,
    placement: PlacementSampler,
    offsets: RandomStream,
    accounts: Accounts,
    batteries: Batteries,
    out: Outbox<Output>,
    pending: Vec<Event>,
    timer: Option<Instant>,
    now: Instant,
    drives: usize,
    /// Reads that have not come yet.
    more_reads: bool,
}

impl<'a, O: Observer> Run<'a, O> {
    fn new(scenario: &'a Scenario, seed: &Seed, observer: &'a mut O) -> Result<Self, Error> {
        scenario.validate()?;
        let library = Library::with_policy(&scenario.library, scenario.policy.clone())?;
        let shape = &scenario.library;
        let drives = usize::from(shape.drives_per_panel() * shape.panels);
        let placement = scenario.workload.placement;
        let placement =
            PlacementSampler::new(placement, scenario.platters, seed.child(b"placement"))?;
        let mut agenda = Agenda::new();
        for fault in &scenario.faults {
            agenda.push(Instant::ZERO + fault.at, Next::Break(fault.machine));
            if let Some(repaired) = fault.repaired_at {
                agenda.push(Instant::ZERO + repaired, Next::Repair(fault.machine));
            }
        }
        let mut run = Self {
            machines: Machines::new(scenario, drives, &seed.child(b"machines")),
            supply: Supply::new(scenario, &seed.child(b"supply"))?,
            accounts: Accounts::new(scenario),
            batteries: Batteries::new(scenario),
            files: Files::default(),
            offsets: seed.child(b"offsets").stream(),
            out: Outbox::new(),
            pending: Vec::new(),
            timer: None,
            now: Instant::ZERO,
            more_reads: true,
            scenario,
            observer,
            library,
            agenda,
            placement,
            drives,
        };
        run.begin_writes();
        if scenario.battery.is_some() {
            run.agenda.push(Instant::ZERO, Next::Look);
        }
        Ok(run)
    }

    fn begin_writes(&mut self) {
        let panels = (0..self.scenario.library.panels).map(PanelIndex::new);
        match self.scenario.writes {
            Writes::None => {}
            Writes::Saturated { .. } => {
                // One for each drive, and one more.
                for panel in panels {
                    for _ in 0..=self.scenario.library.drives_per_panel() {
                        self.agenda.push(Instant::ZERO, Next::Write(panel));
                    }
                }
            }
            Writes::Every { .. } => {
                self.agenda.push(Instant::ZERO, Next::Write(PanelIndex::new(0)));
            }
        }
    }

    /// Reads come in order of time; between them, whatever is on the agenda happens.
    fn play(&mut self, reads: impl Iterator<Item = TraceRead>) {
        for read in reads {
            self.happen_until(read.at);
            if self.observer.has_enough() {
                return;
            }
            self.now = read.at;
            self.arrive(&read);
        }
        self.more_reads = false;
        while self.files.files.len() > 0
            && !self.observer.has_enough()
            && let Some((at, next)) = self.agenda.pop()
        {
            self.happen(at, next);
        }
    }

    fn happen_until(&mut self, until: Instant) {
        while self.agenda.next_at().is_some_and(|at| at <= until)
            && !self.observer.has_enough()
            && let Some((at, next)) = self.agenda.pop()
        {
            self.happen(at, next);
        }
    }

    fn happen(&mut self, at: Instant, next: Next) {
        self.now = at;
        match next {
            Next::Done(command, device) => {
                if let Some(work) = self.machines.done(command, device) {
                    self.ended(&work);
                }
            }
            Next::Alarm(drive) => {
                if let Some(work) = self.machines.alarm(at, drive, &mut self.agenda) {
                    self.ended(&work);
                }
            }
            Next::Passed(command, device, at) => {
                if self.machines.is_under_way(command, device) {
                    self.step(Event::Passed { command, at });
                }
            }
            Next::Break(machine) => {
                self.machines.break_down(machine);
                self.step(Event::Broke { machine });
            }
            Next::Repair(machine) => {
                self.machines.repair(machine);
                self.step(Event::Repaired { machine });
                if let Machine::Shuttle(shuttle) = machine {
                    self.batteries.tell_again(shuttle);
                    self.report(shuttle);
                }
            }
            Next::Swap(shuttle) => {
                self.batteries.swap(shuttle, at);
                self.happen(at, Next::Repair(Machine::Shuttle(shuttle)));
            }
            Next::Look => {
                for shuttle in self.batteries.shuttles() {
                    self.look(shuttle, None);
                }
                self.agenda.push(at + LOOK, Next::Look);
            }
            Next::Write(panel) => self.write(panel),
            Next::Timer => {
                if self.timer == Some(at) {
                    self.timer = None;
                    self.step(Event::Timer);
                }
            }
        }
    }

    /// A new platter comes out; the next one follows.
    fn write(&mut self, panel: PanelIndex) {
        if let Writes::Every { interval, .. } = self.scenario.writes {
            let next = (panel.get() + 1) % self.scenario.library.panels;
            self.agenda.push(self.now + interval, Next::Write(PanelIndex::new(next)));
            if self.now <= Instant::ZERO + self.scenario.measure_until {
                let under_way = self.machines.passing_tracks(self.now);
                self.supply.backlog.window_ends(self.now, under_way);
            }
        }
        let event = self.supply.new_platter(panel, self.now);
        let most = self.supply.waiting.iter().copied().max().unwrap_or(0);
        self.accounts.eject_bay_max = self.accounts.eject_bay_max.max(most);
        self.step(event);
    }

    /// Works out the level of a battery, and says it. A flat one stops its shuttle; whether it did.
    fn look(&mut self, shuttle: ShuttleIndex, operation: Option<(&Action, Instant)>) -> bool {
        let machine = Machine::Shuttle(shuttle);
        if self.machines.is_broken(machine) {
            return false;
        }
        let flat = self.batteries.passed(shuttle, self.now, operation);
        if let Some(battery) = self.batteries.of().filter(|_| flat) {
            self.agenda.push(self.now + battery.swap, Next::Swap(shuttle));
            self.machines.break_down(machine);
            self.step(Event::Broke { machine });
        } else {
            self.report(shuttle);
        }
        flat
    }

    fn report(&mut self, shuttle: ShuttleIndex) {
        if let Some(event) = self.batteries.news(shuttle) {
            self.step(event);
        }
    }

    fn ended(&mut self, work: &Work) {
        let action = work.command.action;
        if let Machine::Shuttle(shuttle) = action.machine()
            && self.look(shuttle, Some((&action, work.started)))
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
        self.accounts.worked(&action, new, work.started, self.now);
        if new {
            self.handled_new(&action, work);
        }
        let answer = self.machines.answer(work);
        self.step(answer);
    }

    /// A new platter was moved, or a pass over it came to its end.
    fn handled_new(&mut self, action: &Action, work: &Work) {
        let backlog = &mut self.supply.backlog;
        match *action {
            Action::VerifyPass { platter, .. } => {
                let tracks = self.machines.tracks_done(work);
                backlog.passed(number_of(platter), tracks);
                if self.accounts.is_measured(self.now) {
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

    /// A file is read: a request for each shard of it.
    fn arrive(&mut self, read: &TraceRead) {
        let measured = self.accounts.is_measured(read.at);
        let shard_size = self.scenario.shard_size;
        let sizes = shard_sizes(read.size, shard_size);
        let (arrived, size) = (read.at, read.size);
        // The file itself counts as a shard until all are asked for.
        let file = File { arrived, size, left: 1, measured, failed: false };
        let file = self.files.files.insert(file);
        for size in sizes {
            let platter = self.placement.draw();
            if self.supply.is_unavailable(platter) {
                self.recover(file, platter, size);
            } else {
                let tracks = tracks_of(self.scenario, size, &mut self.offsets);
                self.request(file, platter, tracks, false);
            }
        }
        self.accounts.queue_max = self.accounts.queue_max.max(self.files.shards.len());
        self.shard_ended(file, true);
    }

    /// Reads other platters instead: of one set, the same tracks of each.
    fn recover(&mut self, file: u32, platter: u32, size: ByteCount) {
        let stand_ins = self.supply.stand_ins(platter);
        self.files.files.get_mut(file).failed |= stand_ins.is_empty();
        let mut tracks = None;
        for platter in stand_ins {
            let drawn = tracks.filter(|_| self.supply.has_sets());
            let drawn = drawn.unwrap_or_else(|| tracks_of(self.scenario, size, &mut self.offsets));
            tracks = Some(drawn);
            self.request(file, platter, drawn, true);
        }
    }

    fn request(&mut self, file: u32, platter: u32, tracks: TrackSpan, recovers: bool) {
        let retries = if recovers { RECOVERY_RETRIES } else { 1 };
        self.files.files.get_mut(file).left += 1;
        self.ask(Shard { file, platter, tracks, retries, recovers });
    }

    fn ask(&mut self, shard: Shard) {
        let deadline = self.files.files.get_mut(shard.file).arrived + OBJECTIVE;
        let number = self.files.shards.insert(shard);
        let event = Event::Read {
            request: RequestId::new(u64::from(number)),
            platter: stored_id(shard.platter),
            slot: self.supply.slot(shard.platter),
            tracks: shard.tracks,
            deadline,
        };
        self.step(event);
    }

    /// Steps the controller, and carries out what it answers.
    fn step(&mut self, event: Event) {
        self.step_once(event);
        while let Some(event) = self.pending.pop() {
            self.step_once(event);
        }
        self.set_timer();
    }

    fn step_once(&mut self, event: Event) {
        self.accounts.event(self.now, kind_of(&event));
        self.observer.event(self.now, &event);
        self.library.step(self.now, event, &mut self.out);
        self.observer.stepped(&self.library);
        let mut out = std::mem::take(&mut self.out);
        for output in out.as_slice() {
            self.observer.output(self.now, output);
            self.carry_out(output);
        }
        out.clear();
        self.out = out;
    }

    fn set_timer(&mut self) {
        if let Some(due) = self.library.deadline()
            && self.timer.is_none_or(|timer| due < timer)
        {
            self.timer = Some(due);
            self.agenda.push(due, Next::Timer);
        }
    }

    fn carry_out(&mut self, output: &Output) {
        match *output {
            Output::Do(ref command) => {
                if let Action::Mount { platter, slot: _, .. } = command.action
                    && is_new(platter)
                {
                    self.mounts_new(platter);
                }
                self.machines.start(self.now, command, &mut self.agenda);
            }
            Output::Halt { command } => self.machines.halt(self.now, command, &mut self.agenda),
            Output::Traveled(ref travel) => {
                self.accounts.traveled(travel, self.scenario, self.now);
            }
            Output::Finished { request, outcome } => self.finished(request, outcome),
            Output::Rejected { request, .. } => self.unavailable(request),
        }
    }

    /// A new platter is in a drive; if it is for the first time, the next may come out.
    fn mounts_new(&mut self, platter: fulgurite_units::PlatterId) {
        let Some(panel) = self.supply.mounted(platter) else { return };
        if matches!(self.scenario.writes, Writes::Saturated { .. }) && self.more_reads {
            self.agenda.push(self.now, Next::Write(panel));
        }
    }

    fn finished(&mut self, request: RequestId, outcome: Outcome) {
        match outcome {
            Outcome::Read => {
                if let Some(number) = shard_number(request) {
                    let shard = self.files.shards.remove(number);
                    self.shard_ended(shard.file, true);
                }
            }
            Outcome::Verified => {
                if let Some(since) = self.supply.verified(request) {
                    self.note_unverified(since, self.now);
                }
                if let Some(event) = self.supply.store(request) {
                    self.pending.push(event);
                }
            }
            Outcome::Stored | Outcome::Canceled => {}
            Outcome::Failed(_) => self.unavailable(request),
        }
    }

    /// A new platter was unverified for that long; what it was after the window does not count.
    fn note_unverified(&mut self, since: Instant, until: Instant) {
        let end = Instant::ZERO + self.scenario.measure_until;
        let age = until.min(end).since(since);
        self.accounts.unverified_age_max = self.accounts.unverified_age_max.max(age);
    }

    /// A request cannot be served: other platters of the set are read instead.
    fn unavailable(&mut self, request: RequestId) {
        if request.get() >= NEW_PLATTER {
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
        self.shard_ended(shard.file, reads > 0);
    }

    fn shard_ended(&mut self, file: u32, read: bool) {
        let state = self.files.files.get_mut(file);
        state.left -= 1;
        state.failed |= !read;
        if state.left > 0 {
            return;
        }
        let file = self.files.files.remove(file);
        self.accounts.last_end = self.now;
        if !file.measured {
            return;
        }
        if file.failed {
            self.accounts.failed += 1;
            return;
        }
        self.accounts.reads += 1;
        self.accounts.bytes += file.size.get();
        self.accounts.completion.add(self.now.since(file.arrived));
    }
}

/// A number for the kind of an event and whom it concerns, for the hash of a run.
fn kind_of(event: &Event) -> u64 {
    match event {
        Event::Completed { command } => command.get() << 3,
        Event::Halted { command, tracks_done } => {
            (command.get() << 3) ^ 1 ^ (u64::from(*tracks_done) << 24)
        }
        Event::Failed { command, .. } => (command.get() << 3) ^ 2,
        Event::Passed { command, at } => (command.get() << 3) ^ 7 ^ (at.get() << 16),
        Event::Read { request, slot, .. } => {
            (request.get() << 3) ^ 3 ^ (u64::from(slot.get()) << 20)
        }
        Event::Verify { request, .. } => (request.get() << 3) ^ 4,
        Event::Store { request, .. } => (request.get() << 3) ^ 5,
        Event::Cancel { request } => (request.get() << 3) ^ 6,
        Event::Battery { shuttle, percent } => {
            (u64::from(shuttle.get()) << 3) ^ 7 ^ (u64::from(*percent) << 20)
        }
        Event::Broke { .. } | Event::Repaired { .. } | Event::Timer => 7,
    }
}

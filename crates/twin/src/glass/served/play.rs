//! The asks of a log and the twin's machines around one library, event by event.

use std::collections::BTreeSet;

use fulgurite_library::{Event, Library, Mechanics, Output, RequestId};
use fulgurite_units::{Controller as _, Instant, Outbox, Seed};

use super::{End, Served, request_of};
use crate::Error;
use crate::engine::Agenda;
use crate::glass::{Machines, Next, Work};

/// Times the length of the log after which what has no end yet is taken to have none.
const LENGTHS_MAX: u64 = 10;

/// When a request was asked of the twin, when it ended, and how.
pub(super) type Ended = Option<(Instant, Instant, End)>;

/// Plays all asks; what became of each.
pub(super) fn play(
    served: &Served,
    mechanics: Mechanics,
    seed: &Seed,
) -> Result<Vec<Ended>, Error> {
    let library = Library::with_policy(&served.shape, served.policy.clone())?;
    let drives = usize::from(served.shape.drives_per_panel() * served.shape.panels);
    let seed = seed.child(b"machines");
    let count = served.asks.len();
    let mut play = Play {
        served,
        library,
        machines: Machines::with_mechanics(&served.shape, mechanics, drives, &seed),
        agenda: Agenda::new(),
        due: BTreeSet::new(),
        followers: vec![Vec::new(); count],
        begun: vec![None; count],
        ended: vec![None; count],
        open: 0,
        out: Outbox::new(),
        timer: None,
        now: Instant::ZERO,
    };
    for (number, ask) in served.asks.iter().enumerate() {
        match ask.follows {
            Some(verification) => play.followers[verification].push(number),
            None => {
                play.due.insert((ask.at, number));
            }
        }
    }
    play.run();
    Ok(play.ended)
}

struct Play<'a> {
    served: &'a Served,
    library: Library,
    machines: Machines,
    agenda: Agenda<Next>,
    /// Asks that are still to come, by their time.
    due: BTreeSet<(Instant, usize)>,
    /// Orders to store that come behind each verification.
    followers: Vec<Vec<usize>>,
    begun: Vec<Option<Instant>>,
    ended: Vec<Ended>,
    /// Requests under way.
    open: usize,
    out: Outbox<Output>,
    timer: Option<Instant>,
    now: Instant,
}

impl Play<'_> {
    fn run(&mut self) {
        let limit = self.served.until.as_nanos().saturating_mul(LENGTHS_MAX);
        while (self.open > 0 || !self.due.is_empty()) && self.now.as_nanos() <= limit {
            let ask = self.due.first().copied();
            let next_at = self.agenda.next_at();
            if let Some((at, number)) = ask.filter(|(at, _)| next_at.is_none_or(|next| *at < next))
            {
                self.due.remove(&(at, number));
                self.now = at;
                self.ask(number);
            } else if let Some((at, next)) = self.agenda.pop() {
                self.now = at;
                self.happen(next);
            } else {
                return;
            }
        }
    }

    fn ask(&mut self, number: usize) {
        let event = self.served.asks[number].event;
        if let Event::Broke { machine } = event {
            self.machines.break_down(machine);
        } else if let Event::Repaired { machine } = event {
            self.machines.repair(machine);
        }
        if request_of(&event).is_some() {
            self.begun[number] = Some(self.now);
            self.open += 1;
        }
        self.step(event);
    }

    fn happen(&mut self, next: Next) {
        match next {
            Next::Done(command, device) => {
                if let Some(work) = self.machines.done(command, device) {
                    self.answer(&work);
                }
            }
            Next::Alarm(drive) => {
                if let Some(work) = self.machines.alarm(self.now, drive, &mut self.agenda) {
                    self.answer(&work);
                }
            }
            Next::Passed(command, device, at) => {
                if self.machines.is_under_way(command, device) {
                    self.step(Event::Passed { command, at });
                }
            }
            Next::Timer => {
                if self.timer == Some(self.now) {
                    self.timer = None;
                    self.step(Event::Timer);
                }
            }
            // These are a scenario's; here they come out of the log, as asks.
            Next::Break(_) | Next::Repair(_) | Next::Swap(_) | Next::Look | Next::Write(_) => {}
        }
    }

    fn answer(&mut self, work: &Work) {
        let answer = self.machines.answer(work);
        self.step(answer);
    }

    fn step(&mut self, event: Event) {
        self.library.step(self.now, event, &mut self.out);
        for output in self.out.drain().collect::<Vec<_>>() {
            match output {
                Output::Do(command) => self.machines.start(self.now, &command, &mut self.agenda),
                Output::Halt { command } => self.machines.halt(self.now, command, &mut self.agenda),
                Output::Finished { request, outcome } => self.end(request, End::Finished(outcome)),
                Output::Rejected { request, .. } => self.end(request, End::Rejected),
                Output::Traveled(_) => {}
            }
        }
        if let Some(due) = self.library.deadline()
            && self.timer.is_none_or(|timer| due < timer)
        {
            self.timer = Some(due);
            self.agenda.push(due, Next::Timer);
        }
    }

    fn end(&mut self, request: RequestId, end: End) {
        let number = usize::try_from(request.get()).unwrap_or(usize::MAX);
        if let Some(begun) = self.begun[number] {
            self.ended[number] = Some((begun, self.now, end));
            self.open -= 1;
        }
        let verified_at = self.served.asks[number].ended.map(|(at, _)| at);
        for follower in std::mem::take(&mut self.followers[number]) {
            let asked = self.served.asks[follower].at;
            let after = verified_at.map_or(fulgurite_units::Duration::ZERO, |at| asked.since(at));
            self.due.insert((self.now + after, follower));
        }
    }
}

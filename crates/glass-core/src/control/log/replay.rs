//! Replays a log, and compares every decision with the logged one.

use std::collections::BTreeMap;
use std::io::BufRead;

use fulgurite_units::{Controller as _, Instant, Outbox};
use serde::Serialize;

use super::{Ending, Entry, LogError, LogReader, Logged};
use crate::control::sequence::{Actor, actor};
use crate::control::{Action, CommandId, Event, Library, Machine, Output};

/// The result of replaying a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replay {
    /// Events replayed.
    pub events: u64,
    /// Outputs that matched.
    pub outputs: u64,
    /// Outputs of the last event that are missing from a truncated log.
    pub outputs_lost: u64,
    /// The time of the last event replayed.
    pub until: Instant,
    /// How the log ends; `None` if it was not replayed to its end.
    pub ending: Option<Ending>,
    /// The first decision that differs.
    pub divergence: Option<Divergence>,
}

/// A decision that differs from the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// The line of the log where it shows, from 1.
    pub line: u64,
    /// The logged decision; `None` if the library now decides more.
    pub expected: Option<Output>,
    /// The decision now; `None` if the log has more.
    pub found: Option<Output>,
}

/// One replayed event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedStep {
    /// The line of the event, from 1.
    pub line: u64,
    /// The time of the event.
    pub at: Instant,
    /// The event.
    pub event: Event,
    /// The decisions of the library now.
    pub outputs: Vec<Output>,
}

/// Replays a log event by event.
#[derive(Debug)]
pub struct Replayer<R> {
    reader: LogReader<R>,
    library: Library,
    /// Commands not answered yet.
    in_flight: BTreeMap<CommandId, Action>,
    /// The entry read ahead, after the outputs of the last step.
    lookahead: Option<Entry>,
    out: Outbox<Output>,
    summary: Replay,
}

/// Replays a whole log, or up to the first decision that differs.
///
/// # Errors
/// Names the first invalid line.
pub fn replay(source: impl BufRead) -> Result<Replay, LogError> {
    let mut replayer = Replayer::new(source)?;
    while replayer.step()?.is_some() {}
    Ok(replayer.summary)
}

impl<R: BufRead> Replayer<R> {
    /// Creates a fresh library like that of the log.
    ///
    /// # Errors
    /// When it is not a log of a known version, or its library is invalid.
    pub fn new(source: R) -> Result<Self, LogError> {
        let reader = LogReader::new(source)?;
        let library = Library::with_policy(reader.shape(), reader.policy().clone())
            .map_err(|source| LogError::Library { source })?;
        let summary = Replay {
            events: 0,
            outputs: 0,
            outputs_lost: 0,
            until: Instant::ZERO,
            ending: None,
            divergence: None,
        };
        let (in_flight, out) = (BTreeMap::new(), Outbox::new());
        let mut replayer = Self { reader, library, in_flight, lookahead: None, out, summary };
        replayer.lookahead = replayer.next_entry()?;
        Ok(replayer)
    }

    /// The library after the events replayed so far.
    pub const fn library(&self) -> &Library {
        &self.library
    }

    /// The result so far.
    pub const fn summary(&self) -> &Replay {
        &self.summary
    }

    /// Returns the commands that are under way, in the order they were given.
    pub fn in_flight(&self) -> impl Iterator<Item = (CommandId, Action)> {
        self.in_flight.iter().map(|(id, action)| (*id, *action))
    }

    /// Returns when the next event is, if there is one to replay.
    pub fn next_at(&self) -> Option<Instant> {
        let lookahead = self.lookahead.as_ref().filter(|_| self.summary.divergence.is_none());
        lookahead.map(|entry| entry.at)
    }

    /// Replays the next event; `None` at the end, or after a decision that differs.
    ///
    /// # Errors
    /// Names the first invalid line.
    pub fn step(&mut self) -> Result<Option<ReplayedStep>, LogError> {
        if self.summary.divergence.is_some() {
            return Ok(None);
        }
        let Some(Entry { line, at, record }) = self.lookahead.take() else { return Ok(None) };
        let Logged::Event(event) = record else {
            return Err(LogError::Line { line, problem: "an output before any event".to_owned() });
        };
        self.reject_impossible(line, &event)?;
        self.remove_answered(&event);
        self.library.step(at, event, &mut self.out);
        let outputs: Vec<Output> = self.out.drain().collect();
        for output in &outputs {
            if let Output::Do(command) = output {
                self.in_flight.insert(command.id, command.action);
            }
        }
        self.summary.events += 1;
        self.summary.until = at;
        self.compare(at, &outputs)?;
        Ok(Some(ReplayedStep { line, at, event, outputs }))
    }

    /// Compares the decisions made now with the lines up to the next event.
    fn compare(&mut self, at: Instant, outputs: &[Output]) -> Result<(), LogError> {
        let mut decided = outputs.iter();
        loop {
            let entry = self.next_entry()?;
            let Some(Entry { line, at: logged_at, record: Logged::Output(expected) }) = entry
            else {
                // The next event, or the end.
                self.check_missing(decided.as_slice(), entry.as_ref());
                self.lookahead = entry;
                return Ok(());
            };
            if logged_at != at {
                let problem = "field t: an output must have the time of its event".to_owned();
                return Err(LogError::Line { line, problem });
            }
            let found = decided.next();
            if found != Some(&expected) {
                let (expected, found) = (Some(expected), found.cloned());
                self.summary.divergence = Some(Divergence { line, expected, found });
                return Ok(());
            }
            self.summary.outputs += 1;
        }
    }

    /// Handles decisions that the log does not have after the outputs of an event.
    fn check_missing(&mut self, more: &[Output], next: Option<&Entry>) {
        let Some(first) = more.first() else { return };
        if matches!(self.summary.ending, Some(Ending::Open | Ending::Cut { .. })) {
            self.summary.outputs_lost = more.len() as u64;
            return;
        }
        let line = next.map_or_else(|| self.reader.line(), |entry| entry.line);
        let found = Some(first.clone());
        self.summary.divergence = Some(Divergence { line, expected: None, found });
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, LogError> {
        let entry = self.reader.next_entry()?;
        self.summary.ending = self.reader.ending();
        Ok(entry)
    }

    /// Removes commands that are no longer under way: an answer ends its command, a broken machine
    /// its work.
    fn remove_answered(&mut self, event: &Event) {
        match *event {
            Event::Completed { command }
            | Event::Halted { command, .. }
            | Event::Failed { command, .. } => {
                self.in_flight.remove(&command);
            }
            Event::Broke { machine } => {
                self.in_flight.retain(|&id, _| match (actor(id), machine) {
                    (Actor::Shuttle(one), Machine::Shuttle(broken)) => one != broken,
                    (Actor::Drive(one), Machine::Drive(broken)) => one != broken,
                    (Actor::Shuttle(_) | Actor::Drive(_), _) => true,
                })
            }
            Event::Read { .. }
            | Event::Verify { .. }
            | Event::Store { .. }
            | Event::Cancel { .. }
            | Event::Passed { .. }
            | Event::Repaired { .. }
            | Event::Battery { .. }
            | Event::Timer => {}
        }
    }

    /// Rejects answers to commands that were never given. The library panics at them, because they
    /// would be a bug of its driver; here they are an error of the log.
    fn reject_impossible(&self, line: u64, event: &Event) -> Result<(), LogError> {
        let reject = |problem: String| Err(LogError::Impossible { line, problem });
        match *event {
            Event::Completed { command } | Event::Failed { command, .. } => {
                if !self.in_flight.contains_key(&command) {
                    return reject(format!("command {command} is not under way"));
                }
            }
            Event::Halted { command, tracks_done } => match self.in_flight.get(&command) {
                Some(Action::VerifyPass { tracks, .. }) if tracks_done <= tracks.track_count => {}
                _ => return reject(format!("command {command} cannot be halted like this")),
            },
            Event::Passed { command, .. } => {
                if let Actor::Shuttle(shuttle) = actor(command)
                    && !self.library.shape().has(Machine::Shuttle(shuttle))
                {
                    return reject(format!("there is no shuttle {shuttle}"));
                }
            }
            Event::Battery { shuttle, .. } => {
                if !self.library.shape().has(Machine::Shuttle(shuttle)) {
                    return reject(format!("there is no shuttle {shuttle}"));
                }
            }
            Event::Broke { machine } | Event::Repaired { machine } => {
                if !self.library.shape().has(machine) {
                    return reject("there is no such machine".to_owned());
                }
            }
            Event::Read { .. }
            | Event::Verify { .. }
            | Event::Store { .. }
            | Event::Cancel { .. }
            | Event::Timer => {}
        }
        Ok(())
    }
}

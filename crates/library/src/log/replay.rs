//! Plays a log again, and holds every decision against what was decided then.

use std::collections::BTreeMap;
use std::io::BufRead;

use fulgurite_units::{Controller as _, Instant, Outbox};
use serde::Serialize;

use super::{Ending, Entry, LogError, LogReader, Logged};
use crate::sequence::{Actor, actor};
use crate::{Action, CommandId, Event, Library, Machine, Output};

/// What came of playing a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replay {
    /// Events played.
    pub events: u64,
    /// Outputs that were the same.
    pub outputs: u64,
    /// Outputs of the last event that the log lost with its end.
    pub outputs_lost: u64,
    /// The time of the last event played.
    pub until: Instant,
    /// How the log ends; nothing when it was not played to its end.
    pub ending: Option<Ending>,
    /// The first decision that was another one.
    pub divergence: Option<Divergence>,
}

/// A decision that was another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// The line of the log where it shows, from 1.
    pub line: u64,
    /// What the log says was decided; nothing when the library now decides more.
    pub expected: Option<Output>,
    /// What is decided now; nothing when the log has more.
    pub found: Option<Output>,
}

/// One event played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedStep {
    /// The line of the event, from 1.
    pub line: u64,
    /// When.
    pub at: Instant,
    /// What the library was told.
    pub event: Event,
    /// What it decided now.
    pub outputs: Vec<Output>,
}

/// Plays a log event by event.
#[derive(Debug)]
pub struct Replayer<R> {
    reader: LogReader<R>,
    library: Library,
    /// Commands not answered yet.
    under_way: BTreeMap<CommandId, Action>,
    /// The entry that the last step found behind its outputs.
    ahead: Option<Entry>,
    out: Outbox<Output>,
    played: Replay,
}

/// Plays a whole log, or to the first decision that is another one.
///
/// # Errors
/// Names the first line that is not sound.
pub fn replay(source: impl BufRead) -> Result<Replay, LogError> {
    let mut replayer = Replayer::new(source)?;
    while replayer.step()?.is_some() {}
    Ok(replayer.played)
}

impl<R: BufRead> Replayer<R> {
    /// A fresh library like that of the log.
    ///
    /// # Errors
    /// When it is no log of a known version, or of a library that cannot be.
    pub fn new(source: R) -> Result<Self, LogError> {
        let reader = LogReader::new(source)?;
        let library = Library::with_policy(reader.shape(), reader.policy().clone())
            .map_err(|source| LogError::Library { source })?;
        let played = Replay {
            events: 0,
            outputs: 0,
            outputs_lost: 0,
            until: Instant::ZERO,
            ending: None,
            divergence: None,
        };
        let (under_way, out) = (BTreeMap::new(), Outbox::new());
        let mut replayer = Self { reader, library, under_way, ahead: None, out, played };
        replayer.ahead = replayer.next_entry()?;
        Ok(replayer)
    }

    /// The library as it is after the events played.
    pub const fn library(&self) -> &Library {
        &self.library
    }

    /// What came of it so far.
    pub const fn played(&self) -> &Replay {
        &self.played
    }

    /// Commands the machines carry out now, in the order they were given.
    pub fn under_way(&self) -> impl Iterator<Item = (CommandId, Action)> {
        self.under_way.iter().map(|(id, action)| (*id, *action))
    }

    /// When the next event is, if there is one to play.
    pub fn next_at(&self) -> Option<Instant> {
        let ahead = self.ahead.as_ref().filter(|_| self.played.divergence.is_none());
        ahead.map(|entry| entry.at)
    }

    /// Plays the next event; nothing at the end, or after a decision that was another one.
    ///
    /// # Errors
    /// Names the first line that is not sound.
    pub fn step(&mut self) -> Result<Option<ReplayedStep>, LogError> {
        if self.played.divergence.is_some() {
            return Ok(None);
        }
        let Some(Entry { line, at, what }) = self.ahead.take() else { return Ok(None) };
        let Logged::Event(event) = what else {
            return Err(LogError::Line { line, problem: "an output before any event".to_owned() });
        };
        self.refuse_impossible(line, &event)?;
        self.answered(&event);
        self.library.step(at, event, &mut self.out);
        let outputs: Vec<Output> = self.out.drain().collect();
        for output in &outputs {
            if let Output::Do(command) = output {
                self.under_way.insert(command.id, command.action);
            }
        }
        self.played.events += 1;
        self.played.until = at;
        self.compare(at, &outputs)?;
        Ok(Some(ReplayedStep { line, at, event, outputs }))
    }

    /// Holds what was decided now against the lines up to the next event.
    fn compare(&mut self, at: Instant, outputs: &[Output]) -> Result<(), LogError> {
        let mut decided = outputs.iter();
        loop {
            let entry = self.next_entry()?;
            let Some(Entry { line, at: said, what: Logged::Output(expected) }) = entry else {
                // The next event, or the end.
                self.missing(decided.as_slice(), entry.as_ref());
                self.ahead = entry;
                return Ok(());
            };
            if said != at {
                let problem = "field t: an output has the time of its event".to_owned();
                return Err(LogError::Line { line, problem });
            }
            let found = decided.next();
            if found != Some(&expected) {
                let (expected, found) = (Some(expected), found.cloned());
                self.played.divergence = Some(Divergence { line, expected, found });
                return Ok(());
            }
            self.played.outputs += 1;
        }
    }

    /// The log has no more outputs of the event; these were decided as well.
    fn missing(&mut self, more: &[Output], next: Option<&Entry>) {
        let Some(first) = more.first() else { return };
        if matches!(self.played.ending, Some(Ending::Open | Ending::Cut { .. })) {
            self.played.outputs_lost = more.len() as u64;
            return;
        }
        let line = next.map_or_else(|| self.reader.line(), |entry| entry.line);
        let found = Some(first.clone());
        self.played.divergence = Some(Divergence { line, expected: None, found });
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, LogError> {
        let entry = self.reader.next_entry()?;
        self.played.ending = self.reader.ending();
        Ok(entry)
    }

    /// An answer ends its command; a broken machine ends what it was doing.
    fn answered(&mut self, event: &Event) {
        match *event {
            Event::Completed { command }
            | Event::Halted { command, .. }
            | Event::Failed { command, .. } => {
                self.under_way.remove(&command);
            }
            Event::Broke { machine } => {
                self.under_way.retain(|&id, _| match (actor(id), machine) {
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

    /// A library panics at answers to what it never ordered: that would be its driver's bug. Here
    /// it is the log's.
    fn refuse_impossible(&self, line: u64, event: &Event) -> Result<(), LogError> {
        let refuse = |problem: String| Err(LogError::Impossible { line, problem });
        match *event {
            Event::Completed { command } | Event::Failed { command, .. } => {
                if !self.under_way.contains_key(&command) {
                    return refuse(format!("command {command} is not under way"));
                }
            }
            Event::Halted { command, tracks_done } => match self.under_way.get(&command) {
                Some(Action::VerifyPass { tracks, .. }) if tracks_done <= tracks.track_count => {}
                _ => return refuse(format!("command {command} cannot be halted like this")),
            },
            Event::Passed { command, .. } => {
                if let Actor::Shuttle(shuttle) = actor(command)
                    && !self.library.shape().has(Machine::Shuttle(shuttle))
                {
                    return refuse(format!("there is no shuttle {shuttle}"));
                }
            }
            Event::Battery { shuttle, .. } => {
                if !self.library.shape().has(Machine::Shuttle(shuttle)) {
                    return refuse(format!("there is no shuttle {shuttle}"));
                }
            }
            Event::Broke { machine } | Event::Repaired { machine } => {
                if !self.library.shape().has(machine) {
                    return refuse("there is no such machine".to_owned());
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

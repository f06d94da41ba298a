//! Plays a log again, and holds every decision against what was decided then.

use std::collections::VecDeque;
use std::io::BufRead;

use fulgurite_units::{Controller as _, Outbox};
use serde::Serialize;

use super::reader::wrong;
use super::{End, Entry, LogError, LogReader, Logged};
use crate::{Command, Event, Restores};

/// What came of playing a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replay {
    /// Events played.
    pub events: u64,
    /// Commands that were the same.
    pub commands: u64,
    /// How the log says that it ends; nothing when its writer died, or was not done.
    pub end: Option<End>,
    /// The first decision that was another one.
    pub divergence: Option<Divergence>,
}

/// A decision that was another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// The line of the log where it shows, from 1.
    pub line: u64,
    /// What the log says was decided; nothing when more is decided now.
    pub expected: Option<Command>,
    /// What is decided now; nothing when the log has more.
    pub found: Option<Command>,
}

/// Plays a log, to its end or to the first decision that is another one. Every invariant of the
/// controller is checked on the way.
///
/// # Errors
/// Names the first line that is not sound. A last line that is cut off is left out.
pub fn replay(source: impl BufRead) -> Result<Replay, LogError> {
    let mut played = Replay { events: 0, commands: 0, end: None, divergence: None };
    let mut log = LogReader::new(source)?;
    let mut restores = Restores::of_tiers(log.tiers().to_vec());
    // What was decided on the last event, and was not met yet.
    let (mut decided, mut open) = (Outbox::new(), VecDeque::new());
    let mut last = 1;
    while let Some(Entry { line, at, what }) = log.next_entry()? {
        last = line;
        match what {
            Logged::Command(expected) => {
                let found = open.pop_front();
                if found.as_ref() != Some(&expected) {
                    let expected = Some(expected);
                    played.divergence = Some(Divergence { line, expected, found });
                    return Ok(played);
                }
                played.commands += 1;
            }
            Logged::Event(event) => {
                if let Some(found) = open.pop_front() {
                    played.divergence = Some(more(line, found));
                    return Ok(played);
                }
                refuse_impossible(&restores, line, &event)?;
                restores.step(at, event, &mut decided);
                restores.check();
                open.extend(decided.drain());
                played.events += 1;
            }
        }
    }
    played.end = log.end();
    // Where no end is written, its last decisions may be lost with it.
    if let Some(found) = open.pop_front().filter(|_| played.end.is_some()) {
        played.divergence = Some(more(last + 1, found));
    }
    Ok(played)
}

/// More is decided now than the log says.
const fn more(line: u64, found: Command) -> Divergence {
    Divergence { line, expected: None, found: Some(found) }
}

/// A controller panics at answers to what it did not ask: that would be its driver's bug. Here it
/// is the log's.
fn refuse_impossible(restores: &Restores, line: u64, event: &Event) -> Result<(), LogError> {
    match event {
        Event::Came { piece } | Event::Failed { piece } if !restores.is_under_way(*piece) => {
            Err(wrong(line, format!("piece {piece} is not under way")))
        }
        Event::Committed { restore } | Event::Lost { restore }
            if !restores.is_complete(*restore) =>
        {
            Err(wrong(line, format!("restore {restore} is not to be committed")))
        }
        Event::Asked { restore, pieces, .. }
            if pieces.is_empty() && !restores.is_known(*restore) =>
        {
            Err(wrong(line, "a restore has at least one piece"))
        }
        Event::Asked { pieces, .. } if !restores.has_tiers_of(pieces) => {
            Err(wrong(line, "a piece is in a tier that there is not"))
        }
        Event::Asked { .. }
        | Event::Came { .. }
        | Event::Failed { .. }
        | Event::Committed { .. }
        | Event::Lost { .. }
        | Event::Forgotten { .. }
        | Event::Room { .. }
        | Event::Timer => Ok(()),
    }
}

//! Replays a log and compares every command with the logged one.

use std::collections::VecDeque;
use std::io::BufRead;

use fulgurite_units::{Controller as _, Outbox};
use serde::Serialize;

use super::reader::wrong;
use super::{End, Entry, LogError, LogReader, Logged};
use crate::{Command, Event, Restores};

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replay {
    /// Events replayed.
    pub events: u64,
    /// Commands that matched.
    pub commands: u64,
    /// The reason in the end line; none when the writer crashed or was still writing.
    pub end: Option<End>,
    /// The first command that differs.
    pub divergence: Option<Divergence>,
}

/// A command that differs from the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// Number of the line where it shows, from 1.
    pub line: u64,
    /// The logged command; none when the replay issues one more than the log.
    pub expected: Option<Command>,
    /// The command issued by the replay; none when the log has one more.
    pub found: Option<Command>,
}

/// Replays a log up to its end or the first command that differs, and checks every invariant of the
/// controller after each event.
///
/// # Errors
/// Names the first invalid line. A truncated last line is skipped.
pub fn replay(source: impl BufRead) -> Result<Replay, LogError> {
    let mut result = Replay { events: 0, commands: 0, end: None, divergence: None };
    let mut log = LogReader::new(source)?;
    let mut restores = Restores::with_tiers(log.tiers().to_vec());
    // Commands issued for the last event that are not matched yet.
    let (mut decided, mut open) = (Outbox::new(), VecDeque::new());
    let mut last = 1;
    while let Some(Entry { line, at, what }) = log.next_entry()? {
        last = line;
        match what {
            Logged::Command(expected) => {
                let found = open.pop_front();
                if found.as_ref() != Some(&expected) {
                    let expected = Some(expected);
                    result.divergence = Some(Divergence { line, expected, found });
                    return Ok(result);
                }
                result.commands += 1;
            }
            Logged::Event(event) => {
                if let Some(found) = open.pop_front() {
                    result.divergence = Some(extra_command(line, found));
                    return Ok(result);
                }
                check_possible(&restores, line, &event)?;
                restores.step(at, event, &mut decided);
                restores.check();
                open.extend(decided.drain());
                result.events += 1;
            }
        }
    }
    result.end = log.end();
    // Without an end line, the last commands may be missing from the log.
    if let Some(found) = open.pop_front().filter(|_| result.end.is_some()) {
        result.divergence = Some(extra_command(last + 1, found));
    }
    Ok(result)
}

/// Returns the divergence for a command that is not in the log.
const fn extra_command(line: u64, found: Command) -> Divergence {
    Divergence { line, expected: None, found: Some(found) }
}

/// Rejects answers to what the controller did not request. It would panic on them as a bug of its
/// driver; here the log is wrong.
fn check_possible(restores: &Restores, line: u64, event: &Event) -> Result<(), LogError> {
    match event {
        Event::Came { piece } | Event::Failed { piece } if !restores.is_in_flight(*piece) => {
            Err(wrong(line, format!("piece {piece} is not in flight")))
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
        Event::Asked { pieces, .. } if !restores.has_tiers_for(pieces) => {
            Err(wrong(line, "a piece names a tier that does not exist"))
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

//! The log of a controller of restores: everything it was told and everything it decided, as text.
//!
//! The controller is a function of its drives and its events, so the log of a served archive can be
//! played again: [`replay()`] holds every decision against what was decided then. One JSON object a
//! line; the format is described in `docs/formats/restore-log.md`. It is no journal: nothing is
//! read back at a start.

use std::io::{self, BufRead, Read as _, Write};

use fulgurite_units::{Controller as _, Instant, Outbox};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Command, Event, Restores};

/// The name in the first line.
pub const FORMAT: &str = "fulgurite-restore-log";
/// The version in the first line.
pub const VERSION: u32 = 1;
/// Bytes of a line, at most: a restore of ten thousand pieces needs less than a million.
pub const LINE_BYTES_MAX: usize = 4 << 20;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u32,
    drives: usize,
}

/// One further line: a time, and one of the others.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    t: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event: Option<Event>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<Command>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<End>,
}

/// Why whoever wrote a log wrote no more, in its last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The driver was stopped.
    Stopped,
    /// The log had reached its limit; the driver went on without.
    Full,
}

/// What is wrong with a log, or with where it is.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// A line is not one of a log of this version.
    #[error("line {line}: {problem}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// The source failed.
    #[error("line {line}: cannot be read")]
    Read {
        /// The line, from 1.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// The sink failed.
    #[error("the log cannot be written")]
    Write {
        /// Why.
        source: io::Error,
    },
}

/// Writes the log of one controller from its first event on.
#[derive(Debug)]
pub struct LogWriter<W> {
    sink: W,
    bytes: u64,
    latest: Instant,
}

impl<W: Write> LogWriter<W> {
    /// Begins the log of a controller that was told nothing yet.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn new(sink: W, restores: &Restores) -> Result<Self, LogError> {
        let mut writer = Self { sink, bytes: 0, latest: Instant::ZERO };
        let format = FORMAT.to_owned();
        writer.put(&Header { format, version: VERSION, drives: restores.drives() })?;
        Ok(writer)
    }

    /// The controller is told something. The same moment has to be handed to it.
    ///
    /// # Errors
    /// When the sink fails; the log is of no use then.
    pub fn event(&mut self, now: Instant, event: &Event) -> Result<(), LogError> {
        // The controller does not let its clock run backwards either.
        self.latest = self.latest.max(now);
        self.line(Line { event: Some(event.clone()), ..Line::default() })
    }

    /// The controller decided this on the last event; each command is one call, in their order.
    ///
    /// # Errors
    /// When the sink fails; the log is of no use then.
    pub fn command(&mut self, command: &Command) -> Result<(), LogError> {
        self.line(Line { command: Some(command.clone()), ..Line::default() })
    }

    /// Ends the log, and says why.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn end(mut self, why: End) -> Result<W, LogError> {
        self.line(Line { end: Some(why), ..Line::default() })?;
        self.flush()?;
        Ok(self.sink)
    }

    /// Hands everything written so far on.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn flush(&mut self) -> Result<(), LogError> {
        self.sink.flush().map_err(|source| LogError::Write { source })
    }

    /// Bytes written so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn line(&mut self, line: Line) -> Result<(), LogError> {
        self.put(&Line { t: self.latest.as_nanos(), ..line })
    }

    fn put(&mut self, line: &impl Serialize) -> Result<(), LogError> {
        let mut text =
            serde_json::to_vec(line).map_err(|error| LogError::Write { source: error.into() })?;
        text.push(b'\n');
        self.bytes += text.len() as u64;
        self.sink.write_all(&text).map_err(|source| LogError::Write { source })
    }
}

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
pub fn replay(mut source: impl BufRead) -> Result<Replay, LogError> {
    let mut played = Replay { events: 0, commands: 0, end: None, divergence: None };
    let mut text = Vec::new();
    if !read_line(&mut source, &mut text, 1)? {
        return Err(wrong(1, "no log of restores begins like this"));
    }
    let header: Header = parse(1, &text)?;
    if header.format != FORMAT || header.version != VERSION || header.drives == 0 {
        return Err(wrong(1, format!("expected a {FORMAT} of version {VERSION}")));
    }
    let mut restores = Restores::new(header.drives);
    // What was decided on the last event, and was not met yet.
    let mut decided = Outbox::new();
    let mut open = std::collections::VecDeque::new();
    for number in 2.. {
        if !read_line(&mut source, &mut text, number)? {
            break;
        }
        let line: Line = parse(number, &text)?;
        if let Some(expected) = line.command {
            let found = open.pop_front();
            if found.as_ref() != Some(&expected) {
                let expected = Some(expected);
                played.divergence = Some(Divergence { line: number, expected, found });
                break;
            }
            played.commands += 1;
            continue;
        }
        if let Some(found) = open.pop_front() {
            let divergence = Divergence { line: number, expected: None, found: Some(found) };
            played.divergence = Some(divergence);
            break;
        }
        played.end = line.end;
        let Some(event) = line.event else { break };
        refuse_impossible(&restores, number, &event)?;
        restores.step(Instant::from_nanos(line.t), event, &mut decided);
        restores.check();
        open.extend(decided.drain());
        played.events += 1;
    }
    Ok(played)
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
        Event::Asked { pieces, .. } if pieces.is_empty() => {
            Err(wrong(line, "a restore has at least one piece"))
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

fn parse<'a, T: Deserialize<'a>>(line: u64, text: &'a [u8]) -> Result<T, LogError> {
    serde_json::from_slice(text).map_err(|error| wrong(line, error.to_string()))
}

fn wrong(line: u64, problem: impl Into<String>) -> LogError {
    LogError::Line { line, problem: problem.into() }
}

/// Reads a line without its end; `false` when it has none, and is the last.
fn read_line(source: &mut impl BufRead, text: &mut Vec<u8>, line: u64) -> Result<bool, LogError> {
    text.clear();
    let limit = LINE_BYTES_MAX as u64 + 1;
    let read = source.take(limit).read_until(b'\n', text);
    read.map_err(|source| LogError::Read { line, source })?;
    if text.last() == Some(&b'\n') {
        text.pop();
        return Ok(true);
    }
    if text.len() > LINE_BYTES_MAX {
        return Err(wrong(line, format!("longer than {LINE_BYTES_MAX} bytes")));
    }
    Ok(false)
}

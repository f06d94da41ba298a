//! The event log: every event that a library received and every decision it made, as text.
//!
//! ```text
//! driver --event--> Library --outputs--> driver          file --LogReader--> Replayer
//!            \________ LogWriter ________/ --> file                            |
//!                                                     fresh Library <--events--'--> same outputs?
//! ```
//!
//! The controller is a function of its shape, its policy and its events, so the log of a live
//! library can be replayed: [`replay()`] compares every decision with the logged one. The format,
//! one JSON object per line, is described in `docs/formats/library-log.md`.
//!
//! What it is not: a journal. Nothing is read back at a start, and a library works the same without
//! a log. It opens no files either: the caller passes in a source or a sink.

mod error;
mod reader;
mod replay;
mod writer;

use std::fmt;

use fulgurite_units::Instant;
use serde::{Deserialize, Serialize};

use crate::control::{Event, LibraryShape, Output, Policy};

pub use error::LogError;
pub use reader::LogReader;
pub use replay::{Divergence, Replay, ReplayedStep, Replayer, replay};
pub use writer::LogWriter;

/// The format in the first line.
pub const FORMAT: &str = "fulgurite-library-log";
/// The version in the first line.
pub const VERSION: u32 = 1;
/// Maximum bytes of a line. The longest rejection needs less than a thousand.
pub const LINE_BYTES_MAX: usize = 16 << 10;
/// Times of a log are below this, so that no deadline overflows.
const NANOS_MAX: u64 = 1 << 63;

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u32,
    shape: LibraryShape,
    policy: Policy,
}

/// The fields that the first line of any version has.
#[derive(Debug, Deserialize)]
struct AnyHeader {
    format: String,
    version: u32,
}

/// One further line: a time, and exactly one of the other fields.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    t: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event: Option<Event>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<Output>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<End>,
}

/// Why a log ended, in its last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The library was stopped.
    Stopped,
    /// The log had reached its limit; the library went on without it.
    Full,
}

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// With an end line.
    End(End),
    /// After a whole line: the log is still being written, or its writer died.
    Open,
    /// In the middle of this line, which is ignored: the writer died.
    Cut {
        /// The line, from 1.
        line: u64,
    },
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End(End::Stopped) => f.write_str("the library was stopped"),
            Self::End(End::Full) => f.write_str("the log was full"),
            Self::Open => f.write_str("no end was written"),
            Self::Cut { line } => write!(f, "cut off in line {line}, which was left out"),
        }
    }
}

/// One line of a log after the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The line, from 1.
    pub line: u64,
    /// The time.
    pub at: Instant,
    /// The content.
    pub record: Logged,
}

/// What a line holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logged {
    /// An event that the library received.
    Event(Event),
    /// An output of the library for the event before it.
    Output(Output),
}

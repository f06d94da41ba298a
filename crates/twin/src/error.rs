//! Why a workload, a trace, an import or a baseline cannot be had. Input that comes from a file
//! is refused with its line and its field.

use std::io;

use fulgurite_units::{ErrorKind, Instant};
use thiserror::Error;

/// What the twin refuses.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside its range.
    #[error("{field} is {value}, but must be {expected}")]
    Parameter {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
    /// More platters than a library has homes for.
    #[error("platters is {platters}, but must be at most {slots}, the slots that are homes")]
    TooManyPlatters {
        /// Platters asked for.
        platters: u32,
        /// Slots that are homes.
        slots: usize,
    },
    /// The library cannot be simulated.
    #[error(transparent)]
    Library(#[from] fulgurite_library::Error),
    /// The rack cannot be simulated.
    #[error(transparent)]
    Rack(#[from] fulgurite_rack::Error),
    /// Sites that cannot agree.
    #[error(transparent)]
    Geo(#[from] fulgurite_geo::Error),
    /// A platter-set that no library holds.
    #[error(transparent)]
    Layout(#[from] fulgurite_layout::LayoutError),
    /// A cost table is not one.
    #[error("cost table: {problem}")]
    Costs {
        /// What is wrong.
        problem: String,
    },
    /// A picture cannot be drawn.
    #[error("the picture cannot be drawn: {problem}")]
    Picture {
        /// Why.
        problem: String,
    },
    /// A trace without reads measures nothing.
    #[error("the trace has no reads")]
    EmptyTrace,
    /// A trace is longer than may be held in memory; stream it instead.
    #[error("the trace has more than the {limit} reads that are held in memory")]
    TraceTooLong {
        /// The limit.
        limit: usize,
    },
    /// More reads wait than a library can ever work off.
    #[error("more than {limit} reads wait: the library is overloaded")]
    Overloaded {
        /// The limit.
        limit: usize,
    },
    /// The first lines are not those of a trace of a known version.
    #[error("line {line}: expected \"{expected}\", found \"{found}\"")]
    Header {
        /// The line, from 1.
        line: u64,
        /// What belongs there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A line has another number of fields.
    #[error("line {line}: {found} fields, but {expected} are needed")]
    FieldCount {
        /// The line, from 1.
        line: u64,
        /// How many are needed.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// A field cannot be read.
    #[error("line {line}, field {field}: \"{value}\" {problem}")]
    Field {
        /// The line, from 1.
        line: u64,
        /// The field.
        field: String,
        /// What it says.
        value: String,
        /// What is wrong with it.
        problem: FieldProblem,
    },
    /// A read is earlier than one before it.
    #[error(
        "line {line}, field time: {} ns is before {} ns, which was read already",
        .at.as_nanos(), .previous.as_nanos()
    )]
    OutOfOrder {
        /// The line, from 1; for reads that come from no file, their number.
        line: u64,
        /// Its time.
        at: Instant,
        /// The time before.
        previous: Instant,
    },
    /// A line is longer than any of a sound file.
    #[error("line {line}: longer than {limit} bytes")]
    LineTooLong {
        /// The line, from 1.
        line: u64,
        /// The limit.
        limit: usize,
    },
    /// A line is not text.
    #[error("line {line}: not UTF-8")]
    NotText {
        /// The line, from 1.
        line: u64,
    },
    /// The source of a trace failed.
    #[error("line {line}: cannot be read")]
    Read {
        /// The line, from 1.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// The sink of a trace failed.
    #[error("the trace cannot be written")]
    Write {
        /// Why.
        source: io::Error,
    },
}

/// Characters of a field that an error shows.
const VALUE_CHARS_MAX: usize = 32;

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FieldProblem {
    /// Nothing is there.
    #[error("is empty")]
    Empty,
    /// Not a number, or not a whole one where one is needed.
    #[error("is not a number of the form needed")]
    NotANumber,
    /// Less than zero.
    #[error("is negative")]
    Negative,
    /// Larger than 64 bits hold.
    #[error("is too large")]
    Overflow,
    /// A number with a unit nobody knows.
    #[error("has an unknown unit")]
    Unit,
    /// Not a time in the form that was announced.
    #[error("is not a time of the form needed")]
    Time,
    /// A quote or bracket is not closed, or a field ends early.
    #[error("is badly delimited")]
    Delimiter,
    /// No column has this name.
    #[error("is not among the columns")]
    NoColumn,
}

impl Error {
    /// The error of a field, with the beginning of what it says.
    pub(crate) fn field(line: u64, field: &str, value: &str, problem: FieldProblem) -> Self {
        let value = value.chars().take(VALUE_CHARS_MAX).collect();
        Self::Field { line, field: field.to_owned(), value, problem }
    }

    /// What the caller can do about it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Read { .. } | Self::Write { .. } => ErrorKind::Unavailable,
            Self::Library(_)
            | Self::Rack(_)
            | Self::Geo(_)
            | Self::Layout(_)
            | Self::Costs { .. }
            | Self::Picture { .. }
            | Self::Parameter { .. }
            | Self::TooManyPlatters { .. }
            | Self::EmptyTrace
            | Self::TraceTooLong { .. }
            | Self::Overloaded { .. }
            | Self::Header { .. }
            | Self::FieldCount { .. }
            | Self::Field { .. }
            | Self::OutOfOrder { .. }
            | Self::LineTooLong { .. }
            | Self::NotText { .. } => ErrorKind::Invalid,
        }
    }
}

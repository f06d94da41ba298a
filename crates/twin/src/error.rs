//! Errors of workloads, traces, imports and baselines. Errors in input files name the line and the
//! field.

use std::io;

use fulgurite_units::{ErrorKind, Instant};
use thiserror::Error;

/// An error of the twin.
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
    /// There are more platters than home slots in a library.
    #[error("platters is {platters}, but must be at most {slots}, the number of home slots")]
    TooManyPlatters {
        /// Platters requested.
        platters: u32,
        /// Home slots.
        slots: usize,
    },
    /// The library cannot be simulated.
    #[error(transparent)]
    Library(#[from] fulgurite_glass_core::control::Error),
    /// The rack cannot be simulated.
    #[error(transparent)]
    Rack(#[from] fulgurite_rack_core::Error),
    /// The sites cannot reach agreement.
    #[error(transparent)]
    Geo(#[from] fulgurite_geo_core::Error),
    /// A platter-set that fits in no library.
    #[error(transparent)]
    Layout(#[from] fulgurite_glass_core::plan::LayoutError),
    /// The cost table is invalid.
    #[error("cost table: {problem}")]
    Costs {
        /// The problem.
        problem: String,
    },
    /// A picture cannot be drawn.
    #[error("the picture cannot be drawn: {problem}")]
    Picture {
        /// The reason.
        problem: String,
    },
    /// The trace has no reads, so there is nothing to measure.
    #[error("the trace has no reads")]
    EmptyTrace,
    /// The trace is too long to hold in memory; stream it instead.
    #[error("the trace has more than {limit} reads, too many to hold in memory; stream it")]
    TraceTooLong {
        /// The limit.
        limit: usize,
    },
    /// The queue exceeds what a library can ever work off.
    #[error("more than {limit} reads wait: the library is overloaded")]
    Overloaded {
        /// The limit.
        limit: usize,
    },
    /// The first lines are not the header of a known trace version.
    #[error("line {line}: expected \"{expected}\", found \"{found}\"")]
    Header {
        /// The line, from 1.
        line: u64,
        /// The expected text.
        expected: String,
        /// The text found.
        found: String,
    },
    /// A line has the wrong number of fields.
    #[error("line {line}: {found} fields, expected {expected}")]
    FieldCount {
        /// The line, from 1.
        line: u64,
        /// Fields needed.
        expected: usize,
        /// Fields found.
        found: usize,
    },
    /// A field cannot be parsed.
    #[error("line {line}, field {field}: \"{value}\" {problem}")]
    Field {
        /// The line, from 1.
        line: u64,
        /// The field.
        field: String,
        /// Its text.
        value: String,
        /// The problem.
        problem: FieldProblem,
    },
    /// A read is earlier than the one before it.
    #[error(
        "line {line}, field time: {} ns is before {} ns, the time of an earlier line",
        .at.as_nanos(), .previous.as_nanos()
    )]
    OutOfOrder {
        /// The line, from 1; for reads that come from no file, their number.
        line: u64,
        /// The time of the read.
        at: Instant,
        /// The time of the read before it.
        previous: Instant,
    },
    /// A line is longer than any valid one.
    #[error("line {line}: longer than {limit} bytes")]
    LineTooLong {
        /// The line, from 1.
        line: u64,
        /// The limit.
        limit: usize,
    },
    /// A line is not UTF-8.
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
        /// The cause.
        source: io::Error,
    },
    /// The sink of a trace failed.
    #[error("the trace cannot be written")]
    Write {
        /// The cause.
        source: io::Error,
    },
}

/// Maximum number of characters of a field that an error shows.
const VALUE_CHARS_MAX: usize = 32;

/// The problem of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FieldProblem {
    /// It is empty.
    #[error("is empty")]
    Empty,
    /// It is not a number, or not a whole one where one is needed.
    #[error("is not a number in the expected format")]
    NotANumber,
    /// It is less than zero.
    #[error("is negative")]
    Negative,
    /// It does not fit in 64 bits.
    #[error("is too large")]
    Overflow,
    /// Its unit is unknown.
    #[error("has an unknown unit")]
    Unit,
    /// It is not a time in the announced form.
    #[error("is not a time in the expected format")]
    Time,
    /// A quote or bracket is not closed, or a field ends early.
    #[error("has bad delimiters")]
    Delimiter,
    /// No column has this name.
    #[error("is not among the columns")]
    NoColumn,
}

impl Error {
    /// Returns the error of a field, with the beginning of its text.
    pub(crate) fn field(line: u64, field: &str, value: &str, problem: FieldProblem) -> Self {
        let value = value.chars().take(VALUE_CHARS_MAX).collect();
        Self::Field { line, field: field.to_owned(), value, problem }
    }

    /// Returns what the caller can do about it.
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

//! Errors of `PostgreSQL` as ours.
//!
//! A statement that is answered with an error changed nothing. One that is not answered may have. The
//! end of the server is told by an error as well, at any time, so that one says nothing.

use fulgurite_units::error_chain;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::{Cause, TableError};

/// Of a call that was sent.
pub(super) fn of_call(error: &Error) -> TableError {
    match error.as_db_error() {
        Some(told) if is_of_end(told.code()) => TableError::Unknown(cause(error)),
        Some(_) => definite(error),
        None => TableError::Unknown(cause(error)),
    }
}

/// Of something that changes no row, or did not get so far.
pub(super) fn definite(error: &Error) -> TableError {
    let code = error.code().map_or("", SqlState::code);
    match code {
        // Of a server that has no such user, or a table that is another's.
        "42501" => TableError::Denied(cause(error)),
        _ if code.starts_with("28") => TableError::Denied(cause(error)),
        _ => TableError::Unavailable(cause(error)),
    }
}

/// An answer that is not of a table of ours.
pub(super) fn strange(error: &Error) -> TableError {
    TableError::Corrupt(error_chain(error))
}

/// Whether what was to be made is being made by another.
pub(super) fn is_duplicate(error: &Error) -> bool {
    ["42P07", "42710", "23505"].contains(&error.code().map_or("", SqlState::code))
}

fn is_of_end(code: &SqlState) -> bool {
    ["57P01", "57P02", "57P04", "57P05"].contains(&code.code()) || code.code().starts_with("08")
}

fn cause(error: &Error) -> Cause {
    Cause::new(error_chain(error))
}

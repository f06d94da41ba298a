//! Maps errors of `PostgreSQL` to ours.
//!
//! A statement answered with an error changed nothing. One without an answer may have. A server
//! shutdown is also reported as an error, at any time, so it proves nothing.

use fulgurite_units::error_chain;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::stores::{Cause, TableError};

/// Maps the error of a call that was sent.
pub(super) fn to_call_error(error: &Error) -> TableError {
    match error.as_db_error() {
        Some(db_error) if is_disconnect(db_error.code()) => TableError::Unknown(cause(error)),
        Some(_) => to_definite_error(error),
        None => TableError::Unknown(cause(error)),
    }
}

/// Maps the error of a call that changes no row, or did not get that far.
pub(super) fn to_definite_error(error: &Error) -> TableError {
    let code = error.code().map_or("", SqlState::code);
    match code {
        // The server does not know the user, or the table belongs to another user.
        "42501" => TableError::Denied(cause(error)),
        _ if code.starts_with("28") => TableError::Denied(cause(error)),
        _ => TableError::Unavailable(cause(error)),
    }
}

/// Returns the error for an answer that is not from our table.
pub(super) fn malformed(error: &Error) -> TableError {
    TableError::Corrupt(error_chain(error))
}

/// Whether another transaction is creating the same object.
pub(super) fn is_duplicate(error: &Error) -> bool {
    ["42P07", "42710", "23505"].contains(&error.code().map_or("", SqlState::code))
}

fn is_disconnect(code: &SqlState) -> bool {
    ["57P01", "57P02", "57P04", "57P05"].contains(&code.code()) || code.code().starts_with("08")
}

fn cause(error: &Error) -> Cause {
    Cause::new(error_chain(error))
}

//! Errors of stores over the wire and back: the client gets the error that the store itself would
//! have returned, including what is known of the call.
//!
//! Not here: calls without an answer ([`crate::remote::link`]).

use std::time::Duration;

use fulgurite_units::error_chain;

use crate::remote::wire::{self, Failure, StepReply};
use crate::stores::{BlobError, Cause, Key, OpenError, Row, TableError, Tag, TransactError};

const CONFLICT: u32 = 1;
const UNKNOWN: u32 = 2;
const UNAVAILABLE: u32 = 3;
const THROTTLED: u32 = 4;
const TOO_LARGE: u32 = 5;
const DENIED: u32 = 6;
const UNSUPPORTED: u32 = 7;
const CORRUPT: u32 = 8;
const NOT_FOUND: u32 = 9;
const EXISTS: u32 = 10;
const MISSING: u32 = 11;
const FOREIGN: u32 = 12;
const NOT_SERVED: u32 = 13;

const ENDED_UNKNOWN: u32 = 1;
const ENDED_UNAVAILABLE: u32 = 2;
const ENDED_CONTENDED: u32 = 3;
const ENDED_REFUSED: u32 = 4;

fn failure(kind: u32, what: impl Into<String>) -> Failure {
    Failure { kind, what: what.into(), number: None, row: None }
}

fn throttled(wait: Option<Duration>) -> Failure {
    let number = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    Failure { number, ..failure(THROTTLED, "") }
}

fn too_large(bytes: usize) -> Failure {
    Failure { number: Some(bytes as u64), ..failure(TOO_LARGE, "") }
}

/// Returns the failure of a store that cannot be used now, for a reason of the node.
pub(crate) fn unavailable(what: impl Into<String>) -> Failure {
    failure(UNAVAILABLE, what)
}

/// Returns the failure for a store that is not served.
pub(crate) fn not_served(what: impl Into<String>) -> Failure {
    failure(NOT_SERVED, what)
}

/// Returns the failure for an invalid request: the client is a different program.
pub(crate) fn invalid_request(what: &dyn std::error::Error) -> Failure {
    failure(DENIED, error_chain(what))
}

pub(crate) fn row(row: Row) -> wire::Row {
    wire::Row { bytes: row.bytes, tag: bytes::Bytes::copy_from_slice(row.tag.as_bytes()) }
}

pub(crate) fn decode_row(row: wire::Row) -> Row {
    Row { bytes: row.bytes, tag: Tag::new(row.tag) }
}

/// Encodes a table error.
pub(crate) fn encode_table_error(error: TableError) -> Failure {
    match error {
        TableError::Conflict(current) => Failure { row: current.map(row), ..failure(CONFLICT, "") },
        TableError::Unavailable(cause) => failure(UNAVAILABLE, cause.to_string()),
        TableError::Throttled(wait) => throttled(wait),
        TableError::TooLarge(bytes) => too_large(bytes),
        TableError::Denied(cause) => failure(DENIED, cause.to_string()),
        TableError::Unsupported(what) => failure(UNSUPPORTED, what),
        TableError::Corrupt(what) => failure(CORRUPT, what),
        TableError::Unknown(cause) => failure(UNKNOWN, cause.to_string()),
    }
}

/// Decodes a table error.
pub(crate) fn decode_table_error(failure: Failure) -> TableError {
    let Failure { kind, what, number, row } = failure;
    let cause = || Cause::new(what.clone());
    match kind {
        CONFLICT => TableError::Conflict(row.map(decode_row)),
        UNAVAILABLE | MISSING | FOREIGN | NOT_SERVED => TableError::Unavailable(cause()),
        THROTTLED => TableError::Throttled(number.map(Duration::from_millis)),
        TOO_LARGE => TableError::TooLarge(decode_bytes(number)),
        DENIED => TableError::Denied(cause()),
        UNSUPPORTED => TableError::Unsupported("execute this call"),
        CORRUPT => TableError::Corrupt(what),
        _ => TableError::Unknown(cause()),
    }
}

/// Encodes a blob error.
pub(crate) fn encode_blob_error(error: BlobError) -> Failure {
    match error {
        BlobError::NotFound => failure(NOT_FOUND, ""),
        BlobError::Exists => failure(EXISTS, ""),
        BlobError::Unavailable(cause) => failure(UNAVAILABLE, cause.to_string()),
        BlobError::Corrupt(what) => failure(CORRUPT, what),
        BlobError::Throttled(wait) => throttled(wait),
        BlobError::Denied(cause) => failure(DENIED, cause.to_string()),
        BlobError::TooLarge(bytes) => too_large(bytes),
        BlobError::Unknown(cause) => failure(UNKNOWN, cause.to_string()),
    }
}

/// Decodes a blob error.
pub(crate) fn decode_blob_error(failure: Failure) -> BlobError {
    let Failure { kind, what, number, .. } = failure;
    let cause = || Cause::new(what.clone());
    match kind {
        NOT_FOUND => BlobError::NotFound,
        EXISTS => BlobError::Exists,
        UNAVAILABLE | MISSING | FOREIGN | NOT_SERVED => BlobError::Unavailable(cause()),
        THROTTLED => BlobError::Throttled(number.map(Duration::from_millis)),
        TOO_LARGE => BlobError::TooLarge(decode_bytes(number)),
        DENIED | UNSUPPORTED => BlobError::Denied(cause()),
        CORRUPT => BlobError::Corrupt(what),
        _ => BlobError::Unknown(cause()),
    }
}

/// Encodes the error of a transaction.
pub(crate) fn encode_transact_error(error: TransactError) -> StepReply {
    let (ended, failure) = match error {
        TransactError::Unavailable { cause, .. } => {
            (ENDED_UNAVAILABLE, failure(UNAVAILABLE, cause.to_string()))
        }
        TransactError::Contended { tries, .. } => {
            let number = Some(u64::from(tries));
            (ENDED_CONTENDED, Failure { number, ..failure(UNAVAILABLE, "") })
        }
        TransactError::Refused { source, .. } => (ENDED_REFUSED, encode_table_error(source)),
        TransactError::Unknown { cause, .. } => {
            (ENDED_UNKNOWN, failure(UNKNOWN, cause.to_string()))
        }
    };
    StepReply { ended, answer: bytes::Bytes::new(), failure: Some(failure) }
}

/// Encodes the failure of a transaction that a node did not start.
pub(crate) fn not_started(failure: Failure) -> StepReply {
    StepReply { ended: ENDED_REFUSED, answer: bytes::Bytes::new(), failure: Some(failure) }
}

/// Decodes the answer of a node, or the error that it answered with.
#[expect(clippy::wildcard_enum_match_arm, reason = "all other errors are refusals")]
pub(crate) fn decode_step_reply(
    key: &Key,
    reply: StepReply,
) -> Result<bytes::Bytes, TransactError> {
    let key = key.clone();
    let failure = reply.failure.unwrap_or_default();
    let cause = || Cause::new(failure.what.clone());
    Err(match reply.ended {
        0 => return Ok(reply.answer),
        ENDED_UNAVAILABLE => TransactError::Unavailable { key, cause: cause() },
        ENDED_CONTENDED => {
            let tries = failure.number.and_then(|tries| u32::try_from(tries).ok());
            TransactError::Contended { key, tries: tries.unwrap_or(u32::MAX) }
        }
        ENDED_REFUSED => match decode_table_error(failure) {
            TableError::Unavailable(cause) => TransactError::Unavailable { key, cause },
            source => TransactError::Refused { key, source },
        },
        _ => TransactError::Unknown { key, cause: cause() },
    })
}

/// Encodes the error of a store that could not be opened.
pub(crate) fn encode_open_error(error: &OpenError) -> Failure {
    match error {
        OpenError::Missing { .. } => failure(MISSING, error.to_string()),
        OpenError::Table { source, .. } => {
            Failure { what: error_chain(error), ..encode_table_error(source.clone()) }
        }
        OpenError::Blob { source, .. } => {
            Failure { what: error_chain(error), ..encode_blob_error(source.clone()) }
        }
        OpenError::Address(_) | OpenError::NotServed { .. } | OpenError::Foreign { .. } => {
            failure(FOREIGN, error_chain(error))
        }
    }
}

/// Whether the store does not exist yet.
pub(crate) const fn is_missing(failure: &Failure) -> bool {
    failure.kind == MISSING
}

/// Whether the node does not serve the store.
pub(crate) const fn is_not_served(failure: &Failure) -> bool {
    failure.kind == NOT_SERVED
}

/// Whether the place holds something that is not ours: a permanent failure.
pub(crate) const fn is_foreign(failure: &Failure) -> bool {
    failure.kind == FOREIGN
}

fn decode_bytes(number: Option<u64>) -> usize {
    number.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX)
}

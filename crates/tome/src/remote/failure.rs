//! Errors of a tome over the wire and back: the caller gets the same error as from a tome in its
//! own process.
//!
//! | kind | code of gRPC |
//! | --- | --- |
//! | not found | `NOT_FOUND` |
//! | conflict | `FAILED_PRECONDITION` |
//! | unavailable | `UNAVAILABLE` |
//! | corrupt | `DATA_LOSS` |
//! | invalid | `INVALID_ARGUMENT` |
//! | internal | `INTERNAL` |
//!
//! Distinctions beyond the kind have a reason in the details. A status without details does not
//! come from a tome: the outcome of the request is unknown.

use bytes::Bytes;
use fulgurite_rpc::prost::Message as _;
use fulgurite_tome_core::{TomeError, TomeId};
use fulgurite_units::{ErrorKind, error_chain};
use tonic::{Code, Status};

use crate::TomesError;
use crate::remote::wire::Failure;

const NO_OBJECT: u32 = 1;
const OBJECT_EXISTS: u32 = 2;
const GIVEN_UP: u32 = 3;
const NOT_SENT: u32 = 4;
const UNANSWERED: u32 = 5;
const BUSY: u32 = 6;
const BACKLOG: u32 = 7;
const FULL: u32 = 8;

/// Converts an error to a gRPC status.
#[expect(clippy::wildcard_enum_match_arm, reason = "errors and kinds may become more")]
pub(crate) fn status(error: &TomesError) -> Status {
    let (reason, text) = match error {
        TomesError::Tome(TomeError::NoObject { name }) => (NO_OBJECT, name.clone()),
        TomesError::Tome(TomeError::ObjectExists { name }) => (OBJECT_EXISTS, name.clone()),
        TomesError::GivenUp { why, .. } => (GIVEN_UP, why.clone()),
        TomesError::Away { why, .. } | TomesError::Unanswered { why, .. } => {
            let is_away = matches!(error, TomesError::Away { .. });
            (if is_away { NOT_SENT } else { UNANSWERED }, why.clone())
        }
        TomesError::Busy { .. } => (BUSY, error_chain(error)),
        TomesError::Tome(TomeError::Backlog { what }) => (BACKLOG, (*what).to_owned()),
        TomesError::Tome(TomeError::Full { what }) => (FULL, (*what).to_owned()),
        TomesError::Stopped => (UNANSWERED, "it is stopped".to_owned()),
        other => (0, error_chain(other)),
    };
    let (kind, code) = match error.kind() {
        ErrorKind::NotFound => (1, Code::NotFound),
        ErrorKind::Conflict => (2, Code::FailedPrecondition),
        ErrorKind::Unavailable => (3, Code::Unavailable),
        ErrorKind::Corrupt => (4, Code::DataLoss),
        ErrorKind::Invalid => (5, Code::InvalidArgument),
        _ => (6, Code::Internal),
    };
    let details = Failure { kind, reason, text }.encode_to_vec();
    Status::with_details(code, error_chain(error), Bytes::from(details))
}

/// Converts the status of a tome back to an error.
pub(crate) fn error(tome: TomeId, status: &Status) -> TomesError {
    let failure = Failure::decode(status.details()).ok().filter(|failure| failure.kind != 0);
    let Some(Failure { kind, reason, text }) = failure else {
        let why = match status.message() {
            "" => status.code().to_string(),
            message => message.to_owned(),
        };
        return TomesError::Unanswered { tome, why };
    };
    match reason {
        NO_OBJECT => TomeError::NoObject { name: text }.into(),
        OBJECT_EXISTS => TomeError::ObjectExists { name: text }.into(),
        GIVEN_UP => TomesError::GivenUp { tome, why: text },
        NOT_SENT => TomesError::Away { tome, why: text },
        UNANSWERED => TomesError::Unanswered { tome, why: text },
        BUSY => TomesError::Busy { tome },
        BACKLOG => TomeError::Backlog { what: room_for(&text) }.into(),
        FULL => TomeError::Full { what: room_for(&text) }.into(),
        _ => TomesError::Remote { tome, kind: kind_of(kind), what: text },
    }
}

/// Returns what a tome has no room for. Only with objects does a set act differently.
fn room_for(text: &str) -> &'static str {
    if text == "objects" { "objects" } else { "work" }
}

const fn kind_of(kind: u32) -> ErrorKind {
    match kind {
        1 => ErrorKind::NotFound,
        2 => ErrorKind::Conflict,
        3 => ErrorKind::Unavailable,
        4 => ErrorKind::Corrupt,
        5 => ErrorKind::Invalid,
        _ => ErrorKind::Internal,
    }
}

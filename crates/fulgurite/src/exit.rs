//! Exit codes: the one table, and how an error finds its row.
//!
//! Scripts depend on these numbers; they are documented in `--help` and in docs/operating.md and
//! never change their meaning.

use std::fmt;

use fulgurite_archive::{ArchiveError, CatalogError};
use fulgurite_gateway::GatewayError;
use fulgurite_geo_store::GeoError;
use fulgurite_glass::GlassError;
use fulgurite_sites_net::NodeError;
use fulgurite_stacks::StacksError;
use fulgurite_tome_store::StoreError;
use fulgurite_tomes::TomesError;
use fulgurite_tomes_net::NetError;

use crate::config::ConfigError;
use crate::s3::{S3Error, S3ErrorKind};

/// How a run of the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything asked for was done.
    Success = 0,
    /// Something failed that no other code names.
    Failure = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The configuration or the credentials are wrong or missing.
    Config = 3,
    /// A bucket, object, platter or file does not exist.
    NotFound = 4,
    /// An object is archived and must be restored first.
    Archived = 5,
    /// The server refused the credentials.
    Denied = 6,
    /// The server cannot be reached, or asked to try later until patience ended.
    Unavailable = 7,
    /// Bytes are not what was written: damage, a wrong checksum, a difference.
    Corrupt = 8,
    /// Another process serves this data directory.
    Locked = 9,
    /// Some objects were done and some were not; each failure was named.
    Partial = 10,
    /// The server ended itself: what its disk holds of the key table is not known.
    KeysFailed = 11,
}

/// The table as `--help` and the manual show it.
pub(crate) const EXIT_CODES_HELP: &str = "\
Exit codes:
   0  success (also when the reader of a pipe went away)
   1  failure that no other code names
   2  wrong command line
   3  wrong configuration or missing credentials
   4  bucket, object, platter or file not found
   5  object is archived: run `fulgurite restore` first
   6  access denied
   7  server unreachable or overloaded
   8  damaged bytes: a checksum or a comparison failed
   9  data directory is in use by another process
  10  some objects failed, the others were done
  11  `serve` ended itself: the key table could not be synced";

/// An error that knows its exit code.
#[derive(Debug)]
pub(crate) struct Coded {
    exit: Exit,
    message: String,
}

impl Coded {
    /// An error shown as `message`, ending the program with `exit`.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }
}

impl fmt::Display for Coded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Coded {}

/// The exit code of `error`: the first of its causes that has one decides.
pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    error.chain().find_map(exit_of_cause).unwrap_or(Exit::Failure)
}

fn exit_of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    if let Some(coded) = cause.downcast_ref::<Coded>() {
        return Some(coded.exit);
    }
    if cause.is::<ConfigError>() {
        return Some(Exit::Config);
    }
    if let Some(error) = cause.downcast_ref::<S3Error>() {
        return Some(exit_of_s3(error.kind()));
    }
    if let Some(error) = cause.downcast_ref::<ArchiveError>() {
        return Some(exit_of_archive(error));
    }
    if let Some(error) = cause.downcast_ref::<GatewayError>() {
        return Some(exit_of_gateway(error));
    }
    if let Some(error) = cause.downcast_ref::<GlassError>() {
        return Some(exit_of_glass(error));
    }
    if let Some(error) = cause.downcast_ref::<StacksError>() {
        return Some(exit_of_stacks(error));
    }
    if let Some(error) = cause.downcast_ref::<NetError>() {
        return Some(exit_of_kind(error.kind()));
    }
    if let Some(error) = cause.downcast_ref::<TomesError>() {
        if matches!(error, TomesError::InUse { .. }) {
            return Some(Exit::Locked);
        }
        return Some(exit_of_kind(error.kind()));
    }
    if let Some(error) = cause.downcast_ref::<StoreError>() {
        return Some(exit_of_kind(error.kind()));
    }
    if let Some(error) = cause.downcast_ref::<GeoError>() {
        return Some(exit_of_kind(error.kind()));
    }
    if let Some(error) = cause.downcast_ref::<NodeError>() {
        return Some(exit_of_kind(error.kind()));
    }
    let io = cause.downcast_ref::<std::io::Error>()?;
    #[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind is non-exhaustive")]
    match io.kind() {
        std::io::ErrorKind::BrokenPipe => Some(Exit::Success),
        std::io::ErrorKind::NotFound => Some(Exit::NotFound),
        std::io::ErrorKind::PermissionDenied => Some(Exit::Denied),
        _ => None,
    }
}

fn exit_of_archive(error: &ArchiveError) -> Exit {
    use fulgurite_archive::ErrorKind;
    if matches!(error, ArchiveError::Locked { .. }) {
        return Exit::Locked;
    }
    if matches!(error, ArchiveError::KeysFailed { .. }) {
        return Exit::KeysFailed;
    }
    if matches!(
        error,
        ArchiveError::Unusable { .. }
            | ArchiveError::WrongMasterKey { .. }
            | ArchiveError::WrongSharedKey { .. }
    ) {
        return Exit::Config;
    }
    match error.kind() {
        ErrorKind::NotFound => Exit::NotFound,
        ErrorKind::Unavailable => Exit::Unavailable,
        ErrorKind::Corrupt => Exit::Corrupt,
        ErrorKind::Invalid => Exit::Usage,
        ErrorKind::Conflict | ErrorKind::Internal | _ => Exit::Failure,
    }
}

fn exit_of_gateway(error: &GatewayError) -> Exit {
    use fulgurite_gateway::ErrorKind;
    if error.kind() == ErrorKind::Invalid { Exit::Config } else { Exit::Failure }
}

fn exit_of_kind(kind: fulgurite_units::ErrorKind) -> Exit {
    use fulgurite_units::ErrorKind;
    match kind {
        ErrorKind::NotFound => Exit::NotFound,
        ErrorKind::Unavailable => Exit::Unavailable,
        ErrorKind::Corrupt => Exit::Corrupt,
        ErrorKind::Invalid => Exit::Config,
        ErrorKind::Conflict | ErrorKind::Internal | _ => Exit::Failure,
    }
}

fn exit_of_glass(error: &GlassError) -> Exit {
    use fulgurite_glass::ErrorKind;
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Conflict => Exit::Corrupt,
        ErrorKind::Invalid => Exit::Usage,
        ErrorKind::Unavailable | _ => Exit::Failure,
    }
}

fn exit_of_stacks(error: &StacksError) -> Exit {
    use fulgurite_gateway::ErrorKind;
    if matches!(error, StacksError::Catalog(CatalogError::Locked { .. })) {
        return Exit::Locked;
    }
    // As it is configured, or a disk that stands in a place of the configuration.
    if matches!(
        error,
        StacksError::Invalid { .. } | StacksError::Rack(_) | StacksError::WrongDisk { .. }
    ) {
        return Exit::Config;
    }
    match error.kind() {
        ErrorKind::NotFound => Exit::NotFound,
        ErrorKind::Unavailable => Exit::Unavailable,
        ErrorKind::Corrupt => Exit::Corrupt,
        ErrorKind::Invalid => Exit::Usage,
        ErrorKind::Conflict | ErrorKind::Internal | _ => Exit::Failure,
    }
}

const fn exit_of_s3(kind: S3ErrorKind) -> Exit {
    match kind {
        S3ErrorKind::NotFound => Exit::NotFound,
        S3ErrorKind::Archived => Exit::Archived,
        S3ErrorKind::Denied => Exit::Denied,
        S3ErrorKind::Unavailable => Exit::Unavailable,
        S3ErrorKind::Corrupt => Exit::Corrupt,
        S3ErrorKind::Invalid => Exit::Usage,
        S3ErrorKind::Conflict | S3ErrorKind::Internal => Exit::Failure,
    }
}

#[cfg(test)]
mod tests;

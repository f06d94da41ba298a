//! Exit codes: the one table, and how an error maps to its code.
//!
//! Scripts depend on these numbers. They are documented in `--help` and in docs/operating.md and
//! never change their meaning.

use std::fmt;

/// How a run of the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything asked for was done.
    Success = 0,
    /// A failure without a code of its own.
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
    /// The server cannot be reached, or kept asking to retry later until retries ran out.
    Unavailable = 7,
    /// Bytes differ from what was written: damage, a wrong checksum, or a failed comparison.
    Corrupt = 8,
    /// Another process serves this data directory.
    Locked = 9,
    /// Some objects succeeded and some failed; each failure was reported.
    Partial = 10,
    /// The server stopped itself: it is unknown what its disk holds of the key table.
    KeysFailed = 11,
    /// A recovery is complete but for keys whose bodies were found nowhere: a tier may be missing.
    KeysWithoutBodies = 12,
}

/// The table as `--help` and the manual show it.
pub const EXIT_CODES_HELP: &str = "\
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
  11  `serve` ended itself: the key table could not be synced
  12  `recover` found no body for some keys: was a tier left out?";

/// An error that knows its exit code.
#[derive(Debug)]
pub struct ExitError {
    exit: Exit,
    message: String,
}

impl ExitError {
    /// Creates an error that is shown as `message` and ends the program with `exit`.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }
}

impl fmt::Display for ExitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExitError {}

/// Returns the exit code of `error`: that of the first cause in its chain that has one. `known`
/// maps causes of types that this crate does not know.
pub fn exit_of(
    error: &anyhow::Error,
    known: impl Fn(&(dyn std::error::Error + 'static)) -> Option<Exit>,
) -> Exit {
    let exit_of_cause = |cause: &(dyn std::error::Error + 'static)| {
        if let Some(exit_error) = cause.downcast_ref::<ExitError>() {
            return Some(exit_error.exit);
        }
        known(cause).or_else(|| exit_of_io(cause.downcast_ref()?))
    };
    error.chain().find_map(exit_of_cause).unwrap_or(Exit::Failure)
}

fn exit_of_io(error: &std::io::Error) -> Option<Exit> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind is non-exhaustive")]
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => Some(Exit::Success),
        std::io::ErrorKind::NotFound => Some(Exit::NotFound),
        std::io::ErrorKind::PermissionDenied => Some(Exit::Denied),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

//! The limit of files and sockets that this process may hold open.
//!
//! Shells and service managers default to a soft limit of 1,024, which a process may raise itself
//! up to the hard limit. If the hard limit is low, connections are limited so that they leave
//! descriptors to the archive's files (`Limits::for_descriptors`).

use fulgurite_terminal::exit::{Exit, ExitError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::DESCRIPTORS_MIN;

/// Raises the soft limit to the hard one; an error if that is too low for an archive.
pub(crate) fn raise() -> anyhow::Result<()> {
    raise_limit();
    check(limit())
}

/// Raises the soft limit to the hard one.
pub(crate) fn raise_limit() {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files could not be raised (ulimit -n)");
    }
}

/// The limit in effect.
pub(crate) fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn check(limit: u64) -> anyhow::Result<()> {
    if limit >= DESCRIPTORS_MIN {
        return Ok(());
    }
    let message = format!(
        "this process may open {limit} files; an archive needs at least {DESCRIPTORS_MIN}: raise \
         the hard limit (ulimit -Hn, LimitNOFILE=)"
    );
    Err(ExitError::new(Exit::Config, message).into())
}

#[cfg(test)]
mod tests;

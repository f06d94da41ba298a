//! Connections to tomes, and the backoff between attempts.
//!
//! Not here: what is sent on a connection.

use std::time::Duration;

use fulgurite_rpc::Client;
use tokio::time::Instant;

use crate::remote::limits::{
    BACKOFF_MAX, BACKOFF_MIN, BACKOFF_RESET_AFTER, CONNECT_TIMEOUT, WIRE_BYTES_MAX,
};
use crate::remote::tls::{PeerName, Tls};
use crate::remote::{NetError, Result};

/// Backoff limits for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffLimits {
    /// Backoff after the first failure; it doubles with each.
    pub min: Duration,
    /// Longest backoff.
    pub max: Duration,
}

impl Default for BackoffLimits {
    fn default() -> Self {
        Self { min: BACKOFF_MIN, max: BACKOFF_MAX }
    }
}

/// Backoff state of a connection.
#[derive(Debug)]
pub(crate) struct Backoff {
    backoff_limits: BackoffLimits,
    next: Duration,
    began: Instant,
}

impl Backoff {
    pub(crate) fn new(backoff_limits: BackoffLimits) -> Self {
        Self { backoff_limits, next: backoff_limits.min, began: Instant::now() }
    }

    /// Records the start of an attempt.
    pub(crate) fn begin(&mut self) {
        self.began = Instant::now();
    }

    /// Records the end of a connection; returns the backoff.
    pub(crate) fn end(&mut self, was_there: bool) -> Duration {
        if was_there && self.began.elapsed() >= BACKOFF_RESET_AFTER {
            self.next = self.backoff_limits.min;
        }
        let backoff = self.next;
        self.next = (backoff * 2).min(self.backoff_limits.max);
        backoff
    }
}

/// Connects to the peer with this name, or fails.
pub(crate) async fn dial(address: &str, name: PeerName, tls: &Tls) -> Result<Client> {
    let failed = |what: String| NetError::Connect { address: address.to_owned(), what };
    match tokio::time::timeout(CONNECT_TIMEOUT, tls.dial(address, name)).await {
        Ok(Ok(channel)) => Ok(Client::new(channel, WIRE_BYTES_MAX)),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed("timed out".to_owned())),
    }
}

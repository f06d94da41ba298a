//! The status of a running server, as `GET /-/admin/status` and `/metrics` show it.

use std::collections::BTreeMap;

use fulgurite_archive::config::TierName;
use fulgurite_archive::status::Status;
use fulgurite_tier::TierKind;
use serde::{Deserialize, Serialize};

/// The status of the server's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Open connections.
    pub connections: u64,
    /// Limit of open connections.
    pub connections_max: u64,
    /// Idle connections that were closed to make room for others, since the start.
    pub connections_ended_idle: u64,
}

/// The status of the archive and of the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FullStatus {
    /// The status of the archive, whose fields are flattened into this.
    #[serde(flatten)]
    pub archive: Status,
    /// The status of the server's connections.
    pub server: ServerStatus,
    /// The kind of each tier, by name. Their own states have calls of their own.
    #[serde(default)]
    pub tiers: BTreeMap<TierName, TierKind>,
}

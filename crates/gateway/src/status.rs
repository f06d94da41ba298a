//! What a running server says of itself, as `GET /-/admin/status` and `/metrics` show it.

use fulgurite_archive::status::Status;
use serde::{Deserialize, Serialize};

/// The sockets' side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Connections of clients.
    pub connections: u64,
    /// Most of them at a time.
    pub connections_max: u64,
    /// Idle ones that were ended to make room for others, since the start.
    pub connections_ended_idle: u64,
}

/// The archive's status, and beside it the server's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WholeStatus {
    /// What the archive holds and does; its fields are those of the whole.
    #[serde(flatten)]
    pub archive: Status,
    /// The sockets' side.
    pub server: ServerStatus,
    /// Whether it has a rack of cold disks, which is asked by calls of its own.
    #[serde(default)]
    pub has_rack: bool,
    /// Whether it has a set of tomes, which is asked by calls of its own.
    #[serde(default)]
    pub has_tomes: bool,
    /// Whether it has a namespace over several sites, which is asked by a call of its own.
    #[serde(default)]
    pub has_geo: bool,
}

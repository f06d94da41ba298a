//! Nodes, which serve the stores of a site: their places, and the connector to them. This crate
//! only knows stores, so the connector is injected into an [`crate::stores::Opener`].

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use crate::stores::{Blob, OpenError, Table};

/// Place and identity of a node, from its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEndpoint {
    /// The address, for display.
    pub address: String,
    /// Host and port.
    pub authority: String,
    /// The name that its certificate must have.
    pub name: String,
    /// CA certificates of both sides (PEM).
    pub ca: PathBuf,
    /// The client certificate (PEM).
    pub certificate: PathBuf,
    /// The key of the client certificate (PEM).
    pub key: PathBuf,
}

/// Connects to nodes.
#[async_trait]
pub trait Nodes: Send + Sync {
    /// Opens the table that a node serves; the node creates it if it is missing and `may_create`.
    ///
    /// # Errors
    /// [`OpenError`].
    async fn table(
        &self,
        place: NodeEndpoint,
        may_create: bool,
    ) -> Result<Arc<dyn Table>, OpenError>;

    /// Opens the blobs that a node serves; it creates their folder as it does a table.
    ///
    /// # Errors
    /// [`OpenError`].
    async fn blobs(
        &self,
        place: NodeEndpoint,
        may_create: bool,
    ) -> Result<Arc<dyn Blob>, OpenError>;
}

//! Nodes, which serve the stores of a site: where one is, and what reaches it. This crate speaks
//! with stores alone, so that how a node is reached is handed to an [`crate::Opener`].

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{Blob, OpenError, Table};

/// Where a node answers and who it has to be, as an address says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlace {
    /// The address, to be shown.
    pub address: String,
    /// Host and port.
    pub at: String,
    /// The name that its certificate has to have.
    pub name: String,
    /// Certificates of the authority of both (PEM).
    pub ca: PathBuf,
    /// The certificate that is shown to it (PEM).
    pub certificate: PathBuf,
    /// The key of that (PEM).
    pub key: PathBuf,
}

/// Reaches nodes.
#[async_trait]
pub trait Nodes: Send + Sync {
    /// The table that a node serves; the node makes it if it is not there and `may_create`.
    ///
    /// # Errors
    /// [`OpenError`].
    async fn table(&self, place: NodePlace, may_create: bool) -> Result<Arc<dyn Table>, OpenError>;

    /// The blobs that a node serves; it makes their folder as it does a table.
    ///
    /// # Errors
    /// [`OpenError`].
    async fn blobs(&self, place: NodePlace, may_create: bool) -> Result<Arc<dyn Blob>, OpenError>;
}

//! Who stands beside a table: a program at the same site that does a whole transaction there, so
//! that it takes one trip between sites and not one for each call of the table.
//!
//! ```text
//! here             between sites             there
//! question ------------ one ------------> read -> decide -> write if unchanged, again if not
//! answer   <---------- trip -------------   |
//! ```
//!
//! What is asked and answered is bytes here: what rows mean is the affair of those who ask and of
//! those who answer. A question may be told twice when its answer was lost, so that a decision has
//! to know its own effect again, as in [`crate::transact`].

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Blob, Key, OpenError, Table, TransactError};

/// Does whole transactions on rows of a table, where the table is.
#[async_trait]
pub trait Beside: Send + Sync {
    /// Has the question decided on the row under `key`, and written.
    ///
    /// # Errors
    /// [`TransactError`], which says whether something may have been written.
    async fn transact(&self, key: &Key, question: Bytes) -> Result<Asked, TransactError>;
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The answer.
    pub answer: Bytes,
    /// Trips that it took.
    pub trips: u32,
}

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

/// Reaches nodes, for an [`crate::Opener`]: this crate speaks with stores alone.
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

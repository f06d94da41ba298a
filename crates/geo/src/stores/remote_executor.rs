//! Remote transactions: a program at the site of a table executes a whole transaction there. That
//! takes one round trip between sites, not one for each call to the table.
//!
//! ```text
//! here             between sites             there
//! query    ------------ one ------------> read -> decide -> write if unchanged, again if not
//! answer   <------- round trip ----------   |
//! ```
//!
//! Queries and answers are opaque bytes here; only the sender and the receiver know what rows mean.
//! A query may arrive twice if its answer was lost, so a decision must recognize its own effect, as
//! in [`crate::stores::transact()`].

use async_trait::async_trait;
use bytes::Bytes;

use crate::stores::{Key, TransactError};

/// Executes whole transactions on rows of a table, next to the table.
#[async_trait]
pub trait RemoteExecutor: Send + Sync {
    /// Executes a query on the row under `key`, and writes the result.
    ///
    /// # Errors
    /// [`TransactError`], which states whether something may have been written.
    async fn transact(&self, key: &Key, query: Bytes) -> Result<TransactReply, TransactError>;
}

/// Result of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactReply {
    /// The answer.
    pub answer: Bytes,
    /// Round trips that it took.
    pub trips: u32,
}

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
//! to know its own effect again, as in [`crate::transact()`].

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Key, TransactError};

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

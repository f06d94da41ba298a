//! A table whose replies get lost, as on a connection that breaks at the worst moments.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use crate::stores::{Cause, Expect, Key, Row, Table, TableCaps, TableError, Tag};

/// Which half of a write is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The request: the write has no effect.
    BeforeEffect,
    /// The answer: the write has taken effect.
    AfterEffect,
}

/// A table whose first writes end with an unknown outcome.
pub struct LossyTable<'a> {
    inner: &'a dyn Table,
    loss: Loss,
    left: AtomicU32,
}

impl std::fmt::Debug for LossyTable<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LossyTable").field("loss", &self.loss).field("left", &self.left).finish()
    }
}

impl<'a> LossyTable<'a> {
    /// Wraps the table `inner` so that its first `count` writes are lost.
    #[must_use]
    pub const fn new(inner: &'a dyn Table, loss: Loss, count: u32) -> Self {
        Self { inner, loss, left: AtomicU32::new(count) }
    }

    fn is_lost(&self) -> bool {
        let take = |left: u32| left.checked_sub(1);
        self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
    }
}

#[async_trait]
impl Table for LossyTable<'_> {
    fn caps(&self) -> TableCaps {
        self.inner.caps()
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        self.inner.read(key).await
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        if !self.is_lost() {
            return self.inner.cas(key, expect, new).await;
        }
        if self.loss == Loss::AfterEffect {
            self.inner.cas(key, expect, new).await?;
        }
        Err(TableError::Unknown(Cause::new("the reply was dropped on purpose")))
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        self.inner.remove(key, tag).await
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        self.inner.erase(key).await
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        self.inner.scan(prefix, after)
    }
}

//! Seeded entropy, and connections that lose messages by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_geo::stores::{Cause, Entropy, Expect, Key, Row, Table, TableCaps, TableError, Tag};
use fulgurite_units::Seed;
use futures::stream::BoxStream;

/// Returns entropy that is the same each time.
pub(crate) fn entropy(seed: u64) -> Entropy {
    let (seed, drawn) = (Seed::new(seed), AtomicU64::new(0));
    Entropy::new(move || {
        let number = drawn.fetch_add(1, Ordering::SeqCst);
        let mut bytes = [0; 16];
        seed.child(&number.to_le_bytes()).stream().fill(&mut bytes);
        bytes
    })
}

/// A table behind a bad connection: of four writes one is not sent, and of another the answer is
/// lost.
pub(crate) struct BadConnection {
    pub(crate) inner: Arc<dyn Table>,
    pub(crate) entropy: Entropy,
}

#[async_trait]
impl Table for BadConnection {
    fn caps(&self) -> TableCaps {
        self.inner.caps()
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        if self.entropy.draw()[0].is_multiple_of(8) {
            return Err(TableError::Unavailable(Cause::new("lost on purpose")));
        }
        self.inner.read(key).await
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        let lost = || TableError::Unknown(Cause::new("lost on purpose"));
        match self.entropy.draw()[0] % 4 {
            0 => Err(lost()),
            1 => self.inner.cas(key, expect, new).await.and_then(|_| Err(lost())),
            _ => self.inner.cas(key, expect, new).await,
        }
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

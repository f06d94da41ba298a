//! A table in memory, for tests and simulations. Its rows are lost with its last clone.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use crate::stores::limits::PAGE_ROWS;
use crate::stores::scan::{Page, pages};
use crate::stores::table::{TableCaps, check_length};
use crate::stores::{Expect, Key, Row, Table, TableError, Tag};

/// A table in memory. A clone is another connection to the same rows.
#[derive(Clone, Debug, Default)]
pub struct MemoryTable(Arc<Mutex<Rows>>);

#[derive(Debug, Default)]
struct Rows {
    rows: BTreeMap<Key, Row>,
    /// The number of the last write, which is its tag: none comes twice.
    written: u64,
}

impl MemoryTable {
    /// Creates an empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all rows, as at a site whose disks were replaced.
    pub fn clear(&self) {
        self.lock().rows.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn page(&self, prefix: Option<&Key>, after: Option<Key>) -> Page {
        let rows = &self.lock().rows;
        let from = match (after, prefix) {
            (None, None) => Bound::Unbounded,
            (Some(after), Some(prefix)) if after < *prefix => Bound::Excluded(prefix.clone()),
            (Some(after), _) => Bound::Excluded(after),
            (None, Some(prefix)) => Bound::Excluded(prefix.clone()),
        };
        let below = |key: &Key| prefix.is_none_or(|prefix| key.is_below(prefix));
        // Between a prefix and the keys below it are keys that merely start with the same
        // characters.
        let mut found = rows
            .range((from, Bound::Unbounded))
            .skip_while(|(key, _)| !below(key))
            .take_while(|(key, _)| below(key))
            .map(|(key, row)| (key.clone(), row.clone()));
        let rows: Vec<_> = found.by_ref().take(PAGE_ROWS).collect();
        Page { rows, is_last: found.next().is_none() }
    }
}

#[async_trait]
impl Table for MemoryTable {
    fn caps(&self) -> TableCaps {
        TableCaps::FULL
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        Ok(self.lock().rows.get(key).cloned())
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        check_length(self.caps(), &new)?;
        let mut rows = self.lock();
        let current = rows.rows.get(key);
        let is_expected = expect.is_met(current);
        if !is_expected {
            return Err(TableError::Conflict(current.cloned()));
        }
        rows.written += 1;
        let tag = Tag::new(rows.written.to_string());
        rows.rows.insert(key.clone(), Row { bytes: new, tag: tag.clone() });
        Ok(tag)
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        let mut rows = self.lock();
        match rows.rows.get(key) {
            Some(row) if row.tag == *tag => {
                rows.rows.remove(key);
                Ok(())
            }
            current => Err(TableError::Conflict(current.cloned())),
        }
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        self.lock().rows.remove(key);
        Ok(())
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        let prefix = prefix.cloned();
        pages(after, move |after| {
            let page = self.page(prefix.as_ref(), after);
            async move { Ok(page) }
        })
    }
}

//! Bulk load: fills a space of a new store with rows in key order.
//!
//! A batch goes to the journal, to memory in key order, to tables and, with those of other batches,
//! to tables again. Rows that are already sorted, and need not be durable one by one, go straight
//! to tables:
//!
//! ```text
//!   rows in order --> tables, synced --> the list of tables: from here on all of them are read
//! ```
//!
//! Every row of such a table has version 0; the list holds the version to be added to it.

use std::sync::PoisonError;

use super::{Engine, FjallStore, errors};
use crate::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::{CatalogError, Space};

impl FjallStore {
    /// Fills `space`, which must be empty and have no other writer, with `rows` in ascending key
    /// order. They become visible all at once and are durable when this returns. Several spaces may
    /// be filled concurrently, each by a thread of its own.
    ///
    /// # Errors
    /// The first of `rows`; and when the disk fails or a row is too long. The store must then be
    /// discarded.
    ///
    /// # Panics
    /// If the space has rows, or the keys do not ascend.
    pub fn load<E: From<CatalogError>>(
        &self,
        space: Space,
        rows: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), E>>,
    ) -> Result<(), E> {
        self.engine()?.load(space, rows)
    }
}

impl Engine {
    fn load<E: From<CatalogError>>(
        &self,
        space: Space,
        rows: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), E>>,
    ) -> Result<(), E> {
        self.check_usable()?;
        // Without rows, a table would be begun and left over.
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let keyspace = self.keyspace(space)?;
        let failed = |error| errors::write("fill a space", error);
        let is_empty = keyspace.is_empty().map_err(failed)?;
        assert!(is_empty, "a space that is filled has no rows");
        let mut tables = keyspace.start_ingestion().map_err(failed)?;
        for row in rows {
            let (key, value) = row?;
            if key.is_empty() || key.len() > KEY_BYTES_MAX {
                let error = CatalogError::KeyLength { space: space.name(), len: key.len() };
                return Err(error.into());
            }
            if value.len() > VALUE_BYTES_MAX {
                let error = CatalogError::ValueLength { space: space.name(), len: value.len() };
                return Err(error.into());
            }
            // It asserts that the key is greater than the one before.
            tables.write(key, value).map_err(failed)?;
        }
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        tables.finish().map_err(failed)?;
        let content = self.database.snapshot();
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = content;
        Ok(())
    }
}

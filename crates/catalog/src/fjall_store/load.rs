//! Filling a space of a new store with rows that come in order of their keys.
//!
//! A batch goes to the journal, to memory in order of keys, to tables and, with those of other
//! batches, to tables again. Rows that are in order already, and that nobody waits for one by one,
//! go straight to tables:
//!
//! ```text
//!   rows in order --> tables, synced --> the list of tables: from here on all of them are read
//! ```
//!
//! Every row of such a table has version 0, and the list has what is added to it.

use std::sync::PoisonError;

use super::{Engine, FjallStore, errors};
use crate::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::{CatalogError, Space};

impl FjallStore {
    /// Fills `space`, which is empty and which nobody else writes to, with `rows` in ascending
    /// order of their keys. They are there, on stable storage, when this returns, and until then
    /// none of them is. Several spaces may be filled at one time, each by a thread of its own.
    ///
    /// # Errors
    /// The first of `rows`; and when the disk fails or a row is too long. The store is then to be
    /// thrown away.
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
        // Without rows a table would be begun and left behind.
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

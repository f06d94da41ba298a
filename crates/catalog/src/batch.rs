//! The writes of one atomic batch: the last write of each key, by space and key.
//!
//! A map rather than a list, because a backend gives all writes of a batch the same version, so two
//! writes of one key would have no order.

use std::collections::BTreeMap;
use std::collections::btree_map::Range;

use crate::limits::{KEY_BYTES_MAX, ROW_OVERHEAD_BYTES, TRANSACTION_BYTES_MAX, VALUE_BYTES_MAX};
use crate::{CatalogError, KeyRange, Space};

/// The writes to one space: a value, or none for a deletion.
pub(crate) type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Writes that become visible and durable together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    spaces: BTreeMap<Space, Writes>,
    bytes: usize,
}

impl Batch {
    /// Creates an empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores `value` under `key`.
    pub fn put(
        &mut self,
        space: Space,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
    ) -> Result<(), CatalogError> {
        let value = value.into();
        if value.len() > VALUE_BYTES_MAX {
            return Err(CatalogError::ValueLength { space: space.name(), len: value.len() });
        }
        self.write(space, key.into(), Some(value))
    }

    /// Removes `key`, present or not.
    pub fn delete(&mut self, space: Space, key: impl Into<Vec<u8>>) -> Result<(), CatalogError> {
        self.write(space, key.into(), None)
    }

    /// Whether the batch is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spaces.is_empty()
    }

    /// Number of keys written.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.spaces.values().map(BTreeMap::len).sum()
    }

    /// Memory that the writes take: keys, values and a fixed overhead per row.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    fn write(
        &mut self,
        space: Space,
        key: Vec<u8>,
        value: Option<Vec<u8>>,
    ) -> Result<(), CatalogError> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(CatalogError::KeyLength { space: space.name(), len: key.len() });
        }
        let bytes = self.bytes + row_bytes(&key, value.as_deref());
        if bytes > TRANSACTION_BYTES_MAX {
            return Err(CatalogError::TransactionSize { bytes });
        }
        self.insert(space, key, value);
        Ok(())
    }

    fn insert(&mut self, space: Space, key: Vec<u8>, value: Option<Vec<u8>>) {
        let key_len = key.len();
        self.bytes += row_bytes(&key, value.as_deref());
        if let Some(old) = self.spaces.entry(space).or_default().insert(key, value) {
            let old_len = old.map_or(0, |value| value.len());
            self.bytes -= key_len + old_len + ROW_OVERHEAD_BYTES;
        }
    }

    /// Merges all writes of `later`, which win over those here. The limits of one transaction do
    /// not apply: a group holds several.
    pub fn absorb(&mut self, later: Self) {
        if self.is_empty() {
            *self = later;
            return;
        }
        for (space, key, value) in later.into_writes() {
            self.insert(space, key, value);
        }
    }

    /// Returns what this batch says about `key`: nothing, a deletion, or a value.
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Option<Option<&[u8]>> {
        self.spaces.get(&space)?.get(key).map(Option::as_deref)
    }

    /// Returns the writes to `space` within `range`, which must not be empty.
    pub(crate) fn writes_in(
        &self,
        space: Space,
        range: &KeyRange,
    ) -> Option<Range<'_, Vec<u8>, Option<Vec<u8>>>> {
        Some(self.spaces.get(&space)?.range::<[u8], _>(range.bounds()))
    }

    /// Iterates over the spaces written to.
    pub(crate) fn spaces(&self) -> impl Iterator<Item = Space> {
        self.spaces.keys().copied()
    }

    /// Iterates over the writes, by space and key.
    pub(crate) fn into_writes(self) -> impl Iterator<Item = (Space, Vec<u8>, Option<Vec<u8>>)> {
        self.spaces.into_iter().flat_map(|(space, writes)| {
            writes.into_iter().map(move |(key, value)| (space, key, value))
        })
    }
}

fn row_bytes(key: &[u8], value: Option<&[u8]>) -> usize {
    key.len() + value.map_or(0, <[u8]>::len) + ROW_OVERHEAD_BYTES
}

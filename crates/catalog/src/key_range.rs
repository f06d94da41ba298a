//! A range of keys: all byte strings from `start` up to but not including `end`.
//!
//! One canonical form instead of six kinds of bounds: an excluded start `k` is the included start
//! `k 00`, because no byte string lies between the two.

use std::ops::Bound;

use crate::keys::prefix_successor;
use crate::limits::KEY_BYTES_MAX;

/// A half-open range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    #[must_use]
    pub const fn all() -> Self {
        Self { start: Vec::new(), end: None }
    }

    /// Every key that begins with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        Self { start: prefix.to_vec(), end: prefix_successor(prefix) }
    }

    /// Every key from `start` (included).
    #[must_use]
    pub fn from(start: impl Into<Vec<u8>>) -> Self {
        Self { start: start.into(), end: None }
    }

    /// Every key from `start` (included) to `end` (excluded).
    #[must_use]
    pub fn between(start: impl Into<Vec<u8>>, end: impl Into<Vec<u8>>) -> Self {
        Self { start: start.into(), end: Some(end.into()) }
    }

    /// Returns the part of this range that begins after `key`: the next page of an ascending scan.
    #[must_use]
    pub fn after(mut self, key: &[u8]) -> Self {
        if self.start.as_slice() <= key {
            self.start.clear();
            self.start.extend_from_slice(key);
            self.start.push(0);
        }
        self
    }

    /// Returns the part of this range that begins at `key` (included).
    #[must_use]
    pub fn at_or_after(mut self, key: &[u8]) -> Self {
        if self.start.as_slice() < key {
            self.start = key.to_vec();
        }
        self
    }

    /// Returns the part of this range that ends before `key`: the next page of a descending scan.
    #[must_use]
    pub fn before(mut self, key: &[u8]) -> Self {
        if self.end.as_deref().is_none_or(|end| key < end) {
            self.end = Some(key.to_vec());
        }
        self
    }

    /// The first key that may lie in the range.
    #[must_use]
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// The first key after the range, or none if it is open.
    #[must_use]
    pub fn end(&self) -> Option<&[u8]> {
        self.end.as_deref()
    }

    /// Whether no key lies in the range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.end.as_deref().is_some_and(|end| end <= self.start.as_slice())
    }

    /// Whether `key` lies in the range.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && self.end.as_deref().is_none_or(|end| key < end)
    }

    /// Returns the range as bounds of an ordered map, cut to the longest allowed key. The range
    /// must not be empty: standard maps panic on a range that ends before it starts.
    ///
    /// A longer bound sorts directly after the key made of its first bytes, so that key comes
    /// before it.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        assert!(!self.is_empty(), "the range is not empty");
        let start = match self.start.get(..KEY_BYTES_MAX) {
            Some(key) if self.start.len() > KEY_BYTES_MAX => Bound::Excluded(key),
            _ => Bound::Included(self.start.as_slice()),
        };
        let end = match self.end.as_deref() {
            Some(end) if end.len() > KEY_BYTES_MAX => Bound::Included(&end[..KEY_BYTES_MAX]),
            Some(end) => Bound::Excluded(end),
            None => Bound::Unbounded,
        };
        (start, end)
    }
}

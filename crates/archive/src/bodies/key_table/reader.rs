//! Reads many keys: keys that were created in sequence lie next to each other.

use fulgurite_units::ObjectId;

use super::slot::{self, EMPTY, Slot};
use super::{KeyTable, SecretKey};
use crate::Result;

/// Slots per read: two pages, so that reading ahead costs little.
const WINDOW_SLOTS: u32 = 64;

/// Loads keys of a table that does not change meanwhile.
#[derive(Debug)]
pub(crate) struct KeyReader<'a> {
    table: &'a KeyTable,
    /// Slots from `first` on, from the first copy; empty before the first key is loaded.
    slots: Vec<Slot>,
    first: u32,
}

impl KeyTable {
    /// Returns a reader of the keys, for one thread.
    pub(crate) const fn reader(&self) -> KeyReader<'_> {
        KeyReader { table: self, slots: Vec::new(), first: 0 }
    }
}

impl KeyReader<'_> {
    /// The same as [`KeyTable::load`].
    ///
    /// # Errors
    /// `Corrupt` when the slot holds another key or none.
    pub(crate) fn load(&mut self, index: u32, body: ObjectId) -> Result<SecretKey> {
        let first = index - index % WINDOW_SLOTS;
        if self.slots.is_empty() || self.first != first {
            self.slots.resize(WINDOW_SLOTS as usize, EMPTY);
            self.table.copies[0].read(first, &mut self.slots);
            self.first = first;
        }
        // The cipher authenticates a key, so the checksum adds nothing.
        let slot = &self.slots[(index - first) as usize];
        let key = slot::unwrap(&self.table.master, body, slot);
        key.map_or_else(|| self.table.load(index, body), Ok)
    }
}

//! Pins of objects that are being read: their pieces stay until then, whatever happens to their
//! keys.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_units::BlobId;

/// Number of readers of each object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pins(Arc<Mutex<BTreeMap<BlobId, usize>>>);

/// An object that is being read, until this is dropped.
#[derive(Debug)]
pub(crate) struct Pin {
    pins: Pins,
    id: BlobId,
}

impl Pins {
    pub(crate) fn pin(&self, id: BlobId) -> Pin {
        *self.lock().entry(id).or_default() += 1;
        Pin { pins: self.clone(), id }
    }

    pub(crate) fn has(&self, id: BlobId) -> bool {
        self.lock().contains_key(&id)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<BlobId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pins = self.pins.lock();
        if let Some(readers) = pins.get_mut(&self.id) {
            *readers -= 1;
            if *readers == 0 {
                pins.remove(&self.id);
            }
        }
    }
}

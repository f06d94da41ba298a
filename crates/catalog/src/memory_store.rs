//! An in-memory store for tests and small models. Nothing in it is durable, whatever `apply`
//! returns; it keeps every other guarantee of [`KeyValue`].
//!
//! Snapshots share the maps; a batch copies them only while a snapshot is alive.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock};

use crate::{Batch, CatalogError, Direction, KeyRange, KeyValue, ReadView, Space, Visitor};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// An ordered key-value store that lives in memory.
pub struct MemoryStore {
    spaces: Vec<Space>,
    content: RwLock<Content>,
}

#[derive(Clone)]
struct Content(Arc<BTreeMap<Space, Rows>>);

impl MemoryStore {
    /// Creates an empty store with `spaces`.
    #[must_use]
    pub fn new(spaces: &[Space]) -> Self {
        let content = spaces.iter().map(|&space| (space, Rows::new())).collect();
        Self { spaces: spaces.to_vec(), content: RwLock::new(Content(Arc::new(content))) }
    }

    // A panic elsewhere cannot leave the maps half changed: `apply` checks before it writes.
    fn content(&self) -> Content {
        self.content.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ReadView for MemoryStore {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, CatalogError> {
        self.content().get(space, key)
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<(), CatalogError> {
        self.content().scan(space, range, direction, visit)
    }
}

impl KeyValue for MemoryStore {
    fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    fn snapshot(&self) -> Box<dyn ReadView> {
        Box::new(self.content())
    }

    fn apply(&self, batch: Batch) -> Result<(), CatalogError> {
        if let Some(space) = batch.spaces().find(|space| !self.spaces.contains(space)) {
            return Err(CatalogError::UnknownSpace { space: space.name() });
        }
        let mut content = self.content.write().unwrap_or_else(PoisonError::into_inner);
        let spaces = Arc::make_mut(&mut content.0);
        for (space, key, value) in batch.into_writes() {
            let rows = spaces.entry(space).or_default();
            match value {
                Some(value) => rows.insert(key, value),
                None => rows.remove(&key),
            };
        }
        Ok(())
    }

    fn check(&self) -> Result<(), CatalogError> {
        Ok(())
    }

    fn reopen(&self) -> Result<(), CatalogError> {
        Ok(())
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("spaces", &self.spaces).finish_non_exhaustive()
    }
}

impl Content {
    fn rows(&self, space: Space) -> Result<&Rows, CatalogError> {
        self.0.get(&space).ok_or(CatalogError::UnknownSpace { space: space.name() })
    }
}

impl ReadView for Content {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, CatalogError> {
        Ok(self.rows(space)?.get(key).cloned())
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<(), CatalogError> {
        let rows = self.rows(space)?;
        if range.is_empty() {
            return Ok(());
        }
        let mut rows = rows.range::<[u8], _>(range.bounds());
        let mut next = || match direction {
            Direction::Ascending => rows.next(),
            Direction::Descending => rows.next_back(),
        };
        while let Some((key, value)) = next() {
            if visit(key, value) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}

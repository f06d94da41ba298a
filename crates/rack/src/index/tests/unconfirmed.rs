//! Commits with an unknown outcome: they may or may not be on disk.

use std::path::PathBuf;
use std::sync::Mutex;

use fulgurite_catalog::{Batch, CatalogError, ReadView, Space, Visitor};

use super::*;

/// A store whose next batch fails, either before or after it reaches the disk.
struct FailingStore {
    store: MemoryStore,
    is_applied: Mutex<Option<bool>>,
}

impl ReadView for FailingStore {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, CatalogError> {
        self.store.get(space, key)
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<(), CatalogError> {
        self.store.scan(space, range, direction, visit)
    }
}

impl KeyValue for FailingStore {
    fn spaces(&self) -> &[Space] {
        self.store.spaces()
    }

    fn snapshot(&self) -> Box<dyn ReadView> {
        self.store.snapshot()
    }

    fn apply(&self, batch: Batch) -> Result<(), CatalogError> {
        match self.is_applied.lock().unwrap().take() {
            None => self.store.apply(batch),
            Some(is_applied) => {
                if is_applied {
                    self.store.apply(batch)?;
                }
                Err(CatalogError::Locked { path: PathBuf::from("a sync that failed") })
            }
        }
    }

    fn check(&self) -> Result<(), CatalogError> {
        Ok(())
    }

    fn reopen(&self) -> Result<(), CatalogError> {
        Ok(())
    }
}

#[test]
fn unconfirmed_put_is_all_or_nothing() {
    for is_applied in [true, false] {
        let store = MemoryStore::new(&SPACES);
        let store = Arc::new(FailingStore { store, is_applied: Mutex::new(None) });
        let index = Index::with_store(Arc::clone(&store) as _).unwrap();
        let old = put(&index, "a", 1, &[5, 6, 7]);
        let sequence = index.begin(GROUP, blob(2), stacks(&[1, 2, 3])).unwrap();
        *store.is_applied.lock().unwrap() = Some(is_applied);
        let pending = pending(2, sequence, &[1, 2, 3]);
        index.commit(object("a"), pending, Mode::Overwrite).unwrap_err();
        index.committer.reopen_blocking().unwrap();
        // The writer gives up what it began, now or at the next start.
        index.abandon_intent(blob(2), sequence).unwrap();
        let row = index.object("a").unwrap().unwrap();
        let (there, gone) = match is_applied {
            true => ((sequence, 2), (1, [5, 6, 7])),
            false => ((old, 1), (2, [1, 2, 3])),
        };
        assert_eq!(row.sequence, there.0);
        assert_eq!(row.content, Content::Blob { group: 3, blob: blob(there.1) });
        assert_eq!(unwanted(&index), [(blob(gone.0), stacks(&gone.1))], "applied: {is_applied}");
        let left = index.blobs(GROUP, None).unwrap();
        assert_eq!(left.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [blob(there.1)]);
    }
}

//! The namespace as the store of buckets that several archives share.
//!
//! Incoming and outgoing bodies each have a memory limit: as many chunks of an object are held as
//! are written or read ahead. If there is no room, a body waits.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use fulgurite_archive::config::{
    SharedBytes, SharedCondition, SharedError, SharedObjectMeta, SharedPut, SharedStore,
};
use fulgurite_geo::objects::limits::CHUNKS_AT_ONCE;
use fulgurite_geo::objects::{GeoError, GeoStore, Mode, ObjectWithNote};
use fulgurite_units::{ErrorKind, error_chain};
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::SHARED_MEMORY_MIB;

/// Objects of the namespace that archives share.
#[derive(Debug)]
pub(super) struct SharedSites {
    store: GeoStore,
    /// Memory for incoming and outgoing bodies, in MiB.
    room_in: Arc<Semaphore>,
    room_out: Arc<Semaphore>,
}

impl SharedSites {
    pub(super) fn new(store: GeoStore) -> Self {
        let room = || Arc::new(Semaphore::new(SHARED_MEMORY_MIB));
        Self { store, room_in: room(), room_out: room() }
    }

    /// Waits until there is room for a body of this size.
    async fn room(&self, pool: &Arc<Semaphore>, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let wanted = memory_mib(bytes, self.store.map().chunk.get());
        // The semaphore is never closed.
        Arc::clone(pool).acquire_many_owned(wanted).await.ok()
    }
}

/// Returns the MiB that a body takes: its buffered chunks, and the same encoded.
fn memory_mib(bytes: u64, chunk: u64) -> u32 {
    let ahead = bytes.min(chunk.saturating_mul(CHUNKS_AT_ONCE as u64));
    let wanted = ahead.saturating_mul(3).div_ceil(1 << 20).clamp(1, SHARED_MEMORY_MIB as u64);
    u32::try_from(wanted).unwrap_or(u32::MAX)
}

fn to_shared_error(error: GeoError) -> SharedError {
    let what = error_chain(&error);
    match error.kind() {
        ErrorKind::Conflict => SharedError::Refused,
        ErrorKind::Corrupt => SharedError::Lost { what },
        ErrorKind::Unavailable => SharedError::Unavailable { what },
        ErrorKind::NotFound | ErrorKind::Invalid | ErrorKind::Internal | _ => {
            SharedError::Other { what }
        }
    }
}

fn to_shared_found(found: ObjectWithNote) -> SharedObjectMeta {
    let ObjectWithNote { key, version, size, time, note } = found;
    SharedObjectMeta { name: key, version, bytes: size, time, note }
}

#[async_trait]
impl SharedStore for SharedSites {
    async fn put(&self, put: SharedPut) -> Result<(), SharedError> {
        let SharedPut { name, bytes, body, note, condition } = put;
        let mode = match condition {
            SharedCondition::Always => Mode::Overwrite,
            SharedCondition::Absent => Mode::Create,
            SharedCondition::Version(version) => Mode::Update(version),
        };
        let _room = self.room(&self.room_in, bytes).await;
        let written =
            self.store.put_with_note(&name, (bytes, body.map(Ok).boxed()), note, mode).await;
        written.map(drop).map_err(to_shared_error)
    }

    async fn find(&self, name: &str) -> Result<Option<SharedObjectMeta>, SharedError> {
        Ok(self.store.find_with_note(name).await.map_err(to_shared_error)?.map(to_shared_found))
    }

    async fn get(
        &self,
        name: &str,
        range: Range<u64>,
    ) -> Result<Option<(SharedObjectMeta, SharedBytes)>, SharedError> {
        let wanted = range.end.saturating_sub(range.start);
        let got = self.store.get_with_note(name, range).await.map_err(to_shared_error)?;
        let Some((found, bytes)) = got else { return Ok(None) };
        // The size is known only now; at most the first chunk has been read.
        let room = self.room(&self.room_out, wanted.min(found.size)).await;
        let bytes = bytes.map_err(to_shared_error).inspect(move |_| {
            // Held until the reader is done or gone.
            let _ = &room;
        });
        Ok(Some((to_shared_found(found), bytes.boxed())))
    }

    async fn delete(&self, name: &str) -> Result<bool, SharedError> {
        self.store.delete_if_exists(name).await.map_err(to_shared_error)
    }

    fn list(
        &self,
        folder: &str,
        after: Option<&str>,
    ) -> BoxStream<'static, Result<SharedObjectMeta, SharedError>> {
        self.store
            .list_with_notes(folder, after)
            .map_ok(to_shared_found)
            .map_err(to_shared_error)
            .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_memory_is_its_buffered_chunks() {
        let chunk = 4 << 20;
        assert_eq!([0, 1, 1 << 20].map(|bytes| memory_mib(bytes, chunk)), [1, 1, 3]);
        assert_eq!([16 << 20, 1 << 40, u64::MAX].map(|bytes| memory_mib(bytes, chunk)), [48; 3]);
        assert_eq!(memory_mib(1 << 40, 1 << 40), 2048, "never more than there is");
    }
}

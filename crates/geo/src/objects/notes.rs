//! Objects with a note from their writer. The note is only known once all bytes have arrived,
//! because it contains a digest of them. Listings return the notes and can start at any name.
//!
//! Not here: `object_store`'s trait, whose puts take everything before the first byte, and whose
//! listings have no attributes ([`crate::objects::as_object_store`]).

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use fulgurite_geo_core::{ReadTarget, Version};
use fulgurite_tier::Mode;
use fulgurite_units::UnixTime;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::GetRange;

use crate::objects::as_object_store::{body, found};
use crate::objects::limits::OBJECTS_AT_ONCE;
use crate::objects::listing::listed;
use crate::objects::object::Found;
use crate::objects::store::{GeoStore, Inner};
use crate::objects::{GeoError, Result, names};

/// Stream of the bytes of an object.
pub type ByteStream = BoxStream<'static, Result<Bytes>>;

/// Name of the attribute that holds the note.
const NOTE: &str = "note";

/// An object with its note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectWithNote {
    /// Its key.
    pub key: String,
    /// Its version, which grows with every write.
    pub version: u64,
    /// Size in bytes.
    pub size: u64,
    /// When it was proposed, by the writer's clock.
    pub time: UnixTime,
    /// The note; none if the object was put without one.
    pub note: Option<String>,
}

impl ObjectWithNote {
    fn new(key: String, found: &Found) -> Self {
        let put = found.put();
        let note = put.and_then(|put| put.attributes.iter().find(|(name, _)| name == NOTE));
        Self {
            key,
            version: found.version.0,
            size: put.map_or(0, |put| put.size),
            time: found.value.time,
            note: note.map(|(_, note)| note.clone()),
        }
    }
}

impl GeoStore {
    /// Puts an object of `size` bytes. Waits for the note once all of them have arrived; without a
    /// note, or with a different number of bytes, it writes nothing.
    ///
    /// # Errors
    /// [`GeoError`]; if the condition is not met, [`GeoError::Exists`] or [`GeoError::Changed`].
    pub fn put_with_note<'a>(
        &'a self,
        key: &'a str,
        (size, mut bytes): (u64, BoxStream<'a, Result<Bytes>>),
        note: BoxFuture<'a, Option<String>>,
        mode: Mode,
    ) -> BoxFuture<'a, Result<Version>> {
        Box::pin(async move {
            let attributes = async {
                let abandoned =
                    || GeoError::Invalid { reason: format!("the put of {key:?} was abandoned") };
                let note = note.await.ok_or_else(abandoned)?;
                Ok(vec![(NOTE.to_owned(), note)])
            };
            let live = self.0.live().await?;
            if size > live.map.chunk.get() {
                return self.0.put_described(key, (size, bytes), attributes, mode).await;
            }
            let mut all = BytesMut::new();
            while let Some(some) = bytes.try_next().await? {
                all.extend_from_slice(&some);
                if all.len() as u64 > size {
                    break;
                }
            }
            if all.len() as u64 != size {
                let reason = format!("{key:?} does not have the stated {size} bytes");
                return Err(GeoError::Invalid { reason });
            }
            let object = Inner::new_object(key, attributes.await?)?;
            self.0.put(object, all.freeze(), mode).await
        })
    }

    /// Returns the object under a key, if there is one.
    ///
    /// # Errors
    /// If too few sites answer, or an acknowledged version is lost.
    pub fn find_with_note<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<ObjectWithNote>>> {
        Box::pin(async move {
            let live = self.0.live().await?;
            let (found, _) = self.0.lookup(&live, key, (ReadTarget::Metadata, None)).await?;
            Ok(found.map(|found| ObjectWithNote::new(key.to_owned(), &found)))
        })
    }

    /// The same, with the bytes of `range` as far as it overlaps the object.
    ///
    /// # Errors
    /// As [`Self::find_with_note`]; the stream ends with an error if bytes cannot be read.
    pub fn get_with_note<'a>(
        &'a self,
        key: &'a str,
        range: Range<u64>,
    ) -> BoxFuture<'a, Result<Option<(ObjectWithNote, ByteStream)>>> {
        Box::pin(async move {
            let live = self.0.live().await?;
            let wanted = (ReadTarget::Latest, Some(GetRange::Bounded(range.clone())));
            let (found, _) = self.0.lookup(&live, key, wanted).await?;
            let Some(found) = found else { return Ok(None) };
            let object = ObjectWithNote::new(key.to_owned(), &found);
            let range = range.start.min(object.size)..range.end.min(object.size);
            if range.is_empty() {
                return Ok(Some((object, futures::stream::empty().boxed())));
            }
            Ok(Some((object, body(&self.0, live, key.to_owned(), found, range))))
        })
    }

    /// Deletes the object under a key. Returns whether there was one.
    ///
    /// # Errors
    /// If too few sites answer.
    pub fn delete_if_exists<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            match self.0.delete(key).await {
                Ok(()) => Ok(true),
                Err(GeoError::NotFound { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    /// Lists objects below a folder with their notes, starting after `after`. The order is that of
    /// their row names, in which letters, digits and `-`, `.`, `_`, `/` stand for themselves.
    pub fn list_with_notes(
        &self,
        folder: &str,
        after: Option<&str>,
    ) -> BoxStream<'static, Result<ObjectWithNote>> {
        let inner = Arc::clone(&self.0);
        let (folder, after) = (folder.to_owned(), after.map(str::to_owned));
        let begin = async move {
            let live = inner.live().await?;
            let below = names::rows(Some(&folder))?;
            let after = after.map(|after| names::row(&after)).transpose()?;
            let rows = listed(&live, (below, after), (live.map.listing, None));
            let found = rows.map(move |row| {
                let (inner, live) = (Arc::clone(&inner), Arc::clone(&live));
                async move { found(&inner, &live, row?).await }
            });
            Ok::<_, GeoError>(found.buffered(OBJECTS_AT_ONCE))
        };
        let all = futures::stream::once(begin).try_flatten();
        let all = all.try_filter_map(|found| async move {
            Ok(found.map(|(key, found)| ObjectWithNote::new(key, &found)))
        });
        all.boxed()
    }
}

//! Multipart upload. Each part is written as it arrives, in chunks of its own; the version refers
//! to them once the upload is complete.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_geo_core::{Change, Chunk, Coded, Data, Put, WriteId};
use fulgurite_tier::{Mode, to_object_store_error};
use fulgurite_units::UnixTime;
use futures::FutureExt as _;
use object_store::path::Path;
use object_store::{MultipartUpload, PutPayload, PutResult, UploadPart};

use crate::objects::chunk_writer::{discard, write_fragments};
use crate::objects::driver::Work;
use crate::objects::fragments::{EncodedFragments, Stripe};
use crate::objects::limits::{CHUNKS_AT_ONCE, PARTS_MAX};
use crate::objects::live_map::LiveMap;
use crate::objects::object::{Object, answer};
use crate::objects::store::{Inner, coded};
use crate::objects::{GeoError, Result};

/// A running upload.
#[derive(Debug)]
pub(crate) struct Upload {
    inner: Arc<Inner>,
    live: Arc<LiveMap>,
    /// None once it was completed or aborted.
    object: Option<Object>,
    write: WriteId,
    coded: Coded,
    time: UnixTime,
    parts: Vec<(u64, tokio::sync::oneshot::Receiver<[u8; 32]>)>,
    /// Indices of fragments of which not all chunks could be written.
    failed: Arc<Mutex<BTreeSet<u8>>>,
}

impl Upload {
    pub(crate) async fn begin(
        inner: &Arc<Inner>,
        key: &str,
        attributes: Vec<(String, String)>,
    ) -> Result<Self> {
        let (live, object) = (inner.live().await?, Inner::new_object(key, attributes)?);
        let write = inner.draw();
        let coded = coded(&live, write, (Vec::new(), true));
        let (inner, time) = (Arc::clone(inner), inner.clock.now());
        let (parts, failed) = Default::default();
        Ok(Self { inner, live, object: Some(object), write, coded, time, parts, failed })
    }

    fn location(&self) -> Path {
        self.object.as_ref().map_or_else(Path::default, |object| object.key.as_str().into())
    }

    /// Writes a part, a few chunks at a time.
    fn write_part(
        &self,
        number: usize,
        bytes: Bytes,
    ) -> impl Future<Output = Result<[u8; 32]>> + Send + use<> {
        let object = self.object.as_ref().map(|object| object.key.clone()).unwrap_or_default();
        // Its offset is not known yet; its chunks are numbered within the part.
        let coded = Coded { parts: vec![(1, bytes.len() as u64)], ..self.coded.clone() };
        let stripe =
            Stripe { write: self.write, object, size: bytes.len() as u64, coded, time: self.time };
        let (live, failed) = (Arc::clone(&self.live), Arc::clone(&self.failed));
        async move {
            let mut chunks = Vec::new();
            for (index, chunk) in (0..).zip(stripe.coded.chunks(stripe.size)) {
                let number = Chunk::number(number, index).ok_or_else(|| GeoError::Invalid {
                    reason: "a part has more than 65,536 chunks".into(),
                })?;
                chunks.push(Chunk { number, ..chunk });
            }
            let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            for some in chunks.chunks(CHUNKS_AT_ONCE) {
                let (Some(first), Some(last)) = (some.first(), some.last()) else { break };
                let own = bytes.slice(at(first.at)..at(last.at + last.length));
                let encoded = EncodedFragments::encode(&stripe, some, &own)?;
                let before = lock(&failed).clone();
                let now = write_fragments(&live, &stripe, &encoded, &before).await;
                let mut failed = lock(&failed);
                failed.extend(now);
                if stripe.coded.sites.len() - failed.len() < usize::from(live.map.needed()) {
                    return Err(GeoError::Unwritten { key: stripe.object.clone() });
                }
            }
            Ok(blake3::hash(&bytes).into())
        }
    }
}

fn lock(failed: &Mutex<BTreeSet<u8>>) -> std::sync::MutexGuard<'_, BTreeSet<u8>> {
    failed.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, payload: PutPayload) -> UploadPart {
        let (send, put) = tokio::sync::oneshot::channel();
        let (number, location) = (self.parts.len(), self.location());
        let bytes = Bytes::from(payload);
        self.parts.push((bytes.len() as u64, put));
        let write = self.write_part(number, bytes);
        async move {
            if number >= PARTS_MAX {
                let reason = format!("an upload has at most {PARTS_MAX} parts");
                return Err(to_object_store_error(&location, GeoError::Invalid { reason }));
            }
            let digest = write.await.map_err(|error| to_object_store_error(&location, error))?;
            // If the upload is gone, what was written is swept.
            let _ = send.send(digest);
            Ok(())
        }
        .boxed()
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        let location = self.location();
        let put = self.completed().await;
        put.map_err(|error| to_object_store_error(&location, error))
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        if let Some(object) = self.object.take() {
            self.discard(object.key);
        }
        Ok(())
    }
}

impl Upload {
    /// Returns how many bytes were put, and how they are coded.
    fn parts(&self) -> (u64, Coded) {
        let (mut size, mut parts) = (0, Vec::<(u32, u64)>::new());
        for (length, _) in &self.parts {
            size += length;
            match parts.last_mut() {
                Some((count, bytes)) if bytes == length => *count += 1,
                _ => parts.push((1, *length)),
            }
        }
        (size, Coded { parts, ..self.coded.clone() })
    }

    /// Erases what was written. Nothing of an upload is proposed before it is complete, and nothing
    /// of this one can be any more.
    fn discard(&mut self, object: String) {
        let (size, coded) = self.parts();
        self.parts.clear();
        let stripe = Stripe { write: self.write, object, size, coded, time: self.time };
        discard(&self.live, &self.inner.ctx, stripe);
    }

    async fn completed(&mut self) -> Result<PutResult> {
        let ended = || GeoError::Invalid { reason: "the upload has ended".to_owned() };
        let object = self.object.take().ok_or_else(ended)?;
        let (size, coded) = self.parts();
        let mut digests = Vec::new();
        for (number, (_, put)) in self.parts.iter_mut().enumerate() {
            let Ok(digest) = put.try_recv() else {
                self.discard(object.key);
                let reason = format!("part {number} of the upload was not put");
                return Err(GeoError::Invalid { reason });
            };
            digests.extend_from_slice(&digest);
        }
        self.parts.clear();
        if coded.parts.is_empty() {
            let bytes = Bytes::new();
            return self.inner.put(object, bytes, Mode::Overwrite).await.map(answer);
        }
        // For a multipart object it is the digest of the part digests.
        let digest = blake3::hash(&digests).into();
        let put = Put { size, digest, data: Data::Coded(coded), attributes: object.attributes };
        let mut value = self.inner.value(self.write, Change::Put(put));
        value.time = self.time;
        let work = Work::for_object(&object.key)?;
        let version = self.inner.write(&self.live, work, value, Mode::Overwrite).await?;
        if !lock(&self.failed).is_empty() {
            self.inner.hint(&self.live, &object.key).await;
        }
        Ok(answer(version))
    }
}

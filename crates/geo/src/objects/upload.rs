//! Multipart upload. Each part is written as it arrives, in chunks of its own; the version refers
//! to them once the upload is complete.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_geo_core::{Change, Chunk, Coded, Data, Put, WriteId};
use fulgurite_tier::{KeyedUpload, Mode};
use fulgurite_units::UnixTime;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use object_store::{PutPayload, PutResult};

use crate::objects::chunk_writer::{discard, write_fragments};
use crate::objects::driver::Work;
use crate::objects::fragments::{EncodedFragments, Stripe};
use crate::objects::limits::CHUNKS_AT_ONCE;
use crate::objects::live_map::LiveMap;
use crate::objects::object::{Object, answer};
use crate::objects::store::{Inner, coded};
use crate::objects::{GeoError, Result};

/// A running upload.
#[derive(Debug)]
pub(crate) struct Upload {
    inner: Arc<Inner>,
    live: Arc<LiveMap>,
    object: Object,
    write: WriteId,
    coded: Coded,
    time: UnixTime,
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
        Ok(Self { inner, live, object, write, coded, time, failed: Arc::default() })
    }

    /// Writes a part, a few chunks at a time.
    fn write_part(
        &self,
        number: usize,
        bytes: Bytes,
    ) -> impl Future<Output = Result<[u8; 32]>> + Send + use<> {
        let object = self.object.key.clone();
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

/// Returns how many bytes parts of these lengths have, and how they are coded.
fn joined(lengths: impl Iterator<Item = u64>, coded: &Coded) -> (u64, Coded) {
    let (mut size, mut parts) = (0, Vec::<(u32, u64)>::new());
    for length in lengths {
        size += length;
        match parts.last_mut() {
            Some((count, bytes)) if *bytes == length => *count += 1,
            _ => parts.push((1, length)),
        }
    }
    (size, Coded { parts, ..coded.clone() })
}

#[async_trait]
impl KeyedUpload for Upload {
    type Error = GeoError;
    /// Its digest.
    type Part = [u8; 32];

    fn put_part(&self, number: usize, payload: PutPayload) -> BoxFuture<'static, Result<[u8; 32]>> {
        self.write_part(number, payload.into()).boxed()
    }

    async fn complete(self, parts: Vec<(u64, [u8; 32])>) -> Result<PutResult> {
        let object = self.object;
        if parts.is_empty() {
            let bytes = Bytes::new();
            return self.inner.put(object, bytes, Mode::Overwrite).await.map(answer);
        }
        let (size, coded) = joined(parts.iter().map(|(length, _)| *length), &self.coded);
        // For a multipart object it is the digest of the part digests.
        let digests: Vec<u8> = parts.into_iter().flat_map(|(_, digest)| digest).collect();
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

    /// Erases what was written. Nothing of an upload is proposed before it is complete, and nothing
    /// of this one can be any more.
    async fn abort(self, lengths: Vec<u64>) {
        let (size, coded) = joined(lengths.into_iter(), &self.coded);
        let stripe =
            Stripe { write: self.write, object: self.object.key, size, coded, time: self.time };
        discard(&self.live, &self.inner.ctx, stripe);
    }
}

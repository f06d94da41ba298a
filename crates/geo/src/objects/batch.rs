//! Batches small objects into one stripe: a stripe costs its sites only as many blobs as one
//! object.
//!
//! ```text
//! puts --> wait for others --> stripe: list of keys, bytes of all --> its fragments, its row
//!      '-----------------------------------------------------------> a row each, that names it
//! ```
//!
//! A stripe is an object of its own that clients cannot name; it is repaired like any other. It
//! begins with the keys of its objects, so that garbage collection can check whether any of them
//! still has bytes in it. A single live object keeps the whole stripe.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Weak;

use bytes::Bytes;
use fulgurite_geo_core::{Change, Coded, Data, Put, ReadTarget, Version, WriteId};
use fulgurite_tier::Mode;
use tokio::sync::{mpsc, oneshot};

use crate::objects::driver::Work;
use crate::objects::fragments::{Stripe, fetch_chunk};
use crate::objects::limits::{BATCH_QUEUE_LEN, BATCHED_MAX, STRIPE_LIST_BYTES_MAX};
use crate::objects::live_map::LiveMap;
use crate::objects::object::{Object, SmallObject};
use crate::objects::store::Inner;
use crate::objects::{GeoError, Result, names};

/// Location of the bytes of one object, for its row.
struct StripeLocation {
    stripe: WriteId,
    at: u64,
    stripe_size: u64,
    coded: Coded,
}

impl Inner {
    /// Puts a small object into a stripe with others that come at about the same time.
    pub(crate) async fn put_batched(
        &self,
        object: Object,
        bytes: Bytes,
        mode: Mode,
    ) -> Result<Version> {
        let batches = self.batches.get_or_init(|| spawn_batcher(Weak::clone(&self.own)));
        let (answer, answered) = oneshot::channel();
        let key = object.key.clone();
        let small = SmallObject { object, bytes, mode, answer };
        let unwritten = || GeoError::Unwritten { key: key.clone() };
        batches.send(small).await.map_err(|_| unwritten())?;
        answered.await.map_err(|_| unwritten())?
    }

    /// Writes a stripe, then the row of each of its objects, which names it.
    async fn put_stripe(self: Arc<Self>, small_objects: Vec<SmallObject>) {
        let location = self.write_stripe(&small_objects).await;
        let (stripe, mut at, stripe_size, coded) = match location {
            Ok(location) => (location.stripe, location.at, location.stripe_size, location.coded),
            Err(error) => {
                let why = fulgurite_units::error_chain(&error);
                let objects = small_objects.len();
                tracing::warn!(%why, objects, "a stripe could not be written");
                for small in small_objects {
                    let key = small.object.key;
                    let _ = small.answer.send(Err(GeoError::Unwritten { key }));
                }
                return;
            }
        };
        for small in small_objects {
            let coded = coded.clone();
            let data = Data::Shared { stripe, at, stripe_size, coded };
            at += small.bytes.len() as u64;
            let inner = Arc::clone(&self);
            tokio::spawn(async move {
                let version = inner.put_shared(small.object, &small.bytes, data, small.mode).await;
                // The caller may have stopped waiting.
                let _ = small.answer.send(version);
            });
        }
    }

    async fn put_shared(
        &self,
        object: Object,
        bytes: &Bytes,
        data: Data,
        mode: Mode,
    ) -> Result<Version> {
        let live = self.live().await?;
        let (size, digest) = (bytes.len() as u64, blake3::hash(bytes).into());
        let put = Put { size, digest, data, attributes: object.attributes };
        let value = self.value(self.draw(), Change::Put(put));
        self.write(&live, Work::for_object(&object.key)?, value, mode).await
    }

    /// Writes the bytes of some objects as one stripe, an object itself.
    async fn write_stripe(&self, small_objects: &[SmallObject]) -> Result<StripeLocation> {
        let keys: BTreeSet<&str> = small_objects.iter().map(|small| &*small.object.key).collect();
        let mut bytes = encode_keys(&keys);
        let at = bytes.len() as u64;
        for small in small_objects {
            bytes.extend_from_slice(&small.bytes);
        }
        let stripe_size = bytes.len() as u64;
        let stripe = self.draw();
        let coded = self.put_as(stripe, Bytes::from(bytes)).await?;
        Ok(StripeLocation { stripe, at, stripe_size, coded })
    }

    /// Removes a stripe if no object has bytes in it any more; ignores keys that are not stripes.
    pub(crate) async fn drop_stripe(&self, live: &Arc<LiveMap>, key: &str) -> Result<()> {
        let Some(write) = names::parse_stripe(key) else { return Ok(()) };
        let (found, _) = self.lookup(live, key, (ReadTarget::Metadata, None)).await?;
        let Some(found) = found else { return Ok(()) };
        let Some(stripe) = Stripe::from_value(key, &found.value) else { return Ok(()) };
        // Puts that name it may still be in flight.
        let age = self.clock.now().since(found.value.time);
        if age <= live.map.lease.max(live.map.grace) {
            return Ok(());
        }
        for object in read_stripe_keys(live, &stripe).await? {
            if self.has_bytes_in(live, &object, write).await? {
                return Ok(());
            }
        }
        self.delete_row(live, key).await
    }

    /// Whether any live version of an object has bytes in a stripe.
    async fn has_bytes_in(
        &self,
        live: &Arc<LiveMap>,
        object: &str,
        stripe: WriteId,
    ) -> Result<bool> {
        let known = self.known(live, object).await?;
        let is_in_stripe = |decided: &fulgurite_geo_core::Decided| {
            let put = decided.value.put();
            let coded = put.and_then(|put| put.coded(decided.value.id));
            coded.is_some_and(|(write, ..)| write == stripe)
        };
        Ok(known.decided.values().any(is_in_stripe))
    }
}

/// Collects small objects into batches for as long as the store is in use.
fn spawn_batcher(inner: Weak<Inner>) -> mpsc::Sender<SmallObject> {
    let (send, mut small_objects) = mpsc::channel::<SmallObject>(BATCH_QUEUE_LEN);
    tokio::spawn(async move {
        while let Some(first) = small_objects.recv().await {
            let Some(map) = inner.upgrade().map(|inner| inner.any_live().map.clone()) else {
                return;
            };
            let wait = std::time::Duration::from_nanos(map.batch.as_nanos());
            let until = tokio::time::Instant::now() + wait;
            // The list of keys takes part of the chunk, and long keys make it overflow.
            let limit = map.chunk.get() / 2;
            let (mut bytes, mut batch) = (first.bytes.len() as u64, vec![first]);
            while batch.len() < BATCHED_MAX && bytes < limit {
                match tokio::time::timeout_at(until, small_objects.recv()).await {
                    Ok(Some(small)) => {
                        bytes += small.bytes.len() as u64;
                        batch.push(small);
                    }
                    Ok(None) | Err(_) => break,
                }
            }
            let Some(inner) = inner.upgrade() else { return };
            tokio::spawn(inner.put_stripe(batch));
        }
    });
    send
}

/// Encodes the list of a stripe's objects: their number, then the length and bytes of each key.
fn encode_keys(keys: &BTreeSet<&str>) -> Vec<u8> {
    let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    let mut bytes = length(keys.len()).to_vec();
    for key in keys {
        bytes.extend_from_slice(&length(key.len()));
        bytes.extend_from_slice(key.as_bytes());
    }
    bytes
}

/// Returns the objects of a stripe. Their list may end in any chunk: reads as many as needed.
async fn read_stripe_keys(live: &Arc<LiveMap>, stripe: &Stripe) -> Result<Vec<String>> {
    let mut bytes = Vec::new();
    for chunk in stripe.coded.chunks(stripe.size) {
        if bytes.len() > STRIPE_LIST_BYTES_MAX {
            break;
        }
        let unavailable = |_| GeoError::Unavailable { key: stripe.object.clone() };
        bytes.extend(fetch_chunk(live, (stripe, false), &chunk, None).await.map_err(unavailable)?);
        if let Some(keys) = decode_keys(&bytes) {
            return Ok(keys);
        }
    }
    Err(GeoError::Corrupt { key: stripe.object.clone() })
}

/// Decodes the objects of a stripe from its first bytes; none if these are too few, or no list.
fn decode_keys(bytes: &[u8]) -> Option<Vec<String>> {
    let (count, mut rest) = number(bytes)?;
    let mut keys = Vec::new();
    for _ in 0..count {
        let (length, tail) = number(rest)?;
        let (key, tail) = tail.split_at_checked(length)?;
        keys.push(std::str::from_utf8(key).ok()?.to_owned());
        rest = tail;
    }
    Some(keys)
}

/// Returns the number at the start of some bytes, and the rest.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, tail) = bytes.split_first_chunk::<4>()?;
    Some((usize::try_from(u32::from_le_bytes(*first)).ok()?, tail))
}

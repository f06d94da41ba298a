//! A multipart upload, each part of which is put as it arrives.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_tier::{KeyedUpload, Mode, put_result};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use object_store::{PutPayload, PutResult};

use crate::objects::index::Object;
use crate::objects::store::{Inner, StartedPut};
use crate::objects::{Result, StoreError};

/// An upload in progress. Pieces of one that is dropped are removed after the next start.
#[derive(Debug)]
pub(crate) struct Upload {
    inner: Arc<Inner>,
    started: StartedPut,
    object: Object,
}

impl Upload {
    pub(crate) const fn new(inner: Arc<Inner>, started: StartedPut, object: Object) -> Self {
        Self { inner, started, object }
    }
}

#[async_trait]
impl KeyedUpload for Upload {
    type Error = StoreError;
    type Part = ();

    fn put_part(&self, number: usize, payload: PutPayload) -> BoxFuture<'static, Result<()>> {
        let (inner, started) = (Arc::clone(&self.inner), self.started);
        async move { inner.put_part(started, number, payload.into()).await }.boxed()
    }

    async fn complete(self, parts: Vec<(u64, ())>) -> Result<PutResult> {
        let Self { inner, started, object } = self;
        let lengths = parts.into_iter().map(|(length, ())| length).collect();
        let put = inner.finish(started, object, lengths, Bytes::new(), Mode::Overwrite).await;
        inner.ended(started.id, put).await.map(|()| put_result(started.sequence))
    }

    async fn abort(self, _: Vec<u64>) {
        let aborted = StoreError::Invalid { what: "the upload is aborted".to_owned() };
        // The error is the abort itself.
        let _ = self.inner.ended(self.started.id, Err(aborted)).await;
    }
}

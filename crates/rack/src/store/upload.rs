//! A multipart upload: each part becomes a staged file, and completion writes one blob of all
//! parts.

use std::sync::Arc;

use async_trait::async_trait;
use fulgurite_tier::{KeyedUpload, NewObject, put_result};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use object_store::{PutPayload, PutResult};

use super::Inner;
use super::staging::{Source, Staged};
use crate::{RackError, Result};

/// A multipart upload in progress. Its staged files are removed with it.
#[derive(Debug)]
pub(super) struct Upload {
    inner: Arc<Inner>,
    object: NewObject,
}

impl Upload {
    pub(super) const fn new(inner: Arc<Inner>, object: NewObject) -> Self {
        Self { inner, object }
    }
}

#[async_trait]
impl KeyedUpload for Upload {
    type Error = RackError;
    type Part = Arc<Staged>;

    fn put_part(&self, _: usize, payload: PutPayload) -> BoxFuture<'static, Result<Arc<Staged>>> {
        let inner = Arc::clone(&self.inner);
        async move { inner.stage(payload.into_iter().collect()).await }.boxed()
    }

    async fn complete(self, parts: Vec<(u64, Arc<Staged>)>) -> Result<PutResult> {
        let length = parts.iter().map(|(length, _)| length).sum();
        let source = Source::staged(parts.into_iter().map(|(_, file)| file));
        self.inner.put(self.object, source, length).await.map(put_result)
    }

    async fn abort(self, _: Vec<u64>) {}
}

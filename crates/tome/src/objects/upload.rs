//! A multipart upload, each part of which is put as it arrives.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_tier::{Mode, put_result, to_object_store_error};
use futures::FutureExt as _;
use object_store::path::Path;
use object_store::{MultipartUpload, PutPayload, PutResult, UploadPart};

use crate::objects::index::Object;
use crate::objects::limits::PARTS_MAX;
use crate::objects::store::{Inner, StartedPut};
use crate::objects::{Result, StoreError};

/// An upload in progress.
#[derive(Debug)]
pub(crate) struct Upload {
    inner: Arc<Inner>,
    started: StartedPut,
    /// `None` when it was completed or aborted.
    object: Option<Object>,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    length: u64,
    put: tokio::sync::oneshot::Receiver<()>,
}

impl Upload {
    pub(crate) const fn new(inner: Arc<Inner>, started: StartedPut, object: Object) -> Self {
        Self { inner, started, object: Some(object), parts: Vec::new() }
    }

    fn location(&self) -> Path {
        self.object.as_ref().map_or_else(Path::default, |object| object.key.as_str().into())
    }

    /// Returns the length of each part, if all were put.
    fn lengths(&mut self) -> Result<Vec<u64>> {
        let parts = std::mem::take(&mut self.parts);
        let length = |(number, mut part): (usize, Part)| {
            let what = format!("part {number} of the upload was not put");
            part.put.try_recv().map_err(|_| StoreError::Invalid { what })?;
            Ok(part.length)
        };
        parts.into_iter().enumerate().map(length).collect()
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, payload: PutPayload) -> UploadPart {
        let (send, put) = tokio::sync::oneshot::channel();
        let number = self.parts.len();
        self.parts.push(Part { length: payload.content_length() as u64, put });
        let (inner, location, started) = (Arc::clone(&self.inner), self.location(), self.started);
        async move {
            if number >= PARTS_MAX {
                let what = format!("an upload has at most {PARTS_MAX} parts");
                return Err(to_object_store_error(&location, StoreError::Invalid { what }));
            }
            let put = inner.put_part(started, number, payload.into()).await;
            put.map_err(|error| to_object_store_error(&location, error))?;
            // Fails if the upload was dropped: its pieces are swept after the next start.
            let _ = send.send(());
            Ok(())
        }
        .boxed()
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        let location = self.location();
        let ended = |what: &str| StoreError::Invalid { what: what.to_owned() };
        let object = self.object.take().ok_or_else(|| ended("the upload has ended"));
        let object = object.map_err(|error| to_object_store_error(&location, error))?;
        let put = match self.lengths() {
            Ok(parts) => {
                let finish =
                    self.inner.finish(self.started, object, parts, Bytes::new(), Mode::Overwrite);
                finish.await
            }
            Err(error) => Err(error),
        };
        let put = self.inner.ended(self.started.id, put).await;
        put.map(|()| put_result(self.started.sequence))
            .map_err(|error| to_object_store_error(&location, error))
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        if self.object.take().is_some() {
            let given_up = StoreError::Invalid { what: "the upload is given up".to_owned() };
            // The error is the abort itself.
            let _ = self.inner.ended(self.started.id, Err(given_up)).await;
        }
        Ok(())
    }
}

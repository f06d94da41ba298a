//! A multipart upload: each part becomes a staged file, and completion writes one blob of all
//! parts.

use std::sync::Arc;

use async_trait::async_trait;
use fulgurite_tier::{put_result, to_object_store_error};
use futures::FutureExt as _;
use object_store::path::Path;
use object_store::{MultipartUpload, PutPayload, PutResult, UploadPart};

use super::Inner;
use super::staging::{Source, Staged};
use crate::StacksError;
use crate::format::bytes;
use crate::index::Mode;

/// A multipart upload in progress.
#[derive(Debug)]
pub(super) struct Upload {
    inner: Arc<Inner>,
    location: Path,
    attributes: Vec<(String, String)>,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    length: u64,
    staged: tokio::sync::oneshot::Receiver<Arc<Staged>>,
}

impl Upload {
    pub(super) fn new(
        inner: Arc<Inner>,
        location: Path,
        attributes: Vec<(String, String)>,
    ) -> Self {
        Self { inner, location, attributes, parts: Vec::new() }
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, payload: PutPayload) -> UploadPart {
        let (send, staged) = tokio::sync::oneshot::channel();
        self.parts.push(Part { length: bytes(payload.content_length()), staged });
        let (inner, location) = (Arc::clone(&self.inner), self.location.clone());
        async move {
            let file = inner.stage(payload.into_iter().collect()).await;
            let file = file.map_err(|error| to_object_store_error(&location, error))?;
            // If the upload was dropped, the file goes with it.
            let _ = send.send(file);
            Ok(())
        }
        .boxed()
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        let mut files = Vec::with_capacity(self.parts.len());
        let mut length = 0;
        for (number, part) in self.parts.iter_mut().enumerate() {
            let staged = part.staged.try_recv().map_err(|_| {
                let detail = format!("part {number} of the upload was not put");
                to_object_store_error(&self.location, StacksError::Invalid { detail })
            })?;
            files.push(staged);
            length += part.length;
        }
        self.parts.clear();
        let (source, attributes) = (Source::staged(files), std::mem::take(&mut self.attributes));
        let key = self.location.as_ref();
        let put = self.inner.put(key, source, length, attributes, Mode::Overwrite);
        put.await.map(put_result).map_err(|error| to_object_store_error(&self.location, error))
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        self.parts.clear();
        Ok(())
    }
}

//! Multipart uploads: which parts there are, and that each was put before the upload is completed.

use std::fmt;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::channel::oneshot;
use futures::future::BoxFuture;
use object_store::path::Path;
use object_store::{MultipartUpload, PutPayload, PutResult, UploadPart};

use crate::{ObjectStoreError, to_object_store_error};

/// Most parts of an upload: those that S3 allows.
const PARTS_MAX: usize = 10_000;

/// What a store does for an upload.
#[async_trait]
pub trait KeyedUpload: fmt::Debug + Send + Sync + 'static {
    /// The store's error.
    type Error: ObjectStoreError;
    /// What is remembered of a part that was put.
    type Part: Send + fmt::Debug + 'static;

    /// Puts part `number`, counted from 0. Parts may be put at the same time.
    fn put_part(
        &self,
        number: usize,
        payload: PutPayload,
    ) -> BoxFuture<'static, Result<Self::Part, Self::Error>>;

    /// Makes an object of all parts, in order; each comes with its length.
    async fn complete(self, parts: Vec<(u64, Self::Part)>) -> Result<PutResult, Self::Error>;

    /// Removes what was put. `lengths` has the parts that were begun; some may not have been put.
    async fn abort(self, lengths: Vec<u64>);
}

/// An upload in progress, for `object_store`.
#[derive(Debug)]
pub(crate) struct Upload<U: KeyedUpload> {
    location: Path,
    /// `None` once it was completed or aborted.
    upload: Option<U>,
    parts: Vec<(u64, oneshot::Receiver<U::Part>)>,
}

impl<U: KeyedUpload> Upload<U> {
    pub(crate) const fn new(location: Path, upload: U) -> Self {
        Self { location, upload: Some(upload), parts: Vec::new() }
    }

    fn invalid(&self, what: impl Into<String>) -> object_store::Error {
        to_object_store_error(&self.location, U::Error::invalid(what.into()))
    }
}

#[async_trait]
impl<U: KeyedUpload> MultipartUpload for Upload<U> {
    fn put_part(&mut self, payload: PutPayload) -> UploadPart {
        let number = self.parts.len();
        let refused = match &self.upload {
            None => Err(self.invalid("the upload has ended")),
            Some(_) if number >= PARTS_MAX => {
                Err(self.invalid(format!("an upload has at most {PARTS_MAX} parts")))
            }
            Some(upload) => Ok(upload),
        };
        let upload = match refused {
            Ok(upload) => upload,
            Err(error) => return std::future::ready(Err(error)).boxed(),
        };
        let (send, put) = oneshot::channel();
        let length = payload.content_length() as u64;
        let (part, location) = (upload.put_part(number, payload), self.location.clone());
        self.parts.push((length, put));
        async move {
            let part = part.await.map_err(|error| to_object_store_error(&location, error))?;
            // Fails if the upload has ended meanwhile; the part is removed with it.
            let _ = send.send(part);
            Ok(())
        }
        .boxed()
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        let Some(upload) = self.upload.take() else {
            return Err(self.invalid("the upload has ended"));
        };
        let mut put = Vec::with_capacity(self.parts.len());
        for (number, (length, part)) in self.parts.iter_mut().enumerate() {
            let Ok(Some(part)) = part.try_recv() else {
                let error = self.invalid(format!("part {number} of the upload was not put"));
                upload.abort(self.parts.drain(..).map(|(length, _)| length).collect()).await;
                return Err(error);
            };
            put.push((*length, part));
        }
        self.parts.clear();
        let put = upload.complete(put).await;
        put.map_err(|error| to_object_store_error(&self.location, error))
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        if let Some(upload) = self.upload.take() {
            upload.abort(self.parts.drain(..).map(|(length, _)| length).collect()).await;
        }
        Ok(())
    }
}

//! Writes: PutObject and UploadPart. If anything fails before the end of the body, the writer is
//! dropped and nothing is stored.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use fulgurite_archive::{
    Archive, ArchiveError, Checksum, ObjectInfo, ObjectWriter, PartInfo, PartWriter, PutOptions,
};
use futures::StreamExt as _;
use http::{Extensions, HeaderMap};
use s3s::dto::{PutObjectInput, PutObjectOutput, StreamingBlob, UploadPartInput, UploadPartOutput};
use s3s::{S3Request, S3Response, S3Result};

use super::conversions::{
    checksum_type, encryption, etag, length, new_object_name, object_name, set_checksum,
    storage_class, upload_id,
};
use super::errors::{to_body_error, to_s3_error};
use super::multipart::{check_digest_is_optional, part_number};
use super::{claims, conditions, meta};
use crate::request::{BodyFault, RequestContext};

pub(super) async fn put(
    archive: &Archive,
    request: S3Request<PutObjectInput>,
) -> S3Result<S3Response<PutObjectOutput>> {
    let S3Request { input, headers, extensions, .. } = request;
    let (bucket, key) = new_object_name(&input.bucket, &input.key)?;
    let options = PutOptions {
        class: storage_class(input.storage_class.as_ref().map(|class| class.as_str()))?,
        meta: meta::from_request(&headers, input.metadata)?,
        condition: conditions::for_write(&headers)?,
        claim: claims::from_headers(&headers, input.content_length)?,
    };
    let writer = archive.put(&bucket, &key, options).await.map_err(to_s3_error)?;
    let info = receive(writer, input.body, &headers, &extensions).await?;
    let mut output = PutObjectOutput {
        e_tag: Some(etag(&info.etag)),
        checksum_type: info.checksum.as_ref().map(checksum_type),
        server_side_encryption: Some(encryption()),
        size: length(info.bytes),
        ..Default::default()
    };
    set_checksum!(output, &info.checksum);
    Ok(S3Response::new(output))
}

pub(super) async fn part(
    archive: &Archive,
    request: S3Request<UploadPartInput>,
) -> S3Result<S3Response<UploadPartOutput>> {
    let S3Request { input, headers, extensions, .. } = request;
    let (bucket, key) = object_name(&input.bucket, &input.key)?;
    let upload = upload_id(&input.upload_id)?;
    let number = part_number(input.part_number)?;
    let claim = claims::from_headers(&headers, input.content_length)?;
    if claim.checksum.is_none() && !claims::promises_trailer(&headers)? {
        check_digest_is_optional(archive, (&bucket, &key), upload).await?;
    }
    let writer =
        archive.put_part(&bucket, &key, upload, number, claim).await.map_err(to_s3_error)?;
    let info = receive(writer, input.body, &headers, &extensions).await?;
    let mut output = UploadPartOutput {
        e_tag: Some(etag(&info.etag)),
        server_side_encryption: Some(encryption()),
        ..Default::default()
    };
    set_checksum!(output, &info.checksum);
    Ok(S3Response::new(output))
}

/// The destination of a body.
trait Sink: Sized {
    type Stored;
    fn write(&mut self, bytes: Bytes) -> impl Future<Output = Result<(), ArchiveError>> + Send;
    fn finish(
        self,
        trailer: Option<Checksum>,
    ) -> impl Future<Output = Result<Self::Stored, ArchiveError>> + Send;
}

impl Sink for ObjectWriter {
    type Stored = ObjectInfo;
    fn write(&mut self, bytes: Bytes) -> impl Future<Output = Result<(), ArchiveError>> + Send {
        Self::write(self, bytes)
    }
    fn finish(
        self,
        trailer: Option<Checksum>,
    ) -> impl Future<Output = Result<ObjectInfo, ArchiveError>> + Send {
        Self::finish(self, trailer)
    }
}

impl Sink for PartWriter {
    type Stored = PartInfo;
    fn write(&mut self, bytes: Bytes) -> impl Future<Output = Result<(), ArchiveError>> + Send {
        Self::write(self, bytes)
    }
    fn finish(
        self,
        trailer: Option<Checksum>,
    ) -> impl Future<Output = Result<PartInfo, ArchiveError>> + Send {
        Self::finish(self, trailer)
    }
}

/// Streams a body to its destination without copying, and checks its trailer.
async fn receive<S: Sink + Send>(
    mut sink: S,
    body: Option<StreamingBlob>,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> S3Result<S::Stored> {
    if let Some(mut body) = body {
        while let Some(bytes) = body.next().await {
            let bytes =
                bytes.map_err(|error| to_body_error(BodyFault::from_stream_error(&*error)))?;
            sink.write(bytes).await.map_err(to_s3_error)?;
        }
    }
    let context = extensions.get::<Arc<RequestContext>>();
    let trailer =
        claims::trailer_checksum(headers, context.and_then(|context| context.trailers()))?;
    sink.finish(trailer).await.map_err(to_s3_error)
}

//! The archive as its front ends see it.

use bytes::Bytes;
use fulgurite_units::UploadId;

use crate::config::ArchiveConfig;
use crate::digest::Checksum;
use crate::names::{BucketName, ObjectKey};
use crate::object::{
    BucketInfo, ByteRange, CompletedPart, ListPage, ListQuery, ObjectInfo, PartInfo, PutOptions,
    RestoreOutcome, RestoreRequest, UploadInfo, UploadOptions, WriteCondition,
};
use crate::{ArchiveError, Result};

/// An open archive. Clones share it.
#[derive(Clone, Debug)]
pub struct Archive {}

/// A body on its way in. Dropped before `finish`, it leaves nothing behind.
#[derive(Debug)]
pub struct ObjectWriter {}

impl ObjectWriter {
    /// Takes the next bytes of the body.
    pub async fn write(&mut self, _bytes: Bytes) -> Result<()> { unimplemented!() }
    /// Ends the body. `trailer` is a checksum that came after it. Returns when everything is durable.
    pub async fn finish(self, _trailer: Option<Checksum>) -> Result<ObjectInfo> { unimplemented!() }
}

/// A part of a multipart upload on its way in.
#[derive(Debug)]
pub struct PartWriter {}

impl PartWriter {
    /// Takes the next bytes of the part.
    pub async fn write(&mut self, _bytes: Bytes) -> Result<()> { unimplemented!() }
    /// Ends the part.
    pub async fn finish(self, _trailer: Option<Checksum>) -> Result<PartInfo> { unimplemented!() }
}

/// An object's bytes on their way out.
#[derive(Debug)]
pub struct ObjectReader {
    /// The object.
    pub info: ObjectInfo,
    /// First byte that will be read.
    pub first: u64,
    /// Bytes that will be read.
    pub bytes: u64,
}

impl ObjectReader {
    /// The next bytes, verified; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes>> { unimplemented!() }
}

impl Archive {
    /// Opens or creates the archive in `config.data`.
    pub async fn open(_config: ArchiveConfig) -> Result<Self> { unimplemented!() }
    /// Finishes what is running, syncs and stops.
    pub async fn stop(&self) -> Result<()> { unimplemented!() }
    pub async fn create_bucket(&self, _bucket: &BucketName) -> Result<BucketInfo> { unimplemented!() }
    pub async fn delete_bucket(&self, _bucket: &BucketName) -> Result<()> { unimplemented!() }
    pub async fn head_bucket(&self, _bucket: &BucketName) -> Result<BucketInfo> { unimplemented!() }
    pub async fn list_buckets(&self) -> Result<Vec<BucketInfo>> { unimplemented!() }
    /// Begins a PUT; checks bucket and claims before any byte is taken.
    pub async fn put(&self, _b: &BucketName, _k: &ObjectKey, _o: PutOptions) -> Result<ObjectWriter> { unimplemented!() }
    pub async fn head(&self, _b: &BucketName, _k: &ObjectKey) -> Result<ObjectInfo> { unimplemented!() }
    /// Opens an object for reading; `NotRestored` when it is archived without a restored copy.
    pub async fn get(&self, _b: &BucketName, _k: &ObjectKey, _r: Option<ByteRange>) -> Result<ObjectReader> { unimplemented!() }
    pub async fn list(&self, _b: &BucketName, _q: ListQuery) -> Result<ListPage> { unimplemented!() }
    /// Deletes an object and destroys its key; a missing object is success (S3), `false` is returned.
    pub async fn delete(&self, _b: &BucketName, _k: &ObjectKey) -> Result<bool> { unimplemented!() }
    /// CopyObject: new body, new key. `options.meta` is used as given (the caller copies it for COPY).
    pub async fn copy(&self, _from: (&BucketName, &ObjectKey), _to: (&BucketName, &ObjectKey), _o: PutOptions) -> Result<ObjectInfo> { unimplemented!() }
    pub async fn restore(&self, _b: &BucketName, _k: &ObjectKey, _r: RestoreRequest) -> Result<RestoreOutcome> { unimplemented!() }
    pub async fn create_upload(&self, _b: &BucketName, _k: &ObjectKey, _o: UploadOptions) -> Result<UploadInfo> { unimplemented!() }
    pub async fn put_part(&self, _b: &BucketName, _k: &ObjectKey, _u: UploadId, _number: u32, _claim: crate::object::BodyClaim) -> Result<PartWriter> { unimplemented!() }
    /// UploadPartCopy from a readable object.
    pub async fn copy_part(&self, _from: (&BucketName, &ObjectKey), _range: Option<ByteRange>, _b: &BucketName, _k: &ObjectKey, _u: UploadId, _number: u32) -> Result<PartInfo> { unimplemented!() }
    /// Completes; the checksum, if given, is checked against the combined one. Completing twice with the same parts is success.
    pub async fn complete_upload(&self, _b: &BucketName, _k: &ObjectKey, _u: UploadId, _parts: Vec<CompletedPart>, _condition: WriteCondition, _checksum: Option<Checksum>) -> Result<ObjectInfo> { unimplemented!() }
    pub async fn abort_upload(&self, _b: &BucketName, _k: &ObjectKey, _u: UploadId) -> Result<()> { unimplemented!() }
    /// Uploads in progress of a bucket, ordered by (key, upload id), after the marker pair, at most `limit`; `true` when more follow.
    pub async fn list_uploads(&self, _b: &BucketName, _prefix: &str, _after: Option<(String, Option<UploadId>)>, _limit: usize) -> Result<(Vec<UploadInfo>, bool)> { unimplemented!() }
    /// Parts of an upload after number `after`, at most `limit`; `true` when more follow.
    pub async fn list_parts(&self, _b: &BucketName, _k: &ObjectKey, _u: UploadId, _after: u32, _limit: usize) -> Result<(UploadInfo, Vec<PartInfo>, bool)> { unimplemented!() }
    /// Seals everything staged now: returns when it is written, verified, stored and released.
    pub async fn seal(&self) -> Result<crate::status::SealReport> { unimplemented!() }
    /// Reads platters whole again: one, or all.
    pub async fn verify(&self, _platter: Option<fulgurite_units::PlatterId>) -> Result<Vec<crate::status::VerifiedPlatter>> { unimplemented!() }
    /// Counters and states for operators; cheap.
    pub async fn status(&self) -> Result<crate::status::Status> { unimplemented!() }
    /// Where one object's bytes are: platters, tracks, set.
    pub async fn locate(&self, _b: &BucketName, _k: &ObjectKey) -> Result<Vec<crate::status::ShardPlace>> { unimplemented!() }
    /// Whether requests can be served now.
    pub fn is_ready(&self) -> bool { unimplemented!() }
}
#[allow(dead_code)]
type E = ArchiveError;

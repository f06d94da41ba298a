//! Rows in version 3 and before, for catalogs from that time: names without an object version,
//! objects without labels.

use fulgurite_units::{ObjectId, UnixTime, UploadId};
use serde::{Deserialize, Serialize};

use super::version4::BodyRow3;
use super::{ExpiryRow, ObjectRow, QueueRow, RestoreMark, RestoreRow, UnconfirmedRow};
use crate::bodies::digest::Checksum;
use crate::objects::classes::Home;
use crate::objects::labels::Labels;
use crate::objects::names::{BucketName, ObjectKey, ObjectName, VersionId};
use crate::objects::object::{ObjectMeta, StorageClass};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ObjectRow3 {
    object_id: ObjectId,
    bytes: u64,
    etag: String,
    modified: UnixTime,
    class: StorageClass,
    meta: ObjectMeta,
    checksum: Option<Checksum>,
    part_count: Option<u32>,
    body_count: u32,
    bodies_staged: u32,
    upload_id: Option<UploadId>,
    restore: Option<RestoreMark>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct QueueRow3 {
    object_id: ObjectId,
    index: u32,
    bucket: BucketName,
    key: ObjectKey,
    arrived: UnixTime,
    bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RestoreRow3 {
    bucket: BucketName,
    key: ObjectKey,
    mark: RestoreMark,
    failures: u32,
    error: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ExpiryRow3 {
    bucket: BucketName,
    key: ObjectKey,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct UnconfirmedRow3 {
    object_id: ObjectId,
    body: BodyRow3,
}

/// Objects from before versions existed have the version that S3 calls "null".
const fn unversioned(bucket: BucketName, key: ObjectKey) -> ObjectName {
    ObjectName { bucket, key, version: VersionId::NULL }
}

impl From<ObjectRow3> for ObjectRow {
    fn from(row: ObjectRow3) -> Self {
        Self {
            object_id: row.object_id,
            bytes: row.bytes,
            etag: row.etag,
            modified: row.modified,
            class: row.class,
            meta: row.meta,
            checksum: row.checksum,
            part_count: row.part_count,
            body_count: row.body_count,
            bodies_staged: row.bodies_staged,
            upload_id: row.upload_id,
            restore: row.restore,
            version: VersionId::NULL,
            labels: Labels::default(),
            home: Home::default_for_class(row.class),
        }
    }
}

impl From<QueueRow3> for QueueRow {
    fn from(row: QueueRow3) -> Self {
        Self {
            object_id: row.object_id,
            index: row.index,
            name: unversioned(row.bucket, row.key),
            arrived: row.arrived,
            bytes: row.bytes,
        }
    }
}

impl From<RestoreRow3> for RestoreRow {
    fn from(row: RestoreRow3) -> Self {
        Self {
            name: unversioned(row.bucket, row.key),
            mark: row.mark,
            failures: row.failures,
            error: row.error,
        }
    }
}

impl From<ExpiryRow3> for ExpiryRow {
    fn from(row: ExpiryRow3) -> Self {
        Self { name: unversioned(row.bucket, row.key) }
    }
}

impl From<UnconfirmedRow3> for UnconfirmedRow {
    fn from(row: UnconfirmedRow3) -> Self {
        Self { object_id: row.object_id, version: VersionId::NULL, body: row.body.into() }
    }
}

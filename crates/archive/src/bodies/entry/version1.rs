//! Entries in version 1: on platters and in logs from before versions and labels, and on those of
//! sets that were planned then.

use fulgurite_units::{ObjectId, UnixTime, UploadId};
use serde::{Deserialize, Serialize};

use super::Entry;
use crate::bodies::digest::Checksum;
use crate::objects::labels::Labels;
use crate::objects::names::{BucketName, ObjectKey, ObjectName, VersionId};
use crate::objects::object::{ObjectMeta, StorageClass};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Entry1 {
    bucket: BucketName,
    bucket_created: UnixTime,
    key: ObjectKey,
    object_id: ObjectId,
    index: u32,
    body_count: u32,
    body_bytes: u64,
    body_digest: u64,
    bytes: u64,
    etag: String,
    modified: UnixTime,
    class: StorageClass,
    meta: ObjectMeta,
    checksum: Option<Checksum>,
    part_count: Option<u32>,
    upload_id: Option<UploadId>,
}

impl Entry1 {
    pub(super) const VERSION: u8 = 1;

    /// Converts to version 1; `None` if that cannot express the entry.
    pub(super) fn build(entry: &Entry) -> Option<Self> {
        let Entry { name, labels, .. } = entry;
        if name.version != VersionId::NULL || *labels != Labels::default() {
            return None;
        }
        let entry = entry.clone();
        Some(Self {
            bucket: entry.name.bucket,
            bucket_created: entry.bucket_created,
            key: entry.name.key,
            object_id: entry.object_id,
            index: entry.index,
            body_count: entry.body_count,
            body_bytes: entry.body_bytes,
            body_digest: entry.body_digest,
            bytes: entry.bytes,
            etag: entry.etag,
            modified: entry.modified,
            class: entry.class,
            meta: entry.meta,
            checksum: entry.checksum,
            part_count: entry.part_count,
            upload_id: entry.upload_id,
        })
    }
}

impl From<Entry1> for Entry {
    fn from(entry: Entry1) -> Self {
        Self {
            name: ObjectName { bucket: entry.bucket, key: entry.key, version: VersionId::NULL },
            bucket_created: entry.bucket_created,
            object_id: entry.object_id,
            index: entry.index,
            body_count: entry.body_count,
            body_bytes: entry.body_bytes,
            body_digest: entry.body_digest,
            bytes: entry.bytes,
            etag: entry.etag,
            modified: entry.modified,
            class: entry.class,
            meta: entry.meta,
            checksum: entry.checksum,
            part_count: entry.part_count,
            upload_id: entry.upload_id,
            labels: Labels::default(),
            part_checksum: None,
        }
    }
}

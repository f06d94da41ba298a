//! Rows in version 4 and before: objects and bodies without a tier.

use fulgurite_units::{ObjectId, UnixTime, UploadId};
use serde::{Deserialize, Serialize};

use super::{BodyRow, ObjectRow, PartRow, RestoreMark, Shard, Totals, UnconfirmedRow, UploadRow};
use crate::bodies::digest::{Checksum, ChecksumAlgorithm};
use crate::bodies::log::{Extent, LogKind};
use crate::objects::classes::Home;
use crate::objects::labels::Labels;
use crate::objects::names::VersionId;
use crate::objects::object::{ObjectMeta, StorageClass};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ObjectRow4 {
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
    version: VersionId,
    labels: Labels,
}

/// A body in version 3, the last before tiers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BodyRow3 {
    body_id: ObjectId,
    key_slot: u32,
    bytes: u64,
    digest: u64,
    log: Option<(LogKind, Vec<Extent>)>,
    queued: Option<u64>,
    shards: Vec<Shard>,
    restored: Option<Vec<Extent>>,
    framing: Vec<Extent>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PartRow3 {
    body: BodyRow3,
    md5: [u8; 16],
    modified: UnixTime,
    checksum: Option<Checksum>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct UnconfirmedRow4 {
    object_id: ObjectId,
    version: VersionId,
    body: BodyRow3,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct UploadRow3 {
    initiated: UnixTime,
    class: StorageClass,
    meta: ObjectMeta,
    algorithm: Option<ChecksumAlgorithm>,
    full_object: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Totals3 {
    objects_online: u64,
    objects_staged: u64,
    objects_on_glass: u64,
    restored: u64,
    restores_waiting: u64,
    staged_bytes: u64,
    sequence: u64,
    run: u64,
}

impl From<ObjectRow4> for ObjectRow {
    fn from(row: ObjectRow4) -> Self {
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
            version: row.version,
            labels: row.labels,
            home: Home::default_for_class(row.class),
        }
    }
}

impl From<BodyRow3> for BodyRow {
    fn from(row: BodyRow3) -> Self {
        Self {
            body_id: row.body_id,
            key_slot: row.key_slot,
            bytes: row.bytes,
            digest: row.digest,
            log: row.log,
            queued: row.queued,
            shards: row.shards,
            restored: row.restored,
            framing: row.framing,
            tier: None,
        }
    }
}

impl From<PartRow3> for PartRow {
    fn from(row: PartRow3) -> Self {
        Self { body: row.body.into(), md5: row.md5, modified: row.modified, checksum: row.checksum }
    }
}

impl From<UnconfirmedRow4> for UnconfirmedRow {
    fn from(row: UnconfirmedRow4) -> Self {
        Self { object_id: row.object_id, version: row.version, body: row.body.into() }
    }
}

impl From<UploadRow3> for UploadRow {
    fn from(row: UploadRow3) -> Self {
        Self {
            initiated: row.initiated,
            class: row.class,
            meta: row.meta,
            algorithm: row.algorithm,
            full_object: row.full_object,
            home: Home::default_for_class(row.class),
        }
    }
}

impl From<Totals3> for Totals {
    fn from(row: Totals3) -> Self {
        Self {
            objects_online: row.objects_online,
            objects_staged: row.objects_staged,
            objects_on_glass: row.objects_on_glass,
            restored: row.restored,
            restores_waiting: row.restores_waiting,
            staged_bytes: row.staged_bytes,
            sequence: row.sequence,
            run: row.run,
            ..Self::default()
        }
    }
}

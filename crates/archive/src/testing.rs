//! An open data directory without jobs, for tests of single steps.

use std::sync::Arc;

use fulgurite_units::{ByteCount, ManualClock, ObjectId, UnixTime};
use tempfile::TempDir;

use crate::bench_support;
use crate::bodies::digest::{BodyDigest, ChecksumAlgorithm};
use crate::bodies::log::LogKind;
use crate::config::{ArchiveConfig, ExpeditedPolicy};
use crate::model::classes::Home;
use crate::model::labels::{Labels, Retention, RetentionMode, Tags};
use crate::model::names::{BucketName, ObjectKey, ObjectName, VersionId};
use crate::model::object::{ObjectMeta, StorageClass};
use crate::rows::{BodyRow, LoggedBody, ObjectRow, Place};
use crate::state::ArchiveState;

pub(crate) const NOW: UnixTime = UnixTime::from_millis(1_767_609_000_250);

/// Creates a directory in memory if possible: these tests are not about syncs.
pub(crate) fn dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) fn config(dir: &TempDir) -> ArchiveConfig {
    ArchiveConfig {
        acknowledged_at: None,
        shared: None,
        log_capacity: ByteCount::gib(1),
        expedited: ExpeditedPolicy::Standard,
        ..bench_support::config(dir.path().to_owned()).unwrap()
    }
}

pub(crate) fn state(dir: &TempDir) -> Arc<ArchiveState> {
    Arc::new(ArchiveState::open(config(dir), ManualClock::at(NOW).clock()).unwrap())
}

pub(crate) fn bucket(name: &str) -> BucketName {
    BucketName::new(name).unwrap()
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::new(name).unwrap()
}

/// Returns the name of an object in bucket "vault".
pub(crate) fn name(key: &str) -> ObjectName {
    ObjectName::parse("vault", key, VersionId::NULL).unwrap()
}

/// Creates a version with this id, by decoding it: nothing else can create one yet.
pub(crate) fn version(id: Option<[u8; 16]>) -> VersionId {
    postcard::from_bytes(&postcard::to_extend(&id, Vec::new()).unwrap()).unwrap()
}

/// Returns labels of all kinds, which nothing else creates yet.
pub(crate) fn labels() -> Labels {
    let tags = std::collections::BTreeMap::from([("project".to_owned(), "silica".to_owned())]);
    let retention = Retention { mode: RetentionMode::Compliance, until: NOW };
    Labels { tags: Tags::try_from(tags).unwrap(), retention: Some(retention), is_held: true }
}

pub(crate) fn object_row(class: StorageClass) -> ObjectRow {
    let mut digest = BodyDigest::new(Some(ChecksumAlgorithm::Crc64Nvme));
    digest.update(b"bytes");
    let digests = digest.finish();
    ObjectRow {
        object_id: ObjectId::from_random(crate::bodies::cipher::random_bytes().unwrap()),
        bytes: 5,
        etag: hex::encode(digests.md5),
        modified: UnixTime::from_millis(1_767_609_000_000),
        class,
        meta: ObjectMeta::default(),
        checksum: digests.checksum,
        part_count: None,
        body_count: 1,
        bodies_staged: 0,
        upload_id: None,
        restore: None,
        version: VersionId::NULL,
        labels: Labels::default(),
        home: if class == StorageClass::Standard { Home::Online } else { Home::Glass },
    }
}

pub(crate) fn body_row(kind: LogKind) -> BodyRow {
    BodyRow {
        body_id: ObjectId::from_random(crate::bodies::cipher::random_bytes().unwrap()),
        key_slot: 1,
        bytes: 0,
        digest: 0,
        place: Place::Log(LoggedBody::new(kind, Vec::new(), Vec::new())),
        restored: None,
    }
}

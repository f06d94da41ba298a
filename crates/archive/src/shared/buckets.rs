//! The set of shared buckets, and operations on one of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_catalog::{KeyRange, ReadView, Transaction};
use fulgurite_units::ObjectId;
use futures::FutureExt as _;
use futures::StreamExt as _;

use super::note::{Note, SharedObject};
use super::{
    SharedCondition, SharedError, SharedObjectMeta, SharedOptions, SharedPut, SharedStore, names,
};
use crate::bodies::cipher::{SecretKey, random_bytes};
use crate::bodies::ingest::truncate_to_seconds;
use crate::directory::{shared_key, unusable};
use crate::limits::SHARED_KEY_BYTES_MAX;
use crate::model::names::{BucketName, ObjectKey};
use crate::model::object::{ObjectMeta, ObjectParts, StorageClass};
use crate::rows::lookup::rows_in;
use crate::rows::{self, BUCKETS, BucketRow, META, OBJECTS, ObjectRow};
use crate::state::ArchiveState;
use crate::{ArchiveError, Result};

/// The store of all shared buckets.
#[derive(Debug)]
struct Place {
    name: String,
    store: Arc<dyn SharedStore>,
    key: SecretKey,
}

/// The set of shared buckets.
#[derive(Debug, Default)]
pub(crate) struct SharedBuckets {
    place: Option<Arc<Place>>,
    named: BTreeSet<BucketName>,
    /// Buckets that were shared before and that the configuration no longer names: treating them as
    /// this archive's own would hide the objects of the others.
    unconfigured: Mutex<BTreeSet<BucketName>>,
}

/// A shared bucket.
#[derive(Clone, Debug)]
pub(crate) struct SharedBucket {
    place: Arc<Place>,
    pub(super) name: BucketName,
}

impl SharedBuckets {
    /// Creates the shared buckets in the store unless another archive did, and records them in the
    /// catalog.
    pub(crate) async fn open(state: &ArchiveState) -> Result<Self> {
        let known = known(&*state.kv)?;
        let Some(options) = &state.config.shared else {
            return Ok(Self { unconfigured: Mutex::new(known), ..Self::default() });
        };
        let SharedOptions { place, store, buckets, key } = options;
        let (name, store, key) = (place.clone(), Arc::clone(store), shared_key(key)?);
        let place = Arc::new(Place { name, store, key });
        let named: BTreeSet<BucketName> = buckets.iter().cloned().collect();
        for name in &named {
            refuse_local_objects(&state.config.data, &*state.kv, name)?;
            let bucket = SharedBucket { place: Arc::clone(&place), name: name.clone() };
            let row = bucket.begin().await?;
            let name = name.clone();
            let note = move |tx: &mut Transaction<'_>| -> Result<()> {
                rows::record_shared(tx, &name)?;
                rows::put(tx, BUCKETS, rows::bucket_key(name.as_str()), &row)
            };
            state.committer.commit(note).await?;
        }
        let unconfigured = known.difference(&named).cloned().collect();
        Ok(Self { place: Some(place), named, unconfigured: Mutex::new(unconfigured) })
    }

    /// Returns the bucket if it is shared.
    ///
    /// # Errors
    /// `SharedElsewhere` when it was, and the configuration does not name it any more.
    pub(crate) fn get(&self, bucket: &BucketName) -> Result<Option<SharedBucket>> {
        if self.lock().contains(bucket) {
            return Err(ArchiveError::SharedElsewhere { bucket: bucket.to_string() });
        }
        let place = self.place.as_ref().filter(|_| self.named.contains(bucket));
        Ok(place.map(|place| SharedBucket { place: Arc::clone(place), name: bucket.clone() }))
    }

    /// Rejects an operation that shared buckets do not support.
    ///
    /// # Errors
    /// `NotShared`, or as [`Self::get`].
    pub(crate) fn refuse(&self, bucket: &BucketName, what: &'static str) -> Result<()> {
        match self.get(bucket)? {
            None => Ok(()),
            Some(_) => Err(ArchiveError::NotShared { bucket: bucket.to_string(), what }),
        }
    }

    /// Whether a bucket was shared and is no longer configured: it can only be removed here.
    pub(crate) fn is_unconfigured(&self, bucket: &BucketName) -> bool {
        self.lock().contains(bucket)
    }

    /// Forgets such a bucket.
    pub(crate) fn forget(&self, bucket: &BucketName) {
        self.lock().remove(bucket);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<BucketName>> {
        self.unconfigured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the buckets that the catalog records as shared.
fn known(view: &dyn ReadView) -> Result<BTreeSet<BucketName>> {
    let found: Vec<(Vec<u8>, u64)> = rows_in(view, META, &rows::shared_buckets(), usize::MAX)?;
    found.iter().map(|(key, _)| rows::parse_shared_key(key)).collect()
}

/// Refuses to share a bucket that has objects of this archive: they would be hidden.
fn refuse_local_objects(data: &Path, view: &dyn ReadView, bucket: &BucketName) -> Result<()> {
    let within: KeyRange = rows::object_prefix(bucket.as_str(), "");
    let first: Vec<(Vec<u8>, ObjectRow)> = rows_in(view, OBJECTS, &within, 1)?;
    if first.is_empty() {
        return Ok(());
    }
    let reason = format!(
        "bucket \"{bucket}\" cannot be shared: it has objects of this archive alone; share another \
         bucket and copy them there"
    );
    Err(unusable(data, reason))
}

impl SharedBucket {
    /// Creates the bucket, or compares the key with that of the archive that did.
    async fn begin(&self) -> Result<BucketRow> {
        let name = names::bucket(&self.name);
        if self.find_name(&name).await?.is_none() {
            let object = ObjectId::from_random(random_bytes()?);
            let note = Note {
                bucket: self.name.to_string(),
                key: String::new(),
                bytes: 0,
                etag: String::new(),
                class: StorageClass::Standard,
                meta: ObjectMeta::default(),
                checksum: None,
                part_count: None,
                upload: None,
                runs: None,
            };
            let note = note.seal(&self.place.key, object)?;
            let put = SharedPut {
                name: name.clone(),
                bytes: 0,
                body: futures::stream::empty().boxed(),
                note: std::future::ready(Some(note)).boxed(),
                condition: SharedCondition::Absent,
            };
            match self.place.store.put(put).await {
                // If another archive was first, that is just as good.
                Ok(()) | Err(SharedError::Refused) => {}
                Err(error) => return Err(self.to_archive_error("", error)),
            }
        }
        let found = self.find_name(&name).await?.ok_or_else(|| ArchiveError::TierUnavailable {
            tier: self.place.name.clone(),
            what: format!("shared bucket \"{}\" is missing from the store", self.name),
        })?;
        let opened = Note::open_found(&self.place.key, &found, (self.name.as_str(), ""));
        opened.map_err(|error| {
            if matches!(error, ArchiveError::Corrupt { .. }) {
                return ArchiveError::WrongSharedKey { bucket: self.name.to_string() };
            }
            error
        })?;
        Ok(BucketRow { created: truncate_to_seconds(found.time) })
    }

    async fn find_name(&self, name: &str) -> Result<Option<SharedObjectMeta>> {
        self.place.store.find(name).await.map_err(|error| self.to_archive_error("", error))
    }

    /// Finds an object.
    pub(super) async fn find(&self, key: &ObjectKey) -> Result<Option<SharedObject>> {
        let found = self.place.store.find(&self.object(key)?).await;
        let found = found.map_err(|error| self.to_archive_error(key.as_str(), error))?;
        found.map(|found| self.describe(&found, key.as_str())).transpose()
    }

    /// Returns an object's metadata.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub(crate) async fn head(&self, key: &ObjectKey) -> Result<crate::ObjectInfo> {
        self.find(key).await?.map(|found| found.info).ok_or_else(|| self.no_such_key_error(key))
    }

    /// Returns an object with its parts after number `after`, at most `limit`.
    ///
    /// # Errors
    /// `NoSuchKey`, `PartsNotKept`.
    pub(crate) async fn parts(
        &self,
        key: &ObjectKey,
        after: u32,
        limit: usize,
    ) -> Result<ObjectParts> {
        let found = self.find(key).await?.ok_or_else(|| self.no_such_key_error(key))?;
        let (parts, is_more) = found.parts(after, limit)?;
        Ok(ObjectParts { info: found.info, parts, is_more })
    }

    /// Deletes an object; returns whether it existed.
    pub(crate) async fn delete(&self, key: &ObjectKey) -> Result<bool> {
        let removed = self.place.store.delete(&self.object(key)?).await;
        removed.map_err(|error| self.to_archive_error(key.as_str(), error))
    }

    pub(super) fn describe(&self, found: &SharedObjectMeta, key: &str) -> Result<SharedObject> {
        SharedObject::open(&self.place.key, found, (self.name.as_str(), key))
    }

    /// Returns the name of an object in the store.
    ///
    /// # Errors
    /// `KeyTooLong`.
    pub(super) fn object(&self, key: &ObjectKey) -> Result<String> {
        let (key, max) = (key.as_str(), SHARED_KEY_BYTES_MAX);
        if key.len() > max {
            return Err(ArchiveError::KeyTooLong { bytes: key.len(), max });
        }
        Ok(names::object(&self.name, key))
    }

    pub(super) fn store(&self) -> &Arc<dyn SharedStore> {
        &self.place.store
    }

    pub(super) fn key(&self) -> &SecretKey {
        &self.place.key
    }

    pub(super) fn no_such_key_error(&self, key: &ObjectKey) -> ArchiveError {
        ArchiveError::NoSuchKey { bucket: self.name.to_string(), key: key.to_string() }
    }

    /// Converts a store error about an object to an archive error.
    pub(super) fn to_archive_error(&self, key: &str, error: SharedError) -> ArchiveError {
        let (bucket, key) = (self.name.to_string(), key.to_owned());
        match error {
            SharedError::Refused => ArchiveError::PreconditionFailed { condition: "If-Match" },
            SharedError::Unavailable { what } => {
                ArchiveError::TierUnavailable { tier: self.place.name.clone(), what }
            }
            SharedError::Lost { what } => ArchiveError::Unreadable { bucket, key, reason: what },
            SharedError::Other { what } => {
                let what = format!("object \"{key}\" of shared bucket \"{bucket}\": {what}");
                ArchiveError::Internal { what }
            }
        }
    }
}

//! A reference for the semantics of objects: maps in memory, written to be obviously right.
//!
//! It predicts the answer of each call and the state afterwards. It knows nothing of logs, glass or
//! rows, and of time only what it is given.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_archive::{
    BodyDigest, ByteRange, Checksum, ChecksumAlgorithm, ListQuery, ObjectMeta, Residence,
    RestoreOutcome, RestoreState, Retrieval, StorageClass, WriteCondition,
};
use fulgurite_units::{ObjectId, UnixTime, UploadId};
use md5::{Digest as _, Md5};

/// A day of restores, in milliseconds.
pub(crate) const DAY_MS: u64 = 86_400_000;

/// A predicted answer: a value, or the name of the error.
pub(crate) type Answer<T> = Result<T, &'static str>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    No,
    Ongoing { requested: u64, days: u32 },
    Until(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) id: ObjectId,
    pub(crate) body: Vec<u8>,
    pub(crate) etag: String,
    pub(crate) modified: UnixTime,
    pub(crate) class: StorageClass,
    pub(crate) meta: ObjectMeta,
    pub(crate) checksum: Checksum,
    pub(crate) part_count: Option<u32>,
    pub(crate) upload: Option<UploadId>,
    pub(crate) is_on_glass: bool,
    /// Its home is a tier of objects, even if it is not there yet.
    pub(crate) is_tiered: bool,
    pub(crate) copied: Copied,
}

#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) body: Vec<u8>,
    pub(crate) md5: [u8; 16],
    pub(crate) modified: UnixTime,
    pub(crate) checksum: Checksum,
}

#[derive(Clone, Debug)]
pub(crate) struct Upload {
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) id: UploadId,
    pub(crate) initiated: UnixTime,
    pub(crate) class: StorageClass,
    pub(crate) meta: ObjectMeta,
    pub(crate) algorithm: Option<ChecksumAlgorithm>,
    pub(crate) full_object: bool,
    pub(crate) parts: BTreeMap<u32, Part>,
}

/// A part in the list that completes an upload.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) number: u32,
    pub(crate) etag: String,
}

/// The content of a listing page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) keys: Vec<String>,
    pub(crate) prefixes: Vec<String>,
    pub(crate) next: Option<String>,
}

/// The whole state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reference {
    /// Classes whose objects go to a tier of objects.
    pub(crate) tiered: Vec<StorageClass>,
    pub(crate) now: u64,
    pub(crate) buckets: BTreeMap<String, UnixTime>,
    pub(crate) objects: BTreeMap<(String, String), Object>,
    pub(crate) uploads: BTreeMap<UploadId, Upload>,
}

pub(crate) fn md5(bytes: &[u8]) -> [u8; 16] {
    Md5::digest(bytes).into()
}

pub(crate) fn checksum(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> Checksum {
    let mut digest = BodyDigest::new(Some(algorithm));
    digest.update(bytes);
    digest.finish().checksum.unwrap()
}

fn midnight_after(ms: u64, days: u32) -> u64 {
    (ms + u64::from(days) * DAY_MS).div_ceil(DAY_MS) * DAY_MS
}

/// Resolves a range; an error if no byte of the object lies in it.
pub(crate) fn slice(range: Option<ByteRange>, bytes: usize) -> Answer<std::ops::Range<usize>> {
    let bytes = bytes as u64;
    let (start, end) = match range {
        None => return Ok(0..usize::try_from(bytes).unwrap()),
        Some(ByteRange::From { first, last: None }) => (first, bytes),
        Some(ByteRange::From { first, last: Some(last) }) => (first, bytes.min(last + 1)),
        Some(ByteRange::Suffix { bytes: count }) => (bytes.saturating_sub(count), bytes),
    };
    if start >= end {
        return Err("InvalidRange");
    }
    Ok(usize::try_from(start).unwrap()..usize::try_from(end).unwrap())
}

impl Object {
    pub(crate) fn state(&self, now: u64) -> Option<RestoreState> {
        match self.copied {
            Copied::No => None,
            Copied::Ongoing { .. } => Some(RestoreState::Ongoing),
            Copied::Until(end) if end > now => {
                Some(RestoreState::Restored { expiry: UnixTime::from_millis(end) })
            }
            Copied::Until(_) => None,
        }
    }

    /// Whether it is archived under the default table of classes.
    pub(crate) const fn is_archived(&self) -> bool {
        matches!(self.class, StorageClass::Glacier | StorageClass::DeepArchive)
    }

    /// Returns where it is once it has been moved.
    pub(crate) const fn residence(&self) -> Residence {
        if self.is_tiered {
            return Residence::Tier;
        }
        match (self.is_archived(), self.is_on_glass) {
            (false, _) => Residence::Online,
            (true, false) => Residence::Staged,
            (true, true) => Residence::Glass,
        }
    }
}

impl Reference {
    pub(crate) const fn seconds(&self) -> UnixTime {
        UnixTime::from_millis(self.now / 1000 * 1000)
    }

    pub(crate) fn require_bucket(&self, bucket: &str) -> Answer<()> {
        self.buckets.get(bucket).map(|_| ()).ok_or("NoSuchBucket")
    }

    pub(crate) fn create_bucket(&mut self, bucket: &str) -> Answer<()> {
        if self.buckets.contains_key(bucket) {
            return Err("BucketAlreadyOwnedByYou");
        }
        self.buckets.insert(bucket.to_owned(), self.seconds());
        Ok(())
    }

    pub(crate) fn delete_bucket(&mut self, bucket: &str) -> Answer<()> {
        self.require_bucket(bucket)?;
        let has_objects = self.objects.keys().any(|(b, _)| b == bucket);
        if has_objects || self.uploads.values().any(|upload| upload.bucket == bucket) {
            return Err("BucketNotEmpty");
        }
        self.buckets.remove(bucket);
        Ok(())
    }

    pub(crate) fn object(&self, bucket: &str, key: &str) -> Answer<&Object> {
        self.require_bucket(bucket)?;
        self.objects.get(&(bucket.to_owned(), key.to_owned())).ok_or("NoSuchKey")
    }

    /// Returns whether a write may begin, and may complete.
    pub(crate) fn may_write(
        &self,
        bucket: &str,
        key: &str,
        condition: &WriteCondition,
    ) -> Answer<()> {
        self.require_bucket(bucket)?;
        let current = self.object(bucket, key).ok();
        if condition.absent && current.is_some() {
            return Err("PreconditionFailed");
        }
        match (&condition.etag, current) {
            (None, _) => Ok(()),
            (Some(_), None) => Err("NoSuchKey"),
            (Some(etag), Some(object)) if etag == "*" || *etag == object.etag => Ok(()),
            (Some(_), Some(_)) => Err("PreconditionFailed"),
        }
    }

    pub(crate) fn put(&mut self, bucket: &str, key: &str, object: Object) {
        self.objects.insert((bucket.to_owned(), key.to_owned()), object);
    }

    pub(crate) fn plain(
        &self,
        class: StorageClass,
        body: Vec<u8>,
        algorithm: ChecksumAlgorithm,
    ) -> Object {
        Object {
            id: ObjectId::from_bytes([0; 16]),
            etag: hex::encode(md5(&body)),
            modified: self.seconds(),
            class,
            meta: ObjectMeta::default(),
            checksum: checksum(algorithm, &body),
            part_count: None,
            upload: None,
            is_on_glass: false,
            is_tiered: self.tiered.contains(&class),
            copied: Copied::No,
            body,
        }
    }

    /// Returns the bytes of a GET.
    pub(crate) fn get(
        &self,
        bucket: &str,
        key: &str,
        range: Option<ByteRange>,
    ) -> Answer<(&Object, &[u8])> {
        let object = self.object(bucket, key)?;
        let is_restored = matches!(object.state(self.now), Some(RestoreState::Restored { .. }));
        if object.is_archived() && !is_restored {
            return Err("NotRestored");
        }
        let range = slice(range, object.body.len())?;
        Ok((object, &object.body[range]))
    }

    pub(crate) fn delete(&mut self, bucket: &str, key: &str) -> Answer<bool> {
        self.require_bucket(bucket)?;
        Ok(self.objects.remove(&(bucket.to_owned(), key.to_owned())).is_some())
    }

    pub(crate) fn restore(
        &mut self,
        bucket: &str,
        key: &str,
        days: u32,
        retrieval: Retrieval,
    ) -> Answer<RestoreOutcome> {
        if days == 0 {
            return Err("InvalidArgument");
        }
        let now = self.now;
        self.object(bucket, key)?;
        let name = (bucket.to_owned(), key.to_owned());
        let object = self.objects.get_mut(&name).unwrap();
        if !object.is_archived() {
            return Err("NotArchived");
        }
        if object.class == StorageClass::DeepArchive && retrieval == Retrieval::Expedited {
            return Err("ExpeditedNotAvailable");
        }
        match object.copied {
            Copied::Ongoing { .. } => Err("RestoreAlreadyInProgress"),
            Copied::Until(end) if end > now => {
                object.copied = Copied::Until(midnight_after(now, days));
                Ok(RestoreOutcome::Extended)
            }
            Copied::No | Copied::Until(_) => {
                object.copied = Copied::Ongoing { requested: now, days };
                Ok(RestoreOutcome::Accepted)
            }
        }
    }

    /// Returns restores in progress, and completes them as if no time passed meanwhile.
    pub(crate) fn finish_restores(&mut self) -> Vec<(String, String)> {
        let mut finished = Vec::new();
        for ((bucket, key), object) in &mut self.objects {
            if let Copied::Ongoing { requested, days } = object.copied {
                object.copied = Copied::Until(midnight_after(requested, days));
                finished.push((bucket.clone(), key.clone()));
            }
        }
        finished
    }

    /// The same for one object.
    pub(crate) fn finish_restore(&mut self, bucket: &str, key: &str) {
        let name = (bucket.to_owned(), key.to_owned());
        if let Some(object) = self.objects.get_mut(&name)
            && let Copied::Ongoing { requested, days } = object.copied
        {
            object.copied = Copied::Until(midnight_after(requested, days));
        }
    }

    /// Moves everything staged to glass; returns the number of objects.
    pub(crate) fn seal(&mut self) -> u64 {
        let staged = self.objects.values_mut().filter(|o| o.residence() == Residence::Staged);
        staged.map(|object| object.is_on_glass = true).count() as u64
    }

    pub(crate) fn list(&self, bucket: &str, query: &ListQuery) -> Answer<Page> {
        self.require_bucket(bucket)?;
        let mut page = Page::default();
        if query.limit == 0 {
            return Ok(page);
        }
        let after = query.after.as_deref();
        // A page that ended with a common prefix continues after all keys under it.
        let passed = after.filter(|after| common(after, query).as_deref() == Some(after));
        let keys = self
            .objects
            .keys()
            .filter(|(b, key)| b == bucket && key.starts_with(&query.prefix))
            .map(|(_, key)| key)
            .filter(|key| after.is_none_or(|after| key.as_str() > after))
            .filter(|key| passed.is_none_or(|passed| !key.starts_with(passed)));
        let mut rolled = BTreeSet::new();
        let mut last = None;
        for key in keys {
            let prefix = common(key, query);
            if prefix.as_ref().is_some_and(|prefix| rolled.contains(prefix)) {
                continue;
            }
            if page.keys.len() + page.prefixes.len() == query.limit {
                page.next = last;
                break;
            }
            last = Some(prefix.clone().unwrap_or_else(|| key.clone()));
            match prefix {
                Some(prefix) => {
                    page.prefixes.push(prefix.clone());
                    rolled.insert(prefix);
                }
                None => page.keys.push(key.clone()),
            }
        }
        Ok(page)
    }

    pub(crate) fn upload(&self, bucket: &str, key: &str, id: UploadId) -> Answer<&Upload> {
        let found = self.uploads.get(&id).filter(|u| u.bucket == bucket && u.key == key);
        match found {
            Some(upload) => Ok(upload),
            None => self.require_bucket(bucket).and(Err("NoSuchUpload")),
        }
    }

    pub(crate) fn uploads(
        &self,
        bucket: &str,
        prefix: &str,
        after: Option<&(String, Option<UploadId>)>,
        limit: usize,
    ) -> Answer<(Vec<UploadId>, bool)> {
        self.require_bucket(bucket)?;
        let mut all: Vec<(&str, UploadId)> = self
            .uploads
            .values()
            .filter(|upload| upload.bucket == bucket && upload.key.starts_with(prefix))
            .map(|upload| (upload.key.as_str(), upload.id))
            .filter(|&(key, id)| match after {
                None => true,
                Some((marker, None)) => key > marker.as_str(),
                Some((marker, Some(after))) => (key, id) > (marker.as_str(), *after),
            })
            .collect();
        all.sort_unstable();
        let is_more = all.len() > limit;
        all.truncate(limit);
        Ok((all.into_iter().map(|(_, id)| id).collect(), is_more))
    }

    /// Returns the object that completing an upload creates.
    pub(crate) fn complete(
        &self,
        bucket: &str,
        key: &str,
        id: UploadId,
        listed: &[Listed],
        condition: &WriteCondition,
    ) -> Answer<Object> {
        let upload = match self.upload(bucket, key, id) {
            Ok(upload) => upload,
            Err(error) => {
                // Completed before, and its object still exists.
                let made = self.object(bucket, key).ok();
                return made.filter(|made| made.upload == Some(id)).cloned().ok_or(error);
            }
        };
        let chosen = choose(upload, listed)?;
        self.may_write(bucket, key, condition)?;
        let body: Vec<u8> = chosen.iter().flat_map(|part| part.body.iter().copied()).collect();
        let md5s: Vec<u8> = chosen.iter().flat_map(|part| part.md5).collect();
        let algorithm = upload.algorithm.unwrap_or(ChecksumAlgorithm::Crc64Nvme);
        let is_crc = !matches!(algorithm, ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256);
        let checksum = if is_crc && (upload.full_object || upload.algorithm.is_none()) {
            checksum(algorithm, &body)
        } else {
            let values: Vec<u8> =
                chosen.iter().flat_map(|part| part.checksum.value.iter().copied()).collect();
            let composite_parts = Some(u32::try_from(chosen.len()).unwrap());
            Checksum { composite_parts, ..checksum(algorithm, &values) }
        };
        Ok(Object {
            etag: format!("{}-{}", hex::encode(md5(&md5s)), chosen.len()),
            part_count: Some(u32::try_from(chosen.len()).unwrap()),
            upload: Some(id),
            checksum,
            meta: upload.meta.clone(),
            ..self.plain(upload.class, body, algorithm)
        })
    }
}

fn choose<'a>(upload: &'a Upload, listed: &[Listed]) -> Answer<Vec<&'a Part>> {
    if listed.is_empty() {
        return Err("InvalidArgument");
    }
    let mut chosen = Vec::new();
    let mut previous = 0;
    for part in listed {
        if part.number <= previous {
            return Err("InvalidPartOrder");
        }
        previous = part.number;
        let found = upload.parts.get(&part.number);
        chosen.push(found.filter(|p| hex::encode(p.md5) == part.etag).ok_or("InvalidPart")?);
    }
    let but_last = &chosen[..chosen.len() - 1];
    if but_last.iter().any(|part| part.body.len() < 5 << 20) {
        return Err("EntityTooSmall");
    }
    Ok(chosen)
}

fn common(key: &str, query: &ListQuery) -> Option<String> {
    let delimiter = query.delimiter.as_deref().filter(|d| !d.is_empty())?;
    let rest = key.strip_prefix(query.prefix.as_str())?;
    let (before, _) = rest.split_once(delimiter)?;
    Some(format!("{}{before}{delimiter}", query.prefix))
}

//! An archive and its reference in parallel: both execute every step, and the results must be
//! equal.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fulgurite_archive::config::{ArchiveConfig, Home, TierName, TierOptions};
use fulgurite_archive::{
    Archive, ArchiveError, BodyClaim, BucketName, ByteRange, ChecksumAlgorithm, ListQuery,
    ObjectInfo, ObjectKey, ObjectMeta, ObjectReader, PutOptions, Residence, RestoreOutcome,
    RestoreRequest, RestoreState, Retrieval, StorageClass,
};
use fulgurite_rack::{RackStore, bench_support};
use fulgurite_units::{UnixTime, UploadId};
use futures::StreamExt as _;
use tempfile::TempDir;

use crate::harness::{config, files, noise};
use crate::model::{BUCKETS, Body, Condition, Flaw, ObjectRef, Step, write_condition};
use crate::reference::{Answer, Copied, Object, Reference, checksum, md5};
use crate::toy_tier::Drawer;

/// 2026-01-05T10:30:00.250Z: neither a whole second nor near midnight.
const BEGIN_MS: u64 = 1_767_609_000_250;
/// Timeout for background work.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(25);

/// The homes of STANDARD and GLACIER objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Homes {
    /// The default table of classes.
    Usual,
    /// A tier that is a directory.
    Directory,
    /// A tier that is a store provided by this program.
    Drawer,
    /// Only `GLACIER`, to a rack of cold disks.
    Rack,
}

impl Homes {
    /// Returns the classes whose home is a tier.
    const fn tiered(self) -> &'static [StorageClass] {
        match self {
            Self::Usual => &[],
            Self::Directory | Self::Drawer => &[StorageClass::Standard, StorageClass::Glacier],
            Self::Rack => &[StorageClass::Glacier],
        }
    }

    fn name(self) -> TierName {
        TierName::new(if self == Self::Rack { "rack" } else { "cold" }).unwrap()
    }
}

pub(crate) struct World {
    dir: TempDir,
    /// A folder for a tier.
    folder: TempDir,
    homes: Homes,
    tier: Option<TierOptions>,
    clock: Arc<AtomicU64>,
    archive: Option<Archive>,
    pub(crate) reference: Reference,
    /// All uploads that ever existed.
    pub(crate) uploads: Vec<(ObjectRef, UploadId)>,
}

pub(crate) fn bucket(name: &str) -> BucketName {
    BucketName::new(name).unwrap()
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::new(name).unwrap()
}

/// Returns the name of an error, as the reference uses it.
fn name(error: &ArchiveError) -> String {
    let text = format!("{error:?}");
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned()
}

/// Creates a rack in a folder.
async fn rack(folder: &Path) -> TierOptions {
    let clock = fulgurite_archive::system_clock();
    let rack = RackStore::init(bench_support::options(folder, clock).unwrap()).await.unwrap();
    let store = Some(Arc::new(rack) as _);
    TierOptions { url: "rack".to_owned(), store, with_entries: true, ..TierOptions::default() }
}

/// Files in a tier, without the claim file and the run file.
async fn stored(tier: &TierOptions, folder: &Path) -> usize {
    let names: Vec<String> = match &tier.store {
        Some(store) => {
            store.list(None).map(|found| found.unwrap().location.to_string()).collect().await
        }
        None => files(folder).iter().map(|path| path.display().to_string()).collect(),
    };
    let is_body = |name: &&String| !name.rsplit('/').next().unwrap().starts_with("fulgurite-tier");
    names.iter().filter(is_body).count()
}

/// How often each answer occurred that a history should reach now and then.
pub(crate) static ANSWER_COUNTS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

pub(crate) fn count_answer(answer: &str) {
    *ANSWER_COUNTS.lock().unwrap().entry(answer.to_owned()).or_default() += 1;
}

/// Returns both results when both succeeded; `None` when both are the same error.
#[track_caller]
pub(crate) fn assert_agree<T, U>(got: Result<T, ArchiveError>, want: Answer<U>) -> Option<(T, U)> {
    match (got, want) {
        (Ok(got), Ok(want)) => Some((got, want)),
        (Err(got), Err(want)) => {
            assert_eq!(name(&got), want, "{got}");
            count_answer(want);
            None
        }
        (Ok(_), Err(want)) => panic!("it succeeded, but should fail with {want}"),
        (Err(got), Ok(_)) => panic!("{}: {got}", name(&got)),
    }
}

#[track_caller]
pub(crate) fn check_info(info: &ObjectInfo, name: &str, object: &Object, now: u64) {
    // The reference cannot know when it is moved to its tier.
    let is_on_its_way = object.is_tiered && info.residence == Residence::Staged;
    let residence = if is_on_its_way { Residence::Staged } else { object.residence() };
    let expected = ObjectInfo {
        key: name.to_owned(),
        object_id: object.id,
        bytes: object.body.len() as u64,
        etag: object.etag.clone(),
        modified: object.modified,
        class: object.class,
        meta: object.meta.clone(),
        checksum: Some(object.checksum.clone()),
        part_count: object.part_count,
        restore: object.state(now),
        residence,
    };
    assert_eq!(*info, expected);
}

pub(crate) fn meta(seed: u64) -> ObjectMeta {
    ObjectMeta {
        content_type: (seed.is_multiple_of(2)).then(|| "text/x-seed".to_owned()),
        user: [("seed".to_owned(), seed.to_string())].into(),
        ..ObjectMeta::default()
    }
}

async fn read_all(mut reader: ObjectReader) -> Result<(ObjectInfo, Vec<u8>), ArchiveError> {
    let mut body = Vec::new();
    while let Some(bytes) = reader.next().await {
        body.extend_from_slice(&bytes?);
    }
    assert_eq!(body.len() as u64, reader.bytes);
    Ok((reader.info.clone(), body))
}

impl World {
    pub(crate) async fn new(homes: Homes) -> Self {
        // In memory if possible: other tests cover syncs.
        let dir = || tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let (dir, folder) = (dir(), dir());
        let tier = match homes {
            Homes::Usual => None,
            Homes::Directory => Some(TierOptions {
                url: format!("file://{}", folder.path().display()),
                ..TierOptions::default()
            }),
            Homes::Drawer => Some(Drawer::options(&Arc::default())),
            Homes::Rack => Some(rack(folder.path()).await),
        };
        let clock = Arc::new(AtomicU64::new(BEGIN_MS));
        let tiered = homes.tiered().to_vec();
        let reference = Reference { now: BEGIN_MS, tiered, ..Reference::default() };
        let (archive, uploads) = (None, Vec::new());
        let mut world = Self { dir, folder, homes, tier, clock, archive, reference, uploads };
        world.archive = Some(world.open().await);
        world.take(&Step::CreateBucket(0)).await;
        world
    }

    pub(crate) fn archive(&self) -> &Archive {
        self.archive.as_ref().unwrap()
    }

    fn config(&self) -> ArchiveConfig {
        let mut config = config(self.dir.path());
        // Only an explicit step seals.
        config.seal.age = fulgurite_units::Duration::from_secs(10_000_000_000);
        if let Some(tier) = &self.tier {
            let name = self.homes.name();
            for class in self.homes.tiered() {
                config.classes.assign(*class, Home::Tier(name.clone()), None).unwrap();
            }
            config.tiers.insert(name, tier.clone());
        }
        config
    }

    async fn open(&self) -> Archive {
        let clock = Arc::clone(&self.clock);
        let now = move || UnixTime::from_millis(clock.load(Ordering::SeqCst));
        let clock = fulgurite_archive::system_clock().with_wall(now);
        Archive::open_with_clock(self.config(), clock).await.unwrap()
    }

    pub(crate) async fn take(&mut self, step: &Step) {
        match step {
            Step::CreateBucket(number) => {
                let got = self.archive().create_bucket(&bucket(BUCKETS[*number])).await;
                assert_agree(got, self.reference.create_bucket(BUCKETS[*number]));
            }
            Step::DeleteBucket(number) => {
                let got = self.archive().delete_bucket(&bucket(BUCKETS[*number])).await;
                assert_agree(got, self.reference.delete_bucket(BUCKETS[*number]));
            }
            Step::Put(object_ref, class, body, condition, algorithm) => {
                self.put(*object_ref, *class, *body, *condition, *algorithm).await;
            }
            Step::BadPut(object_ref, class, body, flaw) => {
                self.bad_put(*object_ref, *class, *body, *flaw).await;
            }
            Step::Get(object_ref, range) => self.get(*object_ref, *range).await,
            Step::Head(object_ref) => self.head(*object_ref).await,
            Step::List(number, query) => self.list(BUCKETS[*number], query.clone()).await,
            Step::Delete(object_ref) => {
                let got = self
                    .archive()
                    .delete(&bucket(object_ref.bucket()), &key(object_ref.key()))
                    .await;
                let want = self.reference.delete(object_ref.bucket(), object_ref.key());
                if let Some((got, want)) = assert_agree(got, want) {
                    assert_eq!(got, want);
                }
            }
            Step::Copy(from, to, class, condition) => {
                self.copy(*from, *to, *class, *condition).await;
            }
            Step::Restore(object_ref, days, retrieval) => {
                self.restore(*object_ref, *days, *retrieval).await
            }
            Step::Seal => self.seal().await,
            Step::Restart => self.restart().await,
            Step::Advance { hours } => {
                self.settle().await;
                self.reference.now += hours * 3_600_000;
                self.clock.store(self.reference.now, Ordering::SeqCst);
            }
            Step::Upload(step) => self.take_upload(step).await,
        }
    }

    pub(crate) fn current_etag(&self, object_ref: ObjectRef) -> Option<String> {
        self.reference
            .object(object_ref.bucket(), object_ref.key())
            .ok()
            .map(|object| object.etag.clone())
    }

    async fn write(
        &self,
        object_ref: ObjectRef,
        options: PutOptions,
        body: &[u8],
    ) -> Result<ObjectInfo, ArchiveError> {
        let mut writer = self
            .archive()
            .put(&bucket(object_ref.bucket()), &key(object_ref.key()), options)
            .await?;
        for piece in body.chunks(70_000) {
            writer.write(Bytes::copy_from_slice(piece)).await?;
        }
        writer.finish(None).await
    }

    async fn put(
        &mut self,
        object_ref: ObjectRef,
        class: StorageClass,
        body: Body,
        condition: Condition,
        algorithm: ChecksumAlgorithm,
    ) {
        let bytes = noise(body.seed, body.bytes);
        let condition = write_condition(condition, self.current_etag(object_ref).as_deref());
        let want = self.reference.may_write(object_ref.bucket(), object_ref.key(), &condition);
        // Half of the clients declare length and checksum, the others nothing.
        let claim = if body.seed.is_multiple_of(2) {
            BodyClaim {
                bytes: Some(bytes.len() as u64),
                md5: Some(md5(&bytes)),
                checksum: Some(checksum(algorithm, &bytes)),
                algorithm: None,
            }
        } else {
            BodyClaim { algorithm: Some(algorithm), ..BodyClaim::default() }
        };
        let options = PutOptions { class, meta: meta(body.seed), condition, claim };
        let got = self.write(object_ref, options, &bytes).await;
        if let Some((info, ())) = assert_agree(got, want) {
            let object = Object {
                id: info.object_id,
                meta: meta(body.seed),
                ..self.reference.plain(class, bytes, algorithm)
            };
            check_info(&info, object_ref.key(), &object, self.reference.now);
            self.reference.put(object_ref.bucket(), object_ref.key(), object);
        }
    }

    async fn bad_put(&self, object_ref: ObjectRef, class: StorageClass, body: Body, flaw: Flaw) {
        let bytes = noise(body.seed, body.bytes + 1);
        let count = bytes.len() as u64;
        let mut claim = BodyClaim { bytes: Some(count), ..BodyClaim::default() };
        let want = match flaw {
            Flaw::WrongMd5 => {
                claim.md5 = Some([7; 16]);
                "BadDigest"
            }
            Flaw::Short => {
                claim.bytes = Some(count + 1);
                "IncompleteBody"
            }
            Flaw::Long => {
                claim.bytes = Some(count - 1);
                "BodyTooLong"
            }
            Flaw::Dropped => "",
        };
        let condition = write_condition(Condition::None, None);
        let options = PutOptions { class, meta: meta(1), condition, claim };
        let may = self.reference.require_bucket(object_ref.bucket());
        if matches!(flaw, Flaw::Dropped) && may.is_ok() {
            let (bucket, key) = (bucket(object_ref.bucket()), key(object_ref.key()));
            let mut writer = self.archive().put(&bucket, &key, options).await.unwrap();
            writer.write(Bytes::from(bytes)).await.unwrap();
            return;
        }
        let want = may.and(Err::<(), _>(want));
        assert_agree(self.write(object_ref, options, &bytes).await, want);
    }

    async fn read(
        &self,
        object_ref: ObjectRef,
        range: Option<ByteRange>,
    ) -> Result<(ObjectInfo, Vec<u8>), ArchiveError> {
        read_all(
            self.archive().get(&bucket(object_ref.bucket()), &key(object_ref.key()), range).await?,
        )
        .await
    }

    async fn get(&mut self, object_ref: ObjectRef, range: Option<ByteRange>) {
        self.settle().await;
        let got = self.read(object_ref, range).await;
        let want = self.reference.get(object_ref.bucket(), object_ref.key(), range);
        if let Some(((info, got), (object, want))) = assert_agree(got, want) {
            assert!(got == want, "{} bytes of {} differ", got.len(), object_ref.key());
            if object.class != StorageClass::Standard {
                count_answer(if object.is_on_glass {
                    "read from glass"
                } else {
                    "read from staging"
                });
            }
            check_info(&info, object_ref.key(), object, self.reference.now);
        }
    }

    async fn head(&mut self, object_ref: ObjectRef) {
        self.settle().await;
        let got = self.archive().head(&bucket(object_ref.bucket()), &key(object_ref.key())).await;
        if let Some((info, object)) =
            assert_agree(got, self.reference.object(object_ref.bucket(), object_ref.key()))
        {
            check_info(&info, object_ref.key(), object, self.reference.now);
        }
    }

    async fn list(&mut self, from: &str, mut query: ListQuery) {
        self.settle().await;
        loop {
            let got = self.archive().list(&bucket(from), query.clone()).await;
            let Some((got, want)) = assert_agree(got, self.reference.list(from, &query)) else {
                return;
            };
            let keys: Vec<&str> = got.objects.iter().map(|info| info.key.as_str()).collect();
            assert_eq!(keys, want.keys, "{query:?}");
            assert_eq!(got.prefixes, want.prefixes, "{query:?}");
            assert_eq!(got.next, want.next, "{query:?}");
            for info in &got.objects {
                let object = self.reference.object(from, &info.key).unwrap();
                check_info(info, &info.key, object, self.reference.now);
            }
            if got.next.is_none() {
                return;
            }
            count_answer(if got.prefixes.is_empty() {
                "next page"
            } else {
                "next page after a prefix"
            });
            query.after = got.next;
        }
    }

    async fn copy(
        &mut self,
        from: ObjectRef,
        to: ObjectRef,
        class: StorageClass,
        condition: Condition,
    ) {
        self.settle().await;
        let condition = write_condition(condition, self.current_etag(to).as_deref());
        let source = self.reference.get(from.bucket(), from.key(), None);
        let want = source.and_then(|(object, body)| {
            self.reference.may_write(to.bucket(), to.key(), &condition)?;
            Ok(self.reference.plain(class, body.to_vec(), object.checksum.algorithm))
        });
        let options = PutOptions { class, meta: meta(3), condition, claim: BodyClaim::default() };
        let (from_bucket, from_key) = (bucket(from.bucket()), key(from.key()));
        let (to_bucket, to_key) = (bucket(to.bucket()), key(to.key()));
        let got =
            self.archive().copy((&from_bucket, &from_key), (&to_bucket, &to_key), options).await;
        if let Some((info, object)) = assert_agree(got, want) {
            let object = Object { id: info.object_id, meta: meta(3), ..object };
            check_info(&info, to.key(), &object, self.reference.now);
            self.reference.put(to.bucket(), to.key(), object);
        }
    }

    async fn restore(&mut self, object_ref: ObjectRef, days: u32, retrieval: Retrieval) {
        let request = RestoreRequest { days, retrieval };
        let got = self
            .archive()
            .restore(&bucket(object_ref.bucket()), &key(object_ref.key()), request)
            .await;
        let before = self
            .reference
            .object(object_ref.bucket(), object_ref.key())
            .map(|object| object.copied);
        // A restore in progress may be finished by now, or be made faster; the reference cannot
        // know.
        if matches!(before, Ok(Copied::Ongoing { .. })) {
            match got {
                Ok(RestoreOutcome::Extended) => {
                    self.reference.finish_restore(object_ref.bucket(), object_ref.key());
                    let want = self.reference.restore(
                        object_ref.bucket(),
                        object_ref.key(),
                        days,
                        retrieval,
                    );
                    assert_eq!(want, Ok(RestoreOutcome::Extended));
                    return;
                }
                Ok(RestoreOutcome::Accepted) => return,
                Err(_) => {}
            }
        }
        let want = self.reference.restore(object_ref.bucket(), object_ref.key(), days, retrieval);
        if let Some((got, want)) = assert_agree(got, want) {
            assert_eq!(got, want);
            count_answer(if got == RestoreOutcome::Accepted { "accepted" } else { "extended" });
        }
    }

    /// Waits until every restore in progress is finished.
    pub(crate) async fn settle(&mut self) {
        let deadline = Instant::now() + BACKGROUND_TIMEOUT;
        for (in_bucket, name) in self.reference.finish_restores() {
            let (in_bucket, key) = (bucket(&in_bucket), key(&name));
            loop {
                let info = self.archive().head(&in_bucket, &key).await.unwrap();
                if matches!(info.restore, Some(RestoreState::Restored { .. })) {
                    break;
                }
                if Instant::now() > deadline {
                    let status = self.archive().status().await.unwrap();
                    panic!("{name:?} is not restored: {:?}", status.failed_restores);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    }

    async fn seal(&mut self) {
        let report = self.archive().seal().await.unwrap();
        assert_eq!(report.objects, self.reference.seal());
        assert_eq!(report.kept_staged, 0);
    }

    async fn restart(&mut self) {
        self.archive().stop().await.unwrap();
        self.archive = None;
        self.archive = Some(self.open().await);
    }

    /// Checks everything, then deletes everything: no space and no key may remain in use.
    pub(crate) async fn end(&mut self) {
        self.settle().await;
        for name in BUCKETS {
            self.list(name, ListQuery { limit: 1000, ..ListQuery::default() }).await;
        }
        let spots: Vec<(String, String)> = self.reference.objects.keys().cloned().collect();
        for (bucket, key) in &spots {
            self.check_object(bucket, key).await;
        }
        self.check_status().await;
        for (in_bucket, name) in spots {
            let is_there = self.archive().delete(&bucket(&in_bucket), &key(&name)).await.unwrap();
            assert!(is_there && self.reference.delete(&in_bucket, &name).unwrap());
        }
        for number in 0..self.uploads.len() {
            self.abort(number).await;
        }
        self.check_nothing_is_in_use().await;
        self.restart().await;
        self.check_nothing_is_in_use().await;
        self.archive().stop().await.unwrap();
    }

    async fn check_object(&self, in_bucket: &str, name: &str) {
        let want = self.reference.get(in_bucket, name, None);
        let got = match self.archive().get(&bucket(in_bucket), &key(name), None).await {
            Ok(reader) => read_all(reader).await,
            Err(error) => Err(error),
        };
        if let Some(((_, got), (_, want))) = assert_agree(got, want) {
            assert!(got == want, "{} bytes of {name:?} differ", got.len());
        }
    }

    /// Returns the number of objects whose home is a tier.
    fn tiered(&self) -> u64 {
        self.reference.objects.values().filter(|object| object.is_tiered).count() as u64
    }

    async fn check_status(&self) {
        let deadline = Instant::now() + BACKGROUND_TIMEOUT;
        let status = loop {
            let status = self.archive().status().await.unwrap();
            if status.moving_bytes == 0 && status.objects_in_tiers == self.tiered() {
                break status;
            }
            assert!(Instant::now() < deadline, "not all bodies are in their tier: {status:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        let count = |residence: Residence| {
            let objects = self.reference.objects.values();
            objects.filter(|object| object.residence() == residence).count() as u64
        };
        assert_eq!(status.objects_online, count(Residence::Online));
        assert_eq!(status.objects_staged, count(Residence::Staged));
        assert_eq!(status.objects_on_glass, count(Residence::Glass));
        let objects = self.reference.objects.values();
        let staged = objects.filter(|object| object.residence() == Residence::Staged);
        assert_eq!(status.staged_bytes, staged.map(|o| o.body.len() as u64).sum::<u64>());
        assert_eq!(status.restores_waiting, 0);
        assert!(status.failed_restores.is_empty(), "{:?}", status.failed_restores);
    }

    async fn check_nothing_is_in_use(&self) {
        let deadline = Instant::now() + BACKGROUND_TIMEOUT;
        loop {
            // The space of a canceled restore is freed shortly after its object.
            let log_bytes = self.archive().status().await.unwrap().log_bytes;
            let table = std::fs::read(self.dir.path().join("keys/table")).unwrap();
            let keys = table[128..].chunks(128).filter(|slot| slot.iter().any(|&b| b != 0));
            let keys = keys.count();
            let in_tier = match &self.tier {
                Some(tier) => stored(tier, self.folder.path()).await,
                None => 0,
            };
            if (log_bytes, keys, in_tier) == (0, 0, 0) {
                return;
            }
            assert!(Instant::now() < deadline, "{log_bytes} bytes, {keys} keys, {in_tier} files");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

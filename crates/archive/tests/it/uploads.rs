//! The steps of multipart uploads, executed by the archive and its reference in parallel.

use bytes::Bytes;
use fulgurite_archive::{
    ArchiveError, BodyClaim, ByteRange, Checksum, ChecksumAlgorithm, CompletedPart, PartInfo,
    StorageClass, UploadOptions,
};
use fulgurite_units::UploadId;

use crate::harness::noise;
use crate::model::{BUCKETS, Condition, Listing, ObjectRef, UploadStep, write_condition};
use crate::reference::{Listed, Object, Part, Upload, checksum, md5};
use crate::world::{World, assert_agree, bucket, check_info, count_answer, key, meta};

fn check_part(info: &PartInfo, number: u32, part: &Part) {
    let expected = PartInfo {
        number,
        bytes: part.body.len() as u64,
        etag: hex::encode(part.md5),
        modified: part.modified,
        checksum: Some(part.checksum.clone()),
    };
    assert_eq!(*info, expected);
}

impl World {
    pub(crate) async fn take_upload(&mut self, step: &UploadStep) {
        let count = self.uploads.len().max(1);
        if self.uploads.is_empty() && !matches!(step, UploadStep::Create(..) | UploadStep::List(..))
        {
            return;
        }
        match step {
            UploadStep::Create(object_ref, class, algorithm, full_object) => {
                self.create_upload(*object_ref, *class, *algorithm, *full_object).await;
            }
            UploadStep::List(number, prefix, limit) => {
                self.list_uploads(BUCKETS[*number], prefix, *limit).await;
            }
            UploadStep::PutPart(upload, number, body) => {
                self.put_part(*upload % count, *number, noise(body.seed, body.bytes)).await;
            }
            UploadStep::CopyPart(object_ref, range, upload, number) => {
                self.copy_part(*object_ref, *range, *upload % count, *number).await;
            }
            UploadStep::ListParts(upload, after, limit) => {
                self.list_parts(*upload % count, *after, *limit).await;
            }
            UploadStep::Complete(upload, listing, condition) => {
                self.complete(*upload % count, *listing, *condition).await;
            }
            UploadStep::Abort(upload) => self.abort(*upload % count).await,
        }
    }

    async fn create_upload(
        &mut self,
        object_ref: ObjectRef,
        class: StorageClass,
        algorithm: Option<ChecksumAlgorithm>,
        full_object: bool,
    ) {
        let options = UploadOptions { class, meta: meta(5), algorithm, full_object };
        let (in_bucket, name) = (bucket(object_ref.bucket()), key(object_ref.key()));
        let got = self.archive().create_upload(&in_bucket, &name, options).await;
        let Some((info, ())) =
            assert_agree(got, self.reference.require_bucket(object_ref.bucket()))
        else {
            return;
        };
        assert_eq!((info.key.as_str(), info.class), (object_ref.key(), class));
        assert_eq!((info.algorithm, info.full_object), (algorithm, full_object));
        assert_eq!(info.initiated, self.reference.seconds());
        let upload = Upload {
            bucket: object_ref.bucket().to_owned(),
            key: object_ref.key().to_owned(),
            id: info.upload_id,
            initiated: info.initiated,
            class,
            meta: meta(5),
            algorithm,
            full_object,
            parts: std::collections::BTreeMap::new(),
        };
        self.reference.uploads.insert(info.upload_id, upload);
        self.uploads.push((object_ref, info.upload_id));
    }

    /// Adds a part to the reference after the archive has accepted it.
    fn part_taken(&mut self, upload: usize, number: u32, body: Vec<u8>, info: &PartInfo) {
        let id = self.uploads[upload].1;
        let modified = self.reference.seconds();
        let upload = self.reference.uploads.get_mut(&id).unwrap();
        let algorithm = upload.algorithm.unwrap_or(ChecksumAlgorithm::Crc64Nvme);
        let checksum = checksum(algorithm, &body);
        let part = Part { md5: md5(&body), modified, checksum, body };
        check_part(info, number, &part);
        upload.parts.insert(number, part);
    }

    async fn put_part(&mut self, upload: usize, number: u32, body: Vec<u8>) {
        let (object_ref, id) = self.uploads[upload];
        let got = self.write_part(object_ref, id, number, &body).await;
        let want = self.reference.upload(object_ref.bucket(), object_ref.key(), id).map(|_| ());
        if let Some((info, ())) = assert_agree(got, want) {
            self.part_taken(upload, number, body, &info);
        }
    }

    async fn write_part(
        &self,
        object_ref: ObjectRef,
        id: UploadId,
        number: u32,
        body: &[u8],
    ) -> Result<PartInfo, ArchiveError> {
        let (in_bucket, name) = (bucket(object_ref.bucket()), key(object_ref.key()));
        let claim = BodyClaim { bytes: Some(body.len() as u64), ..BodyClaim::default() };
        let mut writer = self.archive().put_part(&in_bucket, &name, id, number, claim).await?;
        for piece in body.chunks(300_000) {
            writer.write(Bytes::copy_from_slice(piece)).await?;
        }
        writer.finish(None).await
    }

    async fn copy_part(
        &mut self,
        from: ObjectRef,
        range: Option<ByteRange>,
        upload: usize,
        number: u32,
    ) {
        self.settle().await;
        let (object_ref, id) = self.uploads[upload];
        let source = self.reference.get(from.bucket(), from.key(), range);
        let want = source.and_then(|(_, body)| {
            self.reference.upload(object_ref.bucket(), object_ref.key(), id)?;
            Ok(body.to_vec())
        });
        let (from_bucket, from_key) = (bucket(from.bucket()), key(from.key()));
        let (in_bucket, name) = (bucket(object_ref.bucket()), key(object_ref.key()));
        let source = (&from_bucket, &from_key);
        let got = self.archive().copy_part(source, range, &in_bucket, &name, id, number).await;
        if let Some((info, body)) = assert_agree(got, want) {
            self.part_taken(upload, number, body, &info);
        }
    }

    async fn list_parts(&self, upload: usize, after: u32, limit: usize) {
        let (object_ref, id) = self.uploads[upload];
        let (in_bucket, name) = (bucket(object_ref.bucket()), key(object_ref.key()));
        let got = self.archive().list_parts(&in_bucket, &name, id, after, limit).await;
        let want = self.reference.upload(object_ref.bucket(), object_ref.key(), id);
        let Some(((info, parts, is_more), upload)) = assert_agree(got, want) else { return };
        assert_eq!((info.upload_id, info.class), (id, upload.class));
        let expected: Vec<_> = upload.parts.range(after + 1..).collect();
        assert_eq!(is_more, expected.len() > limit);
        assert_eq!(parts.len(), expected.len().min(limit));
        for (info, (number, part)) in parts.iter().zip(expected) {
            check_part(info, *number, part);
        }
    }

    async fn list_uploads(&self, from: &str, prefix: &str, limit: usize) {
        let mut after: Option<(String, Option<UploadId>)> = None;
        loop {
            let marker = after.clone();
            let got = self.archive().list_uploads(&bucket(from), prefix, marker, limit).await;
            let want = self.reference.uploads(from, prefix, after.as_ref(), limit);
            let Some(((got, is_more), want)) = assert_agree(got, want) else { return };
            let ids: Vec<UploadId> = got.iter().map(|info| info.upload_id).collect();
            assert_eq!((ids, is_more), want);
            let Some(last) = got.last().filter(|_| is_more) else { return };
            assert_eq!(last.initiated, self.reference.uploads[&last.upload_id].initiated);
            // Alternates both forms of the marker.
            let id = (limit > 1).then_some(last.upload_id);
            after = Some((last.key.clone(), id));
        }
    }

    fn listed(&self, object_ref: ObjectRef, id: UploadId, listing: Listing) -> Vec<Listed> {
        let upload = self.reference.upload(object_ref.bucket(), object_ref.key(), id).ok();
        let parts = upload.iter().flat_map(|upload| &upload.parts);
        let etag = |part: &Part| hex::encode(part.md5);
        let mut all: Vec<Listed> =
            parts.map(|(&number, part)| Listed { number, etag: etag(part) }).collect();
        match listing {
            Listing::All | Listing::WrongChecksum => {}
            Listing::First => all.truncate(1),
            Listing::Last => all = all.split_off(all.len().saturating_sub(1)),
            Listing::Backwards => all.reverse(),
            Listing::WrongEtag => {
                if let Some(last) = all.last_mut() {
                    last.etag = "0".repeat(32);
                }
            }
            Listing::Missing => all.push(Listed { number: 9, etag: "0".repeat(32) }),
            Listing::Nothing => all.clear(),
        }
        all
    }

    async fn complete(&mut self, upload: usize, listing: Listing, condition: Condition) {
        let (object_ref, id) = self.uploads[upload];
        let listed = self.listed(object_ref, id, listing);
        let condition = write_condition(condition, self.current_etag(object_ref).as_deref());
        let wrong = matches!(listing, Listing::WrongChecksum).then(|| Checksum {
            algorithm: ChecksumAlgorithm::Crc32,
            value: vec![1, 2, 3, 4],
            composite_parts: None,
        });
        let is_open = self.reference.uploads.contains_key(&id);
        let want =
            self.reference.complete(object_ref.bucket(), object_ref.key(), id, &listed, &condition);
        let want = want.and_then(|object| match &wrong {
            Some(wrong) if is_open && wrong.value != object.checksum.value => Err("BadDigest"),
            Some(_) | None => Ok(object),
        });
        let parts = listed
            .iter()
            .map(|part| CompletedPart {
                number: part.number,
                etag: part.etag.clone(),
                checksum: None,
            })
            .collect();
        let (in_bucket, name) = (bucket(object_ref.bucket()), key(object_ref.key()));
        // Restores that the answer could show are finished first.
        self.settle().await;
        let got =
            self.archive().complete_upload(&in_bucket, &name, id, parts, condition, wrong).await;
        let Some((info, object)) = assert_agree(got, want) else { return };
        if !is_open {
            count_answer("completed twice");
            let object = self.reference.object(object_ref.bucket(), object_ref.key()).unwrap();
            return check_info(&info, object_ref.key(), object, self.reference.now);
        }
        let object = Object { id: info.object_id, ..object };
        check_info(&info, object_ref.key(), &object, self.reference.now);
        count_answer(if object.part_count > Some(1) {
            "completed of many"
        } else {
            "completed of one"
        });
        self.reference.put(object_ref.bucket(), object_ref.key(), object);
        self.reference.uploads.remove(&id);
    }

    pub(crate) async fn abort(&mut self, upload: usize) {
        let (object_ref, id) = self.uploads[upload];
        let got = self
            .archive()
            .abort_upload(&bucket(object_ref.bucket()), &key(object_ref.key()), id)
            .await;
        let want = self.reference.upload(object_ref.bucket(), object_ref.key(), id).map(|_| ());
        assert_agree(got, want);
        self.reference.uploads.remove(&id);
    }
}

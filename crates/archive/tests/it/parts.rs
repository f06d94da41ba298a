//! Part lengths and checksums of objects, wherever the object is, and after everything but the
//! media was lost.

use bytes::Bytes;
use fulgurite_archive::{
    ArchiveError, BodyClaim, ChecksumAlgorithm, CompletedPart, ObjectMeta, ObjectPart,
    RecoverOptions, StorageClass, UploadOptions, WriteCondition,
};

use crate::harness::{Client, key, noise};
use crate::tiers::{Place, wait};

const PART: usize = 5 << 20;

/// Puts an object in parts with the numbers 2, 4, 6, ...; returns the parts as reported.
async fn put(client: &Client, name: &str, class: StorageClass, parts: &[usize]) -> Vec<ObjectPart> {
    let (archive, bucket, name) = (&client.archive, &client.bucket, key(name));
    let options = UploadOptions {
        class,
        meta: ObjectMeta::default(),
        algorithm: Some(ChecksumAlgorithm::Sha256),
        full_object: false,
    };
    let upload = archive.create_upload(bucket, &name, options).await.unwrap().upload_id;
    let (mut listed, mut expected) = (Vec::new(), Vec::new());
    let mut first = 0;
    for (index, bytes) in (1..).zip(parts) {
        let claim = BodyClaim::default();
        let mut part = archive.put_part(bucket, &name, upload, 2 * index, claim).await.unwrap();
        part.write(Bytes::from(noise(index.into(), *bytes))).await.unwrap();
        let info = part.finish(None).await.unwrap();
        assert!(info.checksum.is_some());
        expected.push(ObjectPart {
            number: index,
            first,
            bytes: info.bytes,
            checksum: info.checksum,
        });
        listed.push(CompletedPart { number: info.number, etag: info.etag, checksum: None });
        first += info.bytes;
    }
    let condition = WriteCondition::default();
    archive.complete_upload(bucket, &name, upload, listed, condition, None).await.unwrap();
    expected
}

async fn parts(client: &Client, name: &str) -> Vec<ObjectPart> {
    let found = client.archive.parts(&client.bucket, &key(name), 0, 100).await.unwrap();
    assert!(!found.is_more);
    found.parts
}

const OBJECTS: [(&str, StorageClass, &[usize]); 3] = [
    ("tier", StorageClass::GlacierIr, &[PART, PART + 9, 77]),
    ("glass", StorageClass::DeepArchive, &[30_000]),
    ("staged", StorageClass::DeepArchive, &[PART, PART + 9, 77]),
];

#[tokio::test]
async fn parts_are_readable_by_number_and_survive_recovery() {
    let place = Place::new();
    let client = place.open().await;
    let mut expected = Vec::new();
    for (name, class, lengths) in OBJECTS {
        if name == "staged" {
            client.archive.seal().await.unwrap();
        }
        expected.push(put(&client, name, class, lengths).await);
    }
    client.put("whole", StorageClass::GlacierIr, &noise(1, 5)).await.unwrap();
    wait_for_tier(&client).await;
    for ((name, ..), expected) in OBJECTS.iter().zip(&expected) {
        assert_eq!(parts(&client, name).await, *expected, "{name}");
    }
    let whole = parts(&client, "whole").await;
    assert_eq!((whole.len(), whole[0].number, whole[0].bytes), (1, 1, 5));
    for (number, index) in [(1, 1), (2, 2), (3, 3)] {
        let read = client.archive.get_part(&client.bucket, &key("tier"), number).await;
        let mut read = read.unwrap();
        assert_eq!(read.part.as_ref(), Some(&expected[0][index - 1]));
        let mut body = Vec::new();
        while let Some(bytes) = read.next().await {
            body.extend_from_slice(&bytes.unwrap());
        }
        let bytes = usize::try_from(expected[0][index - 1].bytes).unwrap();
        assert!(body == noise(number.into(), bytes), "part {number}");
    }
    for number in [0, 4] {
        let refused = client.archive.get_part(&client.bucket, &key("tier"), number).await;
        assert!(matches!(refused, Err(ArchiveError::InvalidPartNumber { .. })), "{number}");
    }
    client.archive.stop().await.unwrap();
    drop(client);

    std::fs::remove_dir_all(place.data.path().join("catalog")).unwrap();
    let config = place.config();
    let work = move || fulgurite_archive::recover(config, RecoverOptions::default(), &|_| {});
    let report = tokio::task::spawn_blocking(work).await.unwrap().unwrap();
    assert_eq!((report.objects, report.incomplete), (4, 0), "{report:?}");
    let client = place.open().await;
    for ((name, ..), expected) in OBJECTS.iter().zip(&expected) {
        assert_eq!(parts(&client, name).await, *expected, "{name} after a recovery");
    }
    // A copy has one part, because it is put whole.
    let options = crate::harness::options(StorageClass::GlacierIr, 0);
    let (from, to) = (key("tier"), key("copy"));
    client.archive.copy((&client.bucket, &from), (&client.bucket, &to), options).await.unwrap();
    assert_eq!(parts(&client, "copy").await.len(), 1);
    client.archive.stop().await.unwrap();
}

async fn wait_for_tier(client: &Client) {
    wait("the tier to have the bodies", async || {
        let status = client.archive.status().await.unwrap();
        (status.moving_bytes == 0).then_some(())
    })
    .await;
}

//! Objects that are moved to another class and its home.

use std::sync::Arc;

use bytes::Bytes;
use fulgurite_archive::config::{Classes, Home};
use fulgurite_archive::status::MoveReport;
use fulgurite_archive::{
    ArchiveError, BodyClaim, ObjectInfo, ObjectMeta, ObjectSelection, PutOptions, Residence,
    StorageClass, WriteCondition,
};

use crate::harness::{Client, key, noise};
use crate::tiers::{Place, moved, residence, wait};

/// Opens an archive with `STANDARD` online, `GLACIER_IR` in the tier, everything else on glass.
async fn open(place: &Place) -> Client {
    let mut config = place.config();
    let cold = config.tiers.keys().next().unwrap().clone();
    config.classes = Classes::default();
    config.classes.assign(StorageClass::GlacierIr, Home::Tier(cold), None).unwrap();
    Client::open(config).await
}

async fn reclassify(
    client: &Client,
    chosen: ObjectSelection,
    class: StorageClass,
) -> Result<MoveReport, ArchiveError> {
    client.archive.reclassify(&client.bucket, chosen, class, &Arc::default()).await
}

async fn one(client: &Client, name: &str, class: StorageClass) -> MoveReport {
    reclassify(client, ObjectSelection::One(key(name)), class).await.unwrap()
}

async fn head(client: &Client, name: &str) -> ObjectInfo {
    client.archive.head(&client.bucket, &key(name)).await.unwrap()
}

#[tokio::test]
async fn object_is_unchanged_by_moves_through_all_classes() {
    let place = Place::new();
    let client = open(&place).await;
    let body = noise(1, 300_000);
    let meta = ObjectMeta {
        content_type: Some("image/png".to_owned()),
        user: [("owner".to_owned(), "me".to_owned())].into(),
        ..ObjectMeta::default()
    };
    let (condition, claim) = (WriteCondition::default(), BodyClaim::default());
    let options = PutOptions { class: StorageClass::Standard, meta, condition, claim };
    let mut writer = client.archive.put(&client.bucket, &key("a"), options).await.unwrap();
    writer.write(Bytes::from(body.clone())).await.unwrap();
    let put = writer.finish(None).await.unwrap();

    let expected = |objects| MoveReport {
        objects,
        bytes: objects * 300_000,
        objects_there: 1 - objects,
        ..MoveReport::default()
    };
    for (class, there) in [
        (StorageClass::GlacierIr, Residence::Tier),
        (StorageClass::Standard, Residence::Online),
        (StorageClass::DeepArchive, Residence::Staged),
        (StorageClass::GlacierIr, Residence::Tier),
    ] {
        // Objects staged for glass can only be read after a restore as well.
        if residence(&client, "a").await == Residence::Staged {
            client.restore("a").await.unwrap();
            client.restored("a").await.unwrap();
        }
        assert_eq!(one(&client, "a", class).await, expected(1), "{class:?}");
        wait("the object to reach its home", async || {
            (residence(&client, "a").await == there).then_some(())
        })
        .await;
        assert_eq!(one(&client, "a", class).await, expected(0), "{class:?} once more");
        let now = head(&client, "a").await;
        assert_eq!((now.class, &now.etag, &now.meta), (class, &put.etag, &put.meta));
        assert_eq!(now.checksum, put.checksum);
        if class != StorageClass::DeepArchive {
            assert!(client.get("a", None).await.unwrap() == body, "{class:?}");
        }
    }
    wait("the tier to have one body", async || (place.bodies().len() == 2).then_some(())).await;
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.objects_online, status.objects_staged), (0, 0));
    assert_eq!((status.objects_in_tiers, status.restored_objects), (1, 0));
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn unreadable_objects_are_reported_and_others_move() {
    let place = Place::new();
    let client = open(&place).await;
    client.put("docs/archived", StorageClass::DeepArchive, &noise(1, 3_000)).await.unwrap();
    client.put("docs/there", StorageClass::GlacierIr, &noise(2, 3_000)).await.unwrap();
    // More than one listing page.
    for number in 0..101 {
        client.put(&format!("docs/{number}"), StorageClass::Standard, b"small").await.unwrap();
    }
    client.put("other", StorageClass::Standard, b"other").await.unwrap();
    client.archive.seal().await.unwrap();
    let below = || ObjectSelection::Prefix("docs/".to_owned());
    let found = reclassify(&client, below(), StorageClass::GlacierIr).await.unwrap();
    let counted = (found.objects, found.bytes, found.objects_there, found.objects_left);
    assert_eq!(counted, (101, 505, 1, 1));
    assert_eq!(found.left[0].key, "docs/archived");
    assert!(found.left[0].error.contains("not restored"), "{found:?}");
    assert_eq!(residence(&client, "docs/archived").await, Residence::Glass);
    assert_eq!(residence(&client, "other").await, Residence::Online);
    moved(&client).await;

    client.restore("docs/archived").await.unwrap();
    client.restored("docs/archived").await.unwrap();
    let found = reclassify(&client, below(), StorageClass::GlacierIr).await.unwrap();
    assert_eq!((found.objects, found.objects_there, found.objects_left), (1, 102, 0));
    moved(&client).await;
    assert_eq!(client.get("docs/archived", None).await.unwrap(), noise(1, 3_000));

    for (chosen, class) in [
        (ObjectSelection::One(key("none")), StorageClass::Standard),
        (ObjectSelection::One(key("docs/1")), StorageClass::Glacier),
    ] {
        let outcome = reclassify(&client, chosen, class).await;
        assert_eq!(outcome.is_ok(), class == StorageClass::Glacier, "{outcome:?}");
    }
    client.archive.stop().await.unwrap();
    let stopped = reclassify(&client, below(), StorageClass::Standard).await.unwrap_err();
    assert!(matches!(stopped, ArchiveError::Stopping), "{stopped}");
}

#[tokio::test]
async fn object_condition_fails_after_an_overwrite() {
    let place = Place::new();
    let client = open(&place).await;
    client.put("a", StorageClass::Standard, b"same").await.unwrap();
    let first_id = head(&client, "a").await.object_id;
    client.put("a", StorageClass::Standard, b"same").await.unwrap();
    let condition = WriteCondition { object: Some(first_id), ..WriteCondition::default() };
    let options = || PutOptions {
        class: StorageClass::GlacierIr,
        meta: ObjectMeta::default(),
        condition: condition.clone(),
        claim: BodyClaim::default(),
    };
    let (bucket, name) = (&client.bucket, key("a"));
    let refused = client.archive.copy((bucket, &name), (bucket, &name), options()).await;
    assert!(matches!(refused, Err(ArchiveError::PreconditionFailed { .. })), "{refused:?}");
    // Nor is it recreated after it was deleted.
    client.archive.delete(bucket, &name).await.unwrap();
    let refused = client.archive.put(bucket, &name, options()).await.map(drop);
    assert!(matches!(refused, Err(ArchiveError::PreconditionFailed { .. })), "{refused:?}");
    client.archive.stop().await.unwrap();
}

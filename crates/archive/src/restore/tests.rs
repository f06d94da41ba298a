//! Expiry is rounded up to midnight UTC, as in the examples of S3's guide.

use fulgurite_catalog::KeyRange;
use fulgurite_catalog::row::rows_in;
use fulgurite_units::{Duration, UnixTime};

use super::queue::Queue;
use super::*;
use crate::bodies::log::LogKind;
use crate::objects::commit::insert_object;
use crate::rows::BodyRow;
use crate::testing;

fn at(text: &str) -> UnixTime {
    let time: jiff::Timestamp = text.parse().unwrap();
    UnixTime::from_millis(u64::try_from(time.as_millisecond()).unwrap())
}

#[test]
fn the_guides_examples_hold() {
    let day = Duration::from_secs(86_400);
    assert_eq!(expiry(at("2012-10-15T10:30:00Z"), 3, day), at("2012-10-19T00:00:00Z"));
    assert_eq!(expiry(at("2012-10-16T11:00:00Z"), 1, day), at("2012-10-18T00:00:00Z"));
    assert_eq!(expiry(at("2012-10-16T00:00:00Z"), 1, day), at("2012-10-17T00:00:00Z"));
}

fn put(ground: &Arc<Ground>, name: &str, class: StorageClass) {
    put_bytes(ground, name, class, 0);
}

fn put_bytes(ground: &Arc<Ground>, name: &str, class: StorageClass, bytes: u64) {
    let (bucket, key) = (testing::bucket("vault"), testing::key(name));
    let body = BodyRow { bytes, ..testing::body_row(LogKind::Staging) };
    let commit = move |tx: &mut Transaction<'_>| {
        insert_object(tx, &bucket, &key, testing::object_row(class), vec![body]).map(drop)
    };
    ground.committer.commit_blocking(commit).unwrap();
}

async fn ask(
    ground: &Arc<Ground>,
    name: &str,
    days: u32,
    retrieval: Retrieval,
) -> Result<RestoreOutcome> {
    let wanted = RestoreRequest { days, retrieval };
    request(ground, &testing::bucket("vault"), &testing::key(name), wanted).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_request_only_makes_a_restore_faster() {
    let dir = testing::dir();
    let ground = tokio::task::spawn_blocking(move || {
        let ground = testing::ground(&dir);
        put(&ground, "glass", StorageClass::DeepArchive);
        put(&ground, "disk", StorageClass::Standard);
        (dir, ground)
    });
    let (_dir, ground) = ground.await.unwrap();
    use RestoreOutcome::Accepted;
    assert_eq!(ask(&ground, "glass", 2, Retrieval::Bulk).await.unwrap(), Accepted);
    let again = ask(&ground, "glass", 2, Retrieval::Bulk).await;
    assert!(matches!(again, Err(ArchiveError::RestoreAlreadyInProgress)));
    let longer = ask(&ground, "glass", 3, Retrieval::Standard).await;
    assert!(matches!(longer, Err(ArchiveError::RestoreAlreadyInProgress)));
    // The configuration treats Expedited as Standard here.
    assert_eq!(ask(&ground, "glass", 2, Retrieval::Expedited).await.unwrap(), Accepted);
    let slower = ask(&ground, "glass", 2, Retrieval::Bulk).await;
    assert!(matches!(slower, Err(ArchiveError::RestoreAlreadyInProgress)));
    assert_eq!(rows::totals(&*ground.kv).unwrap().restores_waiting, 1);

    let on_disk = ask(&ground, "disk", 1, Retrieval::Bulk).await;
    assert!(matches!(on_disk, Err(ArchiveError::NotArchived { .. })));
    for days in [0, RESTORE_DAYS_MAX + 1] {
        let refused = ask(&ground, "glass", days, Retrieval::Bulk).await;
        assert!(matches!(refused, Err(ArchiveError::InvalidArgument { .. })));
    }
    tokio::task::spawn_blocking(move || drop(ground)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_finds_in_the_rows_what_is_asked_for_by_retrieval_and_time() {
    let dir = testing::dir();
    let open = tokio::task::spawn_blocking(move || (testing::ground(&dir), dir));
    let (ground, _dir) = open.await.unwrap();
    let put_rows = Arc::clone(&ground);
    let rows = [(1, Retrieval::Bulk, 30), (2, Retrieval::Bulk, 10), (3, Retrieval::Standard, 20)];
    tokio::task::spawn_blocking(move || {
        let commit = move |tx: &mut Transaction<'_>| -> Result<()> {
            for (number, retrieval, at) in rows {
                let requested = UnixTime::from_millis(at);
                let mark = RestoreMark { days: 1, retrieval, requested, expiry: None };
                let name = testing::name(&number.to_string());
                let row = RestoreRow { name, mark, failures: 0, error: None };
                rows::put(tx, RESTORES, vec![number; 16], &row)?;
            }
            Ok(())
        };
        put_rows.committer.commit_blocking(commit).unwrap();
    })
    .await
    .unwrap();
    let mut queue = Queue::of_rows(&ground).unwrap();
    let mut first = |retrieval| queue.take(retrieval).map(|object| object.to_bytes()[0]);
    let found = [Retrieval::Bulk, Retrieval::Bulk, Retrieval::Standard].map(&mut first);
    assert_eq!(found, [Some(2), Some(1), Some(3)]);
    assert_eq!(Retrieval::URGENT_FIRST.map(first), [None; 3]);
    tokio::task::spawn_blocking(move || drop(ground)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_whose_file_failed_is_begun_anew_in_another() {
    let dir = testing::dir();
    let ground = tokio::task::spawn_blocking(move || {
        let ground = testing::ground(&dir);
        put_bytes(&ground, "glass", StorageClass::DeepArchive, 100);
        (dir, ground)
    });
    let (_dir, ground) = ground.await.unwrap();
    ask(&ground, "glass", 2, Retrieval::Standard).await.unwrap();
    tokio::task::spawn_blocking(move || {
        let all = rows_in::<RestoreRow>(&*ground.kv, RESTORES, &KeyRange::all(), 2).unwrap();
        let [(key, row)] = <[_; 1]>::try_from(all).unwrap();
        let object = ObjectId::from_bytes(key.try_into().unwrap());
        let find = || copying::Copying::find(&ground, object, row.clone()).unwrap().unwrap();
        let mut copying = find();
        assert!(copying.begin(&ground).unwrap());
        assert!(!copying.is_spoiled());
        copying.writer(0).write_at(0, &[1; 16]).unwrap();
        copying.writer(0).fail();
        assert!(copying.writer(0).write_at(0, &[1; 16]).is_err());
        assert!(copying.begin(&ground).unwrap());
        assert!(copying.is_spoiled(), "what it began with stays as it is");
        let mut anew = find();
        assert!(anew.begin(&ground).unwrap());
        assert!(!anew.is_spoiled());
        anew.writer(0).write_at(0, &[1; 16]).unwrap();
    })
    .await
    .unwrap();
}

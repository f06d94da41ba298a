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
fn expiry_matches_the_s3_guide() {
    let day = Duration::from_secs(86_400);
    assert_eq!(expiry(at("2012-10-15T10:30:00Z"), 3, day), at("2012-10-19T00:00:00Z"));
    assert_eq!(expiry(at("2012-10-16T11:00:00Z"), 1, day), at("2012-10-18T00:00:00Z"));
    assert_eq!(expiry(at("2012-10-16T00:00:00Z"), 1, day), at("2012-10-17T00:00:00Z"));
}

fn put(state: &Arc<ArchiveState>, name: &str, class: StorageClass) {
    put_bytes(state, name, class, 0);
}

fn put_bytes(state: &Arc<ArchiveState>, name: &str, class: StorageClass, bytes: u64) {
    let (bucket, key) = (testing::bucket("vault"), testing::key(name));
    let body = BodyRow { bytes, ..testing::body_row(LogKind::Staging) };
    let commit = move |tx: &mut Transaction<'_>| {
        insert_object(tx, &bucket, &key, testing::object_row(class), vec![body]).map(drop)
    };
    state.committer.commit_blocking(commit).unwrap();
}

async fn ask(
    state: &Arc<ArchiveState>,
    name: &str,
    days: u32,
    retrieval: Retrieval,
) -> Result<RestoreOutcome> {
    let wanted = RestoreRequest { days, retrieval };
    request(state, &testing::bucket("vault"), &testing::key(name), wanted).await
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_request_only_upgrades_the_retrieval() {
    let dir = testing::dir();
    let state = tokio::task::spawn_blocking(move || {
        let state = testing::state(&dir);
        put(&state, "glass", StorageClass::DeepArchive);
        put(&state, "disk", StorageClass::Standard);
        (dir, state)
    });
    let (_dir, state) = state.await.unwrap();
    use RestoreOutcome::Accepted;
    assert_eq!(ask(&state, "glass", 2, Retrieval::Bulk).await.unwrap(), Accepted);
    let again = ask(&state, "glass", 2, Retrieval::Bulk).await;
    assert!(matches!(again, Err(ArchiveError::RestoreAlreadyInProgress)));
    let longer = ask(&state, "glass", 3, Retrieval::Standard).await;
    assert!(matches!(longer, Err(ArchiveError::RestoreAlreadyInProgress)));
    // The configuration treats Expedited as Standard here.
    assert_eq!(ask(&state, "glass", 2, Retrieval::Expedited).await.unwrap(), Accepted);
    let slower = ask(&state, "glass", 2, Retrieval::Bulk).await;
    assert!(matches!(slower, Err(ArchiveError::RestoreAlreadyInProgress)));
    assert_eq!(rows::totals(&*state.kv).unwrap().restores_waiting, 1);

    let on_disk = ask(&state, "disk", 1, Retrieval::Bulk).await;
    assert!(matches!(on_disk, Err(ArchiveError::NotArchived { .. })));
    for days in [0, RESTORE_DAYS_MAX + 1] {
        let refused = ask(&state, "glass", days, Retrieval::Bulk).await;
        assert!(matches!(refused, Err(ArchiveError::InvalidArgument { .. })));
    }
    tokio::task::spawn_blocking(move || drop(state)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn startup_loads_requests_by_retrieval_and_time() {
    let dir = testing::dir();
    let open = tokio::task::spawn_blocking(move || (testing::state(&dir), dir));
    let (state, _dir) = open.await.unwrap();
    let put_rows = Arc::clone(&state);
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
    let mut queue = Queue::from_rows(&state).unwrap();
    let mut first = |retrieval| queue.take(retrieval).map(|object| object.to_bytes()[0]);
    let found = [Retrieval::Bulk, Retrieval::Bulk, Retrieval::Standard].map(&mut first);
    assert_eq!(found, [Some(2), Some(1), Some(3)]);
    assert_eq!(Retrieval::URGENT_FIRST.map(first), [None; 3]);
    tokio::task::spawn_blocking(move || drop(state)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_restarts_in_a_new_file_after_write_failure() {
    let dir = testing::dir();
    let state = tokio::task::spawn_blocking(move || {
        let state = testing::state(&dir);
        put_bytes(&state, "glass", StorageClass::DeepArchive, 100);
        (dir, state)
    });
    let (_dir, state) = state.await.unwrap();
    ask(&state, "glass", 2, Retrieval::Standard).await.unwrap();
    tokio::task::spawn_blocking(move || {
        let all = rows_in::<RestoreRow>(&*state.kv, RESTORES, &KeyRange::all(), 2).unwrap();
        let [(key, row)] = <[_; 1]>::try_from(all).unwrap();
        let object = ObjectId::from_bytes(key.try_into().unwrap());
        let find = || copy_task::CopyTask::find(&state, object, row.clone()).unwrap().unwrap();
        let mut copy_task = find();
        assert!(copy_task.begin(&state).unwrap());
        assert!(!copy_task.has_failed_writer());
        copy_task.writer(0).write_at(0, &[1; 16]).unwrap();
        copy_task.writer(0).fail();
        assert!(copy_task.writer(0).write_at(0, &[1; 16]).is_err());
        assert!(copy_task.begin(&state).unwrap());
        assert!(copy_task.has_failed_writer(), "the failed task keeps its writers");
        let mut restarted = find();
        assert!(restarted.begin(&state).unwrap());
        assert!(!restarted.has_failed_writer());
        restarted.writer(0).write_at(0, &[1; 16]).unwrap();
    })
    .await
    .unwrap();
}

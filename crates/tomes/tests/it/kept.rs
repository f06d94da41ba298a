//! What is put is kept, over starts as well; what is refused changes nothing.

use fulgurite_disks::LedgerFile;
use fulgurite_units::{ByteCount, ErrorKind};

use crate::shelf::{BLOCK, Shelf, awake, noise, tomes};

#[tokio::test]
async fn objects_come_back_over_starts_and_go_when_they_are_deleted() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let lengths = [1, BLOCK, BLOCK + 1, 5 * BLOCK, 11 * BLOCK + 3];
    let name = |length: usize| format!("object of {length}");
    for length in lengths {
        let (name, bytes) = (name(length), noise(&name(length), length));
        shelf.wait(set.put(&name, bytes)).await.unwrap();
    }
    for length in lengths {
        shelf.wait(set.protected(&name(length))).await.unwrap();
    }
    assert_eq!(set.list().len(), lengths.len());
    let id = set.id();
    set.stop();
    drop(set);
    let set = shelf.open();
    assert_eq!(set.id(), id);
    for length in lengths {
        let read = shelf.wait(set.get(&name(length))).await.unwrap();
        assert_eq!(read, noise(&name(length), length));
        // Known over the start without a disk.
        set.protected(&name(length)).await.unwrap();
    }
    shelf.wait(set.delete(&name(1))).await.unwrap();
    drop(set);
    // What was made goes on when it is made again.
    let set = shelf.init();
    assert_eq!((set.id(), set.list().len()), (id, lengths.len() - 1));
    let gone = [
        shelf.wait(set.get(&name(1))).await.map(drop),
        set.delete(&name(1)).await,
        set.protected(&name(1)).await,
    ];
    assert!(gone.into_iter().all(|gone| gone.unwrap_err().kind() == ErrorKind::NotFound));
    shelf.wait(set.put(&name(1), vec![7])).await.unwrap();
    assert_eq!(shelf.wait(set.get(&name(1))).await.unwrap(), [7]);
    shelf.settle(&set).await;
    let status = set.status().await;
    assert!(status.is_well(), "{:?}", status.reasons);
    assert!(status.tomes.iter().all(|tome| tome.unprotected.bytes == ByteCount::ZERO));
    assert_eq!(status.tomes.iter().map(|tome| tome.objects).sum::<u64>(), lengths.len() as u64);
    set.stop();
    for (tome, status) in tomes().zip(status.tomes) {
        let (ledger, _) =
            LedgerFile::open(&awake(&shelf.folder, tome).join("wakes.jsonl")).unwrap();
        assert!(status.wakes >= 2, "it was made, twice");
        assert_eq!(ledger.ledger().recent().count() as u64, status.wakes);
    }
}

#[tokio::test]
async fn what_cannot_be_put_is_refused_and_changes_nothing() {
    let shelf = Shelf::new();
    let set = shelf.init();
    shelf.wait(set.put("taken", vec![1])).await.unwrap();
    let long = "x".repeat(2000);
    let refused = [
        (set.put("taken", vec![2]).await, ErrorKind::Conflict),
        (set.put("empty", vec![]).await, ErrorKind::Invalid),
        (set.put("large", vec![0; 64 * BLOCK + 1]).await, ErrorKind::Invalid),
        (set.put("", vec![1]).await, ErrorKind::Invalid),
        (set.put(&long, vec![1]).await, ErrorKind::Invalid),
        (set.put("no room", vec![0; 64 * BLOCK]).await, ErrorKind::Unavailable),
    ];
    for (put, kind) in refused {
        assert_eq!(put.unwrap_err().kind(), kind);
    }
    assert_eq!(set.list(), ["taken"]);
    assert_eq!(shelf.wait(set.get("taken")).await.unwrap(), [1]);
    set.stop();
    assert_eq!(set.get("taken").await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(set.put("late", vec![1]).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn many_puts_at_once_turn_one_disk_at_a_time() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names: Vec<String> = (0..24).map(|number| format!("object {number}")).collect();
    let all = async {
        let puts = names.iter().map(|name| async {
            set.put(name, noise(name, 2 * BLOCK)).await.unwrap();
            set.protected(name).await.unwrap();
        });
        let mut puts: Vec<_> = puts.map(Box::pin).collect();
        std::future::poll_fn(|context| {
            puts.retain_mut(|put| put.as_mut().poll(context).is_pending());
            match puts.is_empty() {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        })
        .await;
    };
    let turning = async {
        loop {
            let status = set.status().await;
            let turning = status.tomes.iter().filter(|tome| tome.token.is_some()).count();
            assert!(turning <= 1, "one token for eight tomes");
            tokio::task::yield_now().await;
        }
    };
    shelf
        .wait(async {
            tokio::select! { () = all => {}, () = turning => {} }
        })
        .await;
    for name in &names {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), noise(name, 2 * BLOCK));
    }
}

//! What is put persists across starts; what is refused changes nothing.

use fulgurite_disks::{Backend as _, Fault, LedgerFile, Observed, PlaceId};
use fulgurite_tome::{SetOptions, TomeSet};
use fulgurite_units::{ByteCount, Clock, ErrorKind, Instant, UnixTime};

use crate::shelf::{BLOCK, Shelf, TOMES, metadata, noise, tomes};

#[tokio::test]
async fn objects_survive_restarts_until_deleted() {
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
        // It is known after the start without a disk.
        set.protected(&name(length)).await.unwrap();
    }
    shelf.wait(set.delete(&name(1))).await.unwrap();
    drop(set);
    // Creating an existing set continues it.
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
            LedgerFile::open(&metadata(&shelf.folder, tome).join("spin-ups.jsonl")).unwrap();
        assert!(status.spin_ups >= 2, "it was created, twice");
        assert_eq!(ledger.ledger().recent().count() as u64, status.spin_ups);
    }
}

#[tokio::test]
async fn invalid_puts_are_rejected() {
    let shelf = Shelf::new();
    let set = shelf.init();
    shelf.wait(set.put("taken", vec![1])).await.unwrap();
    let long = "x".repeat(2000);
    let most = usize::try_from(set.object_bytes_max().get()).unwrap();
    let refused = [
        (set.put("taken", vec![2]).await, ErrorKind::Conflict),
        (set.put("empty", vec![]).await, ErrorKind::Invalid),
        (set.put("large", vec![0; most + 1]).await, ErrorKind::Invalid),
        (set.put("", vec![1]).await, ErrorKind::Invalid),
        (set.put(&long, vec![1]).await, ErrorKind::Invalid),
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
async fn concurrent_puts_spin_one_disk_at_a_time() {
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
    let spinning = async {
        loop {
            let spinning = set.powers().iter().filter(|(_, power)| power.is_spinning()).count();
            assert!(spinning <= 1, "one token for eight tomes");
            tokio::task::yield_now().await;
        }
    };
    shelf
        .wait(async {
            tokio::select! { () = all => {}, () = spinning => {} }
        })
        .await;
    for name in &names {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), noise(name, 2 * BLOCK));
    }
}

#[tokio::test]
async fn abandoned_put_and_delete_still_complete() {
    let shelf = Shelf::new();
    let set = shelf.init();
    {
        // The request is sent, and its future dropped.
        let mut put = std::pin::pin!(set.put("left", noise("left", BLOCK)));
        let first = std::future::poll_fn(|context| {
            std::task::Poll::Ready(put.as_mut().poll(context).is_ready())
        });
        assert!(!first.await, "its disk must spin up first");
    }
    // It continues: the object gets protected, and once deleted its name is free.
    let there = async {
        while set.get("left").await.is_err() {
            tokio::task::yield_now().await;
        }
        set.protected("left").await.unwrap();
    };
    shelf.wait(there).await;
    {
        let mut delete = std::pin::pin!(set.delete("left"));
        let first = std::future::poll_fn(|context| {
            std::task::Poll::Ready(delete.as_mut().poll(context).is_ready())
        });
        first.await;
    }
    shelf
        .wait(async {
            while set.put("left", vec![1]).await.is_err() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    assert_eq!(shelf.wait(set.get("left")).await.unwrap(), [1]);
}

#[tokio::test]
async fn leftover_spinning_disk_is_spun_down_at_start() {
    let shelf = Shelf::new();
    drop(shelf.init());
    let left = PlaceId::new(5);
    shelf.disks.inject(left, Fault::ExternalSpinUp).unwrap();
    assert_eq!(shelf.disks.observe(left).unwrap(), Observed::Turning);
    let began = tokio::time::Instant::now();
    let passed = move || Instant::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap());
    let clock = Clock::new(|| UnixTime::from_millis(1_700_000_000_000), passed);
    let set = TomeSet::open(SetOptions { clock, ..shelf.options() }).unwrap();
    let tome = set.put("first", noise("first", 3 * BLOCK)).await.unwrap();
    assert_ne!(tome.get(), left.get());
    assert_eq!(set.get("first").await.unwrap(), noise("first", 3 * BLOCK));
    let status = set.status().await;
    assert_eq!(shelf.disks.observe(left).unwrap(), Observed::Standby);
    let spinning: Vec<_> = status.tomes.iter().filter(|tome| tome.power.is_spinning()).collect();
    assert_eq!(spinning.len(), 1);
    assert_eq!((spinning[0].tome, spinning[0].objects), (tome, 1));
    set.stop();
    let standing = |place| shelf.disks.observe(place).unwrap() == Observed::Standby;
    assert!((0..TOMES).map(PlaceId::new).all(standing));
}

#[tokio::test]
async fn start_does_not_wait_for_leases_of_previous_process() {
    let shelf = Shelf::new();
    let set = shelf.init();
    for name in ["one", "two"] {
        shelf.wait(set.put(name, noise(name, BLOCK))).await.unwrap();
        shelf.wait(set.protected(name)).await.unwrap();
        shelf.settle(&set).await;
    }
    assert_ne!(set.tome_of("one").unwrap(), set.tome_of("two").unwrap());
    shelf.wait(set.get("two")).await.unwrap();
    // The set ends while a tome holds the only token, and later that tome has no requests.
    set.stop();
    drop(set);
    let set = shelf.open();
    // The clock stands still: waiting for a lease to expire would never end.
    let got = tokio::time::timeout(std::time::Duration::from_secs(60), set.get("one")).await;
    assert_eq!(got.unwrap().unwrap(), noise("one", BLOCK));
    set.stop();
}

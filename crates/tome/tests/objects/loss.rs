//! What remains after a loss: of the index, a tome, a process during a put.

use fulgurite_tome::InjectedFault;
use fulgurite_tome::objects::bench_support::TOMES;
use fulgurite_tome::objects::{Progress, PutGuarantee, TomeStore};
use fulgurite_tome_core::TomeId;
use object_store::path::Path;
use object_store::{Attribute, Attributes, ObjectStore as _, ObjectStoreExt as _, PutOptions};

use crate::shelf::{Shelf, copy, noise, remove};

async fn put(store: &TomeStore, key: &str, seed: u64, length: usize) {
    let attributes = Attributes::from_iter([(Attribute::ContentType, "text/x-test")]);
    let options = PutOptions { attributes, ..PutOptions::default() };
    store.put_opts(&Path::from(key), noise(seed, length).into(), options).await.unwrap();
}

async fn bytes(store: &TomeStore, key: &str) -> Vec<u8> {
    store.get(&Path::from(key)).await.unwrap().bytes().await.unwrap().into()
}

#[tokio::test]
async fn lost_index_is_rebuilt_from_tomes() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Local);
    let large = 3 << 20;
    put(&store, "a/small", 1, 100).await;
    put(&store, "a/empty", 2, 0).await;
    put(&store, "b/large", 3, large).await;
    put(&store, "b/old", 4, 100).await;
    put(&store, "b/old", 5, 200).await;
    put(&store, "gone", 6, 100).await;
    store.delete(&Path::from("gone")).await.unwrap();
    let before = (store.totals().unwrap(), store.head(&Path::from("b/old")).await.unwrap());
    store.stop();
    drop(store);
    remove(&shelf.directory().join("index"));

    let store = shelf.open(PutGuarantee::Local);
    assert_eq!(store.totals().unwrap().objects, 0);
    let found = store.recover(&Progress::default()).await.unwrap();
    assert_eq!((found.objects, found.known, found.problems), (4, 0, vec![]));
    assert_eq!(before, (store.totals().unwrap(), store.head(&Path::from("b/old")).await.unwrap()));
    assert_eq!(bytes(&store, "a/small").await, noise(1, 100));
    assert_eq!(bytes(&store, "a/empty").await, noise(2, 0));
    assert_eq!(bytes(&store, "b/large").await, noise(3, large));
    let old = store.get(&Path::from("b/old")).await.unwrap();
    assert_eq!(old.attributes.get(&Attribute::ContentType).unwrap().as_ref(), "text/x-test");
    assert_eq!(old.bytes().await.unwrap(), noise(5, 200));
    let again = store.recover(&Progress::default()).await.unwrap();
    assert_eq!((again.objects, again.known), (0, 4));
    store.stop();
}

async fn is_behind(store: &TomeStore) -> bool {
    store.status().await.reasons.iter().any(|why| why.contains("`fulgurite tier recover NAME`"))
}

#[tokio::test]
async fn older_index_is_reported_and_recovered() {
    for is_missing in [false, true] {
        let shelf = Shelf::new();
        let store = shelf.store(PutGuarantee::Local);
        put(&store, "kept", 1, 100).await;
        put(&store, "over", 2, 100).await;
        put(&store, "gone", 3, 100).await;
        // The copied index does not know its last piece.
        let mut upload = store.put_multipart(&Path::from("parts")).await.unwrap();
        upload.put_part(noise(4, 2 << 20).into()).await.unwrap();
        let (index, older) = (shelf.directory().join("index"), shelf.folder.path().join("older"));
        copy(&index, &older);
        upload.complete().await.unwrap();
        store.stop();
        drop((upload, store));

        let store = shelf.open(PutGuarantee::Local);
        assert!(!is_behind(&store).await);
        put(&store, "over", 5, 100).await;
        put(&store, "new", 6, 100).await;
        store.delete(&Path::from("gone")).await.unwrap();
        let before = store.totals().unwrap();
        store.stop();
        drop(store);
        remove(&index);
        if !is_missing {
            copy(&older, &index);
        }

        // It is reported until recovery is done.
        for _ in 0..2 {
            let store = shelf.open(PutGuarantee::Local);
            assert!(is_behind(&store).await);
            // Objects that it does not know survive the sweep of others.
            put(&store, "other", 7, 10).await;
            store.delete(&Path::from("other")).await.unwrap();
            store.stop();
        }
        let store = shelf.open(PutGuarantee::Local);
        let (found, work) =
            (store.recover(&Progress::default()).await.unwrap(), Progress::default());
        assert_eq!(found.problems, [] as [&str; 0]);
        assert!(!is_behind(&store).await);
        assert_eq!(store.totals().unwrap(), before);
        for (key, seed) in [("kept", 1), ("over", 5), ("new", 6)] {
            assert_eq!(bytes(&store, key).await, noise(seed, 100), "{key}");
        }
        assert_eq!(bytes(&store, "parts").await, noise(4, 2 << 20));
        assert!(store.head(&Path::from("gone")).await.is_err());
        store.recover(&work).await.unwrap();
        let (done, total) = work.bytes();
        assert!(done == total && total.get() > 0, "{done} of {total}");
        store.stop();
        drop(store);
        let store = shelf.open(PutGuarantee::Local);
        assert!(!is_behind(&store).await);
        store.stop();
    }
}

#[tokio::test]
async fn one_spin_up_of_a_group_recovers_many_heads() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Protected);
    let keys: Vec<String> = (0..40).map(|number| format!("key {number:02}")).collect();
    for (seed, key) in (0..).zip(&keys) {
        put(&store, key, seed, 100).await;
    }
    let heads = store.set().list();
    let tome = store.set().tome_of(&heads[0]).unwrap();
    let own = heads.iter().filter(|name| store.set().tome_of(name).unwrap() == tome).count();
    store.stop();
    drop(store);
    remove(&shelf.root(tome));
    remove(&shelf.metadata(tome));
    remove(&shelf.directory().join("index"));

    let store = shelf.open(PutGuarantee::Protected);
    let before = store.ledger().await.len();
    let found = store.recover(&Progress::default()).await.unwrap();
    assert_eq!(found.objects, 40, "{:?}", found.problems);
    let spin_ups = store.ledger().await.len() - before;
    assert!(own >= 3, "{own}");
    // Reading the heads one after the other would need three spin-ups for each.
    assert!(
        spin_ups <= 8 + 2 * TOMES as usize,
        "{spin_ups} spin-ups for {own} heads of a lost tome"
    );
    store.stop();
}

#[tokio::test]
async fn lost_tome_is_reported_and_other_objects_stay_readable() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Protected);
    put(&store, "one", 1, 5000).await;
    store.stop();
    let name = store.set().list().remove(0);
    let tome = store.set().tome_of(&name).unwrap();
    drop(store);
    let other = (0..).map(TomeId::new).find(|other| *other != tome).unwrap();
    remove(&shelf.root(other));
    remove(&shelf.metadata(other));

    let store = shelf.open(PutGuarantee::Local);
    assert_eq!(bytes(&store, "one").await, noise(1, 5000));
    let status = store.status().await;
    assert!(!status.is_well());
    let reason = format!("tome {other}: given up");
    assert!(status.reasons.iter().any(|why| why.starts_with(&reason)), "{:?}", status.reasons);
    store.stop();
}

#[tokio::test]
async fn unprotected_piece_moves_to_a_healthy_group() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Protected);
    let all = || (0..TOMES).map(TomeId::new);
    // Messages between tomes are lost: what is put is on one disk only.
    all().for_each(|tome| shelf.faults.inject(tome, InjectedFault::Send));
    let (put, key, bytes) = (store.clone(), Path::from("key"), noise(1, 300_000));
    let body = bytes.clone();
    let put = tokio::spawn(async move { put.put(&key, body.into()).await });
    let group = loop {
        let name = store.set().list().pop();
        if let Some(group) = name.and_then(|name| store.set().groups_of(&name).unwrap().pop()) {
            break group;
        }
        tokio::task::yield_now().await;
    };
    let name = store.set().list().remove(0);
    let own = store.set().tome_of(&name).unwrap();
    let parity = group.slots()[4].tome;
    assert_ne!(own, parity);
    store.set().retire(parity).await.unwrap();
    assert!(store.set().is_stranded(&name).unwrap());
    all().for_each(|tome| shelf.faults.mend(tome));
    put.await.unwrap().unwrap();
    let groups = store.set().groups_of(&name).unwrap();
    assert_eq!(groups.len(), 1);
    assert_ne!(groups[0].id(), group.id());
    assert_eq!(store.set().list(), [name], "it is there once");
    assert_eq!(bytes, self::bytes(&store, "key").await);
    store.stop();
}

#[tokio::test]
async fn put_waiting_for_parities_fails_on_stop() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Protected);
    // Messages between tomes are lost: what is put is never protected.
    (0..TOMES).map(TomeId::new).for_each(|tome| shelf.faults.inject(tome, InjectedFault::Send));
    let (putting, key) = (store.clone(), Path::from("key"));
    let put = tokio::spawn(async move { putting.put(&key, noise(1, 3000).into()).await });
    while store.set().list().is_empty() {
        tokio::task::yield_now().await;
    }
    store.stop_waiting();
    let within = std::time::Duration::from_secs(60);
    let error = tokio::time::timeout(within, put).await.unwrap().unwrap().unwrap_err();
    assert!(error.to_string().contains("stopped"), "{error}");
    store.stop();
    drop(store);
    (0..TOMES).map(TomeId::new).for_each(|tome| shelf.faults.mend(tome));

    let store = shelf.open(PutGuarantee::Protected);
    assert_eq!(store.totals().unwrap().objects, 0, "its put was not acknowledged");
    self::put(&store, "key", 2, 3000).await;
    assert_eq!(bytes(&store, "key").await, noise(2, 3000));
    assert_eq!(store.set().list().len(), 1, "started pieces are removed");
    store.stop();
}

#[tokio::test]
async fn interrupted_put_leaves_no_pieces() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Local);
    put(&store, "kept", 1, 5000).await;
    let mut upload = store.put_multipart(&Path::from("cut")).await.unwrap();
    upload.put_part(noise(2, 2 << 20).into()).await.unwrap();
    assert_eq!(store.set().list().len(), 3, "two pieces of it, and the other object");
    store.stop();
    drop((upload, store));

    let store = shelf.open(PutGuarantee::Local);
    // Unfinished puts are removed after the next removal or put.
    put(&store, "next", 3, 10).await;
    assert_eq!(store.set().list().len(), 2, "{:?}", store.set().list());
    assert!(store.head(&Path::from("cut")).await.is_err());
    assert_eq!(bytes(&store, "kept").await, noise(1, 5000));
    store.stop();
}

#[tokio::test]
async fn object_deleted_while_tome_is_away_is_not_recovered() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Local);
    put(&store, "gone", 1, 5000).await;
    let name = store.set().list().remove(0);
    let metadata = shelf.metadata(store.set().tome_of(&name).unwrap());
    store.stop();
    drop(store);
    let aside = shelf.folder.path().join("aside");
    std::fs::rename(&metadata, &aside).unwrap();

    let store = shelf.open(PutGuarantee::Local);
    store.delete(&Path::from("gone")).await.unwrap();
    let found = store.recover(&Progress::default()).await.unwrap();
    // Its head is read from its group, if that has it already; the tome may have more that is
    // unknown.
    assert_eq!(found.objects, 0);
    assert!(
        found.problems.iter().any(|why| why.contains("its objects are unknown")),
        "{:?}",
        found.problems
    );
    store.stop();
    drop(store);
    std::fs::rename(&aside, &metadata).unwrap();

    let store = shelf.open(PutGuarantee::Local);
    assert_eq!(
        store.recover(&Progress::default()).await.unwrap().objects,
        0,
        "it is not recovered"
    );
    put(&store, "next", 2, 10).await;
    assert_eq!(store.set().list().len(), 1, "{:?}", store.set().list());
    store.stop();
}

#[tokio::test]
async fn pieces_stay_until_their_read_ends() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Local);
    put(&store, "key", 1, 2 << 20).await;
    let got = store.get(&Path::from("key")).await.unwrap();
    put(&store, "key", 2, 10).await;
    assert_eq!(
        store.set().list().len(),
        4,
        "two pieces and a head that are read, and the new head"
    );
    assert_eq!(got.bytes().await.unwrap(), noise(1, 2 << 20));
    store.delete(&Path::from("key")).await.unwrap();
    assert_eq!(store.set().list(), Vec::<String>::new());
    store.stop();
}

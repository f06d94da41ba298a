//! The operations of the tier, as an operator runs them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fulgurite_geo::objects::GeoStore;
use fulgurite_tier::{Operation, OperationArgs, Progress, Tier as _, TierError};
use fulgurite_units::ErrorKind;
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, PutPayload};
use serde_json::{Value, json};

use crate::shelf::Shelf;
use crate::site_failures::{bytes, put, read};

async fn run(store: &GeoStore, operation: Operation) -> Value {
    let (args, progress) = (OperationArgs::default(), Arc::<Progress>::default());
    store.run(operation, &args, &progress).await.unwrap()
}

/// Replaces a site by a table and blobs at these places.
async fn replace(
    store: &GeoStore,
    site: &str,
    table: Option<&str>,
    blobs: Option<&str>,
) -> Result<Value, TierError> {
    let text = |text: Option<&str>| text.map(str::to_owned);
    let args = OperationArgs { target: text(Some(site)), table: text(table), blobs: text(blobs) };
    store.run(Operation::Replace, &args, &Arc::default()).await
}

#[tokio::test(start_paused = true)]
async fn verify_reports_and_scrub_rebuilds() {
    let shelf = Shelf::new(3, 2, 1);
    let store = shelf.init().await;
    put(&store, "one", &bytes(1, 300_000)).await.unwrap();
    put(&store, "two", &bytes(2, 300)).await.unwrap();
    let verified = run(&store, Operation::Verify).await;
    let undecided = json!({ "versions": 0, "oldest_seconds": 0, "objects": [] });
    let whole = json!({
        "objects": 2, "bytes": 300_300, "damaged": [], "problems": [], "undecided": undecided,
    });
    assert_eq!(verified, whole);
    // A damaged fragment of the right length: a verification need not read it, a scrub does.
    let key = shelf.blob_keys(2).await.remove(0);
    let blobs = shelf.blobs_of(2).await;
    let mut bad = blobs.get(&key, None).await.unwrap().to_vec();
    bad[70_000] ^= 1;
    blobs.delete(&key).await.unwrap();
    blobs.create(&key, bad.into()).await.unwrap();
    let scrubbed = run(&store, Operation::Scrub).await;
    assert_eq!((&scrubbed["rebuilt"], &scrubbed["missing"]), (&json!(1), &json!(0)), "{scrubbed}");
    assert_eq!(run(&store, Operation::Scrub).await["rebuilt"], 0);
    // One more than parity.
    for site in 0..2 {
        let key = shelf.blob_keys(site).await.remove(0);
        shelf.blobs_of(site).await.delete(&key).await.unwrap();
    }
    let verified = run(&store, Operation::Verify).await;
    assert_eq!((&verified["objects"], &verified["problems"]), (&json!(1), &json!([])));
    let damaged = verified["damaged"][0].as_str().unwrap();
    assert!(damaged.starts_with("one: "), "{damaged}");
    assert_eq!(run(&store, Operation::Scrub).await["lost"], json!(["one version 1"]));
}

#[tokio::test]
async fn collect_removes_obsolete_versions_and_orphans() {
    let shelf = Shelf::new(3, 2, 1);
    // Stores date their blobs by the machine's clock.
    let now = std::fs::metadata("/proc/self").unwrap().modified().unwrap();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let now = u64::try_from(now).unwrap();
    shelf.now.store(now, Ordering::Relaxed);
    let store = shelf.init().await;
    for number in 0..2 {
        put(&store, "often", &bytes(number, 30_000)).await.unwrap();
    }
    let mut upload = store.put_multipart(&Path::from("never")).await.unwrap();
    upload.put_part(PutPayload::from(bytes(2, 30_000))).await.unwrap();
    drop(upload);
    // An orphan is a day old.
    for (hours, swept) in [(23, 0), (25, 3)] {
        shelf.now.store(now + hours * 3_600_000, Ordering::Relaxed);
        let report = run(&store, Operation::Collect).await;
        assert_eq!(
            (&report["swept"], &report["problems"]),
            (&json!(swept), &json!([])),
            "{report}"
        );
    }
    assert_eq!(shelf.blob_keys(1).await.len(), 1);
    assert_eq!(read(&store, "often").await.unwrap(), bytes(1, 30_000));
}

#[tokio::test(start_paused = true)]
async fn site_is_replaced_after_its_new_stores_were_examined() {
    let shelf = Shelf::new(3, 2, 1);
    let store = shelf.init().await;
    put(&store, "one", &bytes(1, 300_000)).await.unwrap();
    let place = Some("mem://elsewhere");
    for (site, table, kind, words) in [
        ("porto", place, ErrorKind::NotFound, "the map has no site \"porto\"; it has site-0, site"),
        ("site-2", None, ErrorKind::Invalid, "--table URL, --blobs URL"),
        ("site-2", Some("ftp://elsewhere"), ErrorKind::Invalid, "table of site \"site-2\""),
    ] {
        let error = replace(&store, site, table, None).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
    shelf.fail("site-2");
    let error = replace(&store, "site-2", place, place).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("table of site \"site-2\" could not be examined"), "{error}");
    shelf.repair("site-2");
    shelf.lose_answers("site-2");
    let error = replace(&store, "site-2", place, place).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(error.message.contains("blobs of site \"site-2\": the store"), "{error}");
    assert_eq!(store.map().epoch, 1, "the map is as before");
    shelf.repair("site-2");
    let report = replace(&store, "site-2", place, place).await.unwrap();
    assert_eq!((&report["problems"], &report["replaced"]), (&json!([]), &json!(3)), "{report}");
    let site = &store.map().sites[2];
    assert_eq!((site.table.as_deref(), site.blobs.as_deref()), (place, place));
    assert!(!site.rebuilding);
}

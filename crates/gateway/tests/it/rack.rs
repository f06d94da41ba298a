//! A rack of cold disks behind the gateway: every call of it answers as documented.

use std::sync::Arc;

use fulgurite_archive::config::TierName;
use fulgurite_rack::{RackStore, bench_support};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use serde_json::Value;
use tempfile::TempDir;

use crate::admin::call;
use crate::harness::TestServer;
use crate::openapi;

const RACK: &str = "/-/admin/tiers/cold";
const EVENTS: &str = "/-/admin/tiers/cold/events";

/// Starts a gateway with a rack that has blobs.
async fn start() -> (TestServer, RackStore, TempDir) {
    let folder = TempDir::new().unwrap();
    let clock = fulgurite_archive::system_clock();
    let options = bench_support::options(folder.path(), clock).unwrap();
    let rack = RackStore::init(options).await.unwrap();
    put(&rack, 0..3).await;
    let shown = rack.clone();
    let name = TierName::new("cold").unwrap();
    let server = TestServer::start_with(|config| {
        config.tiers.insert(name, Arc::new(shown));
    });
    (server.await, rack, folder)
}

async fn put(rack: &RackStore, numbers: std::ops::Range<u8>) {
    for number in numbers {
        let body = vec![number; 10_000];
        rack.put(&Path::from(format!("{number}")), body.into()).await.unwrap();
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Returns the last line of the response to a long call.
async fn report(server: &TestServer, path: &str) -> Value {
    let response = call(server, "POST", path).await;
    assert_eq!(response.status, 200, "{}", response.text());
    json(response.text().lines().last().unwrap())["report"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rack_calls_match_openapi() {
    let (server, _rack, _folder) = start().await;
    let shown = call(&server, "GET", RACK).await;
    let shown = json(&shown.text());
    openapi::assert_conforms("/components/schemas/Rack", &shown);
    let groups = shown["groups"].as_array().unwrap();
    let sum = |name: &str| groups.iter().map(|group| group[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("blobs"), sum("bytes")), (3, 30_000));
    assert!(groups.iter().all(|group| group["room"]["free"].as_u64() > Some(0)));
    assert_eq!(shown["simulated"], true);
    let spin_ups = json(&call(&server, "GET", "/-/admin/tiers/cold/ledger").await.text());
    assert!(spin_ups.as_array().is_some_and(|all| !all.is_empty()), "{spin_ups}");
    assert_eq!(report(&server, "/-/admin/tiers/cold/scrub").await["blobs"], 3);
    let group = groups.iter().find(|group| group["blobs"] != 0).unwrap();
    let place = &group["disks"][0]["place"];
    report(&server, &format!("/-/admin/tiers/cold/rebuild?target={place}")).await;
    // The disk identifies itself as the one that belongs there: it is taken back.
    let replaced = report(&server, &format!("/-/admin/tiers/cold/replace?target={place}")).await;
    assert_eq!(replaced["problems"], serde_json::json!([]));
    assert_eq!(report(&server, "/-/admin/tiers/cold/recover").await["blobs"], 0);
    for path in ["rebuild", "rebuild?target=x", "scrub?target=1", "recover?target=x"] {
        let path = &format!("{RACK}/{path}");
        let response = call(&server, "POST", path).await;
        assert_eq!(response.status, 400, "{}", response.text());
    }
    let response = call(&server, "POST", "/-/admin/tiers/cold/rebuild?target=48").await;
    assert!((400..500).contains(&response.status), "{} {}", response.status, response.text());
    let response = call(&server, "POST", &format!("{RACK}/retire?target=1")).await;
    assert_eq!(response.status, 404, "{}", response.text());
    assert!(response.text().contains("a tier of kind rack has no operation retire"));
    let metrics = server.request("GET", "/metrics").send_plain().await.text();
    for line in [
        "fulgurite_tier_simulated{tier=\"cold\",kind=\"rack\"} 1",
        "fulgurite_tier_blobs{tier=\"cold\",kind=\"rack\",group=\"0\"}",
        "fulgurite_tier_blob_bytes{tier=\"cold\",kind=\"rack\",group=\"0\"}",
        "fulgurite_tier_free_bytes{tier=\"cold\",kind=\"rack\",group=\"0\"}",
        "fulgurite_tier_disks_failing{tier=\"cold\",kind=\"rack\",group=\"0\"} 0",
        "fulgurite_tier_spinups_total{tier=\"cold\",kind=\"rack\",group=\"0\",cause=\"init\"} 1",
    ] {
        assert!(metrics.contains(&format!("\n{line}")), "no {line} in {metrics}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_rack_disk_degrades_readiness() {
    let (server, _rack, _folder) = start().await;
    let page = |path: &'static str| server.request("GET", path).send_plain();
    assert_eq!(page("/readyz").await.text(), "ready\n");
    assert!(
        page("/metrics")
            .await
            .text()
            .contains("\nfulgurite_tier_healthy{tier=\"cold\",kind=\"rack\"} 1\n")
    );
    let shown = json(&call(&server, "GET", RACK).await.text());
    let groups = shown["groups"].as_array().unwrap();
    let group = groups.iter().find(|group| group["blobs"] != 0).unwrap();
    // The stacks are rebuilt on other disks, and the disk stays unused until it is replaced.
    report(&server, &format!("/-/admin/tiers/cold/rebuild?target={}", group["disks"][0]["place"]))
        .await;
    let ready = page("/readyz").await;
    assert_eq!(ready.status, 200, "requests are served");
    let expected = "degraded\ncold: disks have failed or are missing\n";
    assert_eq!(ready.text(), expected, "neither disk nor path is named");
    let metrics = page("/metrics").await.text();
    for line in [
        "fulgurite_tier_healthy{tier=\"cold\",kind=\"rack\"} 0",
        "fulgurite_tier_blobs_unrepaired{tier=\"cold\",kind=\"rack\"} 0",
    ] {
        assert!(metrics.contains(&format!("\n{line}\n")), "no {line} in {metrics}");
    }
}

/// More stacks of a blob are damaged than it has redundancy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unrecoverable_blobs_degrade_readiness() {
    let (server, _rack, folder) = start().await;
    let damaged = damage_stacks(folder.path());
    assert!(damaged > 3, "{damaged} stacks");
    let found = report(&server, "/-/admin/tiers/cold/scrub").await;
    assert_ne!(found["problems"], serde_json::json!([]), "{found}");
    let ready = server.request("GET", "/readyz").send_plain().await.text();
    let expected = "cold: blobs have lost stacks that could not be rebuilt\n";
    assert!(ready.starts_with("degraded\n") && ready.contains(expected), "{ready}");
    let shown = json(&call(&server, "GET", RACK).await.text());
    let unsound = shown["groups"].as_array().unwrap().iter();
    let unsound: u64 = unsound.map(|group| group["unsound"].as_u64().unwrap()).sum();
    assert_eq!(unsound, found["problems"].as_array().unwrap().len() as u64);
}

/// Truncates every stack of every blob below a folder; returns how many there were.
fn damage_stacks(folder: &std::path::Path) -> usize {
    let mut cut = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            cut += damage_stacks(&path);
        } else if path.extension().is_some_and(|kind| kind == "stack") {
            std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
            cut += 1;
        }
    }
    cut
}

/// Calls and metrics have the name of each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racks_are_told_apart_by_name() {
    let (_server, rack, _folder) = start().await;
    let folder = TempDir::new().unwrap();
    let options = bench_support::options(folder.path(), fulgurite_archive::system_clock());
    let other = RackStore::init(options.unwrap()).await.unwrap();
    let server = TestServer::start_with(|config| {
        for (name, store) in [("a", rack), ("b", other)] {
            config.tiers.insert(TierName::new(name).unwrap(), Arc::new(store));
        }
    });
    let server = server.await;
    let blobs = async |path: &str| {
        let shown = json(&call(&server, "GET", path).await.text());
        let groups = shown["groups"].as_array().unwrap().iter();
        groups.map(|group| group["blobs"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(blobs("/-/admin/tiers/a").await, 3);
    assert_eq!(blobs("/-/admin/tiers/b").await, 0);
    let list = json(&call(&server, "GET", "/-/admin/tiers").await.text());
    assert_eq!((&list[0]["name"], &list[1]["name"]), (&"a".into(), &"b".into()), "{list}");
    assert_eq!((&list[0]["kind"], &list[0]["reasons"]), (&"rack".into(), &serde_json::json!([])));
    let operations = list[0]["operations"].as_array().unwrap().iter();
    let operations: Vec<_> = operations.map(|one| one["operation"].as_str().unwrap()).collect();
    assert_eq!(operations, ["scrub", "rebuild", "replace", "recover"]);
    let status = json(&call(&server, "GET", "/-/admin/status").await.text());
    assert_eq!(status["tiers"], serde_json::json!({ "a": "rack", "b": "rack", "glass": "glass" }));
    let metrics = server.request("GET", "/metrics").send_plain().await.text();
    for line in [
        "fulgurite_tier_healthy{tier=\"a\",kind=\"rack\"} 1\n",
        "fulgurite_tier_healthy{tier=\"b\",kind=\"rack\"} 1\n",
    ] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
    assert_eq!(metrics.matches("# TYPE fulgurite_tier_healthy").count(), 1);
}

#[tokio::test]
async fn calls_of_a_tier_that_does_not_exist_return_404() {
    let server = TestServer::start().await;
    let list = json(&call(&server, "GET", "/-/admin/tiers").await.text());
    assert_eq!(list.as_array().unwrap().len(), 1, "only glass: {list}");
    for (method, path) in [
        ("GET", RACK),
        ("GET", "/-/admin/tiers/cold/ledger"),
        ("GET", EVENTS),
        ("POST", "/-/admin/tiers/cold/scrub"),
        ("POST", "/-/admin/tiers/cold/recover"),
    ] {
        let response = call(&server, method, path).await;
        assert_eq!(response.status, 404, "{path}: {}", response.text());
        let text = response.text();
        assert!(
            text.contains("this server has no tier \\\"cold\\\"; `fulgurite tier list`"),
            "{text}"
        );
    }
    let metrics = server.request("GET", "/metrics").send_plain().await.text();
    assert!(!metrics.contains("tier=\"cold\""), "{metrics}");
}

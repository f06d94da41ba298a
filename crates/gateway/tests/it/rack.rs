//! A rack of cold disks behind the gateway: every call of it answers as documented, with and
//! without one.

use fulgurite_archive::config::TierName;
use fulgurite_gateway::TierStore;
use fulgurite_rack::{RackStore, bench_support};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use serde_json::Value;
use tempfile::TempDir;

use crate::admin::call;
use crate::events::{Subscription, events};
use crate::harness::TestServer;
use crate::openapi;

const EVENTS: &str = "/-/rack-events";

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
        config.tiers.insert(name, TierStore::Rack(shown));
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
    let shown = call(&server, "GET", "/-/admin/rack").await;
    let shown = json(&shown.text());
    let groups = shown["groups"].as_array().unwrap();
    let sum = |name: &str| groups.iter().map(|group| group[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("blobs"), sum("bytes")), (3, 30_000));
    assert!(groups.iter().all(|group| group["room"]["free"].as_u64() > Some(0)));
    assert_eq!(shown["simulated"], true);
    let spin_ups = json(&call(&server, "GET", "/-/admin/rack-ledger").await.text());
    assert!(spin_ups.as_array().is_some_and(|all| !all.is_empty()), "{spin_ups}");
    assert_eq!(report(&server, "/-/admin/rack-verify").await["blobs"], 3);
    let group = groups.iter().find(|group| group["blobs"] != 0).unwrap();
    let place = &group["disks"][0]["place"];
    report(&server, &format!("/-/admin/rack-rebuild?place={place}")).await;
    // The disk identifies itself as the one that belongs there: it is taken back.
    let replaced = report(&server, &format!("/-/admin/rack-replace?place={place}")).await;
    assert_eq!(replaced["problems"], serde_json::json!([]));
    assert_eq!(report(&server, "/-/admin/rack-recover").await["blobs"], 0);
    for path in ["/-/admin/rack-rebuild", "/-/admin/rack-rebuild?place=x"] {
        let response = call(&server, "POST", path).await;
        assert_eq!(response.status, 400, "{}", response.text());
    }
    let response = call(&server, "POST", "/-/admin/rack-rebuild?place=48").await;
    assert!((400..500).contains(&response.status), "{} {}", response.status, response.text());
    let metrics = server.request("GET", "/metrics").send_plain().await.text();
    for line in [
        "fulgurite_rack_simulated{tier=\"cold\"} 1",
        "fulgurite_rack_blobs{tier=\"cold\",group=\"0\"}",
        "fulgurite_rack_blob_bytes{tier=\"cold\",group=\"0\"}",
        "fulgurite_rack_free_bytes{tier=\"cold\",group=\"0\"}",
        "fulgurite_rack_disks_failing{tier=\"cold\",group=\"0\"} 0",
        "fulgurite_rack_spinups_total{tier=\"cold\",group=\"0\",cause=\"init\"} 1",
    ] {
        assert!(metrics.contains(&format!("\n{line}")), "no {line} in {metrics}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_rack_disk_degrades_readiness() {
    let (server, _rack, _folder) = start().await;
    let page = |path: &'static str| server.request("GET", path).send_plain();
    assert_eq!(page("/readyz").await.text(), "ready\n");
    assert!(page("/metrics").await.text().contains("\nfulgurite_rack_healthy{tier=\"cold\"} 1\n"));
    let shown = json(&call(&server, "GET", "/-/admin/rack").await.text());
    let groups = shown["groups"].as_array().unwrap();
    let group = groups.iter().find(|group| group["blobs"] != 0).unwrap();
    // The stacks are rebuilt on other disks, and the disk stays unused until it is replaced.
    report(&server, &format!("/-/admin/rack-rebuild?place={}", group["disks"][0]["place"])).await;
    let ready = page("/readyz").await;
    assert_eq!(ready.status, 200, "requests are served");
    let expected = "degraded\ncold: disks have failed or are missing\n";
    assert_eq!(ready.text(), expected, "neither disk nor path is named");
    let metrics = page("/metrics").await.text();
    for line in [
        "fulgurite_rack_healthy{tier=\"cold\"} 0",
        "fulgurite_rack_blobs_unmended{tier=\"cold\"} 0",
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
    let found = report(&server, "/-/admin/rack-verify").await;
    assert_ne!(found["problems"], serde_json::json!([]), "{found}");
    let ready = server.request("GET", "/readyz").send_plain().await.text();
    let expected = "cold: blobs have lost stacks that could not be rebuilt\n";
    assert!(ready.starts_with("degraded\n") && ready.contains(expected), "{ready}");
    let shown = json(&call(&server, "GET", "/-/admin/rack").await.text());
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

/// With several racks a call has to say which, and metrics have the name of each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racks_are_told_apart_by_name() {
    let (_server, rack, _folder) = start().await;
    let folder = TempDir::new().unwrap();
    let options = bench_support::options(folder.path(), fulgurite_archive::system_clock());
    let other = RackStore::init(options.unwrap()).await.unwrap();
    let server = TestServer::start_with(|config| {
        for (name, store) in [("a", rack), ("b", other)] {
            config.tiers.insert(TierName::new(name).unwrap(), TierStore::Rack(store));
        }
    });
    let server = server.await;
    let blobs = async |path: &str| {
        let shown = json(&call(&server, "GET", path).await.text());
        let groups = shown["groups"].as_array().unwrap().iter();
        groups.map(|group| group["blobs"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(blobs("/-/admin/rack?tier=a").await, 3);
    assert_eq!(blobs("/-/admin/rack?tier=b").await, 0);
    assert_eq!(call(&server, "GET", "/-/admin/rack").await.status, 400);
    assert_eq!(call(&server, "GET", "/-/admin/rack?tier=c").await.status, 404);
    let status = json(&call(&server, "GET", "/-/admin/status").await.text());
    assert_eq!(status["tiers"], serde_json::json!({ "a": "rack", "b": "rack" }));
    let metrics = server.request("GET", "/metrics").send_plain().await.text();
    for line in ["fulgurite_rack_healthy{tier=\"a\"} 1\n", "fulgurite_rack_healthy{tier=\"b\"} 1\n"]
    {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
    assert_eq!(metrics.matches("# TYPE fulgurite_rack_healthy").count(), 1);
}

#[tokio::test]
async fn rack_calls_return_404_without_a_rack() {
    let server = TestServer::start().await;
    for (method, path) in [
        ("GET", "/-/admin/rack"),
        ("GET", "/-/admin/rack-ledger"),
        ("GET", EVENTS),
        ("POST", "/-/admin/rack-verify"),
        ("POST", "/-/admin/rack-recover"),
    ] {
        let response = call(&server, method, path).await;
        assert_eq!(response.status, 404, "{path}: {}", response.text());
        assert!(
            response.text().contains("no tier of kind rack: set [tiers]"),
            "{}",
            response.text()
        );
    }
    let metrics = server.request("GET", "/metrics").send_plain().await.text();
    assert!(!metrics.contains("fulgurite_rack"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rack_events_stream_until_server_stops() {
    let (server, rack, _folder) = start().await;
    let subscription = Subscription::subscribe_to(&server, EVENTS).await;
    assert!(subscription.is_accepted());
    put(&rack, 3..5).await;
    rack.get(&Path::from("0")).await.unwrap().bytes().await.unwrap();
    let (serving, _data) = server.begin_stop();
    let response = subscription.remaining().await;
    serving.await.unwrap().unwrap();
    openapi::check("GET", EVENTS, &response);
    let text = response.text();
    let seen = events(&text);
    assert_eq!(seen[0].0, "snapshot");
    let (last, steps) = seen[1..].split_last().unwrap();
    assert_eq!(*last, ("end", serde_json::json!({ "reason": "stopped" })));
    let first = seen[0].1["step"].as_u64().unwrap() + 1;
    for (number, (name, step)) in (first..).zip(steps) {
        assert_eq!((*name, step["step"].as_u64()), ("step", Some(number)));
    }
    let ran = steps.iter().flat_map(|(_, step)| step["commands"].as_array().unwrap());
    assert!(ran.filter(|command| command["run"].is_object()).count() >= 3, "{text}");
}

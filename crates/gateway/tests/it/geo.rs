//! A namespace over several sites behind the gateway: its calls answer as documented.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_archive::config::TierName;
use fulgurite_geo::objects::{GeoOptions, GeoStore, SiteMap};
use fulgurite_geo::stores::{Entropy, Opener};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use serde_json::{Value, json};

use crate::admin::call;
use crate::events::{Subscription, events};
use crate::harness::TestServer;
use crate::openapi;

const GEO: &str = "/-/admin/tiers/sites";
const EVENTS: &str = "/-/admin/tiers/sites/events";

const MAP: &str = r#"
name = "records"
data = 2
parity = 1
round = "300ms"
patience = "1s"
lease = "2s"
sites = [
    { name = "lisbon", table = "mem://l", blobs = "mem://l" },
    { name = "oslo", table = "mem://o", blobs = "mem://o" },
    { name = "turin", table = "mem://t", blobs = "mem://t" },
]
"#;

/// Returns an entropy source whose values do not repeat.
fn entropy() -> Entropy {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    Entropy::new(|| {
        let count = u128::from(COUNT.fetch_add(1, Ordering::Relaxed));
        (count.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)).to_le_bytes()
    })
}

async fn sites() -> GeoStore {
    let options = GeoOptions {
        map: SiteMap::parse(MAP).unwrap(),
        file: None,
        near: Some("oslo".to_owned()),
        clock: fulgurite_archive::system_clock(),
        entropy: entropy(),
        opener: Arc::new(Opener::new(entropy(), [])),
        cache: None,
        orphan_age: fulgurite_units::Duration::from_secs(86_400),
    };
    GeoStore::init(options).await.unwrap()
}

async fn start_with(geo: GeoStore) -> TestServer {
    let name = TierName::new("sites").unwrap();
    let server = TestServer::start_with(|config| {
        config.tiers.insert(name, Arc::new(geo));
    });
    server.await
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn geo_counters_match_openapi_and_metrics() {
    let geo = sites().await;
    let path = Path::from("one");
    geo.put(&path, vec![7; 30_000].into()).await.unwrap();
    assert_eq!(geo.get(&path).await.unwrap().bytes().await.unwrap().len(), 30_000);
    let store = geo.clone();
    let server = start_with(store).await;
    let shown = parse(&call(&server, "GET", GEO).await.text());
    openapi::assert_conforms("/components/schemas/Geo", &shown);
    assert_eq!((&shown["name"], &shown["epoch"]), (&json!("records"), &json!(1)));
    assert_eq!((&shown["writes_fast"], &shown["writes_slow"]), (&json!(2), &json!(0)), "{shown}");
    let names: Vec<_> = shown["sites"].as_array().unwrap().iter().map(|s| &s["name"]).collect();
    assert_eq!(names, ["lisbon", "oslo", "turin"]);
    let status = parse(&call(&server, "GET", "/-/admin/status").await.text());
    assert_eq!(status["tiers"], json!({ "glass": "glass", "sites": "geo" }));
    let metrics = server.request("GET", "/metrics").send_plain().await.text();
    let snapshot = geo.snapshot();
    let written = snapshot.sites[1].bytes_written;
    assert!(written >= 15_000, "a fragment is half of the object: {snapshot:?}");
    for line in [
        "fulgurite_tier_healthy{tier=\"sites\",kind=\"geo\"} 1".to_owned(),
        "fulgurite_tier_undecided{tier=\"sites\",kind=\"geo\"} 0".to_owned(),
        "fulgurite_tier_oldest_undecided_seconds{tier=\"sites\",kind=\"geo\"} 0".to_owned(),
        "fulgurite_tier_writes_total{tier=\"sites\",kind=\"geo\",outcome=\"fast\"} 2".to_owned(),
        format!(
            "fulgurite_tier_site_written_bytes_total{{tier=\"sites\",kind=\"geo\",site=\"oslo\"}} \
             {written}"
        ),
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    let response = call(&server, "GET", "/-/admin/tiers/sites/ledger").await;
    assert_eq!(response.status, 404, "{}", response.text());
    let ready = server.request("GET", "/readyz").send_plain().await.text();
    assert_eq!(ready, "ready\n");
}

#[tokio::test]
async fn geo_operations_match_openapi() {
    let geo = sites().await;
    let path = Path::from("one");
    geo.put(&path, vec![7; 30_000].into()).await.unwrap();
    let server = start_with(geo.clone()).await;
    let list = parse(&call(&server, "GET", "/-/admin/tiers").await.text());
    assert_eq!(list[1]["kind"], "geo", "{list}");
    let operations = list[1]["operations"].as_array().unwrap().iter();
    let operations: Vec<_> = operations.map(|one| one["operation"].as_str().unwrap()).collect();
    assert_eq!(operations, ["verify", "scrub", "replace", "collect"]);
    for (path, status, words) in [
        ("retire?target=oslo", 404, "it has: verify, scrub, replace, collect"),
        ("verify?target=oslo", 400, "for the whole tier"),
        ("scrub?table=mem://x", 400, "takes no table"),
        ("replace?table=mem://x", 400, "needs a target"),
        ("replace?target=oslo", 400, "--table URL"),
        ("replace?table=mem://x&target=porto", 404, "it has lisbon, oslo, turin"),
    ] {
        let response = call(&server, "POST", &format!("{GEO}/{path}")).await;
        assert_eq!(response.status, status, "{path}: {}", response.text());
        assert!(response.text().contains(words), "{path}: {}", response.text());
    }
    let report = async |path: &str| {
        let response = call(&server, "POST", &format!("{GEO}/{path}")).await;
        assert_eq!(response.status, 200, "{}", response.text());
        parse(response.text().lines().last().unwrap())["report"].clone()
    };
    let verified = report("verify").await;
    assert_eq!((&verified["objects"], &verified["bytes"]), (&json!(1), &json!(30_000)));
    let scrubbed = report("scrub").await;
    assert_eq!((&scrubbed["whole"], &scrubbed["lost"]), (&scrubbed["objects"], &json!([])));
    assert_eq!(report("collect").await["problems"], json!([]));
    let replaced = report("replace?blobs=mem%3A%2F%2Fx&table=mem%3A%2F%2Fx&target=oslo").await;
    assert_eq!((&replaced["problems"], &replaced["replaced"]), (&json!([]), &json!(3)));
    assert_eq!(geo.map().sites[1].table.as_deref(), Some("mem://x"));
    assert_eq!(geo.get(&path).await.unwrap().bytes().await.unwrap().len(), 30_000);
}

#[tokio::test]
async fn geo_events_stream_until_server_stops() {
    let geo = sites().await;
    let store = geo.clone();
    let server = start_with(store).await;
    let subscription = Subscription::subscribe_to(&server, EVENTS).await;
    assert!(subscription.is_accepted());
    let (serving, _data) = server.begin_stop();
    let response = subscription.remaining().await;
    serving.await.unwrap().unwrap();
    openapi::check("GET", EVENTS, &response);
    let text = response.text();
    let [snapshot_event, end] = events(&text).try_into().unwrap();
    assert_eq!(
        (snapshot_event.0, &snapshot_event.1["geo"]["name"]),
        ("snapshot", &json!("records")),
        "{text}"
    );
    assert_eq!(end, ("end", json!({ "reason": "stopped" })));
}

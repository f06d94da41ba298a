//! A set of tomes behind the gateway: every call of it answers as documented.

use std::sync::Arc;

use fulgurite_archive::config::TierName;
use fulgurite_tome::TomeSet;
use fulgurite_tome::objects::{PutGuarantee, TomeStore, bench_support};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::admin::call;
use crate::events::{Subscription, events};
use crate::harness::TestServer;
use crate::openapi;

const TOMES: &str = "/-/admin/tiers/shelf";
const EVENTS: &str = "/-/admin/tiers/shelf/events";

/// Starts a gateway with a set of tomes that has objects.
async fn start() -> (TestServer, TomeStore, TempDir) {
    let folder = TempDir::new().unwrap();
    let clock = fulgurite_archive::system_clock();
    let mut options = bench_support::set_options(folder.path(), clock.clone()).unwrap();
    options.spin_ups_a_day = Some(50);
    let set = TomeSet::init(options);
    let tomes =
        bench_support::open_store(set.unwrap(), folder.path(), clock, PutGuarantee::Local).unwrap();
    put(&tomes, 0..3).await;
    let shown = tomes.clone();
    let name = TierName::new("shelf").unwrap();
    let server = TestServer::start_with(|config| {
        config.tiers.insert(name, Arc::new(shown));
    });
    (server.await, tomes, folder)
}

async fn put(tomes: &TomeStore, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let body = vec![7; 10_000];
        tomes.put(&Path::from(format!("{number}")), body.into()).await.unwrap();
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tome_calls_match_openapi() {
    let (server, tomes, _folder) = start().await;
    let shown = parse(&call(&server, "GET", TOMES).await.text());
    openapi::assert_conforms("/components/schemas/Tomes", &shown);
    assert_eq!((&shown["objects"], &shown["bytes"]), (&json!(3), &json!(30_000)));
    assert_eq!((&shown["is_well"], &shown["promise"]), (&json!(true), &json!("local")));
    let all = shown["tomes"].as_array().unwrap();
    assert_eq!(all.len() as u64, u64::from(bench_support::TOMES));
    let pieces: u64 = all.iter().map(|tome| tome["pieces"].as_u64().unwrap()).sum();
    assert_eq!(pieces, 3, "{shown}");
    let response = call(&server, "POST", "/-/admin/tiers/shelf/recover").await;
    assert_eq!(response.status, 200, "{}", response.text());
    let report = parse(response.text().lines().last().unwrap())["report"].clone();
    assert_eq!(report, json!({ "objects": 0, "known": 3, "problems": [] }));
    let status = parse(&call(&server, "GET", "/-/admin/status").await.text());
    assert_eq!(status["tiers"], json!({ "glass": "glass", "shelf": "tome" }));
    let metrics = server.request("GET", "/metrics").send_plain().await.text();
    for line in [
        "fulgurite_tier_healthy{tier=\"shelf\",kind=\"tome\"} 1",
        "fulgurite_tier_objects{tier=\"shelf\",kind=\"tome\"} 3",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    let stopped = tokio::task::spawn_blocking(move || tomes.stop());
    stopped.await.unwrap();
}

/// Returns the kind of a step.
fn kind(step: &Value) -> &str {
    step["happened"].as_object().unwrap().keys().next().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tome_events_stream_until_server_stops() {
    let (server, tomes, _folder) = start().await;
    let subscription = Subscription::subscribe_to(&server, EVENTS).await;
    assert!(subscription.is_accepted());
    put(&tomes, 3..6).await;
    // The parity tomes spin up for that.
    let unprotected =
        async || parse(&call(&server, "GET", TOMES).await.text())["unprotected_bytes"].clone();
    while unprotected().await != 0 {
        tokio::task::yield_now().await;
    }
    let (serving, _data) = server.begin_stop();
    let response = subscription.remaining().await;
    serving.await.unwrap().unwrap();
    openapi::check("GET", EVENTS, &response);
    let text = response.text();
    let seen = events(&text);
    assert_eq!((seen[0].0, &seen[0].1["step"]), ("snapshot", &json!(0)));
    assert_eq!(seen[0].1["tomes"]["objects"], 3, "{text}");
    let (last, remaining) = seen[1..].split_last().unwrap();
    assert_eq!(*last, ("end", json!({ "reason": "stopped" })));
    let steps: Vec<&Value> =
        remaining.iter().filter(|(name, _)| *name == "step").map(|(_, step)| step).collect();
    for (number, step) in (1u64..).zip(&steps) {
        assert_eq!(step["step"], number, "{text}");
    }
    let local = steps.iter().filter(|step| kind(step) == "local");
    let bytes: u64 = local.map(|step| step["happened"]["local"]["bytes"].as_u64().unwrap()).sum();
    assert!(bytes >= 30_000, "three objects were acknowledged: {text}");
    for expected in ["power", "token", "unprotected"] {
        assert!(steps.iter().any(|step| kind(step) == expected), "no {expected}: {text}");
    }
}

/// Returns the value of a metric, by its name with labels.
fn value(metrics: &str, name: &str) -> Option<f64> {
    let found = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    found.map(|value| value.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tome_metrics_match_status() {
    let (server, tomes, _folder) = start().await;
    // Waits for a steady state, in which only hourly changes are left.
    let (shown, metrics) = loop {
        let before = parse(&call(&server, "GET", TOMES).await.text());
        let metrics = server.request("GET", "/metrics").send_plain().await.text();
        let after = parse(&call(&server, "GET", TOMES).await.text());
        if before == after && before["unprotected_bytes"] == 0 {
            break (after, metrics);
        }
    };
    let assert_metric = |name: &str, expected: &Value| {
        let found = value(&metrics, name);
        let expected = expected.as_f64().unwrap_or_else(|| panic!("{name}: {expected}"));
        assert!(found.is_some_and(|found| (found - expected).abs() < 0.01), "{name}: {metrics}");
    };
    assert_metric("fulgurite_tier_simulated{tier=\"shelf\",kind=\"tome\"}", &json!(1));
    assert_metric("fulgurite_tier_watts{tier=\"shelf\",kind=\"tome\"}", &shown["watts"]);
    let seconds = |ms: &Value| json!(ms.as_f64().unwrap() / 1000.0);
    for tome in shown["tomes"].as_array().unwrap() {
        let name = |what: &str| {
            format!(
                "fulgurite_tier_{what}{{tier=\"shelf\",kind=\"tome\",tome=\"{}\"}}",
                tome["tome"]
            )
        };
        assert_metric(&name("pieces"), &tome["pieces"]);
        assert_metric(&name("unprotected_bytes"), &tome["unprotected_bytes"]);
        assert_metric(&name("unprotected_seconds"), &tome["unprotected_seconds"]);
        assert_metric(&name("bad_blocks"), &tome["bad"]);
        assert_metric(&name("healed_total"), &tome["healed"]);
        assert_metric(&name("scrubs_total"), &tome["scrubs"]);
        assert_metric(&name("scrub_share"), &tome["scrub"]["share"]);
        assert_metric(&name("scrub_began_timestamp_seconds"), &seconds(&tome["scrub"]["began"]));
        assert_metric(&name("scrub_paced_timestamp_seconds"), &seconds(&tome["scrub"]["paced"]));
        assert_metric(&name("spinups_day"), &tome["spin_ups_of_a_day"]);
        assert_metric(&name("spinups_left"), &tome["budget"]["left"]);
        assert_metric(&name("spinups_overdrawn_total"), &tome["budget"]["overdrawn"]);
        assert_metric(&name("deferred_seconds"), &json!(0));
        assert_metric(&name("to_scrub_bytes"), &tome["to_scrub_bytes"]);
        let mut spin_ups = 0;
        for entry in tome["spin_ups_by"].as_array().unwrap() {
            let (number, cause) = (&tome["tome"], entry[0].as_str().unwrap());
            let name = format!(
                "fulgurite_tier_spinups_total{{tier=\"shelf\",kind=\"tome\",tome=\"{number}\",\
                 cause=\"{cause}\"}}"
            );
            assert_metric(&name, &entry[1]);
            spin_ups += entry[1].as_u64().unwrap();
        }
        assert_eq!(tome["spin_ups"], spin_ups, "every spin-up has a cause");
    }
    let stopped = tokio::task::spawn_blocking(move || tomes.stop());
    stopped.await.unwrap();
}

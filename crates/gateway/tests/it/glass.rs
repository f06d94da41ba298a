//! The glass tier over HTTP, as any other tier.

use serde_json::Value;

use crate::admin::call;
use crate::events::{Subscription, events};
use crate::harness::TestServer;
use crate::openapi;

const GLASS: &str = "/-/admin/tiers/glass";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn glass_calls_match_openapi() {
    let server = TestServer::start().await;
    let put = server.request("PUT", "/vault/deep").header("x-amz-storage-class", "DEEP_ARCHIVE");
    assert_eq!(put.body(&[9; 1000]).send().await.status, 200);
    let watching = Subscription::subscribe_to(&server, "/-/admin/tiers/glass/events").await;
    assert!(watching.is_accepted());
    server.archive.seal().await.unwrap();

    let list = json(&call(&server, "GET", "/-/admin/tiers").await.text());
    openapi::assert_conforms("/components/schemas/Tiers", &list);
    assert_eq!((&list[0]["name"], &list[0]["kind"]), (&"glass".into(), &"glass".into()));
    let shown = json(&call(&server, "GET", GLASS).await.text());
    openapi::assert_conforms("/components/schemas/Glass", &shown);
    let platters = shown["platters"].as_u64().unwrap();
    assert!(platters > 0 && shown["sets"][0]["state"] == "released", "{shown}");

    let verified = call(&server, "POST", "/-/admin/tiers/glass/verify").await.text();
    for line in verified.lines() {
        openapi::assert_conforms("/components/schemas/PlattersVerifiedLine", &json(line));
    }
    let report = json(verified.lines().last().unwrap())["report"]["platters"].clone();
    assert_eq!(report.as_array().unwrap().len() as u64, platters);
    let one = format!("{GLASS}/verify?target={}", report[0]["platter"].as_str().unwrap());
    let verified = call(&server, "POST", &one).await.text();
    let again = json(verified.lines().last().unwrap())["report"]["platters"].clone();
    assert_eq!(again.as_array().unwrap()[..], report.as_array().unwrap()[..1]);
    for (method, path, status) in [
        ("POST", "/-/admin/tiers/glass/verify?target=1", 400),
        ("POST", "/-/admin/tiers/glass/scrub", 404),
        ("GET", "/-/admin/tiers/glass/ledger", 404),
    ] {
        let response = call(&server, method, path).await;
        assert_eq!(response.status, status, "{path}: {}", response.text());
    }

    // It is not known before the job looks for it, so the error is the last line.
    let unknown = format!("{GLASS}/verify?target=486ebbc6-ddce-4703-b3bb-03a2ae53f2d7");
    let refused = call(&server, "POST", &unknown).await.text();
    let error = json(refused.lines().last().unwrap())["error"].clone();
    assert_eq!(error["code"], "Invalid", "{refused}");

    let metrics = server.request("GET", "/metrics").send_plain().await.text();
    let line = format!("fulgurite_tier_platters{{tier=\"glass\",kind=\"glass\"}} {platters}\n");
    assert!(metrics.contains(&line), "{metrics}");
    let (serving, _data) = server.begin_stop();
    let text = watching.remaining().await.text();
    serving.await.unwrap().unwrap();
    let events = events(&text);
    assert_eq!((events[0].0, events.last().unwrap().0), ("snapshot", "end"));
    assert!(events.iter().filter(|(name, _)| *name == "step").count() > 1);
    for (_, data) in &events {
        openapi::assert_conforms("/components/schemas/GlassEvent", data);
    }
}

//! A set of tomes behind the gateway: every call of it answers as it is described, with and without
//! one.

use fulgurite_tome_store::{Promise, TomeStore, bench_support};
use fulgurite_tomes::TomeSet;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::admin::call;
use crate::harness::TestServer;

/// A gateway with a set, which has objects.
async fn start() -> (TestServer, TomeStore, TempDir) {
    let folder = TempDir::new().unwrap();
    let clock = fulgurite_archive::system_clock();
    let set = TomeSet::init(bench_support::set_options(folder.path(), clock.clone()).unwrap());
    let tomes = bench_support::over(set.unwrap(), folder.path(), clock, Promise::Local).unwrap();
    for number in 0..3 {
        let body = vec![number; 10_000];
        tomes.put(&Path::from(format!("{number}")), body.into()).await.unwrap();
    }
    let shown = tomes.clone();
    let server = TestServer::start_with(|config| config.cold.tomes = Some(shown)).await;
    (server, tomes, folder)
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_of_tomes_answers_as_it_is_described() {
    let (server, tomes, _folder) = start().await;
    let shown = parse(&call(&server, "GET", "/-/admin/tomes").await.text());
    assert_eq!((&shown["objects"], &shown["bytes"]), (&json!(3), &json!(30_000)));
    assert_eq!((&shown["is_well"], &shown["promise"]), (&json!(true), &json!("local")));
    let all = shown["tomes"].as_array().unwrap();
    assert_eq!(all.len() as u64, u64::from(bench_support::TOMES));
    let pieces: u64 = all.iter().map(|tome| tome["pieces"].as_u64().unwrap()).sum();
    assert_eq!(pieces, 3, "{shown}");
    let answer = call(&server, "POST", "/-/admin/tomes-recover").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let report = parse(answer.text().lines().last().unwrap())["report"].clone();
    assert_eq!(report, json!({ "objects": 0, "known": 3, "problems": [] }));
    let status = parse(&call(&server, "GET", "/-/admin/status").await.text());
    assert_eq!(status["has_tomes"], true);
    let metrics = server.ask("GET", "/metrics").send_plain().await.text();
    for line in ["fulgurite_tomes_healthy 1", "fulgurite_tomes_objects 3"] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    let stopped = tokio::task::spawn_blocking(move || tomes.stop());
    stopped.await.unwrap();
}

#[tokio::test]
async fn calls_of_tomes_are_not_found_without_any() {
    let server = TestServer::start().await;
    for (method, path) in [("GET", "/-/admin/tomes"), ("POST", "/-/admin/tomes-recover")] {
        let answer = call(&server, method, path).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
        assert!(answer.text().contains("[tomes]"), "{}", answer.text());
    }
    let metrics = server.ask("GET", "/metrics").send_plain().await.text();
    assert!(!metrics.contains("fulgurite_tomes"), "{metrics}");
}

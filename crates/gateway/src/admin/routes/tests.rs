//! The routes and the OpenAPI document describe the same calls.

use std::collections::BTreeSet;

use fulgurite_tier::Operation;
use http::Method;
use serde_json::Value;

use super::{ROUTES, TIERS, TierCall, is_stream_of_events};
use crate::page::Asset;

/// Returns method and path of each operation, and whether it is for the operator only.
fn documented_operations() -> BTreeSet<(String, String, bool)> {
    let asset = Asset::find("/-/openapi.json").unwrap();
    let document: Value = serde_json::from_str(asset.text()).unwrap();
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document["security"][0]["operator"], serde_json::json!([]));
    let mut found = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let is_open =
                operation.get("security").is_some_and(|all| all == &serde_json::json!([]));
            found.insert((method.to_uppercase(), path.clone(), !is_open));
        }
    }
    found
}

#[test]
fn openapi_document_matches_routes() {
    let open = [("GET".to_owned(), "/-/openapi.json".to_owned(), false)];
    let routes = ROUTES.iter().map(|(m, path, _)| (m.to_string(), (*path).to_owned(), true));
    let shown = ["", "/ledger", "/events"].map(|call| ("GET", call.to_owned()));
    let run = Operation::ALL.map(|operation| ("POST", format!("/{operation}")));
    let tiers = shown.into_iter().chain(run);
    let tiers =
        tiers.map(|(method, call)| (method.to_owned(), format!("{TIERS}/{{name}}{call}"), true));
    assert_eq!(documented_operations(), routes.chain(tiers).chain(open).collect());
}

#[test]
fn calls_of_tiers_are_found_by_name() {
    assert_eq!(
        TierCall::for_request(&Method::GET, "/-/admin/tiers/cold"),
        Some(("cold", TierCall::Snapshot))
    );
    assert_eq!(
        TierCall::for_request(&Method::GET, "/-/admin/tiers/cold/events"),
        Some(("cold", TierCall::Events))
    );
    let scrub = TierCall::Run(Operation::Scrub);
    assert_eq!(
        TierCall::for_request(&Method::POST, "/-/admin/tiers/cold/scrub"),
        Some(("cold", scrub))
    );
    for path in ["cold/", "cold/scrub", "cold/ledger/", "cold/ledger/x"] {
        let path = format!("{TIERS}/{path}");
        assert_eq!(TierCall::for_request(&Method::GET, &path), None, "{path}");
    }
    for path in ["cold", "cold/", "cold/ledger", "cold/scrub/3"] {
        let path = format!("{TIERS}/{path}");
        assert_eq!(TierCall::for_request(&Method::POST, &path), None, "{path}");
    }
    assert!(is_stream_of_events("/-/events") && is_stream_of_events("/-/admin/tiers/a/events"));
    assert!(!is_stream_of_events("/-/admin/tiers/a"));
}

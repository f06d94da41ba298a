//! The routes and the OpenAPI document describe the same calls.

use std::collections::BTreeSet;

use serde_json::Value;

use super::ROUTES;
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
    assert_eq!(documented_operations(), routes.chain(open).collect());
}

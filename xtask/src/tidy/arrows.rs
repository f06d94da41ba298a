//! Which crate may use which: arrows point down only.
//!
//! This table is ARCHITECTURE.md's code map. A new arrow is a design note first, then a word here.

use super::{Finding, Source};

/// What every crate may use of the others; a crate not named here may not exist.
const MAY_USE: [(&str, &[&str]); 13] = [
    ("units", &[]),
    ("codes", &["units"]),
    ("glass", &["codes", "units"]),
    ("decode", &["codes", "glass", "units"]),
    ("layout", &["glass", "units"]),
    ("library", &["units"]),
    ("catalog", &["units"]),
    ("platters", &["catalog", "codes", "decode", "glass", "layout", "library", "units"]),
    ("archive", &["catalog", "codes", "decode", "glass", "layout", "library", "platters", "units"]),
    ("twin", &["layout", "library", "units"]),
    ("gateway", &["archive", "units"]),
    (
        "fulgurite",
        &[
            "archive", "catalog", "codes", "decode", "gateway", "glass", "layout", "library",
            "platters", "twin", "units",
        ],
    ),
    ("xtask", &[]),
];

/// Tables of a manifest that make arrows.
const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Arrows of one manifest that the table does not have.
pub(super) fn check(manifest: &Source) -> Vec<Finding> {
    let crate_name = match manifest.path.split('/').collect::<Vec<_>>()[..] {
        ["crates", name, "Cargo.toml"] => name,
        ["xtask", "Cargo.toml"] => "xtask",
        _ => return Vec::new(),
    };
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == crate_name) else {
        return vec![manifest.finding(0, format!("crate {crate_name} is not on the map"))];
    };
    let table = match manifest.text.parse::<toml::Table>() {
        Ok(table) => table,
        Err(error) => return vec![manifest.finding(0, error.message())],
    };
    let named = TABLES.iter().filter_map(|name| table.get(*name)?.as_table());
    let used = named.flat_map(|t| t.keys()).filter_map(|name| name.strip_prefix("fulgurite-"));
    used.filter(|name| !allowed.contains(name))
        .map(|name| manifest.finding(0, format!("{crate_name} may not use {name}")))
        .collect()
}

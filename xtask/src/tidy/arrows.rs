//! Which crate may use which: arrows point down only.
//!
//! ARCHITECTURE.md's code map says it, and is read here: there is one copy of it. A new arrow is a
//! design note first, then a word there.

use std::collections::BTreeMap;

use super::{Finding, Source};

/// Where the map is.
pub(super) const MAP: &str = "ARCHITECTURE.md";
/// The project's own tool, which builds all of them and uses none.
const TOOL: &str = "xtask";
/// Tables of a manifest that make arrows.
const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// What every crate may use of the others; a crate that is not on it may not exist.
type Map<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// Rows of the map that make no sense, and arrows of manifests that it does not have.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let map = sources.iter().find(|source| source.path == MAP);
    let map = map.map_or_else(Map::default, |source| read(source, &mut findings));
    let manifests = sources.iter().filter(|source| source.path.ends_with("Cargo.toml"));
    findings.extend(manifests.flat_map(|manifest| arrows(&map, manifest)));
    findings
}

/// Reads rows of the form `` | `crate` | what it is | what it may use | ``. The last cell names
/// crates above it, or says "-", "all above", "all above but" some, or "all".
fn read<'a>(source: &'a Source, findings: &mut Vec<Finding>) -> Map<'a> {
    let mut map = Map::new();
    let mut above: Vec<&str> = Vec::new();
    for (line, row) in (1..).zip(source.text.lines()) {
        let Some((name, rest)) = row.strip_prefix("| `").and_then(|row| row.split_once("` |"))
        else {
            continue;
        };
        let used = rest.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let (is_all, named) = match used.trim() {
            "-" => (false, ""),
            "all" | "all above" => (true, ""),
            some => some.strip_prefix("all above but ").map_or((false, some), |but| (true, but)),
        };
        let named: Vec<&str> = named.split(", ").filter(|name| !name.is_empty()).collect();
        for stranger in named.iter().filter(|name| !above.contains(name)) {
            findings.push(source.finding(line, format!("{stranger} is not above {name}")));
        }
        let may_use = |other: &&str| named.contains(other) != is_all;
        map.insert(name, above.iter().copied().filter(may_use).collect());
        above.push(name);
    }
    map
}

/// Arrows of one manifest that the map does not have.
fn arrows(map: &Map<'_>, manifest: &Source) -> Vec<Finding> {
    let crate_name = match manifest.path.split('/').collect::<Vec<_>>()[..] {
        ["crates", name, "Cargo.toml"] => name,
        [TOOL, "Cargo.toml"] => TOOL,
        _ => return Vec::new(),
    };
    let none = Vec::new();
    let Some(allowed) = map.get(crate_name).or_else(|| (crate_name == TOOL).then_some(&none))
    else {
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

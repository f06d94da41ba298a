//! Which crate may depend on which: arrows point down only.
//!
//! They are read from the code map in ARCHITECTURE.md, so there is only one copy. A new arrow needs
//! a design note first, then an entry in the map.

use std::collections::BTreeMap;

use super::{Finding, Source};

/// The file with the map.
pub(super) const MAP: &str = "ARCHITECTURE.md";
/// The project's own tool, which builds all crates and depends on none.
const TOOL: &str = "xtask";
/// Manifest tables with dependencies, and whether they are for tests only.
const TABLES: [(&str, bool); 3] =
    [("dependencies", false), ("dev-dependencies", true), ("build-dependencies", false)];

/// The allowed dependencies of every crate; a crate that is not in the map may not exist.
type Map<'a> = BTreeMap<&'a str, Allowed<'a>>;

/// The allowed dependencies of a crate.
#[derive(Default)]
struct Allowed<'a> {
    used: Vec<&'a str>,
    /// Additional ones for its tests.
    test_only: Vec<&'a str>,
}

/// Returns invalid rows of the map, and dependencies in manifests that the map does not allow.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let map = sources.iter().find(|source| source.path == MAP);
    let map = map.map_or_else(Map::default, |source| read(source, &mut findings));
    let manifests = sources.iter().filter(|source| source.path.ends_with("Cargo.toml"));
    findings.extend(manifests.flat_map(|manifest| dependencies(&map, manifest)));
    findings
}

/// Reads rows of the form `` | `crate` | what it is | what it may use | ``. The last cell names
/// crates above it, or is "-", "all above", "all above but" some, or "all"; after "; tests: " it
/// names additional ones for its tests.
fn read<'a>(source: &'a Source, findings: &mut Vec<Finding>) -> Map<'a> {
    let mut map = Map::new();
    let mut above: Vec<&str> = Vec::new();
    for (line, row) in (1..).zip(source.text.lines()) {
        let Some((name, rest)) = row.strip_prefix("| `").and_then(|row| row.split_once("` |"))
        else {
            continue;
        };
        let used = rest.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let used = used.trim();
        let (used, tests) = used.split_once("; tests: ").unwrap_or((used, ""));
        let (is_all, named) = match used {
            "-" => (false, ""),
            "all" | "all above" => (true, ""),
            some => some.strip_prefix("all above but ").map_or((false, some), |but| (true, but)),
        };
        let [named, test_only] = [named, tests]
            .map(|list| list.split(", ").filter(|name| !name.is_empty()).collect::<Vec<_>>());
        for unknown in named.iter().chain(&test_only).filter(|name| !above.contains(name)) {
            findings.push(source.finding(line, format!("{unknown} is not above {name}")));
        }
        let may_use = |other: &&str| named.contains(other) != is_all;
        let used = above.iter().copied().filter(may_use).collect();
        map.insert(name, Allowed { used, test_only });
        above.push(name);
    }
    map
}

/// Returns dependencies of one manifest that the map does not allow.
fn dependencies(map: &Map<'_>, manifest: &Source) -> Vec<Finding> {
    let crate_name = match manifest.path.split('/').collect::<Vec<_>>()[..] {
        ["crates", name, "Cargo.toml"] => name,
        [TOOL, "Cargo.toml"] => TOOL,
        _ => return Vec::new(),
    };
    let none = Allowed::default();
    let Some(allowed) = map.get(crate_name).or_else(|| (crate_name == TOOL).then_some(&none))
    else {
        return vec![manifest.finding(0, format!("crate {crate_name} is not on the map"))];
    };
    let table = match manifest.text.parse::<toml::Table>() {
        Ok(table) => table,
        Err(error) => return vec![manifest.finding(0, error.message())],
    };
    let mut findings = Vec::new();
    for (name, is_of_tests) in TABLES {
        let named = table.get(name).and_then(toml::Value::as_table);
        let used = named.into_iter().flat_map(|table| table.keys());
        for name in used.filter_map(|name| name.strip_prefix("fulgurite-")) {
            let is_allowed =
                allowed.used.contains(&name) || (is_of_tests && allowed.test_only.contains(&name));
            if !is_allowed {
                findings.push(manifest.finding(0, format!("{crate_name} may not use {name}")));
            }
        }
    }
    findings
}

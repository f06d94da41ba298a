//! What a crate may do outside its own memory: open files, start threads, use sockets, read a
//! clock, draw entropy.
//!
//! The code map in ARCHITECTURE.md says it for each crate. A crate must not do more, and a row must
//! not list what its crate does not do. Only the crate's own calls are seen, not those of what it
//! uses. Tests may do anything.

use std::collections::BTreeSet;

use super::{Finding, Source, dependencies};

/// Each effect, and the text by which it is recognized.
const EFFECTS: [(&str, &[&str]); 5] = [
    ("files", &["std::fs", "tokio::fs", "rustix::fs"]),
    ("threads", &["thread::spawn", "thread::Builder", "thread::scope", "spawn_blocking("]),
    (
        "sockets",
        &[
            "tokio::net::",
            "reqwest::",
            "tonic::transport",
            "async_nats::",
            "object_store::aws",
            "tokio_postgres::",
        ],
    ),
    ("clock", &["SystemTime::now(", "Instant::now(", "Timestamp::now(", "tokio::time::"]),
    ("entropy", &["getrandom::"]),
];

/// Returns effects that the map does not allow, and those that it allows in vain.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let Some(map) = sources.iter().find(|source| source.path == dependencies::MAP) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (line, row) in (1..).zip(map.text.lines()) {
        let Some((name, allowed)) = read(row) else { continue };
        let is_known = |effect: &&str| EFFECTS.iter().any(|(known, _)| known == effect);
        for unknown in allowed.iter().filter(|effect| !is_known(effect)) {
            findings.push(map.finding(line, format!("{unknown} is not an effect")));
        }
        let folder = format!("crates/{name}/src/");
        let files = sources.iter().filter(|source| source.path.starts_with(&folder));
        let mut seen = BTreeSet::new();
        for source in files.filter(|source| source.is("rs") && !source.is_test()) {
            for (at, effect, sign) in effects(source) {
                seen.insert(effect);
                if !allowed.contains(&effect) {
                    findings.push(source.finding(at, format!("{name} may not use {sign}")));
                }
            }
        }
        for effect in allowed.iter().filter(|effect| is_known(effect) && !seen.contains(*effect)) {
            findings.push(map.finding(line, format!("{name} does not use {effect}")));
        }
    }
    findings
}

/// Returns a crate and its allowed effects from a row of the map: the last cell but one.
fn read(row: &str) -> Option<(&str, Vec<&str>)> {
    let (name, cells) = row.strip_prefix("| `")?.split_once("` |")?;
    let effects = cells.trim_end().trim_end_matches('|').rsplit('|').nth(1)?.trim();
    Some((name, effects.split(", ").filter(|effect| *effect != "-").collect()))
}

/// Returns the lines outside comments and tests with an effect, and the text that shows it.
fn effects(source: &Source) -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    let code = source.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = (1..).zip(code.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"));
    lines.flat_map(|(at, line)| {
        EFFECTS.iter().flat_map(move |&(effect, signs)| {
            let found = signs.iter().filter(move |sign| line.contains(**sign));
            found.map(move |&sign| (at, effect, sign))
        })
    })
}

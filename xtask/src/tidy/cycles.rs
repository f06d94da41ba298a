//! No dependency cycles between files of a crate.
//!
//! A file depends on another if it names an item of it by a path from the root of the crate,
//! `crate::...`, in a `use` or anywhere. A re-exported name (`pub use`) counts for the file that
//! defines it, so a list of a crate's exports is in no cycle. Between a folder's module and the
//! files of the folder, names use `self` and `super`: those do not count. Tests are ignored.
//!
//! ```text
//!   a.rs: use crate::B;      lib.rs: pub use b::B;      b.rs: crate::a::read()
//!   a.rs --> b.rs --> a.rs   is a cycle: some of the items of a.rs belong in their own file
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Source};

/// A dependency that closes a cycle and is tolerated for now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exception {
    /// The dependent file.
    pub(super) from: &'static str,
    pub(super) to: &'static str,
    pub(super) reason: &'static str,
}

/// Dependencies that close cycles today, each with what it would take to reverse it.
pub(super) const EXCEPTIONS: &[Exception] = &[Exception {
    from: "crates/archive/src/state.rs",
    to: "crates/archive/src/jobs/workers.rs",
    reason: "the archive's state has handles of its jobs, and orders to them have types of the \
             jobs; it takes handles apart from orders",
}];

/// The modules of a crate by their paths, without `crate`, and their files.
type Modules<'a> = BTreeMap<Path, &'a Source>;
type Path = Vec<String>;
/// The dependencies of each file within its crate.
type Dependencies<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Returns cycles that no exception breaks, and exceptions that break none.
pub(super) fn check(sources: &[Source], exceptions: &[Exception]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Modules<'_>> = BTreeMap::new();
    for source in sources {
        if let Some((name, path)) = module(source) {
            crates.entry(name).or_default().insert(path, source);
        }
    }
    let mut dependencies: Dependencies<'_> = crates.values().flat_map(dependencies_of).collect();
    let opens = |exception: &Exception| {
        dependencies.get_mut(exception.from).is_some_and(|needed| needed.remove(exception.to))
    };
    let opened: Vec<bool> = exceptions.iter().map(opens).collect();
    let mut findings = Vec::new();
    for (exception, is_dependency) in exceptions.iter().zip(opened) {
        if !is_dependency {
            findings.push(unneeded_exception(exception, "it does not need that file"));
        } else if path(&dependencies, exception.to, exception.from).is_none() {
            findings.push(unneeded_exception(exception, "there is no cycle"));
        }
    }
    findings.extend(cycles(&dependencies));
    findings
}

fn unneeded_exception(exception: &Exception, why: &str) -> Finding {
    let Exception { to, reason, .. } = exception;
    let message = format!("no exception is needed for {to} ({reason}): {why}");
    Finding { path: exception.from.to_owned(), line: 0, message }
}

/// Returns one short cycle of each strongly connected component.
fn cycles(dependencies: &Dependencies<'_>) -> Vec<Finding> {
    let (mut findings, mut known) = (Vec::new(), BTreeSet::new());
    for (from, needed) in dependencies {
        if known.contains(from) {
            continue;
        }
        let paths = needed.iter().filter_map(|to| path(dependencies, to, from));
        let Some(back) = paths.min_by_key(Vec::len) else { continue };
        let is_in = |file: &&&str| {
            path(dependencies, from, file).is_some() && path(dependencies, file, from).is_some()
        };
        let component: Vec<&str> = dependencies.keys().filter(is_in).copied().collect();
        let cycle = back.join(", which needs ");
        let message =
            format!("a cycle in a component of {} files: it needs {cycle}", component.len());
        findings.push(Finding { path: (*from).to_owned(), line: 0, message });
        known.extend(component);
    }
    findings
}

/// Returns the shortest path from one file to another, both included.
fn path<'a>(dependencies: &Dependencies<'a>, from: &str, to: &str) -> Option<Vec<&'a str>> {
    let (from, _) = dependencies.get_key_value(from)?;
    let mut paths = vec![vec![*from]];
    let mut seen = BTreeSet::from([*from]);
    while !paths.is_empty() {
        if let Some(at) = paths.iter().position(|path| path.last() == Some(&to)) {
            return Some(paths.swap_remove(at));
        }
        let mut longer = Vec::new();
        for path in &paths {
            let next = path.last().and_then(|last| dependencies.get(last));
            for file in next.into_iter().flatten().filter(|file| seen.insert(**file)) {
                longer.push(path.iter().copied().chain([*file]).collect());
            }
        }
        paths = longer;
    }
    None
}

/// Returns the crate and the path of a module, unless the file contains only tests.
fn module(source: &Source) -> Option<(&str, Path)> {
    let (name, file) = source.path.strip_prefix("crates/")?.split_once("/src/")?;
    let file = file.strip_suffix(".rs").filter(|_| !source.is_test())?;
    // A program has its own modules, and names those of its library like those of any other crate.
    if file == "main" || file.starts_with("bin/") {
        return None;
    }
    let file = file.strip_suffix("/mod").unwrap_or(file);
    let path = if file == "lib" { Path::new() } else { words(file, "/") };
    Some((name, path))
}

fn words(text: &str, between: &str) -> Path {
    text.split(between).map(str::to_owned).collect()
}

/// Returns the dependencies of each file of a crate.
fn dependencies_of<'a>(modules: &Modules<'a>) -> Vec<(&'a str, BTreeSet<&'a str>)> {
    let texts: BTreeMap<&Path, String> =
        modules.iter().map(|(path, source)| (path, code(&source.text))).collect();
    let reexports = |path: &Path| (path.clone(), reexported_names(path, &texts[path]));
    let reexports: BTreeMap<Path, BTreeMap<String, Path>> = modules.keys().map(reexports).collect();
    let needs = |(path, source): (&Path, &&'a Source)| {
        let named = names(&without_reexports(&texts[path]));
        let files = named.iter().filter_map(|name| {
            let module = owner(modules, &reexports, name, REEXPORT_DEPTH_MAX);
            modules.get(&module).map(|source| source.path.as_str())
        });
        let others = files.filter(|file| *file != source.path);
        (source.path.as_str(), others.collect())
    };
    modules.iter().map(needs).collect()
}

/// Longest chain of re-exports that is followed.
const REEXPORT_DEPTH_MAX: usize = 8;

/// Returns the module that defines a name: follows the path through modules, and then re-exports.
fn owner(
    modules: &Modules<'_>,
    reexports: &BTreeMap<Path, BTreeMap<String, Path>>,
    name: &[String],
    depth: usize,
) -> Path {
    let mut at = Path::new();
    for (index, word) in name.iter().enumerate() {
        let inside = [at.clone(), vec![word.clone()]].concat();
        if modules.contains_key(&inside) {
            at = inside;
            continue;
        }
        let from = reexports.get(&at).and_then(|reexports| reexports.get(word));
        return match from {
            Some(from) if depth > 0 => {
                let name = [from.as_slice(), &name[index + 1..]].concat();
                owner(modules, reexports, &name, depth - 1)
            }
            _ => at,
        };
    }
    at
}

/// Returns the text without comments and without a test module at its end.
fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.starts_with("mod tests {"));
    let lines = lines.map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the re-exporting statements of a text.
fn reexport_statements(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(';').filter_map(|statement| {
        let at = statement.rfind("pub use ").or_else(|| {
            let at = statement.rfind(") use ")?;
            statement[..at].rfind("pub(")
        })?;
        Some(&statement[at..])
    })
}

fn without_reexports(text: &str) -> String {
    reexport_statements(text).fold(text.to_owned(), |text, statement| text.replace(statement, ""))
}

/// Returns the names that a module re-exports, with their paths from the root of the crate.
fn reexported_names(path: &[String], text: &str) -> BTreeMap<String, Path> {
    let mut reexports = BTreeMap::new();
    for statement in reexport_statements(text) {
        let Some((_, tree)) = statement.split_once("use ") else { continue };
        let mut paths = Vec::new();
        parse_use_tree(tree, &[], &mut paths);
        for (mut name, bound_name) in paths {
            let base = match name.first().map(String::as_str) {
                Some("crate") => &[],
                Some("super") => &path[..path.len().saturating_sub(1)],
                Some("self") => path,
                _ => {
                    name.insert(0, "self".to_owned());
                    path
                }
            };
            reexports.insert(bound_name, [base, &name[1..]].concat());
        }
    }
    reexports
}

/// Returns all paths in a text that begin at the root of the crate, without `crate`.
fn names(text: &str) -> Vec<Path> {
    let mut paths = Vec::new();
    for (at, root) in text.match_indices("crate::") {
        let before = text[..at].chars().next_back();
        if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            parse_use_tree(&text[at + root.len()..], &[], &mut paths);
        }
    }
    paths.into_iter().map(|(path, _)| path).collect()
}

/// Parses one use tree, `a::{b, c::d as e}`, below `stem`; appends its paths, each with the name it
/// is bound to, and returns the rest of the text.
fn parse_use_tree<'a>(text: &'a str, stem: &[String], paths: &mut Vec<(Path, String)>) -> &'a str {
    let mut stem = stem.to_vec();
    let mut rest = text.trim_start();
    loop {
        if let Some(mut inside) = rest.strip_prefix('{') {
            while !inside.trim_start().starts_with('}') && !inside.trim().is_empty() {
                inside = parse_use_tree(inside, &stem, paths).trim_start();
                inside = inside.strip_prefix(',').unwrap_or(inside);
            }
            return inside.trim_start().strip_prefix('}').unwrap_or_default();
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        if word.is_empty() {
            // A glob, or something that is no path: only the stem is known.
            paths.push((stem, String::new()));
            return behind.strip_prefix('*').unwrap_or_else(|| skip(behind));
        }
        if word != "self" || stem.is_empty() {
            stem.push(word.to_owned());
        }
        if let Some(more) = behind.strip_prefix("::") {
            rest = more.trim_start();
            continue;
        }
        let (bound_name, behind) = alias(behind).unwrap_or((stem[stem.len() - 1].as_str(), behind));
        let bound_name = bound_name.to_owned();
        paths.push((stem, bound_name));
        return behind;
    }
}

/// Parses the name after `as`; returns it and the text after it.
fn alias(text: &str) -> Option<(&str, &str)> {
    let name = text.trim_start().strip_prefix("as ")?.trim_start();
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(name.split_at(end))
}

/// Returns the text after its first character, so that parsing always advances.
fn skip(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    chars.as_str()
}

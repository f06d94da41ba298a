//! Rules for single files, and two that compare documents with manifests.
//!
//! A rule looks at text, not at syntax: it must be short enough to be verified at a glance.

use super::{Finding, Source, words};

/// Longest source file, unless it contains only tests.
const FILE_LINES_MAX: usize = 800;
/// Longest line of a source file.
const LINE_CHARS_MAX: usize = 100;

/// The index that gives a reason for every dependency and lists every design note.
pub(super) const DESIGN_INDEX: &str = "docs/design/README.md";

/// Rules for one file at a time.
pub(super) const ALL: [fn(&Source) -> Vec<Finding>; 8] = [
    file_length,
    line_length,
    ascii,
    module_docs,
    unfinished_work,
    debugging_macros,
    words::retired,
    words::glossary,
];

/// Files stay readable in one sitting.
pub(super) fn file_length(source: &Source) -> Vec<Finding> {
    let lines = source.text.lines().count();
    if !source.is("rs") || source.is_test() || lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    vec![source.finding(0, format!("{lines} lines; at most {FILE_LINES_MAX}"))]
}

/// Lines fit two windows side by side. Tables in documents and manifests cannot be wrapped.
pub(super) fn line_length(source: &Source) -> Vec<Finding> {
    if source.is("md") || source.is("toml") {
        return Vec::new();
    }
    each_line(source, |line| {
        let chars = line.chars().count();
        (chars > LINE_CHARS_MAX).then(|| format!("{chars} characters; at most {LINE_CHARS_MAX}"))
    })
}

/// Only characters that can be typed on every keyboard can be searched for.
pub(super) fn ascii(source: &Source) -> Vec<Finding> {
    each_line(source, |line| {
        let strange = line.chars().find(|c| !c.is_ascii())?;
        Some(format!("character U+{:04X} is not ASCII", u32::from(strange)))
    })
}

/// Every module documents what it is, why, and what it is not.
pub(super) fn module_docs(source: &Source) -> Vec<Finding> {
    let opening = if source.is("rs") {
        "//! "
    } else if source.is("py") && !source.text.is_empty() {
        "\"\"\""
    } else {
        return Vec::new();
    };
    if source.text.starts_with(opening) {
        return Vec::new();
    }
    vec![source.finding(1, format!("a module begins with its documentation, `{opening}`"))]
}

/// Unfinished work has an issue, or is finished.
pub(super) fn unfinished_work(source: &Source) -> Vec<Finding> {
    // Split, so that this file obeys its own rule.
    let never = [concat!("FIX", "ME"), concat!("XX", "X")];
    let numbered = concat!("TO", "DO");
    if source.is("md") {
        return Vec::new();
    }
    each_line(source, |line| {
        if let Some(word) = never.iter().find(|word| has_word(line, word)) {
            return Some(format!("{word} does not stay in the tree"));
        }
        let rest = line.split_once(numbered).map(|(_, rest)| rest);
        let is_bare = has_word(line, numbered) && !rest.is_some_and(|r| r.starts_with("(#"));
        is_bare.then(|| format!("{numbered} names its issue: {numbered}(#123)"))
    })
}

/// Debugging macros must not be committed.
pub(super) fn debugging_macros(source: &Source) -> Vec<Finding> {
    let never = [concat!("dbg", "!("), concat!("todo", "!("), concat!("unimplemented", "!(")];
    if !source.is("rs") {
        return Vec::new();
    }
    each_line(source, |line| {
        let found = never.iter().find(|word| line.contains(**word))?;
        Some(format!("{found}..) does not stay in the tree"))
    })
}

/// Every workspace dependency has a row with a reason in the index of design notes.
pub(super) fn dependencies_have_reasons(sources: &[Source]) -> Vec<Finding> {
    let Some(manifest) = sources.iter().find(|s| s.path == "Cargo.toml") else {
        return Vec::new();
    };
    let table = manifest.text.parse::<toml::Table>().unwrap_or_default();
    let dependencies = table
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"))
        .and_then(toml::Value::as_table);
    let index = sources.iter().find(|s| s.path == DESIGN_INDEX);
    let index = index.map_or("", |s| s.text.as_str());
    let names = dependencies.into_iter().flat_map(toml::Table::keys);
    names
        .filter(|name| !name.starts_with("fulgurite-"))
        .filter(|name| !index.lines().any(|line| line.starts_with(&format!("| {name} |"))))
        .map(|name| manifest.finding(0, format!("{name} has no reason in {DESIGN_INDEX}")))
        .collect()
}

/// Every design note is named in the index.
pub(super) fn notes_are_indexed(sources: &[Source]) -> Vec<Finding> {
    let index = sources.iter().find(|s| s.path == DESIGN_INDEX);
    let index = index.map_or("", |s| s.text.as_str());
    let notes = sources
        .iter()
        .filter_map(|s| s.path.strip_prefix("docs/design/").map(|name| (s, name)))
        .filter(|(_, name)| name.starts_with(|c: char| c.is_ascii_digit()));
    notes
        .filter(|(_, name)| !index.contains(*name))
        .map(|(s, _)| s.finding(0, format!("not named in {DESIGN_INDEX}")))
        .collect()
}

fn each_line(source: &Source, rule: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let lines = source.text.lines().enumerate();
    lines.filter_map(|(at, line)| Some(source.finding(at + 1, rule(line)?))).collect()
}

/// Returns whether `word` occurs in `line` as a whole word.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !is_part(before.chars().next_back()) && !is_part(after.chars().next())
    })
}

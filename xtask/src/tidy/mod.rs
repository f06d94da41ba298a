//! `cargo xtask tidy`: the house rules that neither rustc, rustfmt nor clippy checks.
//!
//! Each rule is one function over one file or manifest, in `rules`, `words` and `dependencies`, or
//! over the files of a crate, in `cycles` and `effects`. It has a test with a sample that it must
//! refuse. This file only walks the tree and prints.

mod cycles;
mod dependencies;
mod effects;
mod rules;
#[cfg(test)]
mod tests;
mod words;

use std::fmt;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use walkdir::{DirEntry, WalkDir};

use crate::shell;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    /// Counted from 1; 0 means the whole file.
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// A text file of the project.
#[derive(Clone, Debug)]
struct Source {
    /// Relative to the root, with `/`.
    path: String,
    text: String,
}

impl Source {
    fn is(&self, extension: &str) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, last)| last == extension)
    }

    /// Returns whether the file contains only tests.
    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            // The suite that tiers run as a test.
            || self.path.starts_with("crates/tier/src/conformance")
    }

    fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }
}

/// Checks the project.
pub(crate) fn run() -> Result<()> {
    let sources = walk(shell::root())?;
    let findings = check(&sources);
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => println!("tidy: {} files, no findings", sources.len()),
        count => bail!("tidy: {count} findings"),
    }
    Ok(())
}

/// Returns the findings of all rules.
fn check(sources: &[Source]) -> Vec<Finding> {
    let each = sources.iter().flat_map(|s| rules::ALL.iter().flat_map(|rule| rule(s)));
    let mut findings: Vec<Finding> = each.collect();
    findings.extend(dependencies::check(sources));
    findings.extend(effects::check(sources));
    findings.extend(cycles::check(sources, cycles::EXCEPTIONS));
    findings.extend(rules::dependencies_have_reasons(sources));
    findings.extend(rules::notes_are_indexed(sources));
    findings
}

fn walk(root: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for entry in WalkDir::new(root).sort_by_file_name().into_iter().filter_entry(is_ours) {
        let entry = entry?;
        let path = entry.path();
        let is_text = path.extension().is_some_and(|e| {
            ["rs", "toml", "md", "py"].iter().any(|extension| e.eq_ignore_ascii_case(extension))
        });
        if !entry.file_type().is_file() || !is_text {
            continue;
        }
        let text = std::fs::read(path).with_context(|| format!("cannot read {path:?}"))?;
        sources.push(Source {
            path: path.strip_prefix(root)?.to_string_lossy().into_owned(),
            text: String::from_utf8_lossy(&text).into_owned(),
        });
    }
    Ok(sources)
}

/// Returns whether an entry belongs to the source; excludes build output, the version store,
/// environments and archives.
fn is_ours(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    let is_skipped = ["target", "__pycache__", "fulgurite-data"].contains(&name.as_ref())
        || (name.starts_with('.') && ![".ci", ".cargo"].contains(&name.as_ref()));
    entry.depth() == 0 || !(entry.file_type().is_dir() && is_skipped)
}

//! Every rule against a sample it must refuse and one it must let pass.

use super::{Finding, Source, arrows, rules};

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

/// `rule` finds something in exactly these lines of `text` at `path`.
fn check(rule: fn(&Source) -> Vec<Finding>, path: &str, text: &str, lines: &[usize]) {
    let found = rule(&source(path, text)).into_iter().map(|finding| finding.line);
    assert_eq!(found.collect::<Vec<_>>(), lines);
}

#[test]
fn long_files_are_refused_unless_they_are_tests() {
    let long = "//! Long.\n".repeat(801);
    check(rules::file_length, "crates/units/src/a.rs", &long, &[0]);
    check(rules::file_length, "crates/units/src/tests.rs", &long, &[]);
    check(rules::file_length, "crates/units/src/a.rs", &long[10..], &[]);
}

#[test]
fn long_lines_are_refused_outside_documents() {
    let text = format!("//! A.\n{}\n{}\n", "a".repeat(100), "b".repeat(101));
    check(rules::line_length, "crates/units/src/a.rs", &text, &[3]);
    check(rules::line_length, "README.md", &text, &[]);
}

#[test]
fn characters_outside_ascii_are_refused() {
    check(rules::ascii, "README.md", "plain\nna\u{ef}ve\n", &[2]);
    check(rules::ascii, "README.md", "plain\n", &[]);
}

#[test]
fn modules_without_documentation_are_refused() {
    check(rules::module_docs, "crates/units/src/a.rs", "use std::fmt;\n", &[1]);
    check(rules::module_docs, "crates/units/src/a.rs", "", &[1]);
    check(rules::module_docs, "crates/units/src/a.rs", "//! Units.\n", &[]);
    check(rules::module_docs, "tests/e2e/a.py", "import os\n", &[1]);
    check(rules::module_docs, "tests/e2e/a.py", "\"\"\"Tests.\"\"\"\n", &[]);
}

#[test]
fn unfinished_work_needs_an_issue() {
    let text =
        concat!("// FIX", "ME later\n// TO", "DO later\n// TO", "DO(#12): later\n// XX", "X\n");
    check(rules::unfinished_work, "crates/units/src/a.rs", text, &[1, 2, 4]);
    let parts_of_words = concat!("let XX", "XL = 1; // MASTO", "DON\n");
    check(rules::unfinished_work, "crates/units/src/a.rs", parts_of_words, &[]);
}

#[test]
fn debugging_macros_are_refused() {
    let text = concat!("//! A.\ndbg", "!(x);\ntodo", "!();\nunimplemented", "!()\n");
    check(rules::debugging_macros, "crates/units/src/a.rs", text, &[2, 3, 4]);
    check(rules::debugging_macros, "crates/units/src/a.rs", "//! A.\nok!()\n", &[]);
}

#[test]
fn arrows_that_point_up_are_refused() {
    let up = "[dependencies]\nfulgurite-units.workspace = true\nfulgurite-archive = {}\n";
    let found = arrows::check(&source("crates/glass/Cargo.toml", up));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message, "glass may not use archive");

    let hidden = "[dev-dependencies]\nfulgurite-gateway.workspace = true\n";
    assert_eq!(arrows::check(&source("crates/archive/Cargo.toml", hidden)).len(), 1);
    let down = "[dependencies]\nfulgurite-archive.workspace = true\nbytes.workspace = true\n";
    assert_eq!(arrows::check(&source("crates/gateway/Cargo.toml", down)), []);
}

#[test]
fn crates_off_the_map_are_refused() {
    let found = arrows::check(&source("crates/utils/Cargo.toml", "[package]\n"));
    assert_eq!(found[0].message, "crate utils is not on the map");
    assert_eq!(arrows::check(&source("crates/units/Cargo.toml", "not toml")).len(), 1);
}

#[test]
fn dependencies_without_a_reason_are_refused() {
    let manifest = "[workspace.dependencies]\nbytes = \"1\"\nfjall = \"3\"\nfulgurite-units = {}\n";
    let index = "| bytes | Shared buffers. |\n";
    let sources = [source("Cargo.toml", manifest), source(rules::DESIGN_INDEX, index)];
    let found = rules::dependencies_have_reasons(&sources);
    assert_eq!(found.len(), 1);
    assert!(found[0].message.starts_with("fjall "));
}

#[test]
fn notes_outside_the_index_are_refused() {
    let note = source("docs/design/0007-a-note.md", "# 0007\n");
    let index = source(rules::DESIGN_INDEX, "| 0007-a-note.md | A note. |\n");
    assert_eq!(rules::notes_are_indexed(std::slice::from_ref(&note)).len(), 1);
    assert_eq!(rules::notes_are_indexed(&[note, index]), []);
}

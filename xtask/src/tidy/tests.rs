//! Every rule against a sample that it must refuse and one that it must accept.

use super::cycles::Exception;
use super::{Finding, Source, cycles, dependencies, effects, rules, words};

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

/// Asserts that `rule` finds something in exactly these lines of `text` at `path`.
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

const MAP: &str = "| crate | what | may use |
| --- | --- | --- |
| `units` | words | - |
| `glass` | a medium | units |
| `twin` | a model | units |
| `archive` | objects | all above but twin |
| `gateway` | a door | archive |
| `fulgurite` | the program | all |
";

/// Asserts the findings about a manifest at `path`, with this map.
#[track_caller]
fn check_dependencies(map: &str, path: &str, manifest: &str, expected: &[&str]) {
    let found = dependencies::check(&[source(dependencies::MAP, map), source(path, manifest)]);
    let messages: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(messages, expected);
}

#[test]
fn dependencies_missing_from_the_map_are_refused() {
    let check = |name: &str, manifest: &str, expected: &[&str]| {
        check_dependencies(MAP, &format!("crates/{name}/Cargo.toml"), manifest, expected);
    };
    let up = "[dependencies]\nfulgurite-units.workspace = true\nfulgurite-archive = {}\n";
    check("glass", up, &["glass may not use archive"]);
    let hidden = "[dev-dependencies]\nfulgurite-gateway.workspace = true\n";
    check("archive", hidden, &["archive may not use gateway"]);
    let beside = "[dependencies]\nfulgurite-twin = {}\nfulgurite-glass = {}\n";
    check("archive", beside, &["archive may not use twin"]);
    check("fulgurite", beside, &[]);
    check("gateway", beside, &["gateway may not use glass", "gateway may not use twin"]);
    let down = "[dependencies]\nfulgurite-archive.workspace = true\nbytes.workspace = true\n";
    check("gateway", down, &[]);
    check_dependencies(MAP, "xtask/Cargo.toml", down, &["xtask may not use archive"]);
    check_dependencies(MAP, "xtask/Cargo.toml", "[dependencies]\n", &[]);
}

#[test]
fn test_dependencies_are_allowed_only_in_tests() {
    let map = "| `units` | words | - |\n| `glass` | a medium | units |\n\
               | `archive` | objects | units; tests: glass |\n";
    let check = |manifest: &str, expected: &[&str]| {
        check_dependencies(map, "crates/archive/Cargo.toml", manifest, expected);
    };
    check("[dev-dependencies]\nfulgurite-glass = {}\nfulgurite-units = {}\n", &[]);
    check("[dependencies]\nfulgurite-glass = {}\n", &["archive may not use glass"]);
    check("[build-dependencies]\nfulgurite-glass = {}\n", &["archive may not use glass"]);
    let upside = "| `archive` | objects | -; tests: glass |\n";
    let found = dependencies::check(&[source(dependencies::MAP, upside)]);
    assert_eq!(found[0].message, "glass is not above archive");
}

#[test]
fn crates_missing_from_the_map_are_refused() {
    let manifest = "[package]\n";
    check_dependencies(
        MAP,
        "crates/utils/Cargo.toml",
        manifest,
        &["crate utils is not on the map"],
    );
    check_dependencies("", "crates/units/Cargo.toml", manifest, &["crate units is not on the map"]);
    let found = dependencies::check(&[
        source(dependencies::MAP, MAP),
        source("crates/units/Cargo.toml", "x"),
    ]);
    assert_eq!(found.len(), 1, "no manifest");
}

#[test]
fn upward_dependencies_in_the_map_are_refused() {
    let upside = "| `glass` | a medium | units |\n| `units` | words | - |\n";
    let found = dependencies::check(&[source(dependencies::MAP, upside)]);
    assert_eq!((found[0].line, found[0].message.as_str()), (1, "units is not above glass"));
}

/// Asserts the findings about the files of a crate, by name and text, with these exceptions.
#[track_caller]
fn check_cycles(files: &[(&str, &str)], exceptions: &[Exception], expected: &[&str]) {
    let source = |(name, text): &(&str, &str)| source(&format!("crates/rack/src/{name}.rs"), text);
    let sources: Vec<Source> = files.iter().map(source).collect();
    let found: Vec<String> = cycles::check(&sources, exceptions)
        .iter()
        .map(|finding| finding.to_string().replace("crates/rack/src/", ""))
        .collect();
    assert_eq!(found, expected);
}

const A_NEEDS_B: Exception =
    Exception { from: "crates/rack/src/a.rs", to: "crates/rack/src/b.rs", reason: "a test" };

#[test]
fn dependency_cycles_of_files_are_refused() {
    let two = [("a", "use crate::b::B;\n"), ("b", "fn b() -> crate::a::A {}\n")];
    check_cycles(
        &two,
        &[],
        &["a.rs: a cycle in a component of 2 files: it needs b.rs, which needs a.rs"],
    );
    let deep = [
        ("a", "use crate::{c, d::{self, D}};\n"),
        ("b", "use crate::a;\n"),
        ("c", "use crate::b::{B as C, *};\n"),
        ("d", "use crate::e;\n"),
        ("e", "//! Below.\n"),
    ];
    let cycle = "a.rs: a cycle in a component of 3 files: it needs c.rs, which needs b.rs, which \
                 needs a.rs";
    check_cycles(&deep, &[], &[cycle]);
    check_cycles(&deep[1..], &[], &[]);
}

#[test]
fn reexports_count_for_the_defining_file() {
    let lib = ("lib", "pub use a::{A, below::Deep};\npub(crate) use b::B as Bee;\n");
    let (b, below) = (("b", "use crate::{A, Deep};\n"), ("a/below", "use crate::Bee;\n"));
    let folder = ("a/mod", "pub use below::Deep;\n");
    let found =
        "a/below.rs: a cycle in a component of 2 files: it needs b.rs, which needs a/below.rs";
    check_cycles(&[lib, b, below, folder], &[], &[found]);
    let folder_too = ("a/mod", "pub use below::Deep;\nuse crate::b;\n");
    let found =
        "a/below.rs: a cycle in a component of 3 files: it needs b.rs, which needs a/below.rs";
    check_cycles(&[lib, b, below, folder_too], &[], &[found]);
    let deep = ("b", "use crate::a::Deep;\n");
    check_cycles(&[lib, deep, folder_too, ("a/below", "")], &[], &[]);
}

#[test]
fn comments_tests_and_other_crates_form_no_cycle() {
    let one = ("a", "use crate::b::B;\n");
    let comment = ("b", "//! Of [`crate::a`].\nlet $crate::a = 1; // crate::a::A\n");
    check_cycles(&[one, comment], &[], &[]);
    let tests = ("b", "fn b() {}\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n");
    check_cycles(&[one, tests, ("a/tests", "use crate::a;\nuse crate::b;\n")], &[], &[]);
    let other = source("crates/tome/src/b.rs", "use crate::a::A;\n");
    let sources = [source("crates/rack/src/a.rs", one.1), other];
    assert_eq!(cycles::check(&sources, &[]), []);
}

#[test]
fn unneeded_cycle_exceptions_are_refused() {
    let two = [("a", "use crate::b::B;\n"), ("b", "use crate::a::A;\n")];
    check_cycles(&two, &[A_NEEDS_B], &[]);
    let no_circle = "a.rs: no exception is needed for b.rs (a test): there is no cycle";
    check_cycles(&[two[0], ("b", "")], &[A_NEEDS_B], &[no_circle]);
    let no_need = "a.rs: no exception is needed for b.rs (a test): it does not need that file";
    check_cycles(&[("a", ""), two[1]], &[A_NEEDS_B], &[no_need]);
    check_cycles(&[], &[A_NEEDS_B], &[no_need]);
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
fn unindexed_design_notes_are_refused() {
    let note = source("docs/design/0007-a-note.md", "# 0007\n");
    let index = source(rules::DESIGN_INDEX, "| 0007-a-note.md | A note. |\n");
    assert_eq!(rules::notes_are_indexed(std::slice::from_ref(&note)).len(), 1);
    assert_eq!(rules::notes_are_indexed(&[note, index]), []);
}

#[test]
fn retired_words_are_refused() {
    let text = "//! A Stagehand.\nstruct Stagehands;\nfn is_sinking() {}\n";
    check(words::retired, "crates/a/src/lib.rs", text, &[1, 3]);
    check(words::retired, "xtask/src/tidy/words.rs", text, &[]);
}

#[test]
fn glossary_is_short_sorted_and_unique() {
    let table = "| word | meaning |\n| --- | --- |\n";
    let some = format!("{table}| blob | a |\n| disk | b |\n| body | c |\n| disk | d |\n");
    check(words::glossary, words::GLOSSARY, &some, &[5, 6]);
    check(words::glossary, "docs/guide.md", &some, &[]);
    let rows = (0..=90).map(|row| format!("| word {row:02} | a |\n"));
    let many = table.to_owned() + &rows.collect::<String>();
    check(words::glossary, words::GLOSSARY, &many, &[0]);
}

#[test]
fn effects_are_those_on_the_map() {
    let map = "| `a` | one | files, clock | - |\n| `b` | two | - | a |\n| `c` | x | fire | - |\n";
    let code = "//! Not std::fs::read.\nlet x = std::fs::read(y);\n\
        #[cfg(test)]\nmod tests {\n    use std::fs::File;\n}\n";
    let sources = [
        source(dependencies::MAP, map),
        source("crates/a/src/lib.rs", code),
        source("crates/b/src/lib.rs", code),
        source("crates/b/src/tests.rs", "use std::fs::File;\n"),
    ];
    let found = effects::check(&sources);
    let found: Vec<_> = found.iter().map(|f| (&*f.path, f.line, &*f.message)).collect();
    assert_eq!(
        found,
        [
            (dependencies::MAP, 1, "a does not use clock"),
            ("crates/b/src/lib.rs", 2, "b may not use std::fs"),
            (dependencies::MAP, 3, "fire is not an effect"),
        ]
    );
}

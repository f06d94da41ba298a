//! Output folders of `--report`: an HTML page, and the same numbers as JSON. Both are functions of
//! the scenario, the seeds and the version, so that reports can be compared.

use std::num::NonZero;
use std::path::Path;

use anyhow::Context as _;
use fulgurite_terminal::output::note;
use fulgurite_twin::report::Facts;
use serde::Serialize;

/// Returns the facts that a page states about the run; `text` is the scenario file.
pub(super) fn facts(
    file: &Path,
    set: &[(String, toml::Value)],
    first_seed: u64,
    seeds: NonZero<u64>,
    text: String,
) -> Facts {
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    let last = first_seed.saturating_add(seeds.get() - 1);
    let seeds =
        if last == first_seed { first_seed.to_string() } else { format!("{first_seed} to {last}") };
    let changes: Vec<String> =
        set.iter().map(|(field, value)| format!("{field} = {value}")).collect();
    let mut list = vec![("Seeds".to_owned(), seeds)];
    if !changes.is_empty() {
        list.insert(0, ("Changed".to_owned(), changes.join(", ")));
    }
    list.push(("Program".to_owned(), format!("fulgurite {}", env!("CARGO_PKG_VERSION"))));
    list.push(("Command".to_owned(), command()));
    Facts { scenario: name, list, text }
}

/// Returns the command line, quoted for a shell.
fn command() -> String {
    let quoted = |word: String| {
        let plain =
            |character: char| character.is_ascii_alphanumeric() || "-_./=,:+@".contains(character);
        if word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    let words = std::env::args().skip(1).map(quoted);
    std::iter::once("fulgurite".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Writes a page and its numbers, and prints the path of the page.
pub(super) fn write_report(
    folder: &Path,
    name: &str,
    page: &str,
    numbers: &impl Serialize,
) -> anyhow::Result<()> {
    let shown = folder.display();
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create \"{shown}\""))?;
    let json = serde_json::to_string(numbers)? + "\n";
    let page_path = folder.join(format!("{name}.html"));
    for (path, text) in [(&page_path, page), (&folder.join(format!("{name}.json")), json.as_str())]
    {
        std::fs::write(path, text)
            .with_context(|| format!("cannot write \"{}\"", path.display()))?;
    }
    note(format!("fulgurite: the report is \"{}\"", page_path.display()));
    Ok(())
}

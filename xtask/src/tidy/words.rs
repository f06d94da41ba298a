//! Rules for words: names that were replaced do not come back, and the glossary stays short.

use std::collections::BTreeSet;

use super::rules::has_word;
use super::{Finding, Source};

pub(super) const GLOSSARY: &str = "docs/glossary.md";
const GLOSSARY_ENTRIES_MAX: usize = 90;

/// Retired names, and what to write instead.
const RETIRED: [(&str, &str); 39] = [
    ("Bells", "JobHandles"),
    ("Deed", "FragmentOp"),
    ("Gathering", "ObjectAssembler"),
    ("Giver", "Sender"),
    ("Ground", "ArchiveState"),
    ("Heard", "Event"),
    ("Mail", "JobSender"),
    ("NotedObject", "ObjectWithNote"),
    ("PlattersError", "GlassError"),
    ("RepairProgress", "Progress"),
    ("SealTrouble", "SealFailure"),
    ("Shop", "DiskContext"),
    ("StacksError", "RackError"),
    ("Stagehand", "DiskWorker"),
    ("Standing", "MembershipState"),
    ("Stood", "Membership"),
    ("Surveyor", "InventoryRunner"),
    ("Taker", "Receiver"),
    ("Woken", "ExternalSpinUp"),
    ("anew", "again"),
    ("excuses", "in-flight deltas"),
    ("fulgurite admin", "fulgurite archive"),
    ("fulgurite glass", "fulgurite lab"),
    ("fulgurite_keyed", "fulgurite_tier"),
    ("fulgurite_layout", "fulgurite_glass_core::plan"),
    ("fulgurite_library", "fulgurite_glass_core::control"),
    ("fulgurite_sites", "fulgurite_geo::stores"),
    ("fulgurite_stacks", "fulgurite_rack"),
    ("in_doubt", "unconfirmed"),
    ("is_regained", "is_rebuilt"),
    ("is_sinking", "is_spinning_down"),
    ("is_told", "is_reported"),
    ("scene", "snapshot"),
    ("seats", "slots"),
    ("surveyed", "inventoried"),
    ("trouble", "failure"),
    ("verify_telling", "verify with a progress function"),
    ("whoever", "who, or the one who"),
    ("woken", "spun up"),
];

/// Names that were replaced do not come back.
pub(super) fn retired(source: &Source) -> Vec<Finding> {
    // This list, and history, have them.
    if source.path.starts_with("xtask/src/tidy/") || source.path == "CHANGELOG.md" {
        return Vec::new();
    }
    let lines = source.text.lines().enumerate();
    let found = lines.flat_map(|(at, line)| {
        let retired = RETIRED.iter().filter(move |(word, _)| has_word(line, word));
        retired.map(move |(word, instead)| (at + 1, format!("`{word}` is now {instead}")))
    });
    found.map(|(line, message)| source.finding(line, message)).collect()
}

/// The glossary has few entries, in order, and each word once.
pub(super) fn glossary(source: &Source) -> Vec<Finding> {
    if source.path != GLOSSARY {
        return Vec::new();
    }
    let rows = source.text.lines().enumerate().filter_map(|(at, line)| {
        let word = line.strip_prefix("| ")?.split_once(" |")?.0;
        let is_entry = word != "word" && !word.starts_with("---");
        is_entry.then(|| (at + 1, word.to_lowercase()))
    });
    let (mut seen, mut last, mut findings) = (BTreeSet::new(), String::new(), Vec::new());
    for (line, word) in rows {
        if word < last {
            findings.push(source.finding(line, format!("{word:?} must come before {last:?}")));
        }
        if !seen.insert(word.clone()) {
            findings.push(source.finding(line, format!("{word:?} has two entries")));
        }
        last = word;
    }
    if seen.len() > GLOSSARY_ENTRIES_MAX {
        let count = seen.len();
        let message = format!("{count} entries; at most {GLOSSARY_ENTRIES_MAX}");
        findings.push(source.finding(0, message));
    }
    findings
}

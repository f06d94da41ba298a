//! Shows the newest row of every machine side by side, and which rows were never measured on which
//! machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::OTHER_BUILD;

/// The fields of a recorded row that are shown.
#[derive(Clone, Debug, Deserialize)]
struct RecordedRow {
    bench: String,
    row: String,
    ours: f64,
    peer_name: Option<String>,
    ratio: Option<f64>,
    unit: String,
    target: String,
    machine: String,
    commit: String,
}

/// Formats a history. Rows against another build are left out, since they have no peer.
///
/// # Errors
/// When a line is not a row.
pub(super) fn compare(history: &str) -> Result<String> {
    let mut newest: BTreeMap<(String, String), BTreeMap<String, RecordedRow>> = BTreeMap::new();
    let (mut order, mut machines) = (Vec::new(), BTreeSet::new());
    for (number, line) in (1..).zip(history.lines()) {
        let row: RecordedRow = serde_json::from_str(line)
            .with_context(|| format!("line {number} of the history is not a row"))?;
        if row.peer_name.as_deref() == Some(OTHER_BUILD) {
            continue;
        }
        let key = (row.bench.clone(), row.row.clone());
        if !newest.contains_key(&key) {
            order.push(key.clone());
        }
        machines.insert(row.machine.clone());
        newest.entry(key).or_default().insert(row.machine.clone(), row);
    }
    let mut text = String::new();
    let mut missing: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for key in &order {
        let rows = &newest[key];
        let target = rows.values().last().map_or("", |row| row.target.as_str());
        writeln!(text, "{}: {} (target {target})", key.0, key.1)?;
        for machine in &machines {
            match rows.get(machine) {
                Some(row) => writeln!(text, "    {}", shown(row))?,
                None => missing.entry(machine).or_default().push(format!("{}: {}", key.0, key.1)),
            }
        }
    }
    for (machine, rows) in missing {
        writeln!(text, "never measured on {machine}:")?;
        rows.iter().try_for_each(|row| writeln!(text, "    {row}"))?;
    }
    Ok(text)
}

fn shown(row: &RecordedRow) -> String {
    let RecordedRow { ours, unit, machine, commit, .. } = row;
    let against = match (row.ratio, &row.peer_name) {
        (Some(ratio), Some(peer)) => format!(", {ratio:.2} x {peer}"),
        _ => String::new(),
    };
    format!("{ours:.4} {unit}{against}; {machine}; {commit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(row: &str, ours: f64, machine: &str, peer: &str) -> String {
        let row = serde_json::json!({
            "bench": "codes", "row": row, "ours": ours, "peer_name": peer, "ratio": ours,
            "unit": "GB/s", "target": "2 x", "machine": machine, "commit": "c0ffee",
        });
        row.to_string()
    }

    #[test]
    fn newest_rows_are_shown_and_missing_ones_listed() {
        let history = [
            line("encode", 3.0, "Zen", "peer"),
            line("encode", 4.5, "Zen", "peer"),
            line("encode", 9.0, "Zen", OTHER_BUILD),
            line("encode", 1.5, "Xeon", "peer"),
            line("decode", 2.0, "Zen", "peer"),
        ];
        let text = compare(&history.join("\n")).unwrap();
        let expected = "codes: encode (target 2 x)\n    \
                        1.5000 GB/s, 1.50 x peer; Xeon; c0ffee\n    \
                        4.5000 GB/s, 4.50 x peer; Zen; c0ffee\n\
                        codes: decode (target 2 x)\n    \
                        2.0000 GB/s, 2.00 x peer; Zen; c0ffee\n\
                        never measured on Xeon:\n    codes: decode\n";
        assert_eq!(text, expected);
        let error = format!("{:#}", compare("{}").unwrap_err());
        assert!(error.contains("line 1 of the history"), "{error}");
    }
}

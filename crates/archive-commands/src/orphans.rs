//! `archive orphans`: segments that the catalog does not reference. Listing them changes nothing;
//! only `--discard` ever removes one.

use std::io::{BufRead as _, IsTerminal as _};

use fulgurite_archive::status::OrphanedSegment;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, bytes, group_digits, note, pluralize};

use crate::archive::AdminClient;

/// Lists orphans, or removes them.
pub(crate) async fn orphans(
    client: &AdminClient,
    is_discarding: bool,
    is_confirmed: bool,
    out: &Output,
) -> anyhow::Result<()> {
    let found = client.orphans().await?;
    if !is_discarding {
        for orphan in &found {
            out.json("orphan", orphan)?;
            out.text(show(orphan))?;
        }
        return out.text(total(&found));
    }
    if found.is_empty() {
        return out.text(total(&found));
    }
    if !is_confirmed {
        found.iter().for_each(|orphan| note(show(orphan)));
        note(total(&found));
        confirm(&found)?;
    }
    // Remove exactly those that were shown.
    for orphan in &found {
        client.discard_orphan(&orphan.file).await?;
        out.json("orphan", orphan)?;
        out.text(format_args!("{} removed", orphan.file))?;
    }
    Ok(())
}

fn confirm(found: &[OrphanedSegment]) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        let message = "no terminal to confirm on; add --yes to remove these segments for good";
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    let bodies: u64 = found.iter().map(|orphan| orphan.bodies_with_keys).sum();
    note(format_args!(
        "This cannot be undone. Up to {} in them could be recovered by `fulgurite recover`.\n\
         Type yes to remove them:",
        pluralize(bodies, "body")
    ));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if answer.trim() == "yes" {
        return Ok(());
    }
    Err(ExitError::new(Exit::Failure, "nothing was removed").into())
}

fn show(orphan: &OrphanedSegment) -> String {
    let run = orphan.run.map_or_else(|| "unknown run".to_owned(), |run| format!("run {run}"));
    let content = orphan.error.clone().unwrap_or_else(|| {
        // A segment whose header is damaged has no run.
        let origin = match (orphan.records, orphan.bodies_with_keys, orphan.run) {
            (0, _, Some(_)) => " (of an upload that was cut short)",
            (1.., 0, _) => " (deleted, or never acknowledged)",
            (0, _, None) | (1.., 1.., _) => "",
        };
        format!(
            "{}, {}, {} of them with a key{origin}",
            pluralize(orphan.records, "record"),
            pluralize(orphan.bodies, "body"),
            group_digits(orphan.bodies_with_keys)
        )
    });
    format!("{}  {}, {run}: {content}", orphan.file, bytes(orphan.disk_bytes))
}

fn total(found: &[OrphanedSegment]) -> String {
    let disk_bytes = found.iter().map(|orphan| orphan.disk_bytes).sum();
    format!("{}, {}", pluralize(found.len() as u64, "orphaned segment"), bytes(disk_bytes))
}

#[cfg(test)]
mod tests;

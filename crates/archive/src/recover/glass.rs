//! Bodies on glass: reads file lists and opens their entries with the keys.
//!
//! ```text
//! entry + its key -> what is known of a body        entry without a key -> deleted; stays so
//! ```

use fulgurite_glass::{ListedShard, ListsReport, Recovered};

use super::context::RecoveryContext;
use super::evidence::{Bodies, KnownEntry};
use super::rebuild::{Tally, Writer};
use super::salvage::Salvaged;
use super::{RecoverProgress, RecoverReport};
use crate::Result;
use crate::bodies::entry::Entry;
use crate::tiers::far_libraries;

/// Opens all platters.
pub(super) fn open(
    context: &RecoveryContext,
    paths: &[std::path::PathBuf],
    report: &mut RecoverReport,
) -> Result<Recovered> {
    let far = far_libraries(&context.config, &context.tiers, None)?;
    let (glass, mut unusable) =
        Recovered::open(context.archive, &context.config.glass, paths, &far)?;
    report.unusable.append(&mut unusable);
    (report.platters, report.sets) = (glass.platters(), glass.sets());
    Ok(glass)
}

/// Reads the file lists of all platters.
pub(super) fn read_lists(
    glass: &Recovered,
    context: &RecoveryContext,
    bodies: &mut Bodies,
    report: &mut RecoverReport,
    progress: &dyn Fn(RecoverProgress),
) {
    let mut read =
        glass.read_lists(&mut |listed| take(context, listed, bodies, report), &mut |read| {
            let &ListsReport { platters, platters_total, entries, .. } = read;
            progress(RecoverProgress { platters, platters_total, entries });
        });
    report.platters_rebuilt += read.rebuilt;
    report.unusable.append(&mut read.unusable);
}

/// Writes the rows of sets and platters.
pub(super) fn write_sets(
    glass: &Recovered,
    writer: &mut Writer<'_>,
    salvaged: &Salvaged,
    tally: &Tally,
) -> Result<()> {
    let put = &mut |space, key, bytes| writer.put_bytes(space, key, bytes);
    glass.write_sets(&salvaged.glass, &tally.live, put)
}

/// Records an entry of a platter's list.
fn take(
    context: &RecoveryContext,
    listed: ListedShard,
    bodies: &mut Bodies,
    report: &mut RecoverReport,
) {
    let Some(&slot) = context.slots.get(&listed.body) else {
        report.shredded += u64::from(listed.shard.body_offset == 0);
        return;
    };
    let found = bodies.entry(listed.body).or_default();
    found.listed_bytes = listed.body_bytes;
    if found.known.is_none() {
        let key = context.keys.load(slot.index, slot.body);
        match key.and_then(|key| Entry::open(&key, listed.body, &listed.sealed)) {
            Ok(entry) => {
                found.known = Some(KnownEntry { entry: Box::new(entry), slot, written: None });
            }
            Err(error) => {
                report.unusable.push(format!("entry on {}: {error}", listed.shard.platter));
            }
        }
    }
    found.shards.entry(listed.shard.body_offset).or_default().push(listed.shard);
}

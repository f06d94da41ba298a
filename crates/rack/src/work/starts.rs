//! The current start of a rack, and the start that each disk knows of.
//!
//! A disk keeps this number in a file beside its identity file. It is written when the disk first
//! comes up after a start, before anything else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fulgurite_disks::{Lease, LedgerFile, PlaceId, StartCount};
use fulgurite_units::error_chain;
use serde::{Deserialize, Serialize};

use super::identity::{put_file, read_file};
use super::{DiskContext, Identification, disk_name};
use crate::index::Index;
use crate::{Fault, Result};

/// File of a disk that holds the latest start it knows of.
pub(super) const START_FILE: &str = "fulgurite-start.json";
const FORMAT_NAME: &str = "fulgurite-start-";
const VERSION: u8 = 1;

/// Advice for the operator when the index is an older copy.
const REMEDY: &str = "stop the rack and restore the newer copy, or run `fulgurite tier recover \
                      NAME`, which adds newer objects and removes deleted ones; until then \
                      nothing is garbage-collected";

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartFile {
    format: String,
    start: StartCount,
}

/// What the file has in every version.
#[derive(Debug, Deserialize)]
struct AnyStartFile {
    format: String,
}

/// The current start of a rack.
#[derive(Debug, Default)]
pub struct Starts {
    number: AtomicU64,
    /// Whether the index is an older copy, and the disks have not been searched since.
    is_older: AtomicBool,
    /// The start that each disk must know of.
    disks: Mutex<BTreeMap<PlaceId, u64>>,
    /// Disks that recorded this start.
    counted: Mutex<BTreeSet<PlaceId>>,
    /// Places whose disk, or an earlier one there, was to record this start.
    notified: Mutex<BTreeSet<PlaceId>>,
}

impl Starts {
    /// Begins a start: compares the numbers of index and ledger, and counts it in both.
    ///
    /// # Errors
    /// Those of the index. A ledger that cannot be written is logged, and counted the next time.
    pub fn begin(index: &Index, ledger: &mut LedgerFile) -> Result<Self> {
        let (known, of_ledger) = index.starts()?;
        let recorded = ledger.ledger().start();
        if recorded > known {
            index.record_older(recorded)?;
        } else if recorded < of_ledger {
            tracing::warn!(
                recorded,
                of_ledger,
                "the spin-up ledger is an older copy, or was lost: later spin-ups are missing \
                 in it and in budgets; stop the rack and restore the newer copy, or continue \
                 without them"
            );
        }
        if index.is_older()? {
            tracing::error!("the index of the rack is an older copy: {REMEDY}");
        }
        let number = count(index, ledger)?;
        Ok(Self {
            number: AtomicU64::new(number),
            is_older: AtomicBool::new(index.is_older()?),
            disks: Mutex::new(index.disk_starts()?),
            counted: Mutex::default(),
            notified: Mutex::default(),
        })
    }

    /// Whether the index is an older copy, so that it may be wrong about stacks.
    #[must_use]
    pub fn is_index_older(&self) -> bool {
        self.is_older.load(Ordering::SeqCst)
    }

    /// Records that all disks were searched for what the index lacked.
    pub(crate) fn recovered(&self) {
        self.is_older.store(false, Ordering::SeqCst);
    }

    /// Records that another disk is in a place.
    pub(crate) fn forget(&self, place: PlaceId) {
        lock(&self.disks).remove(&place);
        lock(&self.counted).remove(&place);
    }
}

/// Counts a start, or the end of one, in index and ledger.
///
/// # Errors
/// Those of the index.
pub(crate) fn count(index: &Index, ledger: &mut LedgerFile) -> Result<u64> {
    let start = index.begin_start()?;
    match ledger.record_start(start) {
        Ok(()) => index.record_ledger_start(start)?,
        Err(error) => tracing::warn!("cannot count a start: {}", error_chain(&error)),
    }
    Ok(start)
}

/// Compares the start that a disk knows of with the index, and records this start on the disk.
pub(super) fn count_disk(ctx: &DiskContext, place: PlaceId, lease: &Lease) -> Identification {
    let starts = &ctx.starts;
    if lock(&starts.counted).contains(&place) {
        return Identification::Known;
    }
    let recorded = match read_start(lease) {
        Ok(recorded) => recorded,
        // What a newer program recorded is not overwritten.
        Err(Fault::Newer { version }) => {
            tracing::error!(
                %place,
                "{}: {START_FILE} has version {version}, which a newer program wrote; starts are \
                 not counted on this disk",
                disk_name(place)
            );
            lock(&starts.counted).insert(place);
            return Identification::Known;
        }
        Err(fault) => {
            tracing::warn!(%place, "{}: cannot read its start count: {fault}", disk_name(place));
            0
        }
    };
    let expected = lock(&starts.disks).get(&place).copied().unwrap_or(0);
    let number = starts.number.load(Ordering::SeqCst);
    // A disk that has this number before we wrote it got it from another run.
    let is_notified = !lock(&starts.notified).insert(place);
    if recorded > number || (recorded == number && !is_notified) {
        index_is_older(ctx, place, recorded);
    }
    let number = starts.number.load(Ordering::SeqCst);
    let counted = put_start(lease, number).map_err(|fault| fault.to_string()).and_then(|()| {
        lock(&starts.counted).insert(place);
        ctx.index.record_disk_start(place, number).map_err(|error| error_chain(&error))
    });
    match counted {
        Ok(()) => drop(lock(&starts.disks).insert(place, number)),
        // The next spin-up tries again.
        Err(reason) => {
            tracing::warn!(%place, "{}: cannot record its start count: {reason}", disk_name(place))
        }
    }
    if recorded < expected { Identification::Older } else { Identification::Known }
}

/// Handles a disk that knows of a start the index has not seen.
fn index_is_older(ctx: &DiskContext, place: PlaceId, recorded: u64) {
    let starts = &ctx.starts;
    let is_known = starts.is_older.swap(true, Ordering::SeqCst);
    // Numbers continue behind that one.
    let number = recorded.saturating_add(1);
    starts.number.fetch_max(number, Ordering::SeqCst);
    if let Err(error) = ctx.index.record_older(number) {
        tracing::warn!("cannot record that the index is an older copy: {}", error_chain(&error));
    }
    if !is_known {
        tracing::error!(
            "the index of the rack is an older copy, for {} knows of a later start: {REMEDY}",
            disk_name(place)
        );
    }
}

fn read_start(lease: &Lease) -> Result<u64, Fault> {
    let Some(bytes) = read_file(lease, START_FILE)? else { return Ok(0) };
    let damaged = |detail: String| Fault::Damaged { detail: format!("{START_FILE}: {detail}") };
    let damaged_json = |error: serde_json::Error| damaged(error_chain(&error));
    let format = serde_json::from_slice::<AnyStartFile>(&bytes).map_err(damaged_json)?.format;
    let version = format.strip_prefix(FORMAT_NAME).and_then(|text| text.parse().ok());
    if let Some(version) = version.filter(|&version| version > VERSION) {
        return Err(Fault::Newer { version });
    }
    if version != Some(VERSION) {
        return Err(damaged(format!("its format {:?} is not known", format)));
    }
    let found: StartFile = serde_json::from_slice(&bytes).map_err(damaged_json)?;
    Ok(found.start.get())
}

fn put_start(lease: &Lease, start: u64) -> Result<(), Fault> {
    let file =
        StartFile { format: format!("{FORMAT_NAME}{VERSION}"), start: StartCount::new(start) };
    let text = serde_json::to_vec(&file)
        .map_err(|error| Fault::Damaged { detail: error_chain(&error) })?;
    put_file(lease, &text, START_FILE)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

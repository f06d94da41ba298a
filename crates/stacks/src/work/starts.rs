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
use super::{Arrival, Shop, disk_name};
use crate::index::Index;
use crate::{Fault, Result};

/// File of a disk that holds the latest start it knows of.
pub(super) const START_FILE: &str = "fulgurite-start.json";
const FORMAT: &str = "fulgurite-start-1";

/// Advice for the operator when the index is an older copy.
const REMEDY: &str = "bring the newer copy back while nobody serves it, or run `fulgurite rack \
                      recover`, which takes up what was put since and forgets what is gone; until \
                      then nothing is swept";

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartFile {
    format: String,
    start: StartCount,
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
    told: Mutex<BTreeSet<PlaceId>>,
}

impl Starts {
    /// Begins a start: compares the numbers of index and ledger, and counts it in both.
    ///
    /// # Errors
    /// Those of the index. A ledger that cannot be written is logged, and counted the next time.
    pub fn begin(index: &Index, ledger: &mut LedgerFile) -> Result<Self> {
        let (known, of_ledger) = index.starts()?;
        let said = ledger.ledger().start();
        if said > known {
            index.note_older(said)?;
        } else if said < of_ledger {
            tracing::warn!(
                said,
                of_ledger,
                "the ledger of wakes is an older copy, or was lost: wakes since then are missing \
                 in it and in budgets; bring the newer copy back while nobody serves the rack, or \
                 go on without them"
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
            told: Mutex::default(),
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
    match ledger.note_start(start) {
        Ok(()) => index.note_ledger(start)?,
        Err(error) => tracing::warn!("a start is not counted: {}", error_chain(&error)),
    }
    Ok(start)
}

/// Compares the start that a disk knows of with the index, and records this start on the disk.
pub(super) fn count_disk(shop: &Shop, place: PlaceId, lease: &Lease) -> Arrival {
    let starts = &shop.starts;
    if lock(&starts.counted).contains(&place) {
        return Arrival::Known;
    }
    let said = match read_start(lease) {
        Ok(said) => said,
        Err(fault) => {
            tracing::warn!(%place, "{}: which start it knows of: {fault}", disk_name(place));
            0
        }
    };
    let expected = lock(&starts.disks).get(&place).copied().unwrap_or(0);
    let number = starts.number.load(Ordering::SeqCst);
    // A disk that has this number before we wrote it got it from another run.
    let is_told = !lock(&starts.told).insert(place);
    if said > number || (said == number && !is_told) {
        index_is_older(shop, place, said);
    }
    let number = starts.number.load(Ordering::SeqCst);
    let counted = put_start(lease, number).map_err(|fault| fault.to_string()).and_then(|()| {
        lock(&starts.counted).insert(place);
        shop.index.note_disk(place, number).map_err(|error| error_chain(&error))
    });
    match counted {
        Ok(()) => drop(lock(&starts.disks).insert(place, number)),
        // The next spin-up tries again.
        Err(why) => tracing::warn!(%place, "{}: a start is not counted: {why}", disk_name(place)),
    }
    if said < expected { Arrival::Older } else { Arrival::Known }
}

/// Handles a disk that knows of a start the index has not seen.
fn index_is_older(shop: &Shop, place: PlaceId, said: u64) {
    let starts = &shop.starts;
    let is_known = starts.is_older.swap(true, Ordering::SeqCst);
    // Numbers continue behind that one.
    let number = said.saturating_add(1);
    starts.number.fetch_max(number, Ordering::SeqCst);
    if let Err(error) = shop.index.note_older(number) {
        tracing::warn!("an older copy of the index is not noted: {}", error_chain(&error));
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
    let damaged = |what: String| Fault::Damaged { what: format!("{START_FILE}: {what}") };
    let found: StartFile =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error_chain(&error)))?;
    if found.format != FORMAT {
        return Err(damaged(format!("its format is {:?} and not {FORMAT:?}", found.format)));
    }
    Ok(found.start.get())
}

fn put_start(lease: &Lease, start: u64) -> Result<(), Fault> {
    let file = StartFile { format: FORMAT.to_owned(), start: StartCount::new(start) };
    let text =
        serde_json::to_vec(&file).map_err(|error| Fault::Damaged { what: error_chain(&error) })?;
    put_file(lease, &text, START_FILE)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

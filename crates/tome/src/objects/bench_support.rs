//! A small set for experiments: eight tomes in directories whose disks are simulated and take no
//! time. For tests and benchmarks.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_disks::{PlaceId, Simulated, Times};
use fulgurite_tome_core::{Layout, Parts, TomeId};
use fulgurite_units::{ByteCount, Clock, Ratio, Seed};

use crate::objects::{PutGuarantee, Result, StoreOptions, TomeStore};
use crate::{Entropy, FaultInjector, SetOptions, TomeSet, TomesError};
use crate::{FAIL_POINTS, FailPoints};

/// Number of tomes.
pub const TOMES: u32 = 8;

/// Returns options of a set in a folder: blocks of 16 KiB, segments of 6 + 2, groups of 3 + 2.
///
/// # Errors
/// None for these numbers; errors of the layout are passed on.
pub fn set_options(folder: &Path, clock: Clock) -> Result<SetOptions> {
    let split =
        |data, parity| fulgurite_tome_core::CodeParams::new(data, parity).map_err(TomesError::from);
    let (block, segment) = (ByteCount::kib(16), split(6, 2)?);
    let parts = Parts { block, segment, segments: 96, regions: 4, spares: 400 };
    let places = (0..TOMES).map(PlaceId::new);
    let root = |tome: u32| (TomeId::new(tome), folder.join(format!("disk-{tome}")));
    Ok(SetOptions {
        set: None,
        directory: folder.join("set"),
        roots: (0..TOMES).map(root).collect(),
        remotes: BTreeMap::new(),
        layout: Layout::new(parts).map_err(TomesError::from)?,
        split: split(3, 2)?,
        backend: Arc::new(Simulated::new(places, Times::PELICAN, Ratio::ZERO, Seed::new(1))),
        spin_ups_a_day: None,
        idle: fulgurite_tome_core::limits::IDLE,
        clock,
        entropy: entropy(),
        fail: FailPoints::unarmed(&FAIL_POINTS),
        faults: FaultInjector::default(),
    })
}

/// Opens the store over a set, new or existing.
///
/// # Errors
/// When it cannot be opened.
pub fn open_store(
    set: TomeSet,
    folder: &Path,
    clock: Clock,
    promise: PutGuarantee,
) -> Result<TomeStore> {
    let directory = folder.join("set");
    TomeStore::open(set, StoreOptions { directory, clock, entropy: entropy(), promise })
}

/// Returns a source of ids that are unique in this process; they are predictable.
fn entropy() -> Entropy {
    static NEXT_ID: AtomicU64 = AtomicU64::new(1);
    Entropy::new(|| {
        let mut bytes = [0; 16];
        Seed::new(NEXT_ID.fetch_add(1, Ordering::Relaxed)).stream().fill(&mut bytes);
        bytes
    })
}

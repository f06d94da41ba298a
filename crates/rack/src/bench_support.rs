//! Rack options for tests and benches: directories, simulated disks that take no time, and
//! predictable ids. Not for data that has to be kept.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_disks::{Simulated, Times};
use fulgurite_rack_core::{Policy, Shape, presets};
use fulgurite_units::{Clock, Ratio, Seed};

use crate::work::Injected;
use crate::{Entropy, RackError, RackOptions, Result, ScrubPolicy};
use crate::{FAIL_POINTS, FailPoints};

/// Returns the shape of all of them: 48 disks.
///
/// # Errors
/// When this program cannot parse the preset, which a test would have found.
pub fn shape() -> Result<Shape> {
    presets::shape("laptop").map_err(|error| RackError::Invalid { detail: error.to_string() })
}

/// Returns options for a rack in `folder`: its index in `rack`, the disk of each place in
/// `disk-PLACE`.
///
/// # Errors
/// As for [`shape`].
pub fn options(folder: &Path, clock: Clock) -> Result<RackOptions> {
    let shape = shape()?;
    let roots = shape.places().map(|place| (place, folder.join(format!("disk-{place}"))));
    let roots = roots.collect();
    let disks = Simulated::new(shape.places(), Times::PELICAN, Ratio::ZERO, Seed::new(1));
    Ok(RackOptions {
        directory: folder.join("rack"),
        policy: Policy::default(),
        roots,
        backend: Arc::new(disks),
        clock,
        entropy: Entropy::new(draw),
        scrub: ScrubPolicy::default(),
        rated_spin_ups: None,
        fail: FailPoints::unarmed(&FAIL_POINTS),
        injected: Injected::default(),
        shape,
    })
}

/// Draws bytes that are unique within this process.
fn draw() -> [u8; 16] {
    static DRAWN: AtomicU64 = AtomicU64::new(1);
    let mut bytes = [0; 16];
    Seed::new(DRAWN.fetch_add(1, Ordering::Relaxed)).stream().fill(&mut bytes);
    bytes
}

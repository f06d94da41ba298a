//! Fail points: named places at which a test can kill the process, as a power cut would.
//!
//! They are always compiled in, so what is tested is what runs; an unarmed one costs a comparison.

use std::sync::atomic::{AtomicU32, Ordering};

/// All fail points, in the order of a set's life.
pub const FAIL_POINTS: [&str; 26] = [
    "tomes-store-made",
    "tomes-set-made",
    "tomes-disk-named",
    "tomes-token-kept",
    "tomes-wake-noted",
    "tomes-up",
    "tomes-file-begun",
    "tomes-file-made",
    "tomes-label-written",
    "tomes-block-written",
    "tomes-synced",
    "tomes-deltas-written",
    "tomes-deltas-synced",
    "tomes-commit-begun",
    "tomes-committed",
    "tomes-answering",
    "tomes-telling",
    "tomes-down",
    "tomes-surveyed",
    "tomes-regained",
    "tomes-regained-kept",
    "tomes-moves-planned",
    "tomes-adopted",
    "tomes-names-moved",
    "tomes-seat-kept",
    "tomes-removal-kept",
];

/// The fail point that is armed, if any.
#[derive(Debug, Default)]
pub struct FailPoints {
    armed: Option<&'static str>,
    passages_left: AtomicU32,
}

impl FailPoints {
    /// Arms the point called `name`; the process is killed at its passage number `count`, from 0.
    ///
    /// # Errors
    /// When there is no such point; the error lists those there are.
    pub fn armed(name: &str, count: u32) -> Result<Self, String> {
        match FAIL_POINTS.iter().find(|point| **point == name) {
            Some(point) => Ok(Self { armed: Some(point), passages_left: count.into() }),
            None => Err(format!("fail point \"{name}\" is not one of {}", FAIL_POINTS.join(", "))),
        }
    }

    /// Kills the process if the point is armed and its passages are used up.
    pub(crate) fn pass(&self, point: &'static str) {
        debug_assert!(FAIL_POINTS.contains(&point), "fail point {point} is listed");
        if self.armed != Some(point) {
            return;
        }
        let used = |left: u32| left.checked_sub(1);
        if self.passages_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, used).is_err() {
            // SIGKILL, not exit: no destructor runs and no buffer is written back.
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
            loop {
                std::thread::park();
            }
        }
    }
}

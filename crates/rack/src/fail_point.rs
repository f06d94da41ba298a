//! Fail points: named places at which a test may have the process killed, as a power cut would.
//!
//! They are always compiled in, so that the tested code is the shipped code. Passing an unarmed one
//! costs a comparison.

use std::sync::atomic::{AtomicU32, Ordering};

/// All fail points, in the order of a blob's life.
pub const FAIL_POINTS: [&str; 16] = [
    "rack-index-made",
    "rack-disk-named",
    "rack-disk-made",
    "rack-begun",
    "rack-half",
    "rack-synced",
    "rack-read-back",
    "rack-committed",
    "rack-rebuild-half",
    "rack-rebuild-named",
    "rack-rebuilt",
    "rack-given-up",
    "rack-scrubbed",
    "rack-swept-half",
    "rack-swept",
    "rack-found",
];

/// The fail point that is armed, if any.
#[derive(Debug, Default)]
pub struct FailPoints {
    armed: Option<&'static str>,
    passages_left: AtomicU32,
}

impl FailPoints {
    /// Arms the fail point `name`: the process is killed at its passage number `count`, from 0.
    ///
    /// # Errors
    /// When there is no such point; the message lists all.
    pub fn armed(name: &str, count: u32) -> Result<Self, String> {
        match FAIL_POINTS.iter().find(|point| **point == name) {
            Some(point) => Ok(Self { armed: Some(point), passages_left: count.into() }),
            None => Err(format!("fail point \"{name}\" is not one of {}", FAIL_POINTS.join(", "))),
        }
    }

    /// Kills the process here if the point is armed and its passages are used up.
    pub(crate) fn pass(&self, point: &'static str) {
        debug_assert!(FAIL_POINTS.contains(&point), "fail point {point} is listed");
        if self.armed != Some(point) {
            return;
        }
        let used = |left: u32| left.checked_sub(1);
        if self.passages_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, used).is_err() {
            // SIGKILL, not exit: no destructor runs and no buffer is flushed.
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

//! Fail points: named places at which a test may have the process killed, as a power cut would.
//!
//! They are compiled in always, so what is tested is what runs; unless one is armed, passing one
//! costs a comparison.

use std::sync::atomic::{AtomicU32, Ordering};

/// All that there are, in the order of a blob's life.
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
    /// Arms the point called `name`; the process is killed at its passage number `count`, from 0.
    ///
    /// # Errors
    /// When no point is called so; it says which there are.
    pub fn armed(name: &str, count: u32) -> Result<Self, String> {
        match FAIL_POINTS.iter().find(|point| **point == name) {
            Some(point) => Ok(Self { armed: Some(point), passages_left: count.into() }),
            None => Err(format!("fail point \"{name}\" is not one of {}", FAIL_POINTS.join(", "))),
        }
    }

    /// Dies here when the point is armed and its passages are used up.
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

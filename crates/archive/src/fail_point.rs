//! Fail points: named places at which a test may have the process killed, as a power cut would, or
//! a thread panic, as a bug would.
//!
//! They are compiled in always, so what is tested is what runs; unless one is named in the
//! configuration, passing one costs a comparison.

use std::sync::atomic::{AtomicU32, Ordering};

/// Every fail point, in the order of an object's life.
pub const FAIL_POINTS: [&str; 25] = [
    "put-written",
    "put-staged",
    "put-committed",
    "part-committed",
    "complete-logged",
    "complete-committed",
    "seal-planned",
    "write-half",
    "write-synced",
    "write-platter",
    "seal-written",
    "verify-platter",
    "seal-verified",
    "seal-stored",
    "release-batch",
    "seal-released",
    "release-freed",
    "restore-accepted",
    "read-platter",
    "restore-read",
    "restore-committed",
    "expire-committed",
    "delete-committed",
    "delete-shredded",
    "delete-freed",
];

/// The fail point that is armed, if any.
#[derive(Debug, Default)]
pub(crate) struct FailPoints {
    armed: Option<&'static str>,
    /// It panics, once, instead of having the process killed.
    panics: bool,
    passages_left: AtomicU32,
}

/// What follows the name of a fail point that panics.
const PANICS: &str = ":panic";

impl FailPoints {
    /// Arms the point called `name`; the process is killed at its passage number `count`, from 0.
    /// With `:panic` behind the name that passage panics, and those after it do not.
    pub(crate) fn new(armed: Option<&(String, u32)>) -> Result<Self, String> {
        let Some((name, count)) = armed else { return Ok(Self::default()) };
        let (name, panics) = match name.strip_suffix(PANICS) {
            Some(name) => (name, true),
            None => (name.as_str(), false),
        };
        let passages_left = AtomicU32::new(*count);
        match FAIL_POINTS.into_iter().find(|point| *point == name) {
            Some(point) => Ok(Self { armed: Some(point), panics, passages_left }),
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
            if self.panics {
                self.passages_left.store(u32::MAX, Ordering::SeqCst);
                panic!("fail point {point}");
            }
            // SIGKILL, not exit: no destructor runs and no buffer is written back.
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
            // The signal is on its way; no line after this one may run.
            loop {
                std::thread::park();
            }
        }
    }
}

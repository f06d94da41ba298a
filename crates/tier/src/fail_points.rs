//! Fail points: named places at which a test can kill the process, as a power cut would, or panic a
//! thread, as a bug would.
//!
//! They are always compiled in, so what is tested is what runs; passing one that is not armed costs
//! a comparison. Each tier has a list of its own points.

use std::sync::atomic::{AtomicU32, Ordering};

/// The fail point that is armed, if any.
#[derive(Debug)]
pub struct FailPoints {
    /// All points that exist.
    points: &'static [&'static str],
    armed: Option<&'static str>,
    /// Whether it panics, once, instead of killing the process.
    panics: bool,
    passages_left: AtomicU32,
}

/// Suffix of the name of a fail point that panics.
const PANICS: &str = ":panic";

impl FailPoints {
    /// Returns `points`, none of which is armed.
    #[must_use]
    pub const fn unarmed(points: &'static [&'static str]) -> Self {
        Self { points, armed: None, panics: false, passages_left: AtomicU32::new(0) }
    }

    /// Arms the one of `points` called `name`; the process is killed at passage number `count`,
    /// from 0. With the suffix `:panic` that passage panics, and later ones do not.
    ///
    /// # Errors
    /// When no point has this name; lists those that exist.
    pub fn armed(points: &'static [&'static str], name: &str, count: u32) -> Result<Self, String> {
        let (name, panics) = match name.strip_suffix(PANICS) {
            Some(name) => (name, true),
            None => (name, false),
        };
        match points.iter().find(|point| **point == name) {
            Some(point) => {
                Ok(Self { points, armed: Some(point), panics, passages_left: count.into() })
            }
            None => Err(format!("fail point \"{name}\" is not one of {}", points.join(", "))),
        }
    }

    /// Dies here if the point is armed and its passages are used up.
    ///
    /// # Panics
    /// When the point is armed to panic.
    pub fn pass(&self, point: &'static str) {
        debug_assert!(self.points.contains(&point), "fail point {point} is listed");
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

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: &[&str] = &["here", "there"];

    #[test]
    fn panic_point_panics_once_at_its_passage() {
        let fail = FailPoints::armed(POINTS, "there:panic", 1).unwrap();
        let passes = |point| std::panic::catch_unwind(|| fail.pass(point)).is_ok();
        assert!(passes("there") && passes("here"));
        assert!(!passes("there"), "the second passage is the one");
        assert!(passes("there"));
    }

    #[test]
    fn unknown_point_is_refused_with_a_list() {
        let refused = FailPoints::armed(POINTS, "nowhere", 0).unwrap_err();
        assert_eq!(refused, "fail point \"nowhere\" is not one of here, there");
        FailPoints::unarmed(POINTS).pass("here");
    }
}

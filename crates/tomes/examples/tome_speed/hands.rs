//! Who turns the hands of a set's clock: somebody who looks whether anything goes on, and lets time
//! pass when nothing does. So no lease ends while a slow machine works, and no rest is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use fulgurite_units::{Duration, ManualClock};

use super::measure::{process_s, thread_s};

/// How far the hands are turned at a time.
const STEP: Duration = Duration::from_secs(1);
/// How often it is looked.
const LOOK: std::time::Duration = std::time::Duration::from_micros(300);
/// What this process may have of the processor between two looks and do nothing, in seconds.
const NOTHING: f64 = 5e-5;
/// Looks, one after the other, at which nothing went on.
const QUIET_LOOKS: u32 = 3;

/// A thread that turns the hands until it is dropped.
pub(crate) struct Hands {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hands {
    /// Begins to turn them.
    pub(crate) fn turn(clock: &ManualClock) -> Self {
        let ends = Arc::<AtomicBool>::default();
        let (clock, ended) = (clock.clone(), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Acquire) {
                wait_until_quiet(|| ended.load(Ordering::Acquire));
                clock.advance(STEP);
            }
        });
        Self { ends, thread: Some(thread) }
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        self.thread.take().map(JoinHandle::join).unwrap().unwrap();
    }
}

/// Returns when no other thread of this process has run for some looks and none waits for the disk,
/// or when `ends` says so.
pub(crate) fn wait_until_quiet(ends: impl Fn() -> bool) {
    let others = || process_s() - thread_s();
    let (mut before, mut quiet) = (others(), 0);
    while quiet < QUIET_LOOKS && !ends() {
        std::thread::sleep(LOOK);
        let now = others();
        quiet = if now - before < NOTHING && !waits_for_disk() { quiet + 1 } else { 0 };
        before = now;
    }
}

/// Whether some thread of this process does.
fn waits_for_disk() -> bool {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    threads.filter_map(Result::ok).any(|thread| {
        // One that has ended waits for nothing.
        let text = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = text.rsplit(") ").next().and_then(|rest| rest.chars().next());
        state == Some('D')
    })
}

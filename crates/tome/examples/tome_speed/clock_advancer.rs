//! Advances a set's manual clock whenever the process is idle. So no lease expires while a slow
//! machine works, and no backoff is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use fulgurite_units::{Duration, ManualClock};

use super::measure::{process_s, thread_s};

/// First step of the clock, and the largest one while nothing happens: less than half of a lease.
/// Each step is half as large again as the one before.
const STEP: Duration = Duration::from_secs(1);
const STEP_MAX: Duration = Duration::from_secs(120);
/// Poll interval.
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_micros(300);
/// CPU time in seconds that this process may use between two polls and still count as idle.
const IDLE_CPU_MAX: f64 = 5e-5;
/// Idle polls in a row that count as quiet.
const QUIET_POLLS: u32 = 3;

/// A thread that advances the clock until it is dropped.
pub(crate) struct ClockAdvancer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ClockAdvancer {
    /// Starts the thread.
    pub(crate) fn start(clock: &ManualClock) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let (clock, is_stopping) = (clock.clone(), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut step = STEP;
            while !is_stopping.load(Ordering::Acquire) {
                let was_quiet = wait_until_quiet(|| is_stopping.load(Ordering::Acquire));
                let more = Duration::from_nanos(step.as_nanos() / 2 * 3).min(STEP_MAX);
                step = if was_quiet { more } else { STEP };
                clock.advance(step);
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for ClockAdvancer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.thread.take().map(JoinHandle::join).unwrap().unwrap();
    }
}

/// Returns when no other thread of this process has run for some polls and none waits for the disk,
/// or when `is_stopping` returns true. Returns whether that was so from the beginning.
pub(crate) fn wait_until_quiet(is_stopping: impl Fn() -> bool) -> bool {
    let others = || process_s() - thread_s();
    let (mut before, mut quiet, mut polls) = (others(), 0, 0);
    while quiet < QUIET_POLLS && !is_stopping() {
        std::thread::sleep(POLL_INTERVAL);
        let now = others();
        quiet = if now - before < IDLE_CPU_MAX && !waits_for_disk() { quiet + 1 } else { 0 };
        (before, polls) = (now, polls + 1);
    }
    // The first poll sees the work that the clock step itself caused: each tome checks the clock.
    polls <= QUIET_POLLS + 1
}

/// Returns whether some thread of this process waits for the disk.
fn waits_for_disk() -> bool {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    threads.filter_map(Result::ok).any(|thread| {
        // A thread that has stop waits for nothing.
        let text = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = text.rsplit(") ").next().and_then(|rest| rest.chars().next());
        state == Some('D')
    })
}

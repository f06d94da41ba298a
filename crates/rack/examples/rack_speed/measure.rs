//! Time and memory of this process.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Seconds of wall-clock time, and of CPU time over all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) wall: f64,
    pub(crate) processor: f64,
}

/// Measures how long `act` takes.
pub(crate) fn timed(act: impl FnOnce()) -> Times {
    let (wall, processor) = (Instant::now(), processor_s(ClockId::ProcessCPUTime));
    act();
    let wall = wall.elapsed().as_secs_f64();
    Times { wall, processor: processor_s(ClockId::ProcessCPUTime) - processor }
}

/// Returns the CPU time of this thread in seconds.
pub(crate) fn thread_s() -> f64 {
    processor_s(ClockId::ThreadCPUTime)
}

fn processor_s(clock: ClockId) -> f64 {
    std::time::Duration::try_from(clock_gettime(clock)).unwrap().as_secs_f64()
}

/// Resets the peak memory of this process.
pub(crate) fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// Returns the peak memory since the last reset and the current memory, in bytes.
pub(crate) fn memory() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    ["VmHWM:", "VmRSS:"].map(|name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let kibibytes: u64 = line.split_ascii_whitespace().next().unwrap().parse().unwrap();
        kibibytes * 1024
    })
}

//! Time and memory of this process.

use std::time::Instant;

/// Measures elapsed time from its start.
pub(crate) struct Clock {
    wall: Instant,
    processor: f64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { wall: Instant::now(), processor: processor_seconds() }
    }

    /// Returns the CPU seconds of this process, over all threads, and the wall-clock seconds.
    pub(crate) fn seconds(&self) -> (f64, f64) {
        let wall = self.wall.elapsed().as_secs_f64();
        (processor_seconds() - self.processor, wall)
    }
}

/// Sums CPU time over all threads, including ended ones. Linux counts it in hundredths of a second.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program name is in parentheses; user and system time follow 12 fields after it.
    let fields = text.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_ascii_whitespace().skip(11).take(2);
    ticks.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Returns the peak memory of this process.
pub(crate) fn peak_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok());
    kibibytes.unwrap_or(0u64) * 1024
}

//! Time of this process, and bytes that the kernel wrote and read for it.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Cost of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Wall-clock seconds.
    pub(crate) wall: f64,
    /// CPU seconds on all threads.
    pub(crate) processor: f64,
    /// Bytes written to the disk, or still to be.
    pub(crate) written: u64,
    /// Bytes read from the disk.
    pub(crate) read: u64,
}

/// Measures the cost of `operation`.
pub(crate) fn measure_cost(operation: impl FnOnce()) -> Cost {
    let [read, written] = io_bytes();
    let (wall, processor) = (Instant::now(), process_s());
    operation();
    let wall = wall.elapsed().as_secs_f64();
    let [read_after, written_after] = io_bytes();
    Cost {
        wall,
        processor: process_s() - processor,
        written: written_after - written,
        read: read_after - read,
    }
}

/// Returns CPU seconds of this thread.
pub(crate) fn thread_s() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// Returns CPU seconds of all threads.
pub(crate) fn process_s() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    std::time::Duration::try_from(clock_gettime(clock)).unwrap().as_secs_f64()
}

/// Returns the bytes that this process had read from disks and written to them.
fn io_bytes() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    ["read_bytes: ", "write_bytes: "].map(|name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.parse().unwrap()
    })
}

/// Returns the median, or the value above the middle.
pub(crate) fn median(mut runs: Vec<f64>) -> f64 {
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

//! Time of this process, and bytes that it had the system write and read.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// What something took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Seconds by the clock.
    pub(crate) wall: f64,
    /// Seconds of the processor, on all threads.
    pub(crate) processor: f64,
    /// Bytes that were sent to the disk, or are to be.
    pub(crate) written: u64,
    /// Bytes that were got from it.
    pub(crate) read: u64,
}

/// What `act` takes.
pub(crate) fn taken(act: impl FnOnce()) -> Taken {
    let [read, written] = moved();
    let (wall, processor) = (Instant::now(), process_s());
    act();
    let wall = wall.elapsed().as_secs_f64();
    let [read_after, written_after] = moved();
    Taken {
        wall,
        processor: process_s() - processor,
        written: written_after - written,
        read: read_after - read,
    }
}

/// Seconds of the processor that this thread had.
pub(crate) fn thread_s() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// Seconds of the processor that all threads had.
pub(crate) fn process_s() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    std::time::Duration::try_from(clock_gettime(clock)).unwrap().as_secs_f64()
}

/// Bytes that this process had read from disks and written to them.
fn moved() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    ["read_bytes: ", "write_bytes: "].map(|name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.parse().unwrap()
    })
}

/// The middle one, or that above the middle.
pub(crate) fn median(mut runs: Vec<f64>) -> f64 {
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

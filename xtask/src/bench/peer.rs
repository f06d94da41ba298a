//! The performance of the same disk with a plain tool, for comparison.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::shell;

/// Name of [`write_files`].
pub(super) const WRITE_FILES: &str = "write+fdatasync+rename";
/// Name of [`copy_and_check`].
pub(super) const COPY_AND_CHECK: &str = "cp+sync+cksum";
/// Name of [`copy`].
pub(super) const COPY: &str = "cp+sync";

/// Writes each body as a file that is durable before it gets its name, on `threads` threads.
pub(super) fn write_files(folder: &Path, threads: usize, bodies: &[&[u8]]) -> Result<Duration> {
    super::empty(folder)?;
    let next = AtomicUsize::new(0);
    let begin = Instant::now();
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(body) = bodies.get(at) else { return Ok(()) };
                let part = folder.join(format!("{at}.part"));
                let mut file = File::create(&part)?;
                file.write_all(body)?;
                file.sync_data()?;
                std::fs::rename(&part, folder.join(at.to_string()))?;
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a writer does not panic")).collect()
    });
    let took = begin.elapsed();
    results.into_iter().collect::<Result<()>>()?;
    std::fs::remove_dir_all(folder)?;
    Ok(took)
}

/// Copies a file and makes the copy durable.
pub(super) fn copy(from: &Path, to: &Path) -> Result<Duration> {
    let copied = timed(shell::program("cp").arg(from).arg(to))?;
    let synced = timed(shell::program("sync").arg("--data").arg(to))?;
    Ok(copied + synced)
}

/// Copies a file, makes the copy durable and reads it back into a checksum.
pub(super) fn copy_and_check(from: &Path, to: &Path) -> Result<Duration> {
    let copied = copy(from, to)?;
    let mut check = shell::program("cksum");
    let checked = timed(check.arg(to).stdout(Stdio::null()))?;
    Ok(copied + checked)
}

/// Runs a program that must succeed; returns its wall time.
pub(super) fn timed(command: &mut Command) -> Result<Duration> {
    let begin = Instant::now();
    shell::run(command)?;
    Ok(begin.elapsed())
}

//! Measures how long the project takes to build: a clean build, and a rebuild after a change of one
//! file.
//!
//! CPU time is that of cargo and all its child processes, as the kernel counts it, so other work on
//! the machine changes it little; wall time can change a lot. Downloads are not included: crates
//! are fetched before.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Instant, SystemTime};

use anyhow::{Context as _, Result};

use super::{Bench, Measurement, empty};
use crate::shell;

/// The file of one of the program's commands.
const COMMAND_FILE: &str = "crates/object-commands/src/ls.rs";
/// A file of the crate whose tests are rebuilt.
const ARCHIVE_FILE: &str = "crates/archive/src/directory.rs";
/// Clock ticks per second in /proc, which Linux fixes for user space.
const TICKS_PER_SECOND: f64 = 100.0;

/// The cost of a build.
struct BuildTime {
    processor_s: f64,
    clock_s: f64,
}

/// Measures a clean build of the program of `cargo xtask serve`, and rebuilds after changes.
pub(super) fn build(bench: &Bench) -> Result<Vec<Measurement>> {
    shell::run(shell::cargo().arg("fetch"))?;
    let folder = bench.folder.join("build");
    empty(&folder)?;
    let serve = || {
        let mut command = shell::cargo();
        command.args(["build", "--release", "--package", "fulgurite"]);
        command.env("CARGO_TARGET_DIR", &folder);
        timed(&mut command)
    };
    let clean = serve()?;
    touch(COMMAND_FILE)?;
    let changed = serve()?;
    let size = stripped_size(&folder)?;
    let tests = || {
        let mut command = shell::cargo();
        command.args(["test", "--package", "fulgurite-archive", "--no-run"]);
        command.env("CARGO_TARGET_DIR", &folder);
        timed(&mut command)
    };
    tests()?;
    touch(ARCHIVE_FILE)?;
    let tested = tests()?;
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {folder:?}"))?;
    let row = |row, value, unit, target, input: &str| Measurement {
        row,
        ours: vec![value],
        peer: None,
        unit,
        target,
        input: input.to_owned(),
    };
    let (from_nothing, one_command) = ("from nothing, crates downloaded", "ls.rs touched");
    let archive = "directory.rs of archive touched, until its tests can run";
    Ok(vec![
        row("serve, processor", clean.processor_s / 60.0, "min", "<= 12", from_nothing),
        row("serve, clock", clean.clock_s / 60.0, "min", "<= 7", from_nothing),
        row("program, stripped", size, "MB", "<= 50", "release build"),
        row("one command, processor", changed.processor_s, "s", "none", one_command),
        row("one command, clock", changed.clock_s, "s", "<= 45", one_command),
        row("tests of archive, processor", tested.processor_s, "s", "none", archive),
        row("tests of archive, clock", tested.clock_s, "s", "<= 60", archive),
    ])
}

fn timed(command: &mut Command) -> Result<BuildTime> {
    let (before, begin) = (children_s()?, Instant::now());
    shell::run(command)?;
    let clock_s = begin.elapsed().as_secs_f64();
    Ok(BuildTime { processor_s: children_s()? - before, clock_s })
}

/// Returns the CPU seconds of all child processes that have ended.
fn children_s() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").context("processor times are /proc's")?;
    child_cpu_seconds(&text).context("/proc/self/stat has no processor times")
}

/// Parses fields 16 and 17 of `/proc/self/stat`, in seconds; the second field is a name in
/// brackets, which may contain anything.
fn child_cpu_seconds(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / TICKS_PER_SECOND)
}

/// Makes cargo believe that a file was changed.
fn touch(file: &str) -> Result<()> {
    let path = shell::root().join(file);
    let open = File::options().append(true).open(&path);
    let touched = open.and_then(|file| file.set_modified(SystemTime::now()));
    touched.with_context(|| format!("cannot touch {path:?}"))
}

/// Returns the size of the program without its symbol table, in MB (10^6 bytes).
fn stripped_size(target: &Path) -> Result<f64> {
    let stripped = target.join("stripped");
    let mut strip = shell::program("strip");
    shell::run(strip.arg("-o").arg(&stripped).arg(target.join("release/fulgurite")))?;
    #[expect(clippy::cast_precision_loss, reason = "a size is printed with one digit")]
    let size = std::fs::metadata(&stripped)?.len() as f64;
    Ok(size / 1e6)
}

#[cfg(test)]
mod tests {
    use super::child_cpu_seconds;

    #[test]
    fn child_cpu_time_is_read_after_the_process_name() {
        let stat = "12 (a b) c) S 1 2 3 4 5 6 7 8 9 10 1100 1200 1250 50 20 0 1 0 99 0";
        assert_eq!(child_cpu_seconds(stat), Some(13.0));
        assert_eq!(child_cpu_seconds("12 (a) S 1 2"), None);
        assert_eq!(child_cpu_seconds(""), None);
    }
}

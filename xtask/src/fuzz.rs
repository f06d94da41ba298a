//! `cargo xtask fuzz [SECONDS]`: runs every fuzz target for that many seconds.
//!
//! With cargo-fuzz, it runs the targets of `fuzz/` with the installed compiler (no sanitizer: the
//! checks look for panics and wrong results). Without it, it runs the tests that call the same
//! checks with seeded bytes, repeatedly with different seeds. The gate runs those once.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::shell;

const SECONDS_DEFAULT: u64 = 60;
/// Packages whose seeded tests take their seed from the environment, and the arguments of `cargo
/// test` that select them.
const SEEDED: [(&str, &[&str]); 6] = [
    ("fulgurite-archive", &["--lib", "fuzz_api::"]),
    ("fulgurite-platter", &["--test", "outside"]),
    ("fulgurite-glass-core", &["--test", "outside"]),
    ("fulgurite-glass", &["--lib", "fuzz_api::"]),
    ("fulgurite-geo", &["--lib", "fuzz_api::"]),
    ("fulgurite-twin", &["--test", "outside"]),
];

/// Runs all targets.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let seconds = match args {
        [] => SECONDS_DEFAULT,
        [seconds] => seconds.parse().context("the seconds are not a whole number")?,
        _ => bail!("fuzz takes one argument: seconds for each target"),
    };
    if shell::is_installed("cargo", &["fuzz", "--version"]) {
        return targets(seconds);
    }
    println!("cargo-fuzz is not installed (cargo install cargo-fuzz@0.13.2): seeded tests instead");
    SEEDED.iter().try_for_each(|(package, selectors)| seeded(package, selectors, seconds))
}

fn targets(seconds: u64) -> Result<()> {
    let mut list = shell::cargo();
    list.args(["fuzz", "list"]);
    for target in shell::read(&mut list)?.lines() {
        println!("-- {target}");
        let mut command = shell::cargo();
        command.args(["fuzz", "run", "--sanitizer=none", target, "--"]);
        command.arg(format!("-max_total_time={seconds}"));
        // Without a sanitizer a stable compiler works, if it is told to accept the fuzzer's flags.
        shell::run(command.env("RUSTC_BOOTSTRAP", "1"))?;
    }
    Ok(())
}

fn seeded(package: &str, selectors: &[&str], seconds: u64) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let first = std::process::id();
    for seed in first.. {
        println!("-- {package}, FULGURITE_TEST_SEED={seed}");
        let mut command = shell::cargo();
        command.args(["test", "--quiet", "--package", package]).args(selectors);
        shell::run(command.env("FULGURITE_TEST_SEED", seed.to_string()))?;
        if Instant::now() >= end {
            break;
        }
    }
    Ok(())
}

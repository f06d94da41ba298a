//! Starts other programs: knows the project's root and which cargo to call, and times the steps.
//!
//! Only plain `std::process`; there is no shell in between, so nothing needs quoting.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// The root of the project.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Cargo's target directory.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Returns the cargo that started this tool, run in the project's root.
///
/// Variables that cargo sets about this tool's own package are removed. ring's build script reads
/// them, so ring and everything that depends on it would be rebuilt whenever cargo is started by
/// hand and by this tool alternately.
pub(crate) fn cargo() -> Command {
    let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        if is_about_this_tool(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    command
}

/// Returns whether cargo sets the variable to describe a program's own package.
fn is_about_this_tool(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// Returns a command that runs in the project's root.
pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// Runs a program; an exit code other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let text = text(command);
    let status = command.status().with_context(|| format!("cannot start `{text}`"))?;
    if !status.success() {
        bail!("`{text}` ended with {status}");
    }
    Ok(())
}

/// Runs a program, shows every line of standard output as it comes and also passes it to `on_line`.
pub(crate) fn run_with_lines(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<()> {
    let text = text(command);
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start `{text}`"))?;
    let out = child.stdout.take().context("standard output is piped")?;
    for line in BufReader::new(out).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        on_line(&line);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{text}` ended with {status}");
    }
    Ok(())
}

/// Returns the standard output of a program that must succeed; its standard error is dropped.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let text = text(command);
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{text}`"))?;
    if !output.status.success() {
        bail!("`{text}` ended with {}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns whether a program is installed and accepts `args`.
pub(crate) fn is_installed(name: &str, args: &[&str]) -> bool {
    read(program(name).args(args)).is_ok()
}

/// Formats a command as one would type it.
pub(crate) fn text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ran and found no errors.
    Passed,
    /// It did not run, for this reason.
    Skipped(String),
    /// It failed.
    Failed(String),
}

/// The steps of a run with their times.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    rows: Vec<(&'static str, Duration, Outcome)>,
}

impl Steps {
    /// Runs one step. Later steps run even when it fails, so that one run shows everything.
    pub(crate) fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<Outcome>) {
        println!("== {name}");
        let begin = Instant::now();
        let outcome = work().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        let took = begin.elapsed();
        match &outcome {
            Outcome::Passed => println!("== {name}: passed, {:.1} s", took.as_secs_f64()),
            Outcome::Skipped(why) => println!("skipped: {name}: {why}"),
            Outcome::Failed(why) => println!("== {name}: FAILED: {why}"),
        }
        self.rows.push((name, took, outcome));
    }

    /// Prints the table; the error names the steps that failed.
    pub(crate) fn finish(self) -> Result<()> {
        println!("\n{:<12} {:>8}  result", "step", "seconds");
        let mut failed = Vec::new();
        for (name, took, outcome) in &self.rows {
            let word = match outcome {
                Outcome::Passed => "passed".to_owned(),
                Outcome::Skipped(why) => format!("skipped: {why}"),
                Outcome::Failed(_) => {
                    failed.push(*name);
                    "FAILED".to_owned()
                }
            };
            println!("{name:<12} {:>8.1}  {word}", took.as_secs_f64());
        }
        let total: Duration = self.rows.iter().map(|row| row.1).sum();
        println!("{:<12} {:>8.1}", "total", total.as_secs_f64());
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    /// Cargo starts tests like this tool, with the same variables.
    #[test]
    fn cargo_gets_no_variables_of_this_tool() {
        let cargo = super::cargo();
        let changes: Vec<_> = cargo.get_envs().collect();
        for name in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"] {
            assert!(std::env::var_os(name).is_some(), "cargo sets {name}");
            assert!(changes.contains(&(OsStr::new(name), None)), "{name} is passed on");
        }
        assert!(changes.iter().all(|(name, _)| *name != OsStr::new("PATH")));
    }
}

//! `cargo xtask test`, for users, and `cargo xtask ci`, the only gate.
//!
//! Both build once, with the dev profile and the same features, so that clippy, the tests and the
//! end-to-end tests share build artifacts.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::shell::{self, Outcome, Steps};
use crate::{deny, e2e, lab, tidy};

/// Cargo's flags that select all packages.
const EVERYTHING: [&str; 3] = ["--workspace", "--features", "xtask/bench"];

/// Tests, counted from the summary lines of `cargo test` and pytest, and the names of those that
/// failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
    names: Vec<String>,
}

impl Count {
    /// Adds the counts of a summary line, or the name of a failed test; ignores other lines.
    fn add_line(&mut self, line: &str) {
        self.names.extend(failed_test(line).map(str::to_owned));
        let closing = line.trim_matches(|c: char| c == '=' || c == ' ');
        let is_cargo = closing.starts_with("test result:");
        let is_pytest = line.starts_with("==") && closing.contains(" in ");
        if !is_cargo && !is_pytest {
            return;
        }
        let words: Vec<&str> = closing.split([' ', ',', ';']).filter(|w| !w.is_empty()).collect();
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<u64>() else { continue };
            match pair[1] {
                "passed" => self.passed += count,
                "failed" | "error" | "errors" => self.failed += count,
                _ => {}
            }
        }
    }

    /// Prints the counts and the names, which are far above the end of a long log.
    fn print(&self) {
        println!("{} passed, {} failed", self.passed, self.failed);
        for name in &self.names {
            println!("FAILED {name}");
        }
    }
}

/// Returns the name of the test whose failure `cargo test` or pytest reports on this line.
fn failed_test(line: &str) -> Option<&str> {
    let of_cargo = || line.strip_prefix("---- ")?.strip_suffix(" stdout ----");
    let of_pytest = || {
        let rest = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "))?;
        let name = rest.split(" - ").next()?;
        name.contains(".py").then_some(name)
    };
    of_cargo().or_else(of_pytest)
}

/// Runs every test, with the fewest requirements for the machine.
pub(crate) fn test() -> Result<()> {
    if !shell::is_installed("cc", &["--version"]) {
        bail!("no C compiler (`cc`); on Debian: apt-get install gcc libc6-dev");
    }
    let mut count = Count::default();
    let mut steps = Steps::default();
    steps.step("build", build);
    steps.step("test", || cargo_test(&mut count));
    steps.step("end-to-end", || end_to_end(&mut count));
    steps.step("lab", || lab::run(|line| count.add_line(line)));
    let result = steps.finish();
    count.print();
    result
}

/// Runs the gate. A step may be skipped only if it says why.
pub(crate) fn ci() -> Result<()> {
    let mut count = Count::default();
    let mut steps = Steps::default();
    steps.step("fmt", || done(shell::cargo().args(["fmt", "--all", "--check"])));
    steps.step("tidy", || tidy::run().map(|()| Outcome::Passed));
    steps.step("ruff", ruff);
    steps.step("licenses", deny::licenses);
    steps.step("advisories", deny::advisories);
    steps.step("clippy", clippy);
    steps.step("doc", doc);
    steps.step("build", build);
    steps.step("test", || cargo_test(&mut count));
    steps.step("levels", || levels(&mut count));
    steps.step("sanitizer", || sanitizer(&mut count));
    steps.step("end-to-end", || match end_to_end(&mut count)? {
        Outcome::Skipped(why) => bail!("the gate needs the end-to-end tests: {why}"),
        outcome @ (Outcome::Passed | Outcome::Failed(_)) => Ok(outcome),
    });
    steps.step("lab", || match lab::run(|line| count.add_line(line))? {
        Outcome::Skipped(why) => bail!("the gate needs the lab's tests: {why}"),
        outcome @ (Outcome::Passed | Outcome::Failed(_)) => Ok(outcome),
    });
    let result = steps.finish();
    count.print();
    result
}

fn done(command: &mut Command) -> Result<Outcome> {
    shell::run(command)?;
    Ok(Outcome::Passed)
}

/// Does what `cargo clippy -- -D warnings` does, but through `cargo check`, so that `doc` can reuse
/// the artifacts: cargo caches those of another subcommand separately.
fn clippy() -> Result<Outcome> {
    done(by_clippy(shell::cargo().arg("check").args(EVERYTHING).arg("--all-targets"))?)
}

/// Builds the documentation from the crates as `clippy` checked them. Including an example gives
/// the dependencies the same features as there; without one, some would be checked again.
fn doc() -> Result<Outcome> {
    let mut command = shell::cargo();
    command.arg("doc").args(EVERYTHING).args(["--no-deps", "--document-private-items"]);
    command.args(["--lib", "--bins", "--example", "isa"]);
    done(by_clippy(command.env("RUSTDOCFLAGS", "-D warnings"))?)
}

/// Compiles our crates with clippy, as cargo's subcommand does.
fn by_clippy(command: &mut Command) -> Result<&mut Command> {
    let sysroot = shell::read(shell::program("rustc").args(["--print", "sysroot"]))?;
    let driver = Path::new(&sysroot).join("bin/clippy-driver");
    if !driver.exists() {
        bail!("{} is missing; rustup component add clippy", driver.display());
    }
    command.env("RUSTC_WORKSPACE_WRAPPER", driver);
    Ok(command.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__"))
}

/// Builds programs and tests. Examples are for measurements: clippy checks them, but only one is
/// run here.
fn build() -> Result<Outcome> {
    shell::run(shell::cargo().arg("build").args(EVERYTHING).args(["--bins", "--example", "isa"]))?;
    done(shell::cargo().arg("test").args(EVERYTHING).args(["--tests", "--no-run"]))
}

fn cargo_test(count: &mut Count) -> Result<Outcome> {
    // Run the second even if the first fails.
    let runs = ["--tests", "--doc"].map(|kind| {
        let mut command = shell::cargo();
        command.arg("test").args(EVERYTHING).args([kind, "--no-fail-fast"]);
        shell::run_with_lines(&mut command, |line| count.add_line(line))
    });
    runs.into_iter().collect::<Result<()>>()?;
    Ok(Outcome::Passed)
}

/// Tests of kernels: a package, and substrings of their names.
const KERNELS: [(&str, &[&str]); 2] =
    [("fulgurite-codes", &[]), ("fulgurite-decode", &["kernel", "bytes", "bank"])];

/// Runs the tests of kernels once for each instruction set that this processor has, since the best
/// one would hide the others.
///
/// The programs are those that `test` ran: for a single package, cargo would rebuild the
/// dependencies with only that package's features.
fn levels(count: &mut Count) -> Result<Outcome> {
    let mut list = shell::cargo();
    list.arg("test").args(EVERYTHING).args(["--tests", "--no-run", "--message-format=json"]);
    let built = shell::read(&mut list)?;
    let isa = shell::target().join("debug/examples/isa");
    for level in shell::read(&mut shell::program(isa))?.lines() {
        println!("-- FULGURITE_ISA={level}");
        for (package, names) in KERNELS {
            run_tests_of(package, &built, names, &[("FULGURITE_ISA", level)], count)?;
        }
    }
    Ok(Outcome::Passed)
}

/// Runs the tests of a library, as built by `cargo test --no-run --message-format=json`.
fn run_tests_of(
    package: &str,
    built: &str,
    names: &[&str],
    variables: &[(&str, &str)],
    count: &mut Count,
) -> Result<()> {
    let mut command = shell::program(test_program(built, &package.replace('-', "_"))?);
    let folder = shell::root().join("crates").join(package.trim_start_matches("fulgurite-"));
    // Cargo sets this for tests, which find their files by it.
    command.env("CARGO_MANIFEST_DIR", &folder).current_dir(&folder);
    command.arg("--quiet").args(names).envs(variables.iter().copied());
    shell::run_with_lines(&mut command, |line| count.add_line(line))
}

/// Returns the test program of a library from cargo's messages.
fn test_program(messages: &str, name: &str) -> Result<PathBuf> {
    let (named, kind) = (format!("\"name\":\"{name}\""), "\"kind\":[\"lib\"]");
    let mut found = messages.lines().filter(|line| line.contains(&named) && line.contains(kind));
    let path = found.find_map(|line| line.split_once("\"executable\":\"")?.1.split('"').next());
    path.map(PathBuf::from).with_context(|| format!("cargo built no tests of the library {name}"))
}

/// Runs the same tests under the address sanitizer, because kernels use pointers. The sanitizer is
/// an unstable flag, which a stable compiler has to be told to accept.
fn sanitizer(count: &mut Count) -> Result<Outcome> {
    let version = shell::read(shell::program("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    if !host.ends_with("linux-gnu") {
        return Ok(Outcome::Skipped(format!("there is none for {host}")));
    }
    // All packages together, so that shared dependencies are built once.
    let build = || {
        let mut command = shell::cargo();
        command.args(["test", "--quiet", "--profile", "sanitizer", "--lib", "--target", host]);
        command.arg("--target-dir").arg(shell::target().join("sanitizer")).arg("--no-run");
        command.args(KERNELS.iter().flat_map(|(package, _)| ["--package", package]));
        command.envs([("RUSTC_BOOTSTRAP", "1"), ("RUSTFLAGS", "-Zsanitizer=address")]);
        command
    };
    shell::run(&mut build())?;
    let built = shell::read(build().arg("--message-format=json"))?;
    for (package, names) in KERNELS {
        run_tests_of(package, &built, names, &[], count)?;
    }
    Ok(Outcome::Passed)
}

fn end_to_end(count: &mut Count) -> Result<Outcome> {
    e2e::run(&shell::target().join("debug/fulgurite"), |line| count.add_line(line))
}

/// Checks formatting and lints of the Python tests, with the ruff of their environment.
fn ruff() -> Result<Outcome> {
    let python = match e2e::prepare()? {
        Ok(python) => python,
        Err(missing) => return Ok(Outcome::Skipped(missing)),
    };
    shell::run(shell::program(&python).args(["-m", "ruff", "format", "--check", "tests"]))?;
    done(shell::program(&python).args(["-m", "ruff", "check", "tests"]))
}

#[cfg(test)]
mod tests {
    use super::Count;

    #[track_caller]
    fn check(lines: &[&str], passed: u64, failed: u64) {
        let mut count = Count::default();
        lines.iter().for_each(|line| count.add_line(line));
        assert_eq!(count, Count { passed, failed, names: Vec::new() });
    }

    #[test]
    fn failed_tests_are_named() {
        let mut count = Count::default();
        for line in [
            "test log::tests::order ... FAILED",
            "---- log::tests::order stdout ----",
            "thread 'log::tests::order' panicked at src/log.rs:5:9:",
            "    log::tests::order",
            "FAILED tests/e2e/test_x.py::test_y[2] - AssertionError: a - b",
            "ERROR tests/e2e/test_z.py",
            "ERROR cannot open the index",
        ] {
            count.add_line(line);
        }
        let names = ["log::tests::order", "tests/e2e/test_x.py::test_y[2]", "tests/e2e/test_z.py"];
        assert_eq!(count.names, names);
    }

    #[test]
    fn cargo_summary_lines_are_counted() {
        check(
            &[
                "test tests::a ... ok",
                "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out",
                "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            ],
            15,
            2,
        );
    }

    #[test]
    fn test_programs_are_found_in_cargo_messages() {
        let messages = r#"{"target":{"kind":["lib"],"name":"codes"},"executable":null}
{"target":{"kind":["lib"],"name":"codes_more"},"executable":"/t/deps/more-1"}
{"target":{"kind":["lib"],"name":"codes"},"executable":"/t/deps/codes-1","fresh":true}
{"target":{"kind":["example"],"name":"isa"},"executable":"/t/examples/isa"}"#;
        let path = |name| super::test_program(messages, name).ok();
        assert_eq!(path("codes"), Some("/t/deps/codes-1".into()));
        assert_eq!(path("isa"), None);
    }

    #[test]
    fn only_pytest_summary_lines_are_counted() {
        check(&["== 5 passed, 1 failed, 2 errors in 3.21s =="], 5, 3);
        check(&["===== 7 passed in 61.20s (0:01:01) ====="], 7, 0);
        // The output of pytest-xdist.
        check(
            &["================= 352 passed, 1 skipped in 1021.67s (0:17:01) =================="],
            352,
            0,
        );
        check(&["we have 5 passed in", "tests/e2e/test_x.py ..... 5 passed"], 0, 0);
    }
}

//! The end-to-end tests: a virtual environment with the real clients, then pytest.
//!
//! The clients are pinned in `tests/e2e/requirements.txt`.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::environment;
use crate::shell::{self, Outcome};

/// Concurrent tests per processor: most of them wait more than they compute.
const WORKERS_PER_PROCESSOR: usize = 3;

/// Limited by the ports of `tests/e2e/harness.py`.
const WORKERS_MAX: usize = 20;

/// Runs the tests against `binary`; skipped, with the reason, when the machine lacks something.
pub(crate) fn run(binary: &Path, on_line: impl FnMut(&str)) -> Result<Outcome> {
    let python = match prepare()? {
        Ok(python) => python,
        Err(missing) => return Ok(Outcome::Skipped(missing)),
    };
    let mut command = shell::program(python);
    command.args(["-m", "pytest", "tests/e2e", "-p", "no:cacheprovider", "--durations=40", "-ra"]);
    // Of tests that passed nothing is left: all of them together take 20 GB.
    command.args(["-o", "tmp_path_retention_policy=failed"]);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = (processors * WORKERS_PER_PROCESSOR).min(WORKERS_MAX).to_string();
    // The tests declare their groups and their order.
    command.args(["--numprocesses", &workers, "--dist", "loadgroup", "--no-loadscope-reorder"]);
    command.env("FULGURITE_BINARY", binary).env("PYTHONDONTWRITEBYTECODE", "1");
    shell::run_with_lines(&mut command, on_line)?;
    Ok(Outcome::Passed)
}

/// Returns the environment's interpreter, or what is missing.
pub(crate) fn prepare() -> Result<Result<PathBuf, String>> {
    environment::prepare("tests/e2e/requirements.txt", "e2e-venv")
}

//! The end-to-end tests: a virtual environment with the real clients, then pytest.
//!
//! The clients are pinned in `tests/e2e/requirements.txt`.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::environment;
use crate::shell::{self, Outcome};

/// Runs the tests against `binary`; skipped, with the reason, when the machine lacks something.
pub(crate) fn run(binary: &Path, see: impl FnMut(&str)) -> Result<Outcome> {
    let python = match prepare()? {
        Ok(python) => python,
        Err(missing) => return Ok(Outcome::Skipped(missing)),
    };
    let mut command = shell::program(python);
    command.args(["-m", "pytest", "tests/e2e", "-p", "no:cacheprovider", "--durations=15", "-ra"]);
    command.env("FULGURITE_BINARY", binary).env("PYTHONDONTWRITEBYTECODE", "1");
    shell::run_seeing(&mut command, see)?;
    Ok(Outcome::Passed)
}

/// The environment's interpreter, or what is missing.
pub(crate) fn prepare() -> Result<Result<PathBuf, String>> {
    environment::prepare("tests/e2e/requirements.txt", "e2e-venv")
}

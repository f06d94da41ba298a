//! The end-to-end tests: a virtual environment with the real clients, then pytest.
//!
//! The clients are pinned in `tests/e2e/requirements.txt`. The environment lives in the target
//! directory and is made again when that file changes.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::shell::{self, Outcome};

/// What is missing, and how to get it.
const NO_PYTHON: &str = "python3 is not installed; on Debian: apt-get install python3 python3-venv";
const NO_VENV: &str = "python3 cannot make virtual environments; on Debian: apt-get install \
                       python3-venv";
const NO_CLIENTS: &str = "pip cannot install tests/e2e/requirements.txt; a package index must be \
                          reachable (pip's settings apply)";

/// Runs the tests against `binary`; skipped, with the reason, when the machine lacks something.
pub(crate) fn run(binary: &Path, see: impl FnMut(&str)) -> Result<Outcome> {
    let python = match prepare()? {
        Ok(python) => python,
        Err(missing) => return Ok(Outcome::Skipped(missing.to_owned())),
    };
    let mut command = shell::program(python);
    command.args(["-m", "pytest", "tests/e2e", "-p", "no:cacheprovider", "--durations=15", "-ra"]);
    command.env("FULGURITE_BINARY", binary).env("PYTHONDONTWRITEBYTECODE", "1");
    shell::run_seeing(&mut command, see)?;
    Ok(Outcome::Passed)
}

/// The environment's interpreter, or what is missing.
pub(crate) fn prepare() -> Result<Result<PathBuf, &'static str>> {
    let requirements = std::fs::read_to_string(shell::root().join("tests/e2e/requirements.txt"))
        .context("cannot read tests/e2e/requirements.txt")?;
    let folder = shell::target().join("e2e-venv");
    let python = folder.join("bin/python");
    let stamp = folder.join("requirements.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == requirements) {
        return Ok(Ok(python));
    }
    if !shell::is_installed("python3", &["--version"]) {
        return Ok(Err(NO_PYTHON));
    }
    let mut make = shell::program("python3");
    if shell::run(make.args(["-m", "venv", "--clear"]).arg(&folder)).is_err() {
        return Ok(Err(NO_VENV));
    }
    let mut install = shell::program(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    if shell::run(install.args(["--requirement", "tests/e2e/requirements.txt"])).is_err() {
        return Ok(Err(NO_CLIENTS));
    }
    std::fs::write(&stamp, &requirements).context("cannot write the environment's stamp")?;
    Ok(Ok(python))
}

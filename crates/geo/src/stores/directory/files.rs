//! Files of a table in a directory: how the holder of a row's lock reads, replaces and removes it.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::lock::{Guard, stripe_name, to_table_error};
use super::row_file::{decode, encode, to_u64};
use crate::stores::limits::{KEY_BYTES_MAX, ROW_BYTES_MAX, STRIPES};
use crate::stores::{Cause, Key, OpenError, Row, TableError};

const MARKER: &str = "fulgurite-table";
const MARKER_TEXT: &str = "fulgurite table 1\n";
/// Suffix of a row's file name. It sorts before all characters of keys, so that files are in the
/// order of keys and no row has the name of a folder.
pub(super) const SUFFIX: char = '!';

/// A step in changing a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DirectoryStep {
    /// The folders of the row are created.
    MakeFolders,
    /// Its new image is written.
    WriteImage,
    /// The image is fsynced.
    SyncImage,
    /// The row's key is written to the lock file.
    OpenChange,
    /// The image is renamed over the row, or the row is removed.
    Rename,
    /// The folders are fsynced.
    SyncFolders,
    /// The lock file is truncated.
    CloseChange,
}

impl DirectoryStep {
    /// All steps, in order.
    pub const ALL: [Self; 7] = [
        Self::MakeFolders,
        Self::WriteImage,
        Self::SyncImage,
        Self::OpenChange,
        Self::Rename,
        Self::SyncFolders,
        Self::CloseChange,
    ];
}

/// A hook that runs before each step of a change; the step fails with its error.
#[derive(Clone)]
pub struct FaultHook(Arc<dyn Fn(DirectoryStep) -> io::Result<()> + Send + Sync>);

impl FaultHook {
    /// Creates a hook.
    #[must_use]
    pub fn new(hook: impl Fn(DirectoryStep) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }
}

impl fmt::Debug for FaultHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultHook")
    }
}

/// The files of one table.
#[derive(Clone, Debug)]
pub(super) struct Files {
    root: PathBuf,
    fault_hook: Option<FaultHook>,
}

impl Files {
    pub(super) fn open(root: PathBuf, may_create: bool) -> Result<Self, OpenError> {
        let place = root.display().to_string();
        let failed = |error: io::Error| OpenError::Table {
            place: place.clone(),
            source: to_table_error(&error),
        };
        match fs::read_to_string(root.join(MARKER)) {
            Ok(text) if text == MARKER_TEXT => return Ok(Self { root, fault_hook: None }),
            Ok(text) => {
                let what = format!("its marker is {:?}, not {MARKER_TEXT:?}", head(&text));
                return Err(OpenError::Foreign { place, what });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        if !may_create {
            return Err(OpenError::Missing { what: "table", place });
        }
        if let Some(unknown_entry) = unknown_entry(&root).map_err(failed)? {
            let what = format!("it is neither a table nor empty: it contains \"{unknown_entry}\"");
            return Err(OpenError::Foreign { place, what });
        }
        create(&root).map_err(failed)?;
        Ok(Self { root, fault_hook: None })
    }

    pub(super) fn with_fault_hook(self, fault_hook: FaultHook) -> Self {
        Self { fault_hook: Some(fault_hook), ..self }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder of all rows.
    pub(super) fn rows(&self) -> PathBuf {
        self.root.join("rows")
    }

    /// Returns the path of a row's file.
    fn path(&self, key: &Key) -> PathBuf {
        let mut path = self.rows().join(key.as_str()).into_os_string();
        path.push(SUFFIX.to_string());
        path.into()
    }

    /// Reads the row.
    pub(super) fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        let path = self.path(key);
        let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let mut opened = File::open(&path);
        // Either a folder of the row is missing, or the whole directory was just then: absence
        // needs the marker before and after the read.
        if opened.as_ref().is_err_and(absent) {
            self.check_marker()?;
            opened = File::open(&path);
        }
        let file = match opened {
            Ok(file) => file,
            Err(error) if absent(&error) => return self.check_marker().map(|()| None),
            Err(error) => return Err(to_table_error(&error)),
        };
        let mut bytes = Vec::new();
        let limit = to_u64(ROW_BYTES_MAX + KEY_BYTES_MAX + 4096);
        file.take(limit).read_to_end(&mut bytes).map_err(|error| to_table_error(&error))?;
        let damaged =
            |what| TableError::Corrupt(format!("row \"{key}\" in {}: {what}", path.display()));
        decode(key, &bytes).map(Some).map_err(damaged)
    }

    /// Completes a change whose process died: makes the visible row durable.
    pub(super) fn settle(&self, guard: &Guard) -> Result<(), TableError> {
        if guard.is_settled()? {
            return Ok(());
        }
        let key = guard.open_change().map_err(|error| to_table_error(&error))?;
        let key = String::from_utf8(key).ok().and_then(|key| Key::new(key).ok());
        // A truncated key was cut by a power failure; after that, whatever exists is durable.
        if let Some(key) = key {
            match self.read(&key) {
                Ok(Some(row)) => {
                    self.replace(guard, &key, &row).map_err(TableError::into_read_error)?
                }
                // A damaged row stays damaged; other rows that share its lock go on.
                Ok(None) | Err(TableError::Corrupt(_)) => {
                    self.sync_folders(&key).map_err(|error| to_table_error(&error))?;
                }
                Err(error) => return Err(error),
            }
        }
        guard.end().map_err(|error| to_table_error(&error))
    }

    /// Writes a row. Until the rename, an error means that nothing changed.
    pub(super) fn replace(&self, guard: &Guard, key: &Key, row: &Row) -> Result<(), TableError> {
        let image = self.root.join("new").join(stripe_name(guard.stripe()));
        let written = self.write_image(&image, key, row);
        if let Err(error) = written {
            // The next write would overwrite it, but it takes up space, which may be what is
            // missing.
            let _ = fs::remove_file(&image);
            return Err(to_table_error(&error));
        }
        self.change(guard, key, |path| fs::rename(&image, path))
    }

    /// Checks that the directory exists and is the table.
    pub(super) fn check_marker(&self) -> Result<(), TableError> {
        fs::metadata(self.root.join(MARKER)).map(drop).map_err(|error| to_table_error(&error))
    }

    /// Creates the folders of a row, but none above: a missing table directory must not be
    /// recreated.
    fn make_folders(&self, row: &Path) -> io::Result<()> {
        let rows = self.rows();
        let folders = row.ancestors().skip(1);
        let below: Vec<&Path> = folders.take_while(|folder| **folder != rows).collect();
        for folder in below.into_iter().rev() {
            match fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn write_image(&self, image: &Path, key: &Key, row: &Row) -> io::Result<()> {
        self.before_step(DirectoryStep::MakeFolders)?;
        self.make_folders(&self.path(key))?;
        self.before_step(DirectoryStep::WriteImage)?;
        let mut file = File::create(image)?;
        file.write_all(&encode(key, row))?;
        self.before_step(DirectoryStep::SyncImage)?;
        file.sync_all()
    }

    /// Removes a row, or does nothing if it does not exist.
    pub(super) fn remove(&self, guard: &Guard, key: &Key) -> Result<(), TableError> {
        self.change(guard, key, |path| match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        })
    }

    /// Executes the visible part of a change and makes it durable.
    fn change(
        &self,
        guard: &Guard,
        key: &Key,
        apply: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), TableError> {
        let begun = self.before_step(DirectoryStep::OpenChange).and_then(|()| guard.begin(key));
        if let Err(error) = begun {
            let _ = guard.end();
            return Err(to_table_error(&error));
        }
        let unknown = |error: io::Error| TableError::Unknown(Cause::new(error.to_string()));
        self.before_step(DirectoryStep::Rename)
            .and_then(|()| apply(&self.path(key)))
            .map_err(unknown)?;
        self.before_step(DirectoryStep::SyncFolders)
            .and_then(|()| self.sync_folders(key))
            .map_err(unknown)?;
        // If the key stays there, the row is merely written once more.
        let _ = self.before_step(DirectoryStep::CloseChange).and_then(|()| guard.end());
        Ok(())
    }

    /// Fsyncs the folders of a row up to that of all rows: the creator of one may not have done so.
    fn sync_folders(&self, key: &Key) -> io::Result<()> {
        let (path, rows) = (self.path(key), self.rows());
        for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(&rows)) {
            match File::open(folder) {
                Ok(folder) => folder.sync_all()?,
                // The row never existed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn before_step(&self, step: DirectoryStep) -> io::Result<()> {
        self.fault_hook.as_ref().map_or(Ok(()), |FaultHook(hook)| hook(step))
    }
}

/// Returns the first entry in a directory that does not belong to a table being created.
fn unknown_entry(root: &Path) -> io::Result<Option<String>> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !["locks", "rows", "new"].contains(&name.as_str()) && !name.starts_with(MARKER) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Creates a table. Several processes may do so concurrently; the marker comes last.
fn create(root: &Path) -> io::Result<()> {
    for folder in ["locks", "rows", "new"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for stripe in 0..STRIPES {
        let path = root.join("locks").join(stripe_name(stripe));
        OpenOptions::new().create(true).append(true).open(path)?.sync_all()?;
    }
    File::open(root.join("locks"))?.sync_all()?;
    // Each process uses its own name, so that none reads a partial marker.
    let image = root.join(format!("{MARKER}.{}", std::process::id()));
    let mut file = File::create(&image)?;
    file.write_all(MARKER_TEXT.as_bytes())?;
    file.sync_all()?;
    fs::rename(&image, root.join(MARKER))?;
    sync_ancestors(root)
}

/// Fsyncs a folder and its ancestors, which may have been created with it. It stops at one that it
/// may not read, or whose file system cannot sync folders (a read-only image): that one was not
/// created.
pub(crate) fn sync_ancestors(folder: &Path) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, PermissionDenied};
    for folder in folder.ancestors() {
        // The parent of a path with a single name is the working directory.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        match File::open(folder).and_then(|folder| folder.sync_all()) {
            Err(error) if matches!(error.kind(), PermissionDenied | InvalidInput) => break,
            done => done?,
        }
    }
    Ok(())
}

fn head(text: &str) -> String {
    text.chars().take(40).collect()
}

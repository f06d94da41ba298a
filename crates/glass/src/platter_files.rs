//! Platters as files: written once, front to back, renamed when complete, readable by their owner
//! only.

mod direct;

use std::fs::File;
use std::os::unix::fs::{FileExt, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_platter::{PlatterSink, PlatterSource};
use fulgurite_tier::Progress;
use fulgurite_units::PlatterId;

use self::direct::Direct;
use crate::{GlassError, Result};

/// The folder that stands for the library's shelves.
#[derive(Clone, Debug)]
pub(crate) struct PlatterFiles {
    dir: PathBuf,
}

/// A platter in the write drive.
#[derive(Debug)]
pub(crate) struct PlatterFileSink {
    file: File,
    path: PathBuf,
    position: u64,
    /// Counts its bytes.
    progress: Arc<Progress>,
}

/// A platter in a read drive.
#[derive(Debug)]
pub(crate) struct PlatterFileSource {
    file: File,
    bytes: u64,
    /// Reads that must not come from the page cache.
    direct: Option<Direct>,
}

impl PlatterFiles {
    /// Opens the folder of the platters.
    #[must_use]
    pub(crate) const fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Returns the path of a platter that has its name.
    #[must_use]
    pub(crate) fn path(&self, platter: PlatterId) -> PathBuf {
        self.dir.join(format!("{platter}.glass"))
    }

    fn part(&self, platter: PlatterId) -> PathBuf {
        self.dir.join(format!("{platter}.part"))
    }

    /// Whether the file of a platter exists.
    #[must_use]
    pub(crate) fn exists(&self, platter: PlatterId) -> bool {
        self.path(platter).exists()
    }

    /// Creates a blank platter in the write drive. Discards what an interrupted attempt left.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn blank(
        &self,
        platter: PlatterId,
        progress: &Arc<Progress>,
    ) -> Result<PlatterFileSink> {
        let path = self.part(platter);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .map_err(GlassError::io("create", &path))?;
        Ok(PlatterFileSink { file, path, position: 0, progress: Arc::clone(progress) })
    }

    /// Makes a finished platter durable.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn sync(&self, sink: &PlatterFileSink) -> Result<()> {
        sink.file.sync_all().map_err(GlassError::io("sync", &sink.path))
    }

    /// Gives a synced platter its name, which is durable after [`Self::sync_names`]. Only its owner
    /// can read it, whatever the umask of the process.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn publish(&self, platter: PlatterId, sink: PlatterFileSink) -> Result<()> {
        let private = std::fs::Permissions::from_mode(0o600);
        sink.file.set_permissions(private).map_err(GlassError::io("close", &sink.path))?;
        std::fs::rename(&sink.path, self.path(platter))
            .map_err(GlassError::io("rename", &sink.path))
    }

    /// Makes the names of all platters durable.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn sync_names(&self) -> Result<()> {
        sync_dir(&self.dir)
    }

    /// Removes a platter whose set was never verified; the next attempt writes a new one.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn scrap(&self, platter: PlatterId) -> Result<()> {
        for path in [self.part(platter), self.path(platter)] {
            match std::fs::remove_file(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(GlassError::io("remove", &path)(error)),
            }
        }
        Ok(())
    }

    /// Removes a platter that is kept elsewhere.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn remove(&self, platter: PlatterId) -> Result<()> {
        self.scrap(platter)?;
        sync_dir(&self.dir)
    }

    /// Opens a platter in a read drive.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn open(&self, platter: PlatterId) -> Result<PlatterFileSource> {
        PlatterFileSource::open(&self.path(platter))
    }

    /// Opens a platter for verification: its bytes come from the disk, not from the page cache.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn open_to_verify(&self, platter: PlatterId) -> Result<PlatterFileSource> {
        let path = self.path(platter);
        let source = PlatterFileSource::open(&path)?;
        let direct = Direct::open(&path);
        if direct.is_none() {
            source.forget_cached();
        }
        Ok(PlatterFileSource { direct, ..source })
    }

    /// Lists all platters in the folder.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn all(&self) -> Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(&self.dir).map_err(GlassError::io("list", &self.dir))? {
            let path = entry.map_err(GlassError::io("list", &self.dir))?.path();
            if path.extension().is_some_and(|extension| extension == "glass") {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }
}

impl PlatterFileSink {
    /// Returns a reader of what was written, before the platter has its name.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn source(&self) -> Result<PlatterFileSource> {
        let file = self.file.try_clone().map_err(GlassError::io("open", &self.path))?;
        Ok(PlatterFileSource { file, bytes: self.position, direct: None })
    }
}

impl PlatterSink for PlatterFileSink {
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all_at(bytes, self.position)?;
        self.position += bytes.len() as u64;
        self.progress.add(bytes.len() as u64);
        Ok(())
    }
}

impl PlatterFileSource {
    /// Opens the platter in this file.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(GlassError::io("open", path))?;
        let bytes = file.metadata().map_err(GlassError::io("read", path))?.len();
        Ok(Self { file, bytes, direct: None })
    }

    /// Drops the file from the page cache, so that the next read comes from the disk.
    fn forget_cached(&self) {
        let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed);
    }
}

impl PlatterSource for PlatterFileSource {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        match &self.direct {
            Some(direct) => direct.read_at(offset, buffer),
            None => self.file.read_exact_at(buffer, offset),
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Syncs a folder, so that the names in it are durable.
fn sync_dir(dir: &Path) -> Result<()> {
    let file = File::open(dir).map_err(GlassError::io("open", dir))?;
    file.sync_all().map_err(GlassError::io("sync", dir))
}

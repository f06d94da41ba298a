//! Bytes on their way to a blob: in memory if the caller has them there, else in staged files of a
//! folder beside the index. A group must not spin while a client thinks (Pelican, OSDI 2014,
//! section 3: writes are staged in a higher tier).
//!
//! Files left in the folder when a rack is opened belong to abandoned uploads and are removed.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::{RackError, Result};

/// The staging folder.
#[derive(Debug)]
pub(super) struct Staging {
    folder: PathBuf,
    next: AtomicU64,
}

/// A file in it, removed when its last reference is dropped.
#[derive(Debug)]
pub(super) struct Staged(PathBuf);

/// The bytes of an object, as parts in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Source(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    Memory(Bytes),
    Staged(Arc<Staged>),
}

impl Staging {
    /// Empties or creates the folder.
    pub(super) fn open(folder: PathBuf) -> Result<Self> {
        if let Err(error) = fs::remove_dir_all(&folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(RackError::io("empty", &folder)(error));
        }
        fs::create_dir_all(&folder).map_err(RackError::io("make", &folder))?;
        Ok(Self { folder, next: AtomicU64::new(0) })
    }

    /// Creates a file with these bytes.
    pub(super) fn stage(&self, pieces: impl IntoIterator<Item = Bytes>) -> Result<Arc<Staged>> {
        let (mut file, staged) = self.begin()?;
        for piece in pieces {
            file.write_all(&piece).map_err(RackError::io("write", staged.path()))?;
        }
        Ok(staged)
    }

    /// Creates an empty file.
    pub(super) fn begin(&self) -> Result<(File, Arc<Staged>)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{number}.staged"));
        let file = File::create_new(&path).map_err(RackError::io("create", &path))?;
        Ok((file, Arc::new(Staged(path))))
    }
}

impl Staged {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // On failure it is removed when the rack is opened next.
        let _ = fs::remove_file(&self.0);
    }
}

impl Source {
    /// Creates a source from pieces in memory, in order.
    pub(super) fn memory(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        Self(pieces.into_iter().map(Part::Memory).collect())
    }

    /// Creates a source from files, in order.
    pub(super) fn staged(files: impl IntoIterator<Item = Arc<Staged>>) -> Self {
        Self(files.into_iter().map(Part::Staged).collect())
    }

    /// Opens it for reading from the beginning; may be called repeatedly.
    pub(super) fn open(&self) -> Box<dyn Read + Send> {
        Box::new(SourceReader { parts: self.0.clone().into_iter(), now: Box::new(io::empty()) })
    }
}

/// Reads a source part by part.
struct SourceReader {
    parts: std::vec::IntoIter<Part>,
    now: Box<dyn Read + Send>,
}

impl Read for SourceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.now.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.now = match self.parts.next() {
                None => return Ok(0),
                Some(Part::Memory(bytes)) => Box::new(Cursor::new(bytes)),
                Some(Part::Staged(staged)) => Box::new(File::open(staged.path())?),
            };
        }
    }
}

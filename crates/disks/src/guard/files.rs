//! Open files and folders of a disk. Each holds a lease of its own.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, ReadDir};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use fulgurite_units::ByteCount;
use rustix::fs::{Advice, FallocateFlags, OFlags, RenameFlags};

use super::Lease;
use crate::pace::{Paced, Pacer};
use crate::{DisksError, Result, make_folder};

/// A file of a disk.
#[derive(Debug)]
pub struct DiskFile {
    lease: Lease,
    file: File,
    path: PathBuf,
    /// Simulated read speed, if any.
    paced: Option<Paced>,
    is_direct: bool,
}

/// Iterates over the entries of a folder of a disk, in no particular order.
#[derive(Debug)]
pub struct DiskFolder {
    lease: Lease,
    /// None after an error, which ends the iteration.
    entries: Option<ReadDir>,
    path: PathBuf,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name in the folder.
    pub name: OsString,
    /// Whether it is a folder itself.
    pub is_folder: bool,
    /// The size of a file.
    pub bytes: ByteCount,
}

/// Space of a disk's file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Total bytes.
    pub total: ByteCount,
    /// Free bytes.
    pub free: ByteCount,
    /// Id of the file system, as the operating system distinguishes them: directories with the same
    /// id share their space.
    pub file_system: u64,
}

/// Paths are relative to the disk's root, and consist of plain names only.
impl Lease {
    /// Creates the disk's root if it does not exist, as may be the case for a simulated disk, and
    /// syncs its name.
    ///
    /// # Errors
    /// When it cannot be created, or the disk is gone.
    pub fn prepare(&self) -> Result<()> {
        self.check_active()?;
        make_folder(&self.0.root).map_err(DisksError::io("make", &self.0.root))
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// When there is none, or the disk is gone.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<DiskFile> {
        self.file("open", path.as_ref(), OpenOptions::new().read(true))
    }

    /// Opens a file for reading with direct I/O, bypassing the page cache, if its file system
    /// supports that: reads then return what is on the disk. Otherwise like [`Lease::open`].
    ///
    /// Direct reads must be aligned to pages in offset, length and memory
    /// ([`DIRECT_ALIGN`](crate::limits::DIRECT_ALIGN)); others fail. [`DiskFile::is_direct`] tells
    /// whether the file is direct.
    ///
    /// # Errors
    /// When there is none, or the disk is gone.
    pub fn open_direct(&self, path: impl AsRef<Path>) -> Result<DiskFile> {
        let path = path.as_ref();
        let flags = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
        let direct = OpenOptions::new().read(true).custom_flags(flags).clone();
        match self.file("open", path, &direct) {
            Ok(file) => Ok(DiskFile { is_direct: true, ..file }),
            // Not every file system supports it; any other error is returned by this second
            // attempt.
            Err(_) => self.open(path),
        }
    }

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// When there is none, or the disk is gone.
    pub fn open_to_write(&self, path: impl AsRef<Path>) -> Result<DiskFile> {
        self.file("open", path.as_ref(), OpenOptions::new().read(true).write(true))
    }

    /// Creates a file, which must not exist.
    ///
    /// # Errors
    /// When it exists, it cannot be created, or the disk is gone.
    pub fn create_new(&self, path: impl AsRef<Path>) -> Result<DiskFile> {
        let options = OpenOptions::new().read(true).write(true).create_new(true).clone();
        self.file("create", path.as_ref(), &options)
    }

    /// Creates a folder and its parents. Idempotent. Their names are durable once
    /// [`Lease::sync_folder`] has been called for each parent.
    ///
    /// # Errors
    /// When it cannot be created, or the disk is gone.
    pub fn create_folder(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = self.path(path.as_ref())?;
        fs::create_dir_all(&path).map_err(DisksError::io("make", &path))
    }

    /// Lists a folder; the empty path is the disk's root.
    ///
    /// # Errors
    /// When there is none, or the disk is gone.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<DiskFolder> {
        let path = self.path(path.as_ref())?;
        let entries = fs::read_dir(&path).map_err(DisksError::io("list", &path))?;
        Ok(DiskFolder { lease: self.clone(), entries: Some(entries), path })
    }

    /// Whether a file or folder of this name exists.
    ///
    /// # Errors
    /// When that cannot be determined, or the disk is gone.
    pub fn exists(&self, path: impl AsRef<Path>) -> Result<bool> {
        let path = self.path(path.as_ref())?;
        path.try_exists().map_err(DisksError::io("find", &path))
    }

    /// Renames a file to a name that must not exist.
    ///
    /// # Errors
    /// When the name exists, the file does not, or the disk is gone.
    pub fn rename_new(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
        let (from, to) = (self.path(from.as_ref())?, self.path(to.as_ref())?);
        let here = rustix::fs::CWD;
        rustix::fs::renameat_with(here, &from, here, &to, RenameFlags::NOREPLACE)
            .map_err(|errno| DisksError::io("rename to", &to)(errno.into()))
    }

    /// Renames a file over another, which is replaced.
    ///
    /// # Errors
    /// When the file does not exist, or the disk is gone.
    pub fn replace(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
        let (from, to) = (self.path(from.as_ref())?, self.path(to.as_ref())?);
        fs::rename(&from, &to).map_err(DisksError::io("rename to", &to))
    }

    /// Removes a file. Idempotent.
    ///
    /// # Errors
    /// When it cannot be removed, or the disk is gone.
    pub fn remove(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = self.path(path.as_ref())?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(DisksError::io("remove", &path)(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Syncs a folder, making the names in it durable.
    ///
    /// # Errors
    /// When the sync fails, or the disk is gone.
    pub fn sync_folder(&self, path: impl AsRef<Path>) -> Result<()> {
        self.file("open", path.as_ref(), OpenOptions::new().read(true))?.sync()
    }

    /// Returns the space of its file system.
    ///
    /// # Errors
    /// When that cannot be determined, or the disk is gone.
    pub fn space(&self) -> Result<Space> {
        self.check_active()?;
        let root = &self.0.root;
        let stat = rustix::fs::statvfs(root)
            .map_err(|errno| DisksError::io("query the space of", root)(errno.into()))?;
        let bytes = |blocks: u64| ByteCount::new(blocks.saturating_mul(stat.f_frsize));
        let (total, free) = (bytes(stat.f_blocks), bytes(stat.f_bavail));
        Ok(Space { total, free, file_system: stat.f_fsid })
    }

    fn file(&self, action: &'static str, path: &Path, options: &OpenOptions) -> Result<DiskFile> {
        let path = self.path(path)?;
        #[expect(clippy::disallowed_methods, reason = "the only access to files of disks")]
        let file = options.open(&path).map_err(DisksError::io(action, &path))?;
        let paced = self.0.pacer.as_ref().map(Pacer::file);
        Ok(DiskFile { lease: self.clone(), file, path, paced, is_direct: false })
    }

    /// Returns the path for the operating system, if the disk is active.
    fn path(&self, path: &Path) -> Result<PathBuf> {
        self.check_active()?;
        if path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Ok(self.0.root.join(path));
        }
        Err(DisksError::OutsideDisk { path: path.to_owned() })
    }
}

impl DiskFile {
    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// When the file ends before, it cannot be read, or the disk is gone.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.lease.check_active()?;
        if let Some(paced) = &self.paced {
            paced.read(offset, count(buffer.len()));
            // The disk may be gone after the wait.
            self.lease.check_active()?;
        }
        self.file.read_exact_at(buffer, offset).map_err(DisksError::io("read", &self.path))
    }

    /// Fills several buffers from `offset` with one vectored read.
    ///
    /// # Errors
    /// As for [`DiskFile::read_exact_at`].
    pub fn read_parts_at<const N: usize>(
        &self,
        mut parts: [&mut [u8]; N],
        offset: u64,
    ) -> Result<()> {
        self.lease.check_active()?;
        if let Some(paced) = &self.paced {
            paced.read(offset, parts.iter().map(|part| count(part.len())).sum());
            // The disk may be gone after the wait.
            self.lease.check_active()?;
        }
        let mut into = parts.each_mut().map(|part| IoSliceMut::new(part));
        let mut have = match rustix::io::preadv(&self.file, &mut into, offset) {
            Ok(have) => have,
            Err(rustix::io::Errno::INTR) => 0,
            Err(errno) => return Err(DisksError::io("read", &self.path)(errno.into())),
        };
        // Completes a short read, or fails at the end of the file.
        let mut at = offset;
        for part in parts {
            let done = have.min(part.len());
            let rest = self.file.read_exact_at(&mut part[done..], at + count(done));
            rest.map_err(DisksError::io("read", &self.path))?;
            (have, at) = (have - done, at + count(part.len()));
        }
        Ok(())
    }

    /// Whether reads bypass the page cache.
    #[must_use]
    pub const fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Reads from `offset` as much of `buffer` as the file has there. Returns the count.
    ///
    /// # Errors
    /// When it cannot be read, or the disk is gone.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.lease.check_active()?;
        if let Some(paced) = &self.paced {
            paced.read(offset, count(buffer.len()));
            self.lease.check_active()?;
        }
        let mut have = 0;
        while have < buffer.len() {
            match self.file.read_at(&mut buffer[have..], offset + count(have)) {
                Ok(0) => break,
                // After a short read at the end of the file the rest is not aligned, so a direct
                // read of it fails.
                Ok(more) => have += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) if have > 0 => break,
                Err(error) => return Err(DisksError::io("read", &self.path)(error)),
            }
        }
        Ok(have)
    }

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// When it cannot be written, or the disk is gone.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.lease.check_active()?;
        self.file.write_all_at(bytes, offset).map_err(DisksError::io("write", &self.path))
    }

    /// Syncs the file (fsync).
    ///
    /// # Errors
    /// When the sync fails, or the disk is gone.
    pub fn sync(&self) -> Result<()> {
        self.lease.check_active()?;
        self.file.sync_all().map_err(DisksError::io("sync", &self.path))
    }

    /// Syncs the data, and only the metadata needed to read it (fdatasync). This saves the write of
    /// the modification time.
    ///
    /// # Errors
    /// When the sync fails, or the disk is gone.
    pub fn sync_data(&self) -> Result<()> {
        self.lease.check_active()?;
        self.file.sync_data().map_err(DisksError::io("sync", &self.path))
    }

    /// Returns its size.
    ///
    /// # Errors
    /// When that cannot be determined, or the disk is gone.
    pub fn bytes(&self) -> Result<ByteCount> {
        self.lease.check_active()?;
        let metadata = self.file.metadata().map_err(DisksError::io("query", &self.path))?;
        Ok(ByteCount::new(metadata.len()))
    }

    /// Sets its size: cuts off the end, or extends it with zeros.
    ///
    /// # Errors
    /// When that fails, or the disk is gone.
    pub fn set_bytes(&self, bytes: ByteCount) -> Result<()> {
        self.lease.check_active()?;
        self.file.set_len(bytes.get()).map_err(DisksError::io("resize", &self.path))
    }

    /// Preallocates this many bytes, contiguously if the file system can; no effect where it
    /// cannot.
    ///
    /// # Errors
    /// When there is no space, or the disk is gone.
    pub fn reserve(&self, bytes: ByteCount) -> Result<()> {
        self.lease.check_active()?;
        use rustix::io::Errno;
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, bytes.get()) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => Ok(()),
            Err(errno) => Err(DisksError::io("preallocate", &self.path)(errno.into())),
        }
    }

    /// Hints that the file is read sequentially, so that the system reads ahead: disks that are
    /// read in parallel then work in parallel. May have no effect.
    ///
    /// Read-ahead is twice the block device's `read_ahead_kb`. Naming ranges instead costs twice
    /// the CPU time and takes twice as long (docs/rack-speed.md).
    ///
    /// # Errors
    /// When the disk is gone.
    pub fn advise_sequential(&self) -> Result<()> {
        self.lease.check_active()?;
        if let Some(paced) = &self.paced {
            paced.advise_sequential();
        }
        rustix::fs::fadvise(&self.file, 0, None, Advice::Sequential)
            .map_err(|errno| DisksError::io("read ahead in", &self.path)(errno.into()))
    }

    /// Prefetches these bytes. May have no effect.
    ///
    /// # Errors
    /// When the disk is gone.
    pub fn will_need(&self, offset: u64, bytes: u64) -> Result<()> {
        self.lease.check_active()?;
        if let Some(paced) = &self.paced {
            paced.prefetch(offset, bytes);
        }
        let bytes = std::num::NonZeroU64::new(bytes);
        rustix::fs::fadvise(&self.file, offset, bytes, Advice::WillNeed)
            .map_err(|errno| DisksError::io("read ahead in", &self.path)(errno.into()))
    }

    /// Drops the file from the page cache, so that the next read comes from the disk. May have no
    /// effect; unsynced data is kept.
    ///
    /// # Errors
    /// When the disk is gone.
    pub fn drop_cache(&self) -> Result<()> {
        self.lease.check_active()?;
        rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed)
            .map_err(|errno| DisksError::io("forget", &self.path)(errno.into()))
    }

    /// Returns the path for the operating system, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Iterator for DiskFolder {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.entries.as_mut()?.next()?;
        let entry = self
            .lease
            .check_active()
            .and_then(|()| entry(found).map_err(DisksError::io("list", &self.path)));
        if entry.is_err() {
            self.entries = None;
        }
        Some(entry)
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

fn entry(found: io::Result<fs::DirEntry>) -> io::Result<Entry> {
    let found = found?;
    let metadata = found.metadata()?;
    let (name, is_folder) = (found.file_name(), metadata.is_dir());
    Ok(Entry { name, is_folder, bytes: ByteCount::new(metadata.len()) })
}

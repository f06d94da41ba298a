//! Files and folders of a disk that somebody was let to. Each has a lease of its own.

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
    /// Of a simulated disk.
    paced: Option<Paced>,
    is_direct: bool,
}

/// What is in a folder of a disk, one after another, in no order.
#[derive(Debug)]
pub struct DiskFolder {
    lease: Lease,
    /// None after a failure: nothing more comes then.
    entries: Option<ReadDir>,
    path: PathBuf,
}

/// One thing in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name in the folder.
    pub name: OsString,
    /// Whether it is a folder itself.
    pub is_folder: bool,
    /// The size of a file.
    pub bytes: ByteCount,
}

/// The room of a disk's file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// All of it.
    pub total: ByteCount,
    /// What may still be written.
    pub free: ByteCount,
    /// Which file system it is, as far as the operating system tells them apart: directories of
    /// one share their room.
    pub file_system: u64,
}

/// Paths are those below the disk's root, of plain names only.
impl Lease {
    /// Makes the disk's root where it is not there, as the directory of a simulated disk may not
    /// be. Its name is on stable storage then.
    ///
    /// # Errors
    /// When it cannot be made, or the disk is gone.
    pub fn prepare(&self) -> Result<()> {
        self.hold()?;
        make_folder(&self.0.root).map_err(DisksError::io("make", &self.0.root))
    }

    /// Opens a file to be read.
    ///
    /// # Errors
    /// When there is none, or the disk is gone.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<DiskFile> {
        self.file("open", path.as_ref(), OpenOptions::new().read(true))
    }

    /// Opens a file to be read past what the system has of it in memory, if its file system can do
    /// that: what is read is what the disk gives then. Without, as [`Lease::open`].
    ///
    /// Reads of such a file are of whole pages, at whole pages, into whole pages
    /// ([`DIRECT_ALIGN`](crate::limits::DIRECT_ALIGN)); others fail. [`DiskFile::is_direct`] says
    /// whether it is one.
    ///
    /// # Errors
    /// When there is none, or the disk is gone.
    pub fn open_direct(&self, path: impl AsRef<Path>) -> Result<DiskFile> {
        let path = path.as_ref();
        let flags = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
        let direct = OpenOptions::new().read(true).custom_flags(flags).clone();
        match self.file("open", path, &direct) {
            Ok(file) => Ok(DiskFile { is_direct: true, ..file }),
            // Not every file system can; whatever else is wrong is said by the other.
            Err(_) => self.open(path),
        }
    }

    /// Opens a file to be read and written, as it is.
    ///
    /// # Errors
    /// When there is none, or the disk is gone.
    pub fn open_to_write(&self, path: impl AsRef<Path>) -> Result<DiskFile> {
        self.file("open", path.as_ref(), OpenOptions::new().read(true).write(true))
    }

    /// Makes a file where none is.
    ///
    /// # Errors
    /// When there is one, it cannot be made, or the disk is gone.
    pub fn create_new(&self, path: impl AsRef<Path>) -> Result<DiskFile> {
        let options = OpenOptions::new().read(true).write(true).create_new(true).clone();
        self.file("create", path.as_ref(), &options)
    }

    /// Makes a folder, and those above it; done already when it is there. Their names are on stable
    /// storage when [`Lease::sync_folder`] was called for each that is above them.
    ///
    /// # Errors
    /// When it cannot be made, or the disk is gone.
    pub fn create_folder(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = self.path(path.as_ref())?;
        fs::create_dir_all(&path).map_err(DisksError::io("make", &path))
    }

    /// What is in a folder; the empty path is the disk's root.
    ///
    /// # Errors
    /// When there is none, or the disk is gone.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<DiskFolder> {
        let path = self.path(path.as_ref())?;
        let entries = fs::read_dir(&path).map_err(DisksError::io("list", &path))?;
        Ok(DiskFolder { lease: self.clone(), entries: Some(entries), path })
    }

    /// Whether something has this name.
    ///
    /// # Errors
    /// When that cannot be told, or the disk is gone.
    pub fn exists(&self, path: impl AsRef<Path>) -> Result<bool> {
        let path = self.path(path.as_ref())?;
        path.try_exists().map_err(DisksError::io("look for", &path))
    }

    /// Gives a file another name, which nothing may have.
    ///
    /// # Errors
    /// When something has it, the file is not there, or the disk is gone.
    pub fn rename_new(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
        let (from, to) = (self.path(from.as_ref())?, self.path(to.as_ref())?);
        let here = rustix::fs::CWD;
        rustix::fs::renameat_with(here, &from, here, &to, RenameFlags::NOREPLACE)
            .map_err(|errno| DisksError::io("rename to", &to)(errno.into()))
    }

    /// Gives a file the name of another, which is gone then.
    ///
    /// # Errors
    /// When the file is not there, or the disk is gone.
    pub fn replace(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
        let (from, to) = (self.path(from.as_ref())?, self.path(to.as_ref())?);
        fs::rename(&from, &to).map_err(DisksError::io("rename to", &to))
    }

    /// Removes a file; done already when it is not there.
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

    /// Has the names in a folder on stable storage.
    ///
    /// # Errors
    /// When the disk did not say so, or is gone.
    pub fn sync_folder(&self, path: impl AsRef<Path>) -> Result<()> {
        self.file("open", path.as_ref(), OpenOptions::new().read(true))?.sync()
    }

    /// The room of its file system.
    ///
    /// # Errors
    /// When that cannot be told, or the disk is gone.
    pub fn space(&self) -> Result<Space> {
        self.hold()?;
        let root = &self.0.root;
        let stat = rustix::fs::statvfs(root)
            .map_err(|errno| DisksError::io("ask for the room of", root)(errno.into()))?;
        let bytes = |blocks: u64| ByteCount::new(blocks.saturating_mul(stat.f_frsize));
        let (total, free) = (bytes(stat.f_blocks), bytes(stat.f_bavail));
        Ok(Space { total, free, file_system: stat.f_fsid })
    }

    fn file(&self, action: &'static str, path: &Path, options: &OpenOptions) -> Result<DiskFile> {
        let path = self.path(path)?;
        #[expect(clippy::disallowed_methods, reason = "the only way to a file of a disk")]
        let file = options.open(&path).map_err(DisksError::io(action, &path))?;
        let paced = self.0.pacer.as_ref().map(Pacer::file);
        Ok(DiskFile { lease: self.clone(), file, path, paced, is_direct: false })
    }

    /// Where it is for the operating system, if the disk is there to be used.
    fn path(&self, path: &Path) -> Result<PathBuf> {
        self.hold()?;
        if path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Ok(self.0.root.join(path));
        }
        Err(DisksError::OutsideDisk { path: path.to_owned() })
    }
}

impl DiskFile {
    /// Fills `buffer` with what is at `offset`.
    ///
    /// # Errors
    /// When the file ends before, it cannot be read, or the disk is gone.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.lease.hold()?;
        if let Some(paced) = &self.paced {
            paced.read(offset, count(buffer.len()));
            // Much may have happened meanwhile.
            self.lease.hold()?;
        }
        self.file.read_exact_at(buffer, offset).map_err(DisksError::io("read", &self.path))
    }

    /// Fills buffers with what is at `offset`, one behind the other, in one read.
    ///
    /// # Errors
    /// As [`DiskFile::read_exact_at`].
    pub fn read_parts_at<const N: usize>(
        &self,
        mut parts: [&mut [u8]; N],
        offset: u64,
    ) -> Result<()> {
        self.lease.hold()?;
        if let Some(paced) = &self.paced {
            paced.read(offset, parts.iter().map(|part| count(part.len())).sum());
            // Much may have happened meanwhile.
            self.lease.hold()?;
        }
        let mut into = parts.each_mut().map(|part| IoSliceMut::new(part));
        let mut have = match rustix::io::preadv(&self.file, &mut into, offset) {
            Ok(have) => have,
            Err(rustix::io::Errno::INTR) => 0,
            Err(errno) => return Err(DisksError::io("read", &self.path)(errno.into())),
        };
        // What an interruption left, or what is behind the end of the file.
        let mut at = offset;
        for part in parts {
            let done = have.min(part.len());
            let rest = self.file.read_exact_at(&mut part[done..], at + count(done));
            rest.map_err(DisksError::io("read", &self.path))?;
            (have, at) = (have - done, at + count(part.len()));
        }
        Ok(())
    }

    /// Whether reads go past the system's memory.
    #[must_use]
    pub const fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Reads what is at `offset`, as much of `buffer` as the file has there; says how much.
    ///
    /// # Errors
    /// When it cannot be read, or the disk is gone.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.lease.hold()?;
        if let Some(paced) = &self.paced {
            paced.read(offset, count(buffer.len()));
            self.lease.hold()?;
        }
        let mut have = 0;
        while have < buffer.len() {
            match self.file.read_at(&mut buffer[have..], offset + count(have)) {
                Ok(0) => break,
                // What is left of a file that ends within a page is no whole page.
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
        self.lease.hold()?;
        self.file.write_all_at(bytes, offset).map_err(DisksError::io("write", &self.path))
    }

    /// Has its bytes on stable storage.
    ///
    /// # Errors
    /// When the disk did not say so, or is gone.
    pub fn sync(&self) -> Result<()> {
        self.lease.hold()?;
        self.file.sync_all().map_err(DisksError::io("sync", &self.path))
    }

    /// Has its bytes on stable storage, and of the file what is needed to read them: not when it
    /// was written last, which would be a write more.
    ///
    /// # Errors
    /// When the disk did not say so, or is gone.
    pub fn sync_data(&self) -> Result<()> {
        self.lease.hold()?;
        self.file.sync_data().map_err(DisksError::io("sync", &self.path))
    }

    /// Its size.
    ///
    /// # Errors
    /// When that cannot be told, or the disk is gone.
    pub fn bytes(&self) -> Result<ByteCount> {
        self.lease.hold()?;
        let metadata = self.file.metadata().map_err(DisksError::io("look at", &self.path))?;
        Ok(ByteCount::new(metadata.len()))
    }

    /// Makes it so long: what is behind is gone, what is missing reads as zeros.
    ///
    /// # Errors
    /// When it cannot be made so long, or the disk is gone.
    pub fn set_bytes(&self, bytes: ByteCount) -> Result<()> {
        self.lease.hold()?;
        self.file.set_len(bytes.get()).map_err(DisksError::io("resize", &self.path))
    }

    /// Takes the room for so many bytes in one piece where the file system can; without effect
    /// where it cannot.
    ///
    /// # Errors
    /// When there is no room, or the disk is gone.
    pub fn reserve(&self, bytes: ByteCount) -> Result<()> {
        self.lease.hold()?;
        use rustix::io::Errno;
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, bytes.get()) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => Ok(()),
            Err(errno) => Err(DisksError::io("take room for", &self.path)(errno.into())),
        }
    }

    /// Has the system read ahead of whoever reads it from front to end: disks that are read side
    /// by side then work side by side. It may be without effect.
    ///
    /// How far ahead is the block device's `read_ahead_kb`, twice. To name ranges instead costs
    /// the processor two times as much and takes twice as long (docs/rack-speed.md).
    ///
    /// # Errors
    /// When the disk is gone.
    pub fn read_in_order(&self) -> Result<()> {
        self.lease.hold()?;
        if let Some(paced) = &self.paced {
            paced.read_in_order();
        }
        rustix::fs::fadvise(&self.file, 0, None, Advice::Sequential)
            .map_err(|errno| DisksError::io("read ahead in", &self.path)(errno.into()))
    }

    /// Has the system read these bytes though nobody waits for them yet. It may be without effect.
    ///
    /// # Errors
    /// When the disk is gone.
    pub fn will_need(&self, offset: u64, bytes: u64) -> Result<()> {
        self.lease.hold()?;
        if let Some(paced) = &self.paced {
            paced.ahead(offset, bytes);
        }
        let bytes = std::num::NonZeroU64::new(bytes);
        rustix::fs::fadvise(&self.file, offset, bytes, Advice::WillNeed)
            .map_err(|errno| DisksError::io("read ahead in", &self.path)(errno.into()))
    }

    /// Has the system forget what it has of it in memory, so that a read asks the disk. It may be
    /// without effect; what is not synced is kept.
    ///
    /// # Errors
    /// When the disk is gone.
    pub fn forget(&self) -> Result<()> {
        self.lease.hold()?;
        rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed)
            .map_err(|errno| DisksError::io("forget", &self.path)(errno.into()))
    }

    /// Where it is for the operating system, to be named in a message.
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
            .hold()
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

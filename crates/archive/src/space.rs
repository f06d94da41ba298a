//! Space on the disk of the data directory: admission control, and a reserve for a full disk.
//!
//! ```text
//!   |<------------------------------ disk ------------------------------>|
//!   | written | reserve | admitted, not yet written |  free  | free_min |
//!                                                    ^ a body is admitted if it fits here
//! ```
//!
//! Bodies are admitted before a byte of them is read, so that a client gets the error at once and
//! nothing is torn. The last `free_min` bytes are for the catalog, the keys and deletions, which
//! are never refused. Other programs do not respect that minimum and may fill the disk to its last
//! block. For that case there is the reserve, a file of allocated blocks. It is deleted when the
//! catalog can be neither opened nor written without them, and created again when there is space.
//!
//! A disk that failed during an upload is probed from time to time, so that monitoring shows
//! whether it works even without uploads.
//!
//! It does not count the content of the logs; the logs' budget does.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_units::{ByteCount, Duration, ErrorKind, Seed};

use crate::directory::sync_dir;
use crate::limits::{FREE_MIN_BYTES_MAX, RESERVE_BYTES_MAX, SPACE_SHARE};
use crate::{ArchiveError, Result};

/// Space to keep free, and how soon deleted names are purged.
#[derive(Clone, Copy, Debug)]
pub struct SpaceOptions {
    /// Free bytes that no body may take; by default a sixteenth of the disk, at most 1 GiB.
    pub free_min: Option<ByteCount>,
    /// Bytes of the reserve; by default a sixteenth of the disk, at most 64 MiB. Zero disables it.
    pub reserve: Option<ByteCount>,
    /// Time within which names and metadata of a deleted object are purged from every file.
    pub forget_within: Duration,
}

impl Default for SpaceOptions {
    fn default() -> Self {
        Self { free_min: None, reserve: None, forget_within: Duration::from_secs(3600) }
    }
}

/// The disk space of one data directory.
#[derive(Debug)]
pub(crate) struct Space {
    data: PathBuf,
    free_min: u64,
    reserve_wanted: u64,
    /// Bytes admitted for bodies that are not written yet.
    admitted: AtomicU64,
    /// Bytes actually allocated for the reserve.
    reserve: Mutex<u64>,
    /// Set after a failed write, until a probe of the disk succeeds.
    is_suspect: AtomicBool,
}

impl Space {
    /// Examines the disk that `data` is on.
    pub(crate) fn open(data: &Path, options: &SpaceOptions) -> Result<Self> {
        let disk = rustix::fs::statvfs(data).map_err(std::io::Error::from);
        let disk = disk.map_err(ArchiveError::io("inspect the disk of", data))?;
        let share = disk.f_blocks.saturating_mul(disk.f_frsize) / SPACE_SHARE;
        let or_disk_share = |set: Option<ByteCount>, most| {
            let of_disk = share.min(most);
            set.map_or(of_disk, ByteCount::get)
        };
        let space = Self {
            data: data.to_owned(),
            free_min: or_disk_share(options.free_min, FREE_MIN_BYTES_MAX),
            reserve_wanted: or_disk_share(options.reserve, RESERVE_BYTES_MAX),
            admitted: AtomicU64::new(0),
            reserve: Mutex::new(0),
            is_suspect: AtomicBool::new(false),
        };
        *space.lock() = allocated(&space.reserve_path());
        Ok(space)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, u64> {
        self.reserve.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserve_path(&self) -> PathBuf {
        self.data.join("reserve")
    }

    /// Returns the free bytes of the disk.
    pub(crate) fn free(&self) -> Result<u64> {
        let disk = rustix::fs::statvfs(&self.data).map_err(std::io::Error::from);
        let disk = disk.map_err(ArchiveError::io("inspect the disk of", &self.data))?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    pub(crate) const fn free_min(&self) -> u64 {
        self.free_min
    }

    /// Returns the actual and the configured bytes of the reserve.
    pub(crate) fn reserve(&self) -> (u64, u64) {
        (*self.lock(), self.reserve_wanted)
    }

    /// Returns how many bytes could be admitted now.
    pub(crate) fn room(&self) -> Result<u64> {
        let taken = self.admitted.load(Ordering::Relaxed).saturating_add(self.free_min);
        Ok(self.free()?.saturating_sub(taken))
    }

    /// Returns `Full` unless `bytes` more fit beside everything admitted.
    pub(crate) fn check(&self, bytes: u64) -> Result<()> {
        self.fits(bytes, self.free()?, self.admitted.load(Ordering::Relaxed))
    }

    fn fits(&self, bytes: u64, free: u64, admitted: u64) -> Result<()> {
        let needed = admitted.saturating_add(bytes).saturating_add(self.free_min);
        if needed <= free {
            return Ok(());
        }
        Err(ArchiveError::Full {
            what: format!(
                "{} more do not fit on the disk: {} free, of which {} are reserved for other \
                 bodies and {} are kept free (storage.free_min); delete objects or free disk space",
                ByteCount::new(bytes),
                ByteCount::new(free),
                ByteCount::new(admitted),
                ByteCount::new(self.free_min),
            ),
        })
    }

    /// Admits `bytes`.
    pub(crate) fn admit(self: &Arc<Self>, bytes: u64) -> Result<Admission> {
        self.promise(bytes)?;
        Ok(Admission { space: Arc::clone(self), left: bytes })
    }

    fn promise(&self, bytes: u64) -> Result<()> {
        let free = self.free()?;
        let mut admitted = self.admitted.load(Ordering::Relaxed);
        loop {
            self.fits(bytes, free, admitted)?;
            let sum = admitted + bytes;
            match self.admitted.compare_exchange_weak(
                admitted,
                sum,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(now) => admitted = now,
            }
        }
    }

    /// Returns whether there is space for the tables of the catalog's journal, so that it can be
    /// opened. Gives up the reserve if there is not. `is_sure` means that lack of space was the
    /// failure.
    pub(crate) fn make_room(&self, is_sure: bool) -> bool {
        if is_sure || self.lacks_room() {
            self.give_up_reserve();
        }
        !self.lacks_room()
    }

    /// Whether there is less space than the catalog may need to be opened.
    pub(crate) fn lacks_room(&self) -> bool {
        !self.free().is_ok_and(|free| free >= self.reserve_wanted / 2)
    }

    /// Deletes the reserve; `false` when there was none.
    pub(crate) fn give_up_reserve(&self) -> bool {
        let mut reserve_bytes = self.lock();
        if *reserve_bytes == 0 {
            return false;
        }
        let path = self.reserve_path();
        if let Err(error) = std::fs::remove_file(&path) {
            tracing::error!(path = %path.display(), %error, "cannot delete the reserve");
            return false;
        }
        let bytes = std::mem::take(&mut *reserve_bytes);
        tracing::warn!(
            bytes,
            "the disk is full: deleted the reserve to make space for the catalog"
        );
        true
    }

    /// Records that a body could not be stored; [`Self::check_disk`] finds out whether its disk is
    /// the cause.
    pub(crate) fn record_failure(&self, error: &ArchiveError) {
        if error.kind() == ErrorKind::Internal {
            self.is_suspect.store(true, Ordering::Relaxed);
        }
    }

    /// After a failure, probes the disk by writing, syncing and removing a file.
    pub(crate) fn check_disk(&self) -> Result<()> {
        if !self.is_suspect.load(Ordering::Relaxed) {
            return Ok(());
        }
        let path = self.data.join("probe");
        let written = write_probe(&path);
        let removed = std::fs::remove_file(&path);
        written.and(removed).map_err(ArchiveError::io("write", &path))?;
        self.is_suspect.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Creates the reserve if it is missing and the minimum free space allows it.
    pub(crate) fn keep_reserve(&self) -> Result<()> {
        let mut reserve_bytes = self.lock();
        if *reserve_bytes >= self.reserve_wanted {
            return Ok(());
        }
        let admitted = self.admitted.load(Ordering::Relaxed);
        if self.fits(self.reserve_wanted - *reserve_bytes, self.free()?, admitted).is_err() {
            return Ok(());
        }
        let path = self.reserve_path();
        let made = allocate(&path, self.reserve_wanted);
        *reserve_bytes = allocated(&path);
        if made.is_err() {
            // A partial reserve would look like a complete one that another program truncated.
            let _ = std::fs::remove_file(&path);
            *reserve_bytes = 0;
        }
        made.map_err(ArchiveError::io("reserve space in", &path))?;
        sync_dir(&self.data)?;
        tracing::info!(bytes = *reserve_bytes, "reserved space for a full disk");
        Ok(())
    }
}

/// Returns the allocated bytes of a file, not its apparent length; 0 if it does not exist.
fn allocated(path: &Path) -> u64 {
    std::fs::symlink_metadata(path).map_or(0, |file| file.len().min(file.blocks() * 512))
}

fn write_probe(path: &Path) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut file = File::create(path)?;
    file.write_all(&[0; 4096])?;
    file.sync_all()
}

/// Creates a file with `bytes` allocated bytes.
fn allocate(path: &Path, bytes: u64) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = File::options();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let allocation = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes);
    if allocation.is_err() || allocated(path) < bytes {
        // The file system does not support fallocate, or compresses: write incompressible bytes.
        let mut noise = Seed::new(bytes).stream();
        let mut buffer = vec![0; 1 << 20];
        let mut left = bytes;
        while left > 0 {
            let now = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            noise.fill(&mut buffer[..now]);
            file.write_all(&buffer[..now])?;
            left -= now as u64;
        }
    }
    file.sync_all()
}

/// Space admitted for a body. The unused part is released on drop.
#[derive(Debug)]
pub(crate) struct Admission {
    space: Arc<Space>,
    left: u64,
}

impl Admission {
    /// Extends the admission to `bytes` not yet written, if it is less.
    pub(crate) fn cover(&mut self, bytes: u64) -> Result<()> {
        if let Some(more) = bytes.checked_sub(self.left).filter(|&more| more > 0) {
            self.space.promise(more)?;
            self.left = bytes;
        }
        Ok(())
    }

    /// Releases the admission of bytes that now occupy space on the disk.
    pub(crate) fn written(&mut self, bytes: u64) {
        let bytes = bytes.min(self.left);
        self.left -= bytes;
        self.space.admitted.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.written(self.left);
    }
}

#[cfg(test)]
mod tests;

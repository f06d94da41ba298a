//! Adapts the files of a disk for stacks: positional reads and appending writes. Also injects disk
//! faults for tests.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_disks::{DiskFile, DisksError, Lease, PlaceId};
use fulgurite_units::{ByteCount, ErrorKind, error_chain};

use super::window::Window;
use super::{DiskContext, STACKS};
use crate::Fault;
use crate::limits::WRITE_BEHIND_BYTES;
use crate::stack::{ReadAt, Sink};

/// Faults that a test injects into disks; none by default.
#[derive(Clone, Debug, Default)]
pub struct Injected(Arc<Mutex<BTreeMap<PlaceId, Failing>>>);

/// How a disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// It has space for only this many more bytes.
    Full {
        /// How many.
        after: u64,
    },
    /// Writes fail after this many more bytes.
    Write {
        /// How many.
        after: u64,
    },
    /// Each sync fails.
    Sync,
    /// Each read fails.
    Read,
    /// Renaming and removing fail.
    Name,
    /// Opening fails, because the process has too many open files.
    Open,
}

/// Stands for the ledger of spin-ups, which is in no place.
const LEDGER: PlaceId = PlaceId::new(u32::MAX);

impl Injected {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PlaceId, Failing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the disk of a place fail from now on.
    pub fn fail(&self, place: PlaceId, failing: Failing) {
        self.lock().insert(place, failing);
    }

    /// Makes the disk of a place work again.
    pub fn repair(&self, place: PlaceId) {
        self.lock().remove(&place);
    }

    /// Makes the ledger of spin-ups fail from now on, or work again.
    pub fn fail_ledger(&self, is_failing: bool) {
        if is_failing { self.fail(LEDGER, Failing::Sync) } else { self.repair(LEDGER) }
    }

    /// Returns the fault injected into the ledger of spin-ups.
    pub(crate) fn check_ledger(&self) -> Result<(), Fault> {
        self.check_fault(LEDGER, Failing::Sync)
    }

    /// Returns the fault of opening a file, if injected.
    pub(super) fn check_open(&self, place: PlaceId) -> Result<(), Fault> {
        let error = || io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        match self.lock().get(&place) == Some(&Failing::Open) {
            true => Err(Fault::from_io_error(&error())),
            false => Ok(()),
        }
    }

    fn check_write(&self, place: PlaceId, bytes: u64) -> Result<(), Fault> {
        let mut failing = self.lock();
        let failed = match failing.get_mut(&place) {
            Some(Failing::Full { after }) => {
                spend(after, bytes).then_some(io::ErrorKind::StorageFull)
            }
            Some(Failing::Write { after }) => spend(after, bytes).then_some(io::ErrorKind::Other),
            Some(Failing::Sync | Failing::Read | Failing::Name | Failing::Open) | None => None,
        };
        failed.map_or(Ok(()), |kind| Err(Fault::from_io_error(&kind.into())))
    }

    fn check_fault(&self, place: PlaceId, wanted: Failing) -> Result<(), Fault> {
        match self.lock().get(&place) == Some(&wanted) {
            true => {
                Err(Fault::from_io_error(&io::Error::other("the disk did not answer (injected)")))
            }
            false => Ok(()),
        }
    }
}

/// Takes `bytes` from what is left. Returns whether that was too much; nothing is left then.
fn spend(left: &mut u64, bytes: u64) -> bool {
    let enough = left.checked_sub(bytes);
    *left = enough.unwrap_or(0);
    enough.is_none()
}

/// Maps an error of a disk to a fault.
pub(crate) fn fault(error: &DisksError) -> Fault {
    if error.is_exhausted() {
        return Fault::Exhausted { detail: error_chain(error) };
    }
    match (error.kind(), error.io_kind()) {
        (ErrorKind::Unavailable, None) => Fault::OutOfReach { reason: error.to_string() },
        (_, Some(io::ErrorKind::NotFound)) => Fault::Missing,
        _ => Fault::Io { detail: error_chain(error) },
    }
}

/// A stack open for reading.
#[derive(Debug)]
pub(crate) struct StackSource {
    file: DiskFile,
    place: PlaceId,
    injected: Injected,
    /// Window of a file that bypasses the page cache (direct I/O).
    window: Option<Mutex<Window>>,
}

/// Where a stack is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The page cache, or the disk.
    Memory,
    /// The disk alone, bypassing the page cache, to prove that the data is on it. Only where the
    /// file system supports direct I/O.
    Disk,
}

impl ReadAt for StackSource {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Fault> {
        self.injected.check_fault(self.place, Failing::Read)?;
        if let Some(window) = &self.window {
            let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
            return window.read(&self.file, buffer, offset);
        }
        self.file.read_exact_at(buffer, offset).map_err(|error| fault(&error))
    }

    fn bytes(&self) -> Result<u64, Fault> {
        self.file.bytes().map(ByteCount::get).map_err(|error| fault(&error))
    }

    fn will_need(&self, offset: u64, bytes: u64) {
        if let Some(window) = &self.window {
            let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
            return window.prefetch(&self.file, offset, bytes);
        }
        // Only a hint; a failure of the disk shows up in the read itself.
        let _ = self.file.will_need(offset, bytes);
    }

    fn waits_for(&self, offset: u64, bytes: u64) -> bool {
        self.window.as_ref().is_some_and(|window| {
            let window = window.lock().unwrap_or_else(PoisonError::into_inner);
            !window.contains(offset, bytes)
        })
    }
}

/// A stack being written to a disk.
#[derive(Debug)]
pub(crate) struct StackSink {
    file: DiskFile,
    lease: Lease,
    place: PlaceId,
    injected: Injected,
    offset: u64,
    /// Bytes written since writeback was last started.
    unflushed: u64,
}

impl Sink for StackSink {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let count = crate::format::bytes(bytes.len());
        self.injected.check_write(self.place, count)?;
        self.file.write_all_at(bytes, self.offset).map_err(|error| fault(&error))?;
        self.offset += count;
        self.unflushed += count;
        if self.unflushed >= WRITE_BEHIND_BYTES {
            self.unflushed = 0;
            // Starts writeback, so that the disk works while the next stripe is encoded.
            self.file.drop_cache().map_err(|error| fault(&error))?;
        }
        Ok(())
    }

    /// Syncs the file and its directory entry.
    fn sync(&mut self) -> Result<(), Fault> {
        self.injected.check_fault(self.place, Failing::Sync)?;
        self.file.sync().map_err(|error| fault(&error))?;
        self.lease.sync_folder(STACKS).map_err(|error| fault(&error))?;
        // Drops it from the page cache, so that the read-back comes from the disk.
        self.file.drop_cache().map_err(|error| fault(&error))
    }
}

impl DiskContext {
    /// Opens a stack for reading.
    pub(crate) fn open(
        &self,
        place: PlaceId,
        name: &str,
        origin: Origin,
    ) -> Result<StackSource, Fault> {
        self.injected.check_open(place)?;
        let file = self.guard.acquire(place).and_then(|lease| match origin {
            Origin::Memory => lease.open(path(name)),
            Origin::Disk => lease.open_direct(path(name)),
        });
        let file = file.map_err(|error| fault(&error))?;
        let window = file.is_direct().then(|| Mutex::new(Window::new()));
        if window.is_none() {
            // Only a hint; a failure of the disk shows up in the read itself.
            let _ = file.advise_sequential();
        }
        Ok(StackSource { file, place, injected: self.injected.clone(), window })
    }

    /// Creates a stack of `bytes`, where no file exists.
    pub(crate) fn create(
        &self,
        place: PlaceId,
        name: &str,
        bytes: ByteCount,
    ) -> Result<StackSink, Fault> {
        self.injected.check_open(place)?;
        let lease = self.guard.acquire(place).map_err(|error| fault(&error))?;
        let mut created = lease.create_new(path(name));
        if created.as_ref().is_err_and(|error| fault(error) == Fault::Missing) {
            // The folder was removed: its stacks are lost, but the disk is not.
            recreate_folder(&lease)?;
            created = lease.create_new(path(name));
        }
        let file = created.map_err(|error| fault(&error))?;
        file.reserve(bytes).map_err(|error| fault(&error))?;
        Ok(StackSink {
            file,
            lease,
            place,
            injected: self.injected.clone(),
            offset: 0,
            unflushed: 0,
        })
    }

    /// Renames a stack over the old one, and syncs the folder.
    pub(crate) fn put_in_place(&self, place: PlaceId, new: &str, name: &str) -> Result<(), Fault> {
        self.injected.check_fault(place, Failing::Name)?;
        let put = self.guard.acquire(place).and_then(|lease| {
            lease.replace(path(new), path(name))?;
            lease.sync_folder(STACKS)
        });
        put.map_err(|error| fault(&error))
    }

    /// Syncs the folder of a disk's stacks, making renames and removals durable.
    pub(crate) fn sync_names(&self, place: PlaceId) -> Result<(), Fault> {
        self.injected.check_fault(place, Failing::Sync)?;
        let synced = self.guard.acquire(place).and_then(|lease| lease.sync_folder(STACKS));
        synced.map_err(|error| fault(&error))
    }

    /// Removes a stack's file. Idempotent.
    pub(crate) fn remove(&self, place: PlaceId, name: &str) -> Result<(), Fault> {
        self.injected.check_fault(place, Failing::Name)?;
        let removed = self.guard.acquire(place).and_then(|lease| lease.remove(path(name)));
        removed.map_err(|error| fault(&error))
    }
}

/// Recreates the folder of stacks.
fn recreate_folder(lease: &Lease) -> Result<(), Fault> {
    let made = lease.create_folder(STACKS).and_then(|()| lease.sync_folder(""));
    made.map_err(|error| fault(&error))
}

fn path(name: &str) -> String {
    format!("{STACKS}/{name}")
}

//! In-memory files with injected failures.

use std::sync::{Arc, Mutex};

use crate::Fault;
use crate::stack::Sink;

/// A file whose content can be inspected while it is written.
#[derive(Clone, Debug, Default)]
pub(super) struct File(Arc<Mutex<Content>>);

#[derive(Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    synced: usize,
    /// Capacity in bytes.
    room: Option<usize>,
    sync_fails: bool,
}

impl File {
    /// Creates a file on a disk that is full after this many bytes.
    pub(super) fn failing_after(bytes: usize) -> Self {
        let file = Self::default();
        file.0.lock().unwrap().room = Some(bytes);
        file
    }

    /// Makes each sync fail.
    pub(super) fn fail_sync(&self) {
        self.0.lock().unwrap().sync_fails = true;
    }

    /// Returns what would be left after a power cut.
    pub(super) fn synced(&self) -> Vec<u8> {
        let content = self.0.lock().unwrap();
        content.bytes[..content.synced].to_vec()
    }
}

impl Sink for File {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let mut content = self.0.lock().unwrap();
        if content.room.is_some_and(|room| content.bytes.len() + bytes.len() > room) {
            return Err(Fault::from_io_error(&std::io::ErrorKind::StorageFull.into()));
        }
        content.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Fault> {
        let mut content = self.0.lock().unwrap();
        if content.sync_fails {
            return Err(Fault::from_io_error(&std::io::Error::other("the disk did not answer")));
        }
        content.synced = content.bytes.len();
        Ok(())
    }
}

/// Returns pseudo-random bytes, the same for the same seed.
pub(super) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fulgurite_units::Seed::new(seed).stream().fill(&mut bytes);
    bytes
}

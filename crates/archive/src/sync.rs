//! Group commit of files: one fsync serves every caller that was waiting when it began.
//!
//! A caller writes to its file first and requests a sync afterwards, so a sync that begins later
//! covers the write. The thread takes all waiting requests, syncs each of their files once, and
//! answers all.
//!
//! A failed sync is final for its file. The kernel may have dropped the pages that it could not
//! write, and report the next sync as a success. So nothing unacknowledged in the file can be
//! acknowledged any more: every later write and sync of it fails at once, and its owner continues
//! in another file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

use tokio::sync::oneshot;

use crate::limits::SYNC_QUEUE_MAX;
use crate::{ArchiveError, Result};

/// A file that can be synced, with a number that identifies it.
#[derive(Clone, Debug)]
pub(crate) struct SyncTarget {
    pub(crate) number: u64,
    pub(crate) file: Arc<File>,
    pub(crate) path: Arc<PathBuf>,
    /// Why the file is not written any more; shared by all clones.
    failed: Arc<OnceLock<String>>,
}

impl SyncTarget {
    pub(crate) fn new(number: u64, file: File, path: PathBuf) -> Self {
        Self { number, file: Arc::new(file), path: Arc::new(path), failed: Arc::default() }
    }

    /// Whether a write or a sync failed, so that nothing more may be written.
    pub(crate) fn is_failed(&self) -> bool {
        self.failed.get().is_some()
    }

    fn check(&self) -> Result<(), String> {
        self.failed.get().map_or(Ok(()), |reason| Err(reason.clone()))
    }

    /// Marks the file as failed: nothing more is written to it.
    pub(crate) fn fail(&self, reason: String) {
        if self.failed.set(reason).is_ok() {
            let reason = self.failed.get().map_or("", String::as_str);
            let path = self.path.display();
            tracing::error!(%path, reason, "a file failed and is not written any more");
        }
    }

    /// Writes all of `bytes` at `offset`, unless the file failed before. May block on the disk.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.check().map_err(|what| ArchiveError::Internal { what })?;
        self.file.write_all_at(bytes, offset).map_err(|error| {
            // A full disk is not the file's fault; space can become free.
            if !matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
                self.fail(format!("cannot write \"{}\": {error}", self.path.display()));
            }
            ArchiveError::io("write", &self.path)(error)
        })
    }

    fn sync(&self) -> Result<(), String> {
        self.check()?;
        if let Err(error) = self.file.sync_data() {
            self.fail(format!("cannot sync \"{}\": {error}", self.path.display()));
        }
        self.check()
    }
}

#[derive(Debug)]
struct Request {
    targets: Vec<SyncTarget>,
    done: oneshot::Sender<Result<(), String>>,
}

/// The handle of a sync thread; the thread ends when the last handle goes.
#[derive(Clone, Debug)]
pub(crate) struct GroupSync {
    requests: SyncSender<Request>,
}

impl GroupSync {
    #[expect(
        clippy::disallowed_methods,
        reason = "not a job: callers wait for the result of a sync"
    )]
    pub(crate) fn start(name: &str) -> Result<Self> {
        let (requests, inbox) = sync_channel(SYNC_QUEUE_MAX);
        std::thread::Builder::new()
            .name(format!("{name}-sync"))
            .spawn(move || run(&inbox))
            .map_err(|error| ArchiveError::Internal { what: format!("no thread: {error}") })?;
        Ok(Self { requests })
    }

    fn send(&self, targets: Vec<SyncTarget>) -> Result<oneshot::Receiver<Result<(), String>>> {
        let (done, answer) = oneshot::channel();
        self.requests.send(Request { targets, done }).map_err(|_| ArchiveError::Stopping)?;
        Ok(answer)
    }

    /// Starts an asynchronous sync, so that a later one has less to do. Does nothing if too many
    /// are queued. If it fails, the file fails.
    pub(crate) fn begin(&self, targets: Vec<SyncTarget>) {
        let (done, _) = oneshot::channel();
        let _ = self.requests.try_send(Request { targets, done });
    }

    /// Waits until everything written to `targets` before the call is durable.
    pub(crate) async fn sync(&self, targets: Vec<SyncTarget>) -> Result<()> {
        let answer = self.send(targets)?.await.map_err(|_| ArchiveError::Stopping)?;
        answer.map_err(|what| ArchiveError::Internal { what })
    }

    /// The same, blocking.
    pub(crate) fn sync_blocking(&self, targets: Vec<SyncTarget>) -> Result<()> {
        let answer = self.send(targets)?.blocking_recv().map_err(|_| ArchiveError::Stopping)?;
        answer.map_err(|what| ArchiveError::Internal { what })
    }
}

fn run(inbox: &Receiver<Request>) {
    while let Ok(first) = inbox.recv() {
        let mut group = vec![first];
        group.extend(inbox.try_iter().take(SYNC_QUEUE_MAX));
        let targets: BTreeMap<u64, SyncTarget> = group
            .iter()
            .flat_map(|request| request.targets.iter().map(|t| (t.number, t.clone())))
            .collect();
        let mut failed = BTreeMap::new();
        for (number, target) in &targets {
            if let Err(reason) = target.sync() {
                failed.insert(*number, reason);
            }
        }
        for request in group {
            let failure = request.targets.iter().find_map(|t| failed.get(&t.number));
            // A caller that has gone needs no answer.
            let _ = request.done.send(failure.map_or(Ok(()), |text| Err(text.clone())));
        }
    }
}

#[cfg(test)]
mod tests;

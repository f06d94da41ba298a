//! Group commit of files: one sync serves every caller that was waiting when it began.
//!
//! A caller writes to its file first and asks for a sync after, so a sync that begins later covers
//! the write. The thread takes all waiting requests, syncs each file named in them once, and
//! answers all.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tokio::sync::oneshot;

use crate::{ArchiveError, Result};

/// Requests waiting for the sync thread; one more blocks its caller for a moment.
const QUEUE_MAX: usize = 4096;

/// A file that can be synced, with the number that tells it from others.
#[derive(Clone, Debug)]
pub(crate) struct SyncTarget {
    pub(crate) number: u64,
    pub(crate) file: Arc<File>,
    pub(crate) path: Arc<PathBuf>,
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
    pub(crate) fn start(name: &str) -> Result<Self> {
        let (requests, inbox) = sync_channel(QUEUE_MAX);
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

    /// Returns when everything written to `targets` before the call is on stable storage.
    pub(crate) async fn sync(&self, targets: Vec<SyncTarget>) -> Result<()> {
        let answer = self.send(targets)?.await.map_err(|_| ArchiveError::Stopping)?;
        answer.map_err(|what| ArchiveError::Internal { what })
    }

    /// The same, from a thread that may block.
    pub(crate) fn sync_blocking(&self, targets: Vec<SyncTarget>) -> Result<()> {
        let answer = self.send(targets)?.blocking_recv().map_err(|_| ArchiveError::Stopping)?;
        answer.map_err(|what| ArchiveError::Internal { what })
    }
}

fn run(inbox: &Receiver<Request>) {
    while let Ok(first) = inbox.recv() {
        let mut group = vec![first];
        group.extend(inbox.try_iter().take(QUEUE_MAX));
        let targets: BTreeMap<u64, SyncTarget> = group
            .iter()
            .flat_map(|request| request.targets.iter().map(|t| (t.number, t.clone())))
            .collect();
        let mut failed = BTreeMap::new();
        for (number, target) in &targets {
            if let Err(error) = target.file.sync_data() {
                failed
                    .insert(*number, format!("cannot sync \"{}\": {error}", target.path.display()));
            }
        }
        for request in group {
            let failure = request.targets.iter().find_map(|t| failed.get(&t.number));
            // A caller that went away needs no answer.
            let _ = request.done.send(failure.map_or(Ok(()), |text| Err(text.clone())));
        }
    }
}

//! Platters whose last byte was written: synced and named while others are written.
//!
//! ```text
//! write drives --whole--> queue (FINISHING_MAX) --> one thread: sync, then the name
//!                                                      '- all done -> the names are synced
//! ```
//!
//! A platter gets its name when all of it is on stable storage, and a set is written when all of
//! its names are as well. Without a name a platter is never assumed complete; what a crash leaves
//! is discarded.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use fulgurite_glass::Written;

use crate::limits::FINISHING_MAX;
use crate::{Given, PlatterFileSink, PlatterFiles, PlattersError, Result};

/// A platter whose bytes were all handed to the operating system.
pub(super) type Whole = (Written, PlatterFileSink);

/// Where write drives hand over completed platters.
#[derive(Clone, Debug)]
pub(super) struct Finisher(SyncSender<Whole>);

impl Finisher {
    /// Queues a platter to be synced and named; blocks while too many are queued.
    pub(super) fn finish(&self, whole: Whole) -> Result<()> {
        self.0.send(whole).map_err(|_| PlattersError::Internal {
            what: "the thread that syncs platters ended".to_owned(),
        })
    }
}

/// Runs `work`, which queues platters to be finished; returns when all of them have durable names.
pub(super) fn with_finisher<T>(
    given: &Given,
    files: &PlatterFiles,
    work: impl FnOnce(&Finisher) -> Result<T>,
) -> Result<T> {
    let (queue, wholes) = sync_channel(FINISHING_MAX);
    std::thread::scope(|scope| {
        let finish = || given.panics.run("a write drive", || finish_all(given, files, wholes));
        let finishing = scope.spawn(finish);
        let worked = work(&Finisher(queue));
        let died = || Err(PlattersError::Internal { what: "a write drive died".to_owned() });
        // Checked first, because it explains why `work` could not hand over platters.
        finishing.join().unwrap_or_else(|_| died())?;
        worked
    })
}

fn finish_all(given: &Given, files: &PlatterFiles, wholes: Receiver<Whole>) -> Result<()> {
    for (written, sink) in wholes {
        files.sync(&sink)?;
        given.fail.pass("write-synced");
        files.publish(written.platter(), sink)?;
        given.fail.pass("write-platter");
    }
    files.sync_names()
}

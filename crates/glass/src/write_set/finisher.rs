//! Platters whose last byte was written: synced and named while others are written.
//!
//! ```text
//! write drives --whole--> queue (FINISHER_QUEUE_MAX) --> one thread: sync, then the name
//!                                                      '- all done -> the names are synced
//! ```
//!
//! A platter gets its name when all of it is on stable storage, and a set is written when all of
//! its names are as well. Without a name a platter is never assumed complete; what a crash leaves
//! is discarded.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use fulgurite_platter::WrittenPlatter;

use crate::limits::FINISHER_QUEUE_MAX;
use crate::{Context, GlassError, PlatterFileSink, PlatterFiles, Result};

/// A platter whose bytes were all handed to the operating system.
pub(super) type FinishedPlatter = (WrittenPlatter, PlatterFileSink);

/// Where write drives hand over completed platters.
#[derive(Clone, Debug)]
pub(super) struct Finisher(SyncSender<FinishedPlatter>);

impl Finisher {
    /// Queues a platter to be synced and named; blocks while too many are queued.
    pub(super) fn finish(&self, platter: FinishedPlatter) -> Result<()> {
        self.0.send(platter).map_err(|_| GlassError::Internal {
            what: "the thread that syncs platters ended".to_owned(),
        })
    }
}

/// Runs `work`, which queues platters to be finished; returns when all of them have durable names.
pub(super) fn with_finisher<T>(
    context: &Context,
    files: &PlatterFiles,
    work: impl FnOnce(&Finisher) -> Result<T>,
) -> Result<T> {
    let (queue, platters) = sync_channel(FINISHER_QUEUE_MAX);
    std::thread::scope(|scope| {
        let finish =
            || context.panics.run("a write drive", || finish_all(context, files, platters));
        let finishing = scope.spawn(finish);
        let worked = work(&Finisher(queue));
        let died = || Err(GlassError::Internal { what: "a write drive died".to_owned() });
        // Checked first, because it explains why `work` could not hand over platters.
        finishing.join().unwrap_or_else(|_| died())?;
        worked
    })
}

fn finish_all(
    context: &Context,
    files: &PlatterFiles,
    platters: Receiver<FinishedPlatter>,
) -> Result<()> {
    for (written, sink) in platters {
        files.sync(&sink)?;
        context.fail.pass("write-synced");
        files.publish(written.platter(), sink)?;
        context.fail.pass("write-platter");
    }
    files.sync_names()
}

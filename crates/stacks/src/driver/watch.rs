//! Whoever watches a rack: what it is like at one moment, and from then on each event of its
//! controller and what that said to it, in order and without a gap, and each blob that could not be
//! made whole.
//!
//! They are called on the driver's own thread and must not wait; who returns false is told no more.

use fulgurite_disks::GroupId;
use fulgurite_rack::{Command, Event};
use fulgurite_units::{BlobId, Instant};

use super::Snapshot;
use crate::work::UnmendedBlob;

/// What a watcher is told.
#[derive(Clone, Debug)]
pub enum Seen<'a> {
    /// What the steps behind it begin with; comes first.
    Scene {
        /// Steps until now, since the rack was opened.
        step: u64,
        /// Now, since then.
        at: Instant,
        /// What it is like.
        rack: &'a Snapshot,
    },
    /// The controller was told something.
    Step {
        /// Counted since the rack was opened, without a gap.
        step: u64,
        /// When, since then.
        at: Instant,
        /// What it was told.
        event: &'a Event,
        /// What it said to that, in order: who tells a controller of the same shape and policy the
        /// same hears the same.
        commands: &'a [Command],
    },
    /// A read or a verification found a blob that could not be made whole.
    Unmended {
        /// Steps until now.
        step: u64,
        /// When, since the rack was opened.
        at: Instant,
        /// The group that the blob lies in.
        group: GroupId,
        /// The blob.
        blob: BlobId,
        /// What is wrong with it.
        what: &'a str,
    },
}

/// Is told what happens, and says whether it wants to hear more.
pub(crate) type Watcher = Box<dyn FnMut(Seen<'_>) -> bool + Send>;

/// All who watch.
#[derive(Default)]
pub(super) struct Watchers {
    all: Vec<Watcher>,
    steps: u64,
}

impl Watchers {
    /// One more watches, from now on.
    pub(super) fn add(&mut self, mut watcher: Watcher, at: Instant, rack: &Snapshot) {
        if watcher(Seen::Scene { step: self.steps, at, rack }) {
            self.all.push(watcher);
        }
    }

    /// These blobs could not be made whole.
    pub(super) fn unmended(&mut self, at: Instant, blobs: &[UnmendedBlob]) {
        let step = self.steps;
        for UnmendedBlob { group, blob, what } in blobs {
            let seen = Seen::Unmended { step, at, group: *group, blob: *blob, what };
            self.all.retain_mut(|watcher| watcher(seen.clone()));
        }
    }

    /// The controller was told something.
    pub(super) fn step(&mut self, at: Instant, event: &Event, commands: &[Command]) {
        self.steps += 1;
        let step = self.steps;
        self.all.retain_mut(|watcher| watcher(Seen::Step { step, at, event, commands }));
    }
}

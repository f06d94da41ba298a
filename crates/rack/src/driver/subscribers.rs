//! Subscribers of a rack. Each gets a snapshot first and from then on, in order and without gaps,
//! each event of the controller with its commands, and each blob that could not be repaired.
//!
//! Subscribers are called on the driver's own thread and must not block. One that returns false is
//! removed.

use fulgurite_disks::GroupId;
use fulgurite_rack_core::{Command, Event};
use fulgurite_units::{BlobId, Instant};

use super::Snapshot;
use crate::work::UnrepairedBlob;

/// What a subscriber receives.
#[derive(Clone, Debug)]
pub enum Notification<'a> {
    /// The snapshot that the following steps start from; comes first.
    Snapshot {
        /// Steps so far, since the rack was opened.
        step: u64,
        /// The current time, since then.
        at: Instant,
        /// The snapshot.
        rack: &'a Snapshot,
    },
    /// The controller handled an event.
    Step {
        /// Step number since the rack was opened, without gaps.
        step: u64,
        /// When, since then.
        at: Instant,
        /// The event.
        event: &'a Event,
        /// The commands it returned, in order. A controller of the same shape and policy that gets
        /// the same events returns the same commands.
        commands: &'a [Command],
    },
    /// A read or a verification found a blob that could not be repaired.
    Unrepaired {
        /// Steps so far.
        step: u64,
        /// When, since the rack was opened.
        at: Instant,
        /// The group that the blob lies in.
        group: GroupId,
        /// The blob.
        blob: BlobId,
        /// What is wrong with it.
        detail: &'a str,
    },
}

/// Receives notifications, and returns whether it wants more.
pub(crate) type Subscriber = Box<dyn FnMut(Notification<'_>) -> bool + Send>;

/// All subscribers.
#[derive(Default)]
pub(super) struct Subscribers {
    all: Vec<Subscriber>,
    steps: u64,
}

impl Subscribers {
    /// Adds a subscriber and sends it a snapshot.
    pub(super) fn add(&mut self, mut subscriber: Subscriber, at: Instant, rack: &Snapshot) {
        if subscriber(Notification::Snapshot { step: self.steps, at, rack }) {
            self.all.push(subscriber);
        }
    }

    /// Reports blobs that could not be repaired.
    pub(super) fn report_unrepaired(&mut self, at: Instant, blobs: &[UnrepairedBlob]) {
        let step = self.steps;
        for UnrepairedBlob { group, blob, detail } in blobs {
            let notification =
                Notification::Unrepaired { step, at, group: *group, blob: *blob, detail };
            self.all.retain_mut(|subscriber| subscriber(notification.clone()));
        }
    }

    /// Reports an event of the controller.
    pub(super) fn step(&mut self, at: Instant, event: &Event, commands: &[Command]) {
        self.steps += 1;
        let step = self.steps;
        self.all
            .retain_mut(|subscriber| subscriber(Notification::Step { step, at, event, commands }));
    }
}

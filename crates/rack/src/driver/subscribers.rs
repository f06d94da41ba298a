//! What subscribers of a rack receive: a snapshot first and from then on, in order, each event of
//! the controller with its commands, and each blob that could not be repaired.

use fulgurite_disks::GroupId;
use fulgurite_rack_core::{Command, Event};
use fulgurite_units::{BlobId, Instant};

use super::Snapshot;

/// What a subscriber receives.
#[derive(Clone, Debug, PartialEq)]
pub enum Notification {
    /// The snapshot that the following steps start from; comes first.
    Snapshot {
        /// Steps so far, since the rack was opened.
        step: u64,
        /// The current time, since then.
        at: Instant,
        /// The snapshot.
        rack: Box<Snapshot>,
    },
    /// The controller handled an event.
    Step {
        /// Step number since the rack was opened, without gaps.
        step: u64,
        /// When, since then.
        at: Instant,
        /// The event.
        event: Event,
        /// The commands it returned, in order. A controller of the same shape and policy that gets
        /// the same events returns the same commands.
        commands: Vec<Command>,
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
        detail: String,
    },
}

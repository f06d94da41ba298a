//! The interface of the glass tier to the owner of the bodies.
//!
//! ```text
//! backlog, waiting, body,
//! open, entry                     what is to be written: numbers, ciphertext, sealed entries
//! record_placed, keep_staged,
//! requeue                         results, within the transaction that records them
//! ```
//!
//! A body that waits for glass has a *place*, a number that no body had before it: all that is
//! needed to ask for the body again. Only the owner knows whether it was deleted meanwhile, and
//! what it is a body of.

use std::fmt::Debug;
use std::ops::{ControlFlow, RangeInclusive};

use fulgurite_catalog::Transaction;
use fulgurite_units::ObjectId;

use crate::{Result, Shard};

/// A body that waits for glass, with all that planning needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingBody {
    /// Its place in the queue.
    pub place: u64,
    /// The body.
    pub body: ObjectId,
    /// The file that it is or is a part of.
    pub file: ObjectId,
    /// Sort key for the order of bodies on platters: what is read together is near. The bodies of a
    /// file lie one after the other.
    pub affinity_key: Vec<u8>,
    /// Ciphertext bytes.
    pub bytes: u64,
    /// Ciphertext bytes, from the start, that are on glass already.
    pub from: u64,
    /// Bytes of its sealed entry.
    pub entry_bytes: u32,
}

/// Everything that waits for glass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// No body that waits now has a place after this one.
    pub last: u64,
    /// Bytes that wait, approximately: as they were put.
    pub bytes: u64,
}

/// A body that waits for glass, with all that its bytes are compared against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestedBody {
    /// The body.
    pub body: ObjectId,
    /// Ciphertext bytes.
    pub bytes: u64,
    /// CRC-64/NVME of the ciphertext, as ingested.
    pub digest: u64,
    /// Its shards that are on glass already, in order.
    pub placed: Vec<Shard>,
}

/// A shard that was read back from its platter: its body's bytes are safe there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedShard {
    /// The place of its body.
    pub place: u64,
    /// Where the shard lies.
    pub shard: Shard,
}

/// Why bodies did not go to the platters that they were planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepReason {
    /// Their bytes are not those that were ingested: they must be set aside.
    Damaged,
    /// Their platter could not be read back: they wait for another.
    Unreadable,
}

/// The result of a release transaction.
#[derive(Default)]
pub struct Released {
    /// Files all of whose bodies are on glass now.
    pub files: u64,
    /// Bodies that no longer wait.
    pub bodies: u64,
    /// Bytes for which rows now point at glass, and did not before.
    pub bytes: u64,
    /// Runs once the transaction is durable, and only then.
    pub on_commit: Option<Box<dyn FnOnce() + Send>>,
}

impl Debug for Released {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { files, bodies, bytes, on_commit: _ } = self;
        f.debug_struct("Released")
            .field("files", files)
            .field("bodies", bodies)
            .field("bytes", bytes)
            .finish_non_exhaustive()
    }
}

/// Readable ciphertext.
pub trait ReadAt {
    /// Fills `buffer` from byte `offset` of the body. May block on the disk.
    ///
    /// # Errors
    /// When the bytes are not there, or cannot be read.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()>;
}

/// A destination for ciphertext. Any thread may write any part of it.
pub trait WriteAt: Debug + Send + Sync {
    /// Writes bytes of the body from its byte `offset` on. May block on the disk.
    ///
    /// # Errors
    /// When they cannot be written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;
}

/// The owner of the bodies. Methods that change rows are called within a transaction of the glass
/// tier, and change none of that tier's own rows.
pub trait Bodies: Debug + Send + Sync {
    /// Returns what waits for glass, in total.
    ///
    /// # Errors
    /// When the catalog fails.
    fn backlog(&self) -> Result<Backlog>;

    /// Gives `take` the bodies that wait up to the place `until`, in the order of places and from
    /// one snapshot, until it breaks. Places that are not `wanted` are skipped.
    ///
    /// # Errors
    /// When the catalog fails.
    fn waiting(
        &self,
        until: u64,
        wanted: &dyn Fn(u64) -> bool,
        take: &mut dyn FnMut(WaitingBody) -> ControlFlow<()>,
    ) -> Result<()>;

    /// Returns the body that waits here; `None` when it no longer waits.
    ///
    /// # Errors
    /// When the catalog fails.
    fn body(&self, place: u64) -> Result<Option<IngestedBody>>;

    /// Opens its bytes, which do not change until the reader is dropped; `None` when it no longer
    /// waits.
    ///
    /// # Errors
    /// When the catalog fails.
    fn open(&self, place: u64) -> Result<Option<Box<dyn ReadAt>>>;

    /// Returns its sealed entry; `None` when it no longer waits, or when its entry must never be
    /// opened.
    ///
    /// # Errors
    /// When the catalog fails.
    fn entry(&self, place: u64) -> Result<Option<Vec<u8>>>;

    /// Points rows at shards, in the order of a platter. A shard that follows one that is on no
    /// platter is not recorded: its body continues in another set.
    ///
    /// # Errors
    /// When the transaction fails.
    fn record_placed(&self, tx: &mut Transaction<'_>, safe: &[PlacedShard]) -> Result<Released>;

    /// Records that bodies stay staged, because they are not released.
    ///
    /// # Errors
    /// When the transaction fails.
    fn keep_staged(
        &self,
        tx: &mut Transaction<'_>,
        places: &[u64],
        reason: KeepReason,
    ) -> Result<()>;

    /// Gives bodies new places, after all others. Returns these places, if any of the bodies still
    /// waits.
    ///
    /// # Errors
    /// When the transaction fails.
    fn requeue(
        &self,
        tx: &mut Transaction<'_>,
        places: &[u64],
    ) -> Result<Option<RangeInclusive<u64>>>;
}

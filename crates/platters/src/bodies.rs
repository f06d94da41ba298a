//! What the glass tier asks of whoever has the bodies.
//!
//! ```text
//! backlog, waiting, body,
//! open, entry                     what is to be written: numbers, ciphertext, sealed entries
//! placed, kept, again             what became of it, within the transaction that says so
//! ```
//!
//! A body that waits for glass has a *place*, a number that none had before it: all that is needed
//! to ask for the body again. Whether it was deleted meanwhile is known on the other side alone,
//! and so is what it is a body of.

use std::fmt::Debug;
use std::ops::{ControlFlow, RangeInclusive};

use fulgurite_catalog::Transaction;
use fulgurite_units::ObjectId;

use crate::{Result, Shard};

/// A body that waits for glass, with all that planning needs of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Where it waits.
    pub place: u64,
    /// The body.
    pub body: ObjectId,
    /// The file that it is, or is a part of.
    pub file: ObjectId,
    /// Bytes whose order is that in which bodies shall lie on platters: what is read together is
    /// near. The bodies of a file lie one after the other.
    pub near: Vec<u8>,
    /// Bytes of its ciphertext.
    pub bytes: u64,
    /// How many of them, from the start, are on glass already.
    pub from: u64,
    /// Bytes of its sealed entry.
    pub entry_bytes: u32,
}

/// What waits for glass, in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// No body that waits now has a place behind this one.
    pub last: u64,
    /// Bytes that wait, roughly: as they were put.
    pub bytes: u64,
}

/// A body that waits for glass, with all that its bytes are compared by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ingested {
    /// The body.
    pub body: ObjectId,
    /// Bytes of its ciphertext.
    pub bytes: u64,
    /// CRC-64/NVME of them, as they came.
    pub digest: u64,
    /// What of it is on glass already, in order.
    pub placed: Vec<Shard>,
}

/// A shard that its platter gave back: its body's bytes are safe there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Where its body waits.
    pub place: u64,
    /// Where it lies.
    pub shard: Shard,
}

/// Why bodies were not taken by the platters that they were planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Their bytes are not those that were ingested: they are to be set aside.
    Damaged,
    /// Their platter could not give them back: they wait for another.
    Unreadable,
}

/// What a transaction released.
#[derive(Default)]
pub struct Released {
    /// Files all of whose bodies are on glass now.
    pub files: u64,
    /// Bodies that wait no more.
    pub bodies: u64,
    /// Bytes that rows point at glass for, and did not before.
    pub bytes: u64,
    /// What is to be done when the transaction is durable, and only then.
    pub then: Option<Box<dyn FnOnce() + Send>>,
}

impl Debug for Released {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { files, bodies, bytes, then: _ } = self;
        f.debug_struct("Released")
            .field("files", files)
            .field("bodies", bodies)
            .field("bytes", bytes)
            .finish_non_exhaustive()
    }
}

/// Ciphertext that can be read.
pub trait ReadAt {
    /// Fills `buffer` from byte `offset` of the body. May block on the disk.
    ///
    /// # Errors
    /// When the bytes are not there, or cannot be read.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()>;
}

/// Room for ciphertext. Any thread may write any part of it.
pub trait WriteAt: Debug + Send + Sync {
    /// Writes bytes of the body, from its byte `offset` on. May block on the disk.
    ///
    /// # Errors
    /// When they cannot be written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;
}

/// Whoever has the bodies. What changes rows is called within a transaction of the glass tier, and
/// changes none of that tier's own.
pub trait Bodies: Debug + Send + Sync {
    /// What waits for glass, in all.
    ///
    /// # Errors
    /// When the catalog fails.
    fn backlog(&self) -> Result<Backlog>;

    /// Gives `take` what waits up to the place `until`, in the order of places and all of one
    /// moment, until it breaks. Places that are not `wanted` are passed over.
    ///
    /// # Errors
    /// When the catalog fails.
    fn waiting(
        &self,
        until: u64,
        wanted: &dyn Fn(u64) -> bool,
        take: &mut dyn FnMut(Waiting) -> ControlFlow<()>,
    ) -> Result<()>;

    /// The body that waits here; nothing when it does no more.
    ///
    /// # Errors
    /// When the catalog fails.
    fn body(&self, place: u64) -> Result<Option<Ingested>>;

    /// Its bytes, which stay as they are until this is dropped; nothing when it waits no more.
    ///
    /// # Errors
    /// When the catalog fails.
    fn open(&self, place: u64) -> Result<Option<Box<dyn ReadAt>>>;

    /// Its sealed entry, which was to have so many bytes when it was planned; nothing when it waits
    /// no more, or when nobody shall open its entry.
    ///
    /// # Errors
    /// When the catalog fails.
    fn entry(&self, place: u64, planned_bytes: u32) -> Result<Option<Vec<u8>>>;

    /// Points rows at shards, in the order of a platter. A shard behind one that is on no platter
    /// is not taken: its body goes on in another set.
    ///
    /// # Errors
    /// When the transaction fails.
    fn placed(&self, tx: &mut Transaction<'_>, safe: &[Placed]) -> Result<Released>;

    /// Bodies were not taken, and are not released.
    ///
    /// # Errors
    /// When the transaction fails.
    fn kept(&self, tx: &mut Transaction<'_>, places: &[u64], why: Kept) -> Result<()>;

    /// Gives bodies new places, behind all others. Which ones, if any of them still waits.
    ///
    /// # Errors
    /// When the transaction fails.
    fn again(
        &self,
        tx: &mut Transaction<'_>,
        places: &[u64],
    ) -> Result<Option<RangeInclusive<u64>>>;
}

//! Buckets shared by several archives: what one of them puts, lists or deletes, the others see
//! immediately. Their objects have no rows in a catalog; they are in a store common to these
//! archives, which itself decides what the latest version of each object is.
//!
//! ```text
//! PUT --> encrypted, digested --> the store, with a sealed note --> the client is answered
//! GET --> which version, its note, its bytes: the store         --> verified frame by frame
//! parts of uploads: staged at the archive that has the upload, joined into the store when it is
//!                   completed
//! ```
//!
//! A name in the store is `shared/BUCKET/` and the encoded key, which keeps the order of keys.
//! Bodies and notes are encrypted with a key that these archives share; names are not. Objects of a
//! shared bucket are never on glass or in a tier. Design note 0036.

mod buckets;
mod completion;
mod list;
mod names;
mod note;
mod part_runs;
mod put;
mod read;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_units::UnixTime;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

pub(crate) use self::buckets::SharedBuckets;
pub(crate) use self::completion::complete;
pub(crate) use self::put::SharedWriter;
pub(crate) use self::read::SharedReader;
use crate::BucketName;

/// Configuration of buckets that several archives share.
#[derive(Clone, Debug)]
pub struct SharedOptions {
    /// Name of the store in messages.
    pub place: String,
    /// The store.
    pub store: Arc<dyn SharedStore>,
    /// The buckets.
    pub buckets: Vec<BucketName>,
    /// File with the key common to all archives that share them: 64 hexadecimal digits.
    pub key: PathBuf,
}

/// An object of the store, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedObjectMeta {
    /// Name of the object.
    pub name: String,
    /// Version number; each write has a larger one.
    pub version: u64,
    /// Stored bytes.
    pub bytes: u64,
    /// Time of the write.
    pub time: UnixTime,
    /// The writer's note; `None` if no archive wrote the object.
    pub note: Option<String>,
}

/// The precondition of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedCondition {
    /// None.
    Always,
    /// No object of this name exists.
    Absent,
    /// This is the latest version.
    Version(u64),
}

/// An object to put into the store.
pub struct SharedPut {
    /// Name of the object.
    pub name: String,
    /// Length of the body. If fewer bytes arrive, nothing is put.
    pub bytes: u64,
    /// The body.
    pub body: BoxStream<'static, Bytes>,
    /// The note, sent after the whole body; without a note nothing is put.
    pub note: BoxFuture<'static, Option<String>>,
    /// Precondition.
    pub condition: SharedCondition,
}

impl fmt::Debug for SharedPut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPut").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Errors of a store that archives share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum SharedError {
    #[error("what is there is not what the condition says")]
    Refused,
    #[error("{what}")]
    Unavailable { what: String },
    #[error("{what}")]
    Lost { what: String },
    #[error("{what}")]
    Other { what: String },
}

/// Bytes of an object read from the store.
pub type SharedBytes = BoxStream<'static, Result<Bytes, SharedError>>;

/// A store that several archives share. Each name is linearizable: a read that starts after a write
/// was acknowledged, to any client, returns that write or a later one.
#[async_trait]
pub trait SharedStore: fmt::Debug + Send + Sync {
    /// Puts an object. On return it is as durable as the store promises.
    async fn put(&self, put: SharedPut) -> Result<(), SharedError>;

    /// Returns the latest version of a name.
    async fn find(&self, name: &str) -> Result<Option<SharedObjectMeta>, SharedError>;

    /// The same with its bytes in `range`, as far as they exist.
    async fn get(
        &self,
        name: &str,
        range: std::ops::Range<u64>,
    ) -> Result<Option<(SharedObjectMeta, SharedBytes)>, SharedError>;

    /// Removes an object; returns whether it existed.
    async fn delete(&self, name: &str) -> Result<bool, SharedError>;

    /// Lists objects below a folder by name, starting after `after`. Names consist of letters,
    /// digits, `-`, `_` and `/`.
    fn list(
        &self,
        folder: &str,
        after: Option<&str>,
    ) -> BoxStream<'static, Result<SharedObjectMeta, SharedError>>;
}

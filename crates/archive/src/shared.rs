//! Buckets that several archives share: what one of them puts, lists or deletes, the others see at
//! once. Their objects have no rows in a catalog; they lie in a store that all of these archives
//! have, which says itself what the last version of each is.
//!
//! ```text
//! PUT --> encrypted, digested --> the store, with a sealed note --> the client is told
//! GET --> which version, its note, its bytes: the store         --> verified frame by frame
//! parts of uploads: staged at the archive that has the upload, joined into the store when it is
//!                   completed
//! ```
//!
//! A name in the store is `shared/BUCKET/` and the key in letters that keep its order. Bodies and
//! notes are encrypted with a key that these archives have in common, names are not. Nothing of a
//! shared bucket is ever on glass or in a tier. Design note 0036.

mod buckets;
mod completing;
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
pub(crate) use self::completing::complete;
pub(crate) use self::put::SharedWriter;
pub(crate) use self::read::SharedReader;
use crate::BucketName;

/// Buckets that several archives share, as the configuration has them.
#[derive(Clone, Debug)]
pub struct SharedOptions {
    /// What the store is called in messages.
    pub place: String,
    /// The store.
    pub store: Arc<dyn SharedStore>,
    /// The buckets.
    pub buckets: Vec<BucketName>,
    /// File of the key that all archives have which share them: 64 hexadecimal digits.
    pub key: PathBuf,
}

/// An object of the store, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFound {
    /// Its name.
    pub name: String,
    /// Which version it is: each write has a larger number.
    pub version: u64,
    /// Bytes that are stored.
    pub bytes: u64,
    /// When it was written.
    pub time: UnixTime,
    /// What its writer noted; none of what no archive wrote.
    pub note: Option<String>,
}

/// On what condition an object is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedCondition {
    /// On none.
    Always,
    /// That there is none of this name.
    Absent,
    /// That this version is the last one.
    Is(u64),
}

/// An object on its way to the store.
pub struct SharedPut {
    /// Its name.
    pub name: String,
    /// Bytes that will come. If fewer do, nothing is put.
    pub bytes: u64,
    /// The bytes.
    pub body: BoxStream<'static, Bytes>,
    /// What is noted of it, when all bytes have come; without a note nothing is put.
    pub note: BoxFuture<'static, Option<String>>,
    /// On what condition.
    pub condition: SharedCondition,
}

impl fmt::Debug for SharedPut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPut").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What can go wrong with a store that archives share.
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

/// Bytes of an object on their way out of the store.
pub type SharedBytes = BoxStream<'static, Result<Bytes, SharedError>>;

/// A store that several archives share. Each name is linearizable for itself: who reads after a
/// write was acknowledged to anybody reads that write, or a later one.
#[async_trait]
pub trait SharedStore: fmt::Debug + Send + Sync {
    /// Puts an object. When it returns the object outlives whatever the store promises.
    async fn put(&self, put: SharedPut) -> Result<(), SharedError>;

    /// The last version of what is under a name.
    async fn find(&self, name: &str) -> Result<Option<SharedFound>, SharedError>;

    /// The same with its bytes from `range`, as far as there are so many.
    async fn get(
        &self,
        name: &str,
        range: std::ops::Range<u64>,
    ) -> Result<Option<(SharedFound, SharedBytes)>, SharedError>;

    /// Removes what is under a name; whether there was anything.
    async fn delete(&self, name: &str) -> Result<bool, SharedError>;

    /// Objects below a folder in the order of their names, those behind `after`. Names are made of
    /// letters, digits, `-`, `_` and `/`.
    fn list(
        &self,
        folder: &str,
        after: Option<&str>,
    ) -> BoxStream<'static, Result<SharedFound, SharedError>>;
}

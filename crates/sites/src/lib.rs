//! Sites: tables and blobs in stores that others run, which is all that an archive over several sites
//! needs of each (Giza, section 4).
//!
//! ```text
//! table       rows that are written only if they are still as expected     blob       bytes written once
//! transact    read, decide, write, again on a conflict                     fragment   what lies in them
//! memory      for tests and simulations                                    doctor     whether a store does
//! directory   one machine, any number of processes                                    what it says
//! bucket      S3, Azure, Google, by conditional puts; blobs too            address    URLs of sites
//! postgres    one statement a call                                         open       from URLs to stores
//! etcd        one transaction a call, over its JSON gateway
//! ```
//!
//! Not here: what rows mean and how sites agree. Of every call that failed it is known whether it
//! was refused, not done, or whether nobody knows ([`Certainty`]); nothing is tried again behind the
//! caller's back.

mod address;
mod blob;
mod bucket;
mod directory;
pub mod doctor;
mod entropy;
mod error;
mod etcd;
pub mod fragment;
mod key;
pub mod limits;
mod memory;
mod open;
pub mod outside;
mod postgres;
mod scan;
mod sum;
mod table;
mod transact;

pub use address::{Address, AddressError};
pub use blob::{Blob, BlobMeta};
pub use bucket::{BucketBlobs, BucketTable, Statuses};
pub use directory::{DirectoryStep, DirectoryTable, Obstacle};
pub use entropy::{Entropy, NoRests, Rests, RuntimeRests};
pub use error::{BlobError, Cause, Certainty, OpenError, TableError};
pub use etcd::{EtcdOptions, EtcdTable};
pub use key::{Key, KeyError, Tag};
pub use memory::MemoryTable;
pub use open::Opener;
pub use postgres::{PostgresOptions, PostgresTable, PostgresTls, TlsError};
pub use table::{Expect, Row, Table, TableCaps};
pub use transact::{Decision, Done, Guess, TransactError, transact};

#[cfg(test)]
mod tests;

//! Sites: tables and blobs in third-party stores, which is all that an archive over several sites
//! needs of each (Giza, section 4).
//!
//! ```text
//! table             rows with conditional writes (compare-and-swap)
//! transact          read, decide, write, again on a conflict
//! remote_executor   whole transactions in one round trip, by a node next to the table
//! memory            a table for tests and simulations
//! directory         one of a machine, for any number of processes
//! bucket            in S3, Azure, Google, by conditional puts; blobs, too
//! postgres          one statement per call
//! etcd              one transaction per call, over its JSON gateway
//! blob              bytes that are written once
//! fragment          what blobs contain
//! doctor            whether a store does what it claims
//! address           URLs of sites
//! nodes             programs that serve the stores of a site to other sites
//! open              from URLs to stores
//! ```
//!
//! Every failed call states whether it was refused, not executed, or has an unknown outcome
//! ([`Certainty`]). No call is retried implicitly. Not here: what rows mean and how sites agree.

mod address;
mod backoff;
mod blob;
mod bucket;
mod checksum;
mod directory;
pub mod doctor;
mod error;
mod etcd;
pub mod fragment;
pub mod fuzz_api;
mod key;
pub mod limits;
mod memory;
mod nodes;
mod open;
mod postgres;
mod remote_executor;
mod row;
mod scan;
mod table;
mod transact;

/// Source of tags and backoffs.
pub use fulgurite_tier::Entropy;

pub use address::{Address, AddressError};
pub use backoff::{Backoff, NoBackoff, RuntimeBackoff};
pub use blob::{Blob, BlobMeta};
pub use bucket::{BucketBlobs, BucketTable, StatusConnector};
pub use directory::{DirectoryStep, DirectoryTable, FaultHook};
pub use error::{BlobError, Cause, Certainty, OpenError, TableError, TransactError};
pub use etcd::{EtcdOptions, EtcdTable};
pub use key::{Key, KeyError, Tag};
pub use memory::MemoryTable;
pub use nodes::{NodeEndpoint, Nodes};
pub use open::Opener;
pub use postgres::{PostgresOptions, PostgresTable, PostgresTls, TlsError};
pub use remote_executor::{RemoteExecutor, TransactReply};
pub use row::{Expect, Row};
pub use table::{Table, TableCaps};
pub use transact::{Decision, Done, Guess, transact};

#[cfg(test)]
mod tests;

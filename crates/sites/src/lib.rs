//! Sites: tables and blobs in stores that others run, which is all that an archive over several
//! sites needs of each (Giza, section 4).
//!
//! ```text
//! table       rows that are written only if they are as expected
//! transact    read, decide, write, again on a conflict
//! beside      whole transactions in one trip, where somebody stands at the table
//! memory      a table for tests and simulations
//! directory   one of a machine, for any number of processes
//! bucket      in S3, Azure, Google, by conditional puts; blobs, too
//! postgres    one statement a call
//! etcd        one transaction a call, over its JSON gateway
//! blob        bytes that are written once
//! fragment    what lies in them
//! doctor      whether a store does what it says
//! address     URLs of sites
//! nodes       who serves the stores of a site, for those elsewhere
//! open        from URLs to stores
//! ```
//!
//! Not here: what rows mean and how sites agree. Of every call that failed it is known whether it
//! was refused, not done, or whether nobody knows ([`Certainty`]); nothing is tried again behind
//! the caller's back.

mod address;
mod beside;
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
mod nodes;
mod open;
pub mod outside;
mod postgres;
mod row;
mod scan;
mod sum;
mod table;
mod transact;

pub use address::{Address, AddressError};
pub use beside::{Asked, Beside};
pub use blob::{Blob, BlobMeta};
pub use bucket::{BucketBlobs, BucketTable, Statuses};
pub use directory::{DirectoryStep, DirectoryTable, Obstacle};
pub use entropy::{Entropy, NoRests, Rests, RuntimeRests};
pub use error::{BlobError, Cause, Certainty, OpenError, TableError, TransactError};
pub use etcd::{EtcdOptions, EtcdTable};
pub use key::{Key, KeyError, Tag};
pub use memory::MemoryTable;
pub use nodes::{NodePlace, Nodes};
pub use open::Opener;
pub use postgres::{PostgresOptions, PostgresTable, PostgresTls, TlsError};
pub use row::{Expect, Row};
pub use table::{Table, TableCaps};
pub use transact::{Decision, Done, Guess, transact};

#[cfg(test)]
mod tests;

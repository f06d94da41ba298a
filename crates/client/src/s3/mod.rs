//! A thin S3 client for any endpoint: the dozen calls the command line needs, signed, checked and
//! retried.
//!
//! Why not an SDK: the calls are few, and archive semantics (restore, restore status in listings)
//! deserve the same care as the rest. Not a general S3 library: path-style addressing only.

mod checksum;
mod client;
mod copy;
mod error;
mod sign;
mod stream;
mod transfer;
mod uri;
mod xml;

pub use checksum::Verifier;
pub use client::{
    Client, ClientConfig, ListScope, ObjectHead, RestoreResponse, Trust, http_builder,
};
pub use copy::CopySource;
pub use error::{S3Error, S3ErrorKind};
pub use stream::StreamedUpload;
pub use transfer::{Budget, ObjectProperties, PutSource};
pub use uri::percent_encode;
pub use xml::{
    DeleteFailure, ListPage, ListedBucket, ListedObject, RestoreStatus, is_archived_class,
};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod wire_tests;

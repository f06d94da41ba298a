//! The life of an object: staged, packed, sealed into glass, verified, released, restored, shredded.

pub mod config;
mod digest;
mod error;
mod facade;
pub mod limits;
mod names;
mod object;
pub mod status;

pub use digest::{BodyDigest, BodyDigests, Checksum, ChecksumAlgorithm};
pub use error::{ArchiveError, ErrorKind, Result};
pub use facade::{Archive, ObjectReader, ObjectWriter, PartWriter};
pub use names::{BucketName, ObjectKey};
pub use object::{
    BodyClaim, BucketInfo, ByteRange, CompletedPart, ListPage, ListQuery, ObjectInfo, ObjectMeta,
    PartInfo, PutOptions, Residence, RestoreOutcome, RestoreRequest, RestoreState, StorageClass,
    Tier, UploadInfo, UploadOptions, WriteCondition,
};

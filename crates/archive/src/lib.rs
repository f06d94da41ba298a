//! The life of an object: staged, packed, sealed into glass, verified, released, restored,
//! shredded.

#[doc(hidden)]
pub mod bench_support;
mod bodies;
mod body;
mod catalog_mark;
mod classes;
mod clock;
mod commit;
mod commits;
pub mod config;
mod copies;
mod damaged;
mod digest;
mod directory;
mod doubts;
mod entry;
mod error;
mod expire;
mod facade;
mod fail_point;
mod forget;
mod ground;
mod ingest;
mod jobs;
mod key_files;
mod key_table;
mod labels;
pub mod limits;
mod list;
mod log;
mod multipart;
mod names;
mod object;
mod orphan_report;
#[doc(hidden)]
pub mod outside;
mod policy;
mod private;
mod put;
mod read;
mod recover;
mod restore;
mod rows;
mod space;
mod startup;
pub mod status;
mod sync;
#[cfg(test)]
mod testing;
mod tiers;

pub use clock::system as system_clock;
pub use digest::{BodyDigest, BodyDigests, Checksum, ChecksumAlgorithm};
pub use error::{ArchiveError, Result};
pub use facade::Archive;
pub use fail_point::FAIL_POINTS;
pub use fulgurite_catalog::CatalogError;
pub use fulgurite_platters::{
    DecodeStatus, DecodeWorker, LibraryScene, LibraryStep, LibraryWatch, Machine, Progress, Seen,
    Stop, Verification, VerifiedSector, VerifiedTrack, WatchEnd, WorkerOptions, WorkerTotals,
};
pub use fulgurite_units::{Clock, ErrorKind, ManualClock};
pub use multipart::PartWriter;
pub use names::{BucketName, ObjectKey};
pub use object::{
    BodyClaim, BucketInfo, ByteRange, Chosen, CompletedPart, ListPage, ListQuery, ObjectInfo,
    ObjectMeta, PartInfo, PutOptions, Residence, RestoreOutcome, RestoreRequest, RestoreState,
    Retrieval, StorageClass, UploadInfo, UploadOptions, WriteCondition,
};
pub use put::ObjectWriter;
pub use read::ObjectReader;
pub use recover::{RecoverOptions, RecoverProgress, RecoverReport, RecoverSteps, recover};

//! The life of an object: staged, packed, sealed into glass, verified, released, restored,
//! shredded.

#[doc(hidden)]
pub mod bench_support;
mod bodies;
mod catalog_mark;
mod clock;
mod commits;
pub mod config;
mod directory;
mod error;
mod expire;
mod facade;
mod fail_point;
#[doc(hidden)]
pub mod fuzz_api;
mod glass_tier;
mod jobs;
pub mod limits;
mod model;
mod objects;
mod permissions;
mod policy;
mod recover;
mod restore;
mod rows;
mod shared;
mod space;
mod startup;
mod state;
pub mod status;
mod sync;
#[cfg(test)]
mod testing;
mod tiers;

pub use bodies::digest::{BodyDigest, BodyDigests, Checksum, ChecksumAlgorithm};
pub use clock::system as system_clock;
pub use error::{ArchiveError, Result};
pub use facade::Archive;
pub use fail_point::FAIL_POINTS;
pub use fulgurite_catalog::CatalogError;
pub use fulgurite_glass::{
    DecodeStatus, DecodeWorker, LibrarySnapshot, LibraryStep, LibraryWatch, Machine, Seen, Stop,
    Verification, VerifiedSector, VerifiedTrack, WatchEnd, WorkerOptions, WorkerTotals,
};
pub use fulgurite_tier::Progress;
pub use fulgurite_units::{Clock, ErrorKind, ManualClock};
pub use glass_tier::GlassTier;
pub use model::names::{BucketName, ObjectKey};
pub use model::object::{
    BodyClaim, BucketInfo, ByteRange, CompletedPart, ListPage, ListQuery, ObjectInfo, ObjectMeta,
    ObjectPart, ObjectParts, ObjectSelection, PartInfo, PutOptions, Residence, RestoreOutcome,
    RestoreRequest, RestoreState, Retrieval, StorageClass, UploadInfo, UploadOptions,
    WriteCondition,
};
pub use objects::body::{ObjectReader, ObjectWriter};
pub use objects::multipart::PartWriter;
pub use recover::{RecoverOptions, RecoverProgress, RecoverReport, RecoverSteps, recover};
pub use restore::RestoreWatch;

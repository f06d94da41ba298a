//! Errors of an archive, with the ids that a caller needs to act.

use fulgurite_catalog::CatalogError;
use fulgurite_glass::GlassError;
use fulgurite_units::{ErrorKind, PlatterId, error_chain};

/// An operation on the archive failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum ArchiveError {
    #[error("bucket \"{bucket}\" does not exist")]
    NoSuchBucket { bucket: String },
    #[error("bucket \"{bucket}\" already exists and is yours")]
    BucketAlreadyOwnedByYou { bucket: String },
    #[error("bucket \"{bucket}\" is not empty")]
    BucketNotEmpty { bucket: String },
    #[error("bucket \"{bucket}\" is shared by several archives: {what}")]
    NotShared { bucket: String, what: &'static str },
    #[error(
        "bucket \"{bucket}\" is shared by several archives, but the configuration of this one does \
         not name it: add it to geo.shared, or delete it here, which keeps its objects for the \
         others"
    )]
    SharedElsewhere { bucket: String },
    #[error("the key of shared buckets is wrong: bucket \"{bucket}\" was created with another key")]
    WrongSharedKey { bucket: String },
    #[error("bucket name \"{name}\" is not valid: {rule}")]
    InvalidBucketName { name: String, rule: &'static str },
    #[error("object \"{key}\" does not exist in bucket \"{bucket}\"")]
    NoSuchKey { bucket: String, key: String },
    #[error("key of {bytes} bytes is longer than {max} bytes")]
    KeyTooLong { bytes: usize, max: usize },
    #[error("user metadata of {bytes} bytes is more than 2048 bytes")]
    MetadataTooLarge { bytes: usize },
    #[error("body of {bytes} bytes is larger than {max} bytes")]
    EntityTooLarge { bytes: u64, max: u64 },
    #[error("part {part} has {bytes} bytes; every part but the last has at least {min} bytes")]
    EntityTooSmall { part: u32, bytes: u64, min: u64 },
    #[error("multipart upload \"{upload}\" does not exist")]
    NoSuchUpload { upload: String },
    #[error("part {part} was not uploaded, or its etag differs")]
    InvalidPart { part: u32 },
    #[error("parts are not in ascending order at part {part}")]
    InvalidPartOrder { part: u32 },
    #[error("the {algorithm} of the body is {actual}, not {expected}")]
    BadDigest { algorithm: &'static str, expected: String, actual: String },
    #[error("body ended after {received} of {declared} bytes")]
    IncompleteBody { declared: u64, received: u64 },
    #[error("body is longer than the declared {declared} bytes")]
    BodyTooLong { declared: u64 },
    #[error("precondition {condition} does not hold")]
    PreconditionFailed { condition: &'static str },
    #[error("range starts at byte {start} of an object of {bytes} bytes")]
    InvalidRange { start: u64, bytes: u64 },
    #[error("part {number} does not exist; the object has {count} parts")]
    InvalidPartNumber { number: u32, count: u32 },
    #[error("the part lengths of object \"{key}\" are not stored; read it by byte ranges")]
    PartsNotKept { key: String },
    #[error("storage class \"{class}\" is not known")]
    InvalidStorageClass { class: String },
    #[error("object is archived in class {class} and not restored")]
    NotRestored { class: &'static str },
    #[error("restore is not allowed for the object's current storage class {class}")]
    NotArchived { class: &'static str },
    #[error("object restore is already in progress")]
    RestoreAlreadyInProgress,
    #[error("Retrieval option is not supported by this storage class: Expedited of {class}")]
    ExpeditedNotAvailable { class: &'static str },
    #[error("{what}")]
    InvalidArgument { what: String },
    #[error("archive is full: {what}")]
    Full { what: String },
    #[error("too many requests are waiting: {what}")]
    Busy { what: String },
    #[error("object \"{key}\" of bucket \"{bucket}\" cannot be read: {reason}")]
    Unreadable { bucket: String, key: String, reason: String },
    #[error("platter {platter} cannot be read: {reason}")]
    PlatterUnreadable { platter: PlatterId, reason: String },
    #[error("platter {platter} cannot be decoded now: {reason}")]
    Undecoded { platter: PlatterId, reason: String },
    #[error("platter {platter} is out of reach: {reason}")]
    PlatterOutOfReach { platter: PlatterId, reason: String },
    #[error("tier \"{tier}\" cannot be used now: {what}")]
    TierUnavailable { tier: String, what: String },
    #[error("stored bytes are damaged: {what}")]
    Corrupt { what: String },
    #[error("written by a newer program: {what}")]
    Newer { what: String },
    #[error("data directory \"{path}\" is in use by another process")]
    Locked { path: String },
    #[error("data directory \"{path}\" cannot be opened: {reason}")]
    Unusable { path: String, reason: String },
    #[error("master key is wrong: it does not open {what}")]
    WrongMasterKey { what: String },
    #[error("the key table cannot be used any more: {what}")]
    KeysFailed { what: String },
    #[error("archive is stopping")]
    Stopping,
    #[error(transparent)]
    Catalog(CatalogError),
    #[error("cannot {action} \"{path}\"")]
    Io { action: &'static str, path: String, source: std::io::Error },
    #[error("internal error: {what}")]
    Internal { what: String },
}

/// The result of an operation on the archive.
pub type Result<T, E = ArchiveError> = std::result::Result<T, E>;

impl ArchiveError {
    /// Returns what the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSuchBucket { .. } | Self::NoSuchKey { .. } | Self::NoSuchUpload { .. } => {
                ErrorKind::NotFound
            }
            Self::BucketAlreadyOwnedByYou { .. }
            | Self::BucketNotEmpty { .. }
            | Self::PreconditionFailed { .. }
            | Self::NotRestored { .. }
            | Self::NotArchived { .. }
            | Self::RestoreAlreadyInProgress
            | Self::Locked { .. } => ErrorKind::Conflict,
            Self::ExpeditedNotAvailable { .. }
            | Self::Full { .. }
            | Self::Busy { .. }
            | Self::PlatterOutOfReach { .. }
            | Self::Undecoded { .. }
            | Self::TierUnavailable { .. }
            | Self::SharedElsewhere { .. }
            | Self::Stopping => ErrorKind::Unavailable,
            Self::Unreadable { .. } | Self::PlatterUnreadable { .. } | Self::Corrupt { .. } => {
                ErrorKind::Corrupt
            }
            Self::InvalidBucketName { .. }
            | Self::KeyTooLong { .. }
            | Self::MetadataTooLarge { .. }
            | Self::EntityTooLarge { .. }
            | Self::EntityTooSmall { .. }
            | Self::InvalidPart { .. }
            | Self::InvalidPartOrder { .. }
            | Self::BadDigest { .. }
            | Self::IncompleteBody { .. }
            | Self::BodyTooLong { .. }
            | Self::InvalidRange { .. }
            | Self::InvalidPartNumber { .. }
            | Self::PartsNotKept { .. }
            | Self::InvalidStorageClass { .. }
            | Self::InvalidArgument { .. }
            | Self::Unusable { .. }
            | Self::Newer { .. }
            | Self::NotShared { .. }
            | Self::WrongSharedKey { .. }
            | Self::WrongMasterKey { .. } => ErrorKind::Invalid,
            Self::Catalog(error) if error.kind() == ErrorKind::Unavailable => {
                ErrorKind::Unavailable
            }
            Self::Catalog(_)
            | Self::KeysFailed { .. }
            | Self::Io { .. }
            | Self::Internal { .. } => ErrorKind::Internal,
        }
    }

    /// Returns an I/O error with its path; a full disk becomes `Full`.
    pub(crate) fn io(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.display().to_string();
        move |source| {
            use std::io::ErrorKind::{QuotaExceeded, StorageFull};
            if matches!(source.kind(), StorageFull | QuotaExceeded) {
                return Self::Full { what: format!("no space left to {action} \"{path}\"") };
            }
            Self::Io { action, path, source }
        }
    }
}

/// Converts as platters do: errors in rows become variants of their own, errors of the store stay
/// catalog errors.
impl From<CatalogError> for ArchiveError {
    fn from(error: CatalogError) -> Self {
        GlassError::from(error).into()
    }
}

/// Converts each error of platters to the variant of the same name.
impl From<GlassError> for ArchiveError {
    fn from(error: GlassError) -> Self {
        use GlassError as P;
        match error {
            P::InvalidArgument { what } => Self::InvalidArgument { what },
            P::Full { what } => Self::Full { what },
            P::Busy { what } => Self::Busy { what },
            P::PlatterUnreadable { platter, reason } => Self::PlatterUnreadable { platter, reason },
            P::Undecoded { platter, reason } => Self::Undecoded { platter, reason },
            P::PlatterOutOfReach { platter, reason } => Self::PlatterOutOfReach { platter, reason },
            P::Corrupt { what } => Self::Corrupt { what },
            P::Newer { what } => Self::Newer { what },
            P::Unusable { path, reason } => Self::Unusable { path, reason },
            P::Stopping => Self::Stopping,
            P::Catalog(error) => Self::Catalog(error),
            P::Io { action, path, source } => Self::Io { action, path, source },
            P::Internal { what } => Self::Internal { what },
            // These two delay shards: they are shown with the restores, but no call returns them.
            P::SetMissing { platter } => {
                let reason = "it and all other platters of its set are missing".to_owned();
                Self::PlatterOutOfReach { platter, reason }
            }
            P::FarUnavailable { library, what } => Self::TierUnavailable { tier: library, what },
            P::Glass(error) => Self::Corrupt { what: error_chain(&error) },
            other => Self::Internal { what: error_chain(&other) },
        }
    }
}

/// Converts errors that the archive returns to platters to the variant of the same name. Errors
/// that platters never handle become text.
impl From<ArchiveError> for GlassError {
    fn from(error: ArchiveError) -> Self {
        use ArchiveError as A;
        match error {
            A::InvalidArgument { what } => Self::InvalidArgument { what },
            A::Full { what } => Self::Full { what },
            A::Busy { what } => Self::Busy { what },
            A::PlatterUnreadable { platter, reason } => Self::PlatterUnreadable { platter, reason },
            A::Undecoded { platter, reason } => Self::Undecoded { platter, reason },
            A::PlatterOutOfReach { platter, reason } => Self::PlatterOutOfReach { platter, reason },
            A::Corrupt { what } => Self::Corrupt { what },
            A::Newer { what } => Self::Newer { what },
            A::Unusable { path, reason } => Self::Unusable { path, reason },
            A::Stopping => Self::Stopping,
            A::Catalog(error) => Self::Catalog(error),
            A::Io { action, path, source } => Self::Io { action, path, source },
            A::Internal { what } => Self::Internal { what },
            A::NoSuchBucket { .. }
            | A::BucketAlreadyOwnedByYou { .. }
            | A::BucketNotEmpty { .. }
            | A::InvalidBucketName { .. }
            | A::NoSuchKey { .. }
            | A::KeyTooLong { .. }
            | A::MetadataTooLarge { .. }
            | A::EntityTooLarge { .. }
            | A::EntityTooSmall { .. }
            | A::NoSuchUpload { .. }
            | A::InvalidPart { .. }
            | A::InvalidPartOrder { .. }
            | A::BadDigest { .. }
            | A::IncompleteBody { .. }
            | A::BodyTooLong { .. }
            | A::PreconditionFailed { .. }
            | A::InvalidRange { .. }
            | A::InvalidPartNumber { .. }
            | A::PartsNotKept { .. }
            | A::InvalidStorageClass { .. }
            | A::NotRestored { .. }
            | A::NotArchived { .. }
            | A::RestoreAlreadyInProgress
            | A::ExpeditedNotAvailable { .. }
            | A::Unreadable { .. }
            | A::TierUnavailable { .. }
            | A::Locked { .. }
            | A::WrongMasterKey { .. }
            | A::NotShared { .. }
            | A::SharedElsewhere { .. }
            | A::WrongSharedKey { .. }
            | A::KeysFailed { .. } => Self::Internal { what: error_chain(&error) },
        }
    }
}

#[cfg(test)]
mod tests;

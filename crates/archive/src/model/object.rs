//! The API types for objects: what front ends pass to the archive and get back.

use std::collections::BTreeMap;

pub use fulgurite_restore::Retrieval;
use fulgurite_units::{ObjectId, UnixTime, UploadId};
use serde::{Deserialize, Serialize};

use crate::bodies::digest::{Checksum, ChecksumAlgorithm};
use crate::model::names::ObjectKey;
use crate::{ArchiveError, Result};

/// Storage class of an object, by the name that S3 clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StorageClass {
    /// On disk, readable directly.
    Standard,
    /// On glass, unless the configuration assigns another tier.
    Glacier,
    /// On glass.
    DeepArchive,
    /// In a tier with direct reads, if the configuration assigns one.
    GlacierIr,
    /// Where the configuration puts it, like the two that follow.
    StandardIa,
    /// S3 keeps this class in a single zone.
    OnezoneIa,
    /// S3 moves objects of this class between tiers by access pattern; here they stay where they
    /// are put.
    IntelligentTiering,
}

impl StorageClass {
    /// All classes, in the order of their numbers in rows and entries.
    pub const ALL: [Self; 7] = [
        Self::Standard,
        Self::Glacier,
        Self::DeepArchive,
        Self::GlacierIr,
        Self::StandardIa,
        Self::OnezoneIa,
        Self::IntelligentTiering,
    ];

    /// Parses S3's name of a class.
    ///
    /// # Errors
    /// `InvalidStorageClass` for a class that this archive does not support.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "STANDARD" => Ok(Self::Standard),
            "GLACIER" => Ok(Self::Glacier),
            "GLACIER_IR" => Ok(Self::GlacierIr),
            "DEEP_ARCHIVE" => Ok(Self::DeepArchive),
            "STANDARD_IA" => Ok(Self::StandardIa),
            "ONEZONE_IA" => Ok(Self::OnezoneIa),
            "INTELLIGENT_TIERING" => Ok(Self::IntelligentTiering),
            _ => Err(ArchiveError::InvalidStorageClass { class: name.to_owned() }),
        }
    }

    /// S3's name of the class.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "STANDARD",
            Self::Glacier => "GLACIER",
            Self::GlacierIr => "GLACIER_IR",
            Self::DeepArchive => "DEEP_ARCHIVE",
            Self::StandardIa => "STANDARD_IA",
            Self::OnezoneIa => "ONEZONE_IA",
            Self::IntelligentTiering => "INTELLIGENT_TIERING",
        }
    }
}

/// Headers and user metadata that a client stored with an object, returned unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectMeta {
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
    /// `Content-Disposition`.
    pub content_disposition: Option<String>,
    /// `Content-Encoding` without `aws-chunked`.
    pub content_encoding: Option<String>,
    /// `Content-Language`.
    pub content_language: Option<String>,
    /// `Expires`, as sent.
    pub expires: Option<String>,
    /// `x-amz-website-redirect-location`.
    pub website_redirect: Option<String>,
    /// `x-amz-meta-*`, names in lower case without the prefix.
    pub user: BTreeMap<String, String>,
}

/// The state of an archived object's restored copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestoreState {
    /// The restore is in progress.
    Ongoing,
    /// The copy exists until `expiry`.
    Restored {
        /// When the copy expires; always a midnight UTC.
        expiry: UnixTime,
    },
}

/// Where an object's bytes are now; shown by the status and the admin API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Residence {
    /// On disk because its class says so.
    Online,
    /// In staging, not yet on a verified, stored platter-set.
    Staged,
    /// On glass; the staged copy is released.
    Glass,
    /// In a tier of objects; the staged copy is released.
    Tier,
}

/// One object, as HEAD and listings show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Key within its bucket.
    pub key: String,
    /// Identity of this upload; an overwrite has another.
    pub object_id: ObjectId,
    /// Plaintext bytes.
    pub bytes: u64,
    /// Entity tag without quotes: MD5 in hex, or MD5-of-MD5s and `-parts`.
    pub etag: String,
    /// Time at which the upload was completed.
    pub modified: UnixTime,
    /// Class it was stored in.
    pub class: StorageClass,
    /// Client's headers and user metadata.
    pub meta: ObjectMeta,
    /// Additional checksum stored with the object.
    pub checksum: Option<Checksum>,
    /// Number of parts, if it was a multipart upload.
    pub part_count: Option<u32>,
    /// Restored copy, if any.
    pub restore: Option<RestoreState>,
    /// Where its bytes are.
    pub residence: Residence,
}

/// A part of a multipart object; an object that was put whole is its own only part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectPart {
    /// Part number, from 1, in object order.
    pub number: u32,
    /// Offset of its first byte in the object.
    pub first: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Its checksum, if it was stored.
    pub checksum: Option<Checksum>,
}

/// One page of the parts of an object.
#[derive(Clone, Debug)]
pub struct ObjectParts {
    /// The object.
    pub info: ObjectInfo,
    /// The parts of this page.
    pub parts: Vec<ObjectPart>,
    /// Whether more follow.
    pub is_more: bool,
}

/// Conditions of a PUT or a completion, checked in the committing transaction.
#[derive(Clone, Debug, Default)]
pub struct WriteCondition {
    /// `If-None-Match: *`: no object of this key may exist.
    pub absent: bool,
    /// `If-Match`: the current object must have this entity tag (without quotes; `*` for any).
    pub etag: Option<String>,
    /// The current object must be this one, whatever its tag: overwriting an object with the same
    /// bytes gives it another id.
    pub object: Option<ObjectId>,
}

/// What a client declared about a body before sending it.
#[derive(Clone, Debug, Default)]
pub struct BodyClaim {
    /// Plaintext length, from `Content-Length` or `x-amz-decoded-content-length`.
    pub bytes: Option<u64>,
    /// `Content-MD5`, decoded.
    pub md5: Option<[u8; 16]>,
    /// `x-amz-checksum-*` from the headers.
    pub checksum: Option<Checksum>,
    /// `x-amz-sdk-checksum-algorithm` or `x-amz-trailer`: an algorithm to compute and store.
    pub algorithm: Option<ChecksumAlgorithm>,
}

/// Parameters of a PUT.
#[derive(Clone, Debug)]
pub struct PutOptions {
    /// Class to store in.
    pub class: StorageClass,
    /// Headers and user metadata.
    pub meta: ObjectMeta,
    /// Conditions.
    pub condition: WriteCondition,
    /// Claims about the body.
    pub claim: BodyClaim,
}

/// A requested range of an object's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteRange {
    /// From `first` to `last` inclusive, or to the end.
    From {
        /// First byte.
        first: u64,
        /// Last byte.
        last: Option<u64>,
    },
    /// The last `bytes` bytes.
    Suffix {
        /// Number of bytes.
        bytes: u64,
    },
}

impl ByteRange {
    /// Resolves the range to offset and length in an object of `bytes` bytes.
    ///
    /// # Errors
    /// `InvalidRange` when nothing of the object lies in it.
    pub fn resolve(self, bytes: u64) -> Result<(u64, u64)> {
        let (start, end) = match self {
            Self::From { first, last } => {
                (first, last.map_or(bytes, |last| bytes.min(last.saturating_add(1))))
            }
            Self::Suffix { bytes: count } => (bytes - bytes.min(count), bytes),
        };
        if start >= end {
            return Err(ArchiveError::InvalidRange { start, bytes });
        }
        Ok((start, end - start))
    }
}

/// Parameters of a listing page.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Only keys with this prefix.
    pub prefix: String,
    /// Keys that share a part up to this string after the prefix become one common prefix.
    pub delimiter: Option<String>,
    /// Only keys (and common prefixes) after this one, exclusive.
    pub after: Option<String>,
    /// Maximum keys and common prefixes in the page; capped at 1,000.
    pub limit: usize,
}

/// Selects objects of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectSelection {
    /// The object with this key.
    One(ObjectKey),
    /// All objects whose keys have this prefix.
    Prefix(String),
}

/// A page of a listing.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    /// Objects in key order.
    pub objects: Vec<ObjectInfo>,
    /// Common prefixes in order.
    pub prefixes: Vec<String>,
    /// The `after` of the next page; `None` at the end.
    pub next: Option<String>,
}

/// A bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketInfo {
    /// Name.
    pub name: String,
    /// Time of creation.
    pub created: UnixTime,
}

/// A RestoreObject request.
#[derive(Clone, Copy, Debug)]
pub struct RestoreRequest {
    /// Lifetime of the copy in days from now, rounded up to the next midnight UTC.
    pub days: u32,
    /// Retrieval class.
    pub retrieval: Retrieval,
}

/// The result of a RestoreObject request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// The restore is queued, durably: 202.
    Accepted,
    /// A restored copy exists; its expiry was updated: 200.
    Extended,
}

/// A multipart upload in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadInfo {
    /// Upload id.
    pub upload_id: UploadId,
    /// Object key.
    pub key: String,
    /// Time at which it was started.
    pub initiated: UnixTime,
    /// Class the object will have.
    pub class: StorageClass,
    /// Checksum algorithm chosen at creation.
    pub algorithm: Option<ChecksumAlgorithm>,
    /// Whether part checksums combine to one of the full object; otherwise the checksum is
    /// composite.
    pub full_object: bool,
}

/// Parameters of CreateMultipartUpload.
#[derive(Clone, Debug)]
pub struct UploadOptions {
    /// Class to store in.
    pub class: StorageClass,
    /// Headers and user metadata.
    pub meta: ObjectMeta,
    /// Checksum algorithm for the parts.
    pub algorithm: Option<ChecksumAlgorithm>,
    /// Whether the object's checksum is of the full object (`FULL_OBJECT`) or composite.
    pub full_object: bool,
}

/// An uploaded part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartInfo {
    /// Part number, 1 to 10,000.
    pub number: u32,
    /// Plaintext bytes.
    pub bytes: u64,
    /// MD5 in hex.
    pub etag: String,
    /// Time of upload.
    pub modified: UnixTime,
    /// Additional checksum.
    pub checksum: Option<Checksum>,
}

/// A part named by CompleteMultipartUpload.
#[derive(Clone, Debug)]
pub struct CompletedPart {
    /// Part number.
    pub number: u32,
    /// Entity tag that the client received, without quotes.
    pub etag: String,
    /// Checksum that the client received, if it states one.
    pub checksum: Option<Checksum>,
}

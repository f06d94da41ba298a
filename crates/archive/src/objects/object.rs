//! What the archive says about objects, and what it is told: the vocabulary of the front end.

use std::collections::BTreeMap;

pub use fulgurite_restore::Retrieval;
use fulgurite_units::{ObjectId, UnixTime, UploadId};
use serde::{Deserialize, Serialize};

use crate::bodies::digest::{Checksum, ChecksumAlgorithm};
use crate::objects::names::ObjectKey;
use crate::{ArchiveError, Result};

/// Where an object lives, by the name S3 clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StorageClass {
    /// On disk, readable at once.
    Standard,
    /// On glass, until there is a tier of disks for it.
    Glacier,
    /// On glass.
    DeepArchive,
    /// In a tier that answers at once, where the configuration has one for it.
    GlacierIr,
    /// Where the configuration says, as the two that follow.
    StandardIa,
    /// What S3 keeps in one place.
    OnezoneIa,
    /// What S3 moves by how it is read; here it stays where it is put.
    IntelligentTiering,
}

impl StorageClass {
    /// All of them, each in the place that it has in rows and entries.
    pub const ALL: [Self; 7] = [
        Self::Standard,
        Self::Glacier,
        Self::DeepArchive,
        Self::GlacierIr,
        Self::StandardIa,
        Self::OnezoneIa,
        Self::IntelligentTiering,
    ];

    /// The class S3 calls `name`.
    ///
    /// # Errors
    /// `InvalidStorageClass` for a class this archive does not keep.
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

/// Headers and user metadata a client stored with an object, returned as they came.
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
    /// The copy is being made.
    Ongoing,
    /// The copy is there until `expiry`.
    Restored {
        /// When the copy goes; always a midnight UTC.
        expiry: UnixTime,
    },
}

/// Where an archived object is on its way to glass; shown by status and by the admin API.
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
    /// Plain bytes.
    pub bytes: u64,
    /// Entity tag without quotes: MD5 in hex, or MD5-of-MD5s and `-parts`.
    pub etag: String,
    /// When the upload was completed.
    pub modified: UnixTime,
    /// Class it was stored in.
    pub class: StorageClass,
    /// Client's headers and user metadata.
    pub meta: ObjectMeta,
    /// Additional checksum kept with the object.
    pub checksum: Option<Checksum>,
    /// Parts it was uploaded in, when it was a multipart upload.
    pub part_count: Option<u32>,
    /// Restored copy, if any.
    pub restore: Option<RestoreState>,
    /// Where its bytes are.
    pub residence: Residence,
}

/// A part of an object that was uploaded in parts; an object that was put whole is its only one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectPart {
    /// From 1 on, in the order of the object.
    pub number: u32,
    /// First of its bytes in the object.
    pub first: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its checksum, if that is kept.
    pub checksum: Option<Checksum>,
}

/// One page of the parts of an object.
#[derive(Clone, Debug)]
pub struct ObjectParts {
    /// The object.
    pub info: ObjectInfo,
    /// Some of its parts.
    pub parts: Vec<ObjectPart>,
    /// Whether more follow.
    pub is_more: bool,
}

/// Conditions a PUT or a completed upload must meet, checked in the committing transaction.
#[derive(Clone, Debug, Default)]
pub struct WriteCondition {
    /// `If-None-Match: *`: no object of this key may exist.
    pub absent: bool,
    /// `If-Match`: the current object must have this entity tag (without quotes; `*` for any).
    pub etag: Option<String>,
    /// The current object must be this one, whatever its tag: an object that was put anew with the
    /// same bytes is another.
    pub object: Option<ObjectId>,
}

/// What a client declared about a body before sending it.
#[derive(Clone, Debug, Default)]
pub struct BodyClaim {
    /// Plain length, from `Content-Length` or `x-amz-decoded-content-length`.
    pub bytes: Option<u64>,
    /// `Content-MD5`, decoded.
    pub md5: Option<[u8; 16]>,
    /// `x-amz-checksum-*` from the headers.
    pub checksum: Option<Checksum>,
    /// `x-amz-sdk-checksum-algorithm` or `x-amz-trailer`: an algorithm to compute and keep.
    pub algorithm: Option<ChecksumAlgorithm>,
}

/// A PUT.
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

/// A range of an object's bytes, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteRange {
    /// From `first` to `last` inclusive, or to the end.
    From {
        /// First byte wanted.
        first: u64,
        /// Last byte wanted.
        last: Option<u64>,
    },
    /// The last `bytes` bytes.
    Suffix {
        /// How many.
        bytes: u64,
    },
}

impl ByteRange {
    /// The first byte and the count that this range means for an object of `bytes` bytes.
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

/// A page of a listing, as asked for.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Only keys that begin so.
    pub prefix: String,
    /// Keys that share a part up to this string after the prefix become one common prefix.
    pub delimiter: Option<String>,
    /// Only keys (and common prefixes) after this one, exclusive.
    pub after: Option<String>,
    /// Most keys and common prefixes in the page; capped at 1,000.
    pub limit: usize,
}

/// Which objects of a bucket are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// The one of this key.
    One(ObjectKey),
    /// All whose keys begin so.
    Below(String),
}

/// A page of a listing.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    /// Objects in key order.
    pub objects: Vec<ObjectInfo>,
    /// Common prefixes in order.
    pub prefixes: Vec<String>,
    /// When more follow: the `after` of the next page.
    pub next: Option<String>,
}

/// A bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketInfo {
    /// Name.
    pub name: String,
    /// When it was made.
    pub created: UnixTime,
}

/// A RestoreObject request.
#[derive(Clone, Copy, Debug)]
pub struct RestoreRequest {
    /// Days the copy stays, from now, rounded up to the next midnight UTC.
    pub days: u32,
    /// How fast.
    pub retrieval: Retrieval,
}

/// How a RestoreObject request was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// The restore is queued, durably: 202.
    Accepted,
    /// A restored copy exists; its expiry was set anew: 200.
    Extended,
}

/// A multipart upload in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadInfo {
    /// Its id.
    pub upload_id: UploadId,
    /// Key it is for.
    pub key: String,
    /// When it was begun.
    pub initiated: UnixTime,
    /// Class the object will have.
    pub class: StorageClass,
    /// Checksum algorithm chosen at creation.
    pub algorithm: Option<ChecksumAlgorithm>,
    /// Whether part checksums combine to one of the full object, or to a composite.
    pub full_object: bool,
}

/// A begun multipart upload's wishes.
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
    /// 1 to 10,000.
    pub number: u32,
    /// Plain bytes.
    pub bytes: u64,
    /// MD5 in hex.
    pub etag: String,
    /// When it was uploaded.
    pub modified: UnixTime,
    /// Additional checksum.
    pub checksum: Option<Checksum>,
}

/// A part named by CompleteMultipartUpload.
#[derive(Clone, Debug)]
pub struct CompletedPart {
    /// Part number.
    pub number: u32,
    /// Entity tag the client saw, without quotes.
    pub etag: String,
    /// Checksum the client saw, if it names one.
    pub checksum: Option<Checksum>,
}

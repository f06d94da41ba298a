//! Digests of a body as it streams in: the MD5 that S3 uses as ETag, and the checksums that clients
//! send.

mod md5;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};
use sha2::Sha256;

pub(crate) use self::md5::LANES;
use self::md5::Md5;
use crate::{ArchiveError, Result};

/// Additional checksum algorithms of S3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ChecksumAlgorithm {
    /// CRC-32 (ISO-HDLC).
    Crc32,
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// CRC-64/NVME.
    Crc64Nvme,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
}

impl ChecksumAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 5] =
        [Self::Crc32, Self::Crc32c, Self::Crc64Nvme, Self::Sha1, Self::Sha256];

    /// S3's name: `CRC32`, `CRC32C`, `CRC64NVME`, `SHA1`, `SHA256`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "CRC32",
            Self::Crc32c => "CRC32C",
            Self::Crc64Nvme => "CRC64NVME",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
        }
    }

    /// The header with its value, in lower case.
    #[must_use]
    pub const fn header(self) -> &'static str {
        match self {
            Self::Crc32 => "x-amz-checksum-crc32",
            Self::Crc32c => "x-amz-checksum-crc32c",
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Self::Sha1 => "x-amz-checksum-sha1",
            Self::Sha256 => "x-amz-checksum-sha256",
        }
    }

    /// Parses S3's name of an algorithm, in any case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.name().eq_ignore_ascii_case(name))
    }

    /// Length of a value in bytes.
    #[must_use]
    pub const fn value_bytes(self) -> usize {
        match self {
            Self::Crc32 | Self::Crc32c => 4,
            Self::Crc64Nvme => 8,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// A checksum with its algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksum {
    /// Algorithm.
    pub algorithm: ChecksumAlgorithm,
    /// Value, big-endian as S3 sends it.
    pub value: Vec<u8>,
    /// For a composite checksum of a multipart object: the number of parts it combines.
    pub composite_parts: Option<u32>,
}

impl Checksum {
    /// Parses a whole-object checksum from its Base64 text.
    ///
    /// # Errors
    /// `InvalidArgument` when the text is not Base64 or has the wrong length.
    pub fn parse(algorithm: ChecksumAlgorithm, text: &str) -> Result<Self> {
        let parsed = || {
            let (value, composite_parts) = match text.split_once('-') {
                Some((value, parts)) => (value, Some(parts.parse().ok()?)),
                None => (text, None),
            };
            let value = BASE64.decode(value).ok()?;
            let fits = value.len() == algorithm.value_bytes();
            fits.then_some(Self { algorithm, value, composite_parts })
        };
        parsed().ok_or_else(|| ArchiveError::InvalidArgument {
            what: format!("value for {} header is invalid", algorithm.header()),
        })
    }

    /// Returns the Base64 text that S3 shows, with `-parts` when composite.
    #[must_use]
    pub fn text(&self) -> String {
        let value = BASE64.encode(&self.value);
        self.composite_parts.map_or_else(|| value.clone(), |parts| format!("{value}-{parts}"))
    }
}

enum AdditionalDigest {
    Crc(ChecksumAlgorithm, crc_fast::Digest),
    Sha1(Sha1),
    Sha256(Sha256),
}

/// Running digests of one body.
pub struct BodyDigest {
    md5: Md5,
    additional: Option<AdditionalDigest>,
    bytes: u64,
}

impl std::fmt::Debug for BodyDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BodyDigest").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Digests of a whole body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyDigests {
    /// MD5, the ETag of a body.
    pub md5: [u8; 16],
    /// The additional checksum that was requested.
    pub checksum: Option<Checksum>,
    /// Plaintext bytes digested.
    pub bytes: u64,
}

impl BodyDigest {
    /// Creates digests for MD5 and, if given, one additional algorithm.
    #[must_use]
    pub fn new(algorithm: Option<ChecksumAlgorithm>) -> Self {
        use crc_fast::CrcAlgorithm::{Crc32Iscsi, Crc32IsoHdlc, Crc64Nvme};
        let additional = algorithm.map(|algorithm| match algorithm {
            ChecksumAlgorithm::Crc32 => {
                AdditionalDigest::Crc(algorithm, crc_fast::Digest::new(Crc32IsoHdlc))
            }
            ChecksumAlgorithm::Crc32c => {
                AdditionalDigest::Crc(algorithm, crc_fast::Digest::new(Crc32Iscsi))
            }
            ChecksumAlgorithm::Crc64Nvme => {
                AdditionalDigest::Crc(algorithm, crc_fast::Digest::new(Crc64Nvme))
            }
            ChecksumAlgorithm::Sha1 => AdditionalDigest::Sha1(Sha1::new()),
            ChecksumAlgorithm::Sha256 => AdditionalDigest::Sha256(Sha256::new()),
        });
        Self { md5: Md5::new(), additional, bytes: 0 }
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.md5.update(bytes);
        self.update_additional(bytes);
    }

    /// Adds the next bytes of several bodies, [`LANES`] of them at a time.
    pub(crate) fn update_all(bodies: &mut [(&mut Self, &[u8])]) {
        let mut md5s: Vec<_> =
            bodies.iter_mut().map(|(digest, bytes)| (&mut digest.md5, *bytes)).collect();
        Md5::update_all(&mut md5s);
        for (digest, bytes) in bodies {
            digest.update_additional(bytes);
        }
    }

    fn update_additional(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        match &mut self.additional {
            Some(AdditionalDigest::Crc(_, crc)) => crc.update(bytes),
            Some(AdditionalDigest::Sha1(sha)) => sha.update(bytes),
            Some(AdditionalDigest::Sha256(sha)) => sha.update(bytes),
            None => {}
        }
    }

    /// Plaintext bytes digested so far.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the digests of all bytes added.
    #[must_use]
    pub fn finish(self) -> BodyDigests {
        let checksum = self.additional.map(|additional| match additional {
            AdditionalDigest::Crc(algorithm, crc) => {
                let value = crc.finalize();
                #[expect(clippy::big_endian_bytes, reason = "S3 shows CRCs big-endian")]
                let all = value.to_be_bytes();
                let value = all[8 - algorithm.value_bytes()..].to_vec();
                Checksum { algorithm, value, composite_parts: None }
            }
            AdditionalDigest::Sha1(sha) => Checksum {
                algorithm: ChecksumAlgorithm::Sha1,
                value: sha.finalize().to_vec(),
                composite_parts: None,
            },
            AdditionalDigest::Sha256(sha) => Checksum {
                algorithm: ChecksumAlgorithm::Sha256,
                value: sha.finalize().to_vec(),
                composite_parts: None,
            },
        });
        BodyDigests { md5: self.md5.finish(), checksum, bytes: self.bytes }
    }
}

#[cfg(test)]
mod tests;

//! Digests that the headers of an XML request name. s3s checks none of them, and a
//! `DeleteObjects` that was damaged on its way must not delete anything.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fulgurite_archive::{BodyDigest, Checksum, ChecksumAlgorithm};
use http::request::Parts;
use ring::digest;

use super::fault::BodyFault;
use crate::percent::query_value;

/// What a body's digests shall be, and what they are so far.
pub(super) struct ExpectedDigests {
    sha256: Option<Vec<u8>>,
    md5: Option<Vec<u8>>,
    checksum: Option<Checksum>,
    running_sha256: digest::Context,
    running: BodyDigest,
}

impl ExpectedDigests {
    /// The digests that the headers name; `None` when there is nothing to check. The checksum of
    /// a CompleteMultipartUpload is not of its body but of the object, and the archive checks it.
    pub(super) fn of(parts: &Parts) -> Option<Self> {
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let is_of_body = query_value(parts.uri.query().unwrap_or_default(), "uploadId").is_none();
        let sha256 = text("x-amz-content-sha256").and_then(|hex| hex::decode(hex).ok());
        // Base64 that does not decode can match nothing, so it counts as an empty digest.
        let md5 = text("content-md5").map(|value| BASE64.decode(value).unwrap_or_default());
        let mut offered = ChecksumAlgorithm::ALL.into_iter().filter(|_| is_of_body);
        let checksum = offered.find_map(|algorithm| {
            let value = text(algorithm.header())?;
            let empty = Checksum { algorithm, value: Vec::new(), composite_parts: None };
            Some(Checksum::parse(algorithm, value).unwrap_or(empty))
        });
        if sha256.is_none() && md5.is_none() && checksum.is_none() {
            return None;
        }
        let running = BodyDigest::new(checksum.as_ref().map(|checksum| checksum.algorithm));
        let running_sha256 = digest::Context::new(&digest::SHA256);
        Some(Self { sha256, md5, checksum, running_sha256, running })
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.running_sha256.update(bytes);
        self.running.update(bytes);
    }

    pub(super) fn check(self) -> Result<(), BodyFault> {
        let found = self.running.finish();
        let sha256 = self.running_sha256.finish();
        if self.sha256.is_some_and(|expected| expected != sha256.as_ref()) {
            return Err(BodyFault::ContentSha256);
        }
        if self.md5.is_some_and(|expected| expected != found.md5) {
            return Err(BodyFault::Digest);
        }
        if self.checksum.is_some() && self.checksum != found.checksum {
            return Err(BodyFault::Digest);
        }
        Ok(())
    }
}

//! Digests that the headers of a request name: the SHA-256 of every body that is signed with it,
//! and of XML bodies also MD5 and checksums. s3s checks none of those, and a `DeleteObjects` that
//! was damaged on its way must not delete anything. Those of object bodies are the archive's to
//! check.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fulgurite_archive::{BodyDigest, Checksum, ChecksumAlgorithm};
use http::Method;
use http::request::Parts;
use ring::digest;

use crate::percent::query_value;
use crate::request::BodyFault;

/// What a body's digests shall be, and what they are so far.
pub(crate) struct ExpectedDigests {
    sha256: Option<([u8; 32], digest::Context)>,
    document: Option<Document>,
}

struct Document {
    md5: Option<Vec<u8>>,
    checksum: Option<Checksum>,
    running: BodyDigest,
}

impl ExpectedDigests {
    /// The digest under the signature and, for an XML document, those that its headers name;
    /// `None` when there is nothing to check.
    pub(crate) fn of(parts: &Parts, sha256: Option<[u8; 32]>) -> Option<Self> {
        // Every POST that S3 has, but for form uploads, is a small XML document.
        let document = (parts.method == Method::POST).then(|| Document::of(parts)).flatten();
        if sha256.is_none() && document.is_none() {
            return None;
        }
        let sha256 = sha256.map(|expected| (expected, digest::Context::new(&digest::SHA256)));
        Some(Self { sha256, document })
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        if let Some((_, running)) = &mut self.sha256 {
            running.update(bytes);
        }
        if let Some(document) = &mut self.document {
            document.running.update(bytes);
        }
    }

    pub(crate) fn check(self) -> Result<(), BodyFault> {
        if let Some((expected, running)) = self.sha256
            && expected != running.finish().as_ref()
        {
            return Err(BodyFault::ContentSha256);
        }
        self.document.map_or(Ok(()), Document::check)
    }
}

impl Document {
    /// The checksum of a CompleteMultipartUpload is not of its body but of the object, and the
    /// archive checks it.
    fn of(parts: &Parts) -> Option<Self> {
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let is_of_body = query_value(parts.uri.query().unwrap_or_default(), "uploadId").is_none();
        // Base64 that does not decode can match nothing, so it counts as an empty digest.
        let md5 = text("content-md5").map(|value| BASE64.decode(value).unwrap_or_default());
        let mut offered = ChecksumAlgorithm::ALL.into_iter().filter(|_| is_of_body);
        let checksum = offered.find_map(|algorithm| {
            let value = text(algorithm.header())?;
            let empty = Checksum { algorithm, value: Vec::new(), composite_parts: None };
            Some(Checksum::parse(algorithm, value).unwrap_or(empty))
        });
        if md5.is_none() && checksum.is_none() {
            return None;
        }
        let running = BodyDigest::new(checksum.as_ref().map(|checksum| checksum.algorithm));
        Some(Self { md5, checksum, running })
    }

    fn check(self) -> Result<(), BodyFault> {
        let found = self.running.finish();
        let is_md5_wrong = self.md5.is_some_and(|expected| expected != found.md5);
        if is_md5_wrong || (self.checksum.is_some() && self.checksum != found.checksum) {
            return Err(BodyFault::Digest);
        }
        Ok(())
    }
}

//! Digests named in the head of a request: the SHA-256 under the signature, compared while the body
//! streams, and those of an XML document, compared before it is parsed. Digests of object bodies
//! are checked by the archive.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fulgurite_archive::{BodyDigest, Checksum, ChecksumAlgorithm};
use http::{HeaderMap, StatusCode};
use ring::digest;

use super::responses::Refusal;
use crate::request::BodyFault;

/// The expected SHA-256 of a body, and its running digest.
pub(crate) struct PayloadDigest {
    expected: [u8; 32],
    running: digest::Context,
}

impl PayloadDigest {
    pub(crate) fn new(expected: [u8; 32]) -> Self {
        Self { expected, running: digest::Context::new(&digest::SHA256) }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.running.update(bytes);
    }

    pub(crate) fn check(self) -> Result<(), BodyFault> {
        let is_match = self.running.finish().as_ref() == self.expected;
        if is_match { Ok(()) } else { Err(BodyFault::ContentSha256) }
    }
}

/// The digests of one XML document that its request declares.
#[derive(Debug)]
pub(super) struct DocumentDigests {
    /// Invalid base64 can match nothing, so it counts as an empty digest.
    md5: Option<Vec<u8>>,
    checksum: Option<Checksum>,
    /// The algorithm of the checksum in the trailer.
    trailer: Option<ChecksumAlgorithm>,
}

impl DocumentDigests {
    /// Reads the digests in `headers` and the announced `trailer`. Checksums in headers that are
    /// those of an object, as in CompleteMultipartUpload, are left to the archive.
    pub(super) fn for_request(
        headers: &HeaderMap,
        trailer: Option<ChecksumAlgorithm>,
        has_object_checksum: bool,
    ) -> Result<Self, Refusal> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let md5 = text("content-md5").map(|value| BASE64.decode(value).unwrap_or_default());
        let mut named = ChecksumAlgorithm::ALL.into_iter().filter(|_| !has_object_checksum);
        let mut named = std::iter::from_fn(|| {
            named.find_map(|algorithm| {
                let value = text(algorithm.header())?;
                let empty = Checksum { algorithm, value: Vec::new(), composite_parts: None };
                Some(Checksum::parse(algorithm, value).unwrap_or(empty))
            })
        });
        let checksum = named.next();
        if named.next().is_some() || (checksum.is_some() && trailer.is_some()) {
            let message = "Expecting a single x-amz-checksum- header or trailer";
            return Err(Refusal::new("InvalidRequest", StatusCode::BAD_REQUEST, message));
        }
        Ok(Self { md5, checksum, trailer })
    }

    /// Returns whether no digest protects the document.
    pub(super) const fn is_empty(&self) -> bool {
        self.md5.is_none() && self.checksum.is_none() && self.trailer.is_none()
    }

    /// Compares the digests with those of the whole document; `trailers` came after it.
    pub(super) fn check(self, body: &[u8], trailers: Option<&HeaderMap>) -> Result<(), BodyFault> {
        let trailer_checksum = self.trailer.map(|algorithm| {
            let value = trailers.and_then(|trailers| trailers.get(algorithm.header()));
            let parsed = value.and_then(|value| value.to_str().ok());
            parsed.and_then(|text| Checksum::parse(algorithm, text).ok()).unwrap_or(Checksum {
                algorithm,
                value: Vec::new(),
                composite_parts: None,
            })
        });
        let expected = self.checksum.or(trailer_checksum);
        let mut running = BodyDigest::new(expected.as_ref().map(|checksum| checksum.algorithm));
        running.update(body);
        let found = running.finish();
        let md5_matches = self.md5.is_none_or(|expected| expected == found.md5);
        if md5_matches && (expected.is_none() || expected == found.checksum) {
            Ok(())
        } else {
            Err(BodyFault::Digest)
        }
    }
}

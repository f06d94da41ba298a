//! End-to-end checksums: CRC-64/NVME on every body sent, and whatever the server offers on the way
//! back, so that a flipped bit is detected before a file gets its final name.
//!
//! Not the archive's own integrity: that is layers of CRCs, codes and authenticated encryption.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use crc_fast::CrcAlgorithm;
use md5::{Digest as _, Md5};
use reqwest::header::HeaderMap;

use super::error::S3Error;

/// Header of the checksum sent with every body.
pub(super) const CRC64_HEADER: &str = "x-amz-checksum-crc64nvme";

/// Returns the CRC-64/NVME of `bytes`.
pub(super) fn crc64(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes)
}

/// Combines the CRC-64/NVMEs of two adjacent pieces, given the length of the second.
pub(super) fn crc64_combine(first: u64, second: u64, second_bytes: u64) -> u64 {
    crc_fast::checksum_combine(CrcAlgorithm::Crc64Nvme, first, second, second_bytes)
}

/// Returns the Base64 text in which S3 carries a CRC-64.
pub(super) fn crc64_text(crc: u64) -> String {
    crc_text(crc, 8)
}

/// Returns the `Content-MD5` of a document.
pub(super) fn md5_text(bytes: &[u8]) -> String {
    BASE64.encode(Md5::digest(bytes))
}

fn crc_text(crc: u64, width: usize) -> String {
    #[expect(clippy::big_endian_bytes, reason = "S3 shows CRCs big-endian")]
    let bytes = crc.to_be_bytes();
    BASE64.encode(&bytes[bytes.len() - width..])
}

enum Hasher {
    Crc { digest: crc_fast::Digest, width: usize },
    Ring(ring::digest::Context),
    EntityTag(Md5),
    Nothing,
}

/// Verifies a body against the headers of its answer.
pub struct Verifier {
    algorithm: &'static str,
    expected: String,
    hasher: Hasher,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Verifier");
        shown.field("algorithm", &self.algorithm).field("expected", &self.expected);
        shown.finish_non_exhaustive()
    }
}

const ALGORITHMS: [(&str, &str); 5] = [
    (CRC64_HEADER, "CRC64NVME"),
    ("x-amz-checksum-crc32c", "CRC32C"),
    ("x-amz-checksum-crc32", "CRC32"),
    ("x-amz-checksum-sha256", "SHA256"),
    ("x-amz-checksum-sha1", "SHA1"),
];

impl Verifier {
    /// Chooses the cheapest full checksum of `headers`; without one, an ETag that is a plain MD5.
    ///
    /// Composite checksums (`value-parts`) say nothing about the whole body and are ignored.
    pub fn new(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("");
        for (header, algorithm) in ALGORITHMS {
            let expected = text(header);
            if is_checksum(expected, algorithm) {
                let hasher = new_hasher(algorithm);
                return Self { algorithm, expected: expected.to_owned(), hasher };
            }
        }
        let etag = text("etag").trim_matches('"').to_ascii_lowercase();
        let encryption = text("x-amz-server-side-encryption");
        let is_md5 = etag.len() == 32 && etag.bytes().all(|b| b.is_ascii_hexdigit());
        if is_md5 && matches!(encryption, "" | "AES256") {
            return Self {
                algorithm: "MD5",
                expected: etag,
                hasher: Hasher::EntityTag(Md5::new()),
            };
        }
        Self { algorithm: "none", expected: String::new(), hasher: Hasher::Nothing }
    }

    /// Whether there is a checksum to compare with.
    pub const fn has_checksum(&self) -> bool {
        !matches!(self.hasher, Hasher::Nothing)
    }

    /// Adds the next bytes of the body.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.hasher {
            Hasher::Crc { digest, .. } => digest.update(bytes),
            Hasher::Ring(context) => context.update(bytes),
            Hasher::EntityTag(md5) => md5.update(bytes),
            Hasher::Nothing => {}
        }
    }

    /// Compares the checksums; `target` names the object in the error.
    pub fn finish(self, target: &str) -> Result<(), S3Error> {
        let actual = match self.hasher {
            Hasher::Crc { digest, width } => crc_text(digest.finalize(), width),
            Hasher::Ring(context) => BASE64.encode(context.finish()),
            Hasher::EntityTag(md5) => hex::encode(md5.finalize()),
            Hasher::Nothing => return Ok(()),
        };
        if actual == self.expected {
            return Ok(());
        }
        let target = target.to_owned();
        Err(S3Error::Damaged { target, algorithm: self.algorithm, expected: self.expected, actual })
    }
}

/// Whether `text` is a checksum of a whole body. A wrong length means that the server names a
/// checksum it does not compute; then the next offer counts.
fn is_checksum(text: &str, algorithm: &str) -> bool {
    let bytes = match algorithm {
        "CRC64NVME" => 8,
        "SHA256" => 32,
        "SHA1" => 20,
        _ => 4,
    };
    BASE64.decode(text).is_ok_and(|value| value.len() == bytes)
}

fn new_hasher(algorithm: &str) -> Hasher {
    let crc = |algorithm, width| Hasher::Crc { digest: crc_fast::Digest::new(algorithm), width };
    match algorithm {
        "CRC64NVME" => crc(CrcAlgorithm::Crc64Nvme, 8),
        "CRC32C" => crc(CrcAlgorithm::Crc32Iscsi, 4),
        "CRC32" => crc(CrcAlgorithm::Crc32IsoHdlc, 4),
        "SHA256" => Hasher::Ring(ring::digest::Context::new(&ring::digest::SHA256)),
        _ => Hasher::Ring(ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY)),
    }
}

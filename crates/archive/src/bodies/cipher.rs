//! Encryption of bodies: one data key per body, and frames that decrypt independently.
//!
//! ```text
//! plaintext   |<-- 64 KiB -->|<-- 64 KiB -->|<- rest ->|
//! ciphertext  | frame 0 |tag | frame 1 |tag | last |tag|      frame i begins at i * 65,552
//! ```
//!
//! Frame `i` is AES-256-GCM with nonce `i` (96 bits, little-endian) and associated data `body id ||
//! last-frame flag`, so a frame that was moved, reordered or cut off is detected. A key encrypts
//! one body only, so no nonce is used for a second plaintext.

use fulgurite_units::ObjectId;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::limits::{FRAME_BYTES, TAG_BYTES};
use crate::{ArchiveError, Result};

/// Ciphertext bytes of one full frame.
pub(crate) const FRAME_CIPHER_BYTES: usize = FRAME_BYTES + TAG_BYTES;
/// Bytes by which a sealed entry is longer than its plaintext.
pub(crate) const ENTRY_OVERHEAD_BYTES: usize = NONCE_LEN + TAG_BYTES;

/// A 256-bit key; wiped when dropped, never shown.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct SecretKey([u8; 32]);

impl SecretKey {
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn random() -> Result<Self> {
        random_bytes().map(Self)
    }

    pub(crate) fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    fn cipher(&self) -> LessSafeKey {
        #[expect(clippy::expect_used, reason = "AES-256 takes every 32-byte key")]
        let key = UnboundKey::new(&AES_256_GCM, &self.0).expect("a key of 32 bytes");
        LessSafeKey::new(key)
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

/// Returns bytes from the operating system's entropy source.
#[expect(clippy::disallowed_methods, reason = "this is where entropy is drawn")]
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| ArchiveError::Internal {
        what: format!("the operating system returned no random bytes: {error}"),
    })?;
    Ok(bytes)
}

/// Returns the ciphertext length of a body of `plain` bytes.
pub(crate) const fn cipher_bytes(plain: u64) -> u64 {
    plain + plain.div_ceil(FRAME_BYTES as u64) * TAG_BYTES as u64
}

/// Encrypts and decrypts the frames of one body.
pub(crate) struct BodyCipher {
    key: LessSafeKey,
    body: ObjectId,
}

impl std::fmt::Debug for BodyCipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BodyCipher").field("body", &self.body).finish_non_exhaustive()
    }
}

impl BodyCipher {
    pub(crate) fn new(key: &SecretKey, body: ObjectId) -> Self {
        Self { key: key.cipher(), body }
    }

    fn aad(&self, is_last: bool) -> Aad<[u8; 17]> {
        let mut aad = [0; 17];
        aad[..16].copy_from_slice(&self.body.to_bytes());
        aad[16] = u8::from(is_last);
        Aad::from(aad)
    }

    /// Encrypts `plain` and appends its frames, the first of them frame `index`, to `out`. `is_end`
    /// means that the body ends with `plain`; otherwise it must be whole frames.
    pub(crate) fn encrypt(&self, index: u64, plain: &[u8], is_end: bool, out: &mut Vec<u8>) {
        assert!(is_end || plain.len().is_multiple_of(FRAME_BYTES), "only the last frame is short");
        let count = plain.len().div_ceil(FRAME_BYTES);
        out.reserve(plain.len() + count * TAG_BYTES);
        for (i, frame) in plain.chunks(FRAME_BYTES).enumerate() {
            let start = out.len();
            out.extend_from_slice(frame);
            let aad = self.aad(is_end && i + 1 == count);
            #[expect(clippy::expect_used, reason = "GCM fails only past 64 GiB a frame")]
            let tag = self
                .key
                .seal_in_place_separate_tag(frame_nonce(index + i as u64), aad, &mut out[start..])
                .expect("a frame is far below the cipher's limit");
            out.extend_from_slice(tag.as_ref());
        }
    }

    /// Decrypts whole frames in place, the first of them being frame `index` of a body of
    /// `frame_count` frames, and returns the plaintext, moved to the front of `buffer`.
    ///
    /// # Errors
    /// `Corrupt` when a frame is not what was written.
    pub(crate) fn decrypt<'a>(
        &self,
        index: u64,
        frame_count: u64,
        buffer: &'a mut [u8],
    ) -> Result<&'a mut [u8]> {
        let mut read = 0;
        let mut written = 0;
        let mut frame = index;
        while read < buffer.len() {
            let end = buffer.len().min(read + FRAME_CIPHER_BYTES);
            let aad = self.aad(frame + 1 == frame_count);
            let plain = self
                .key
                .open_in_place(frame_nonce(frame), aad, &mut buffer[read..end])
                .map_err(|_| ArchiveError::Corrupt {
                    what: format!("frame {frame} of body {} fails its authentication", self.body),
                })?
                .len();
            buffer.copy_within(read..read + plain, written);
            written += plain;
            read = end;
            frame += 1;
        }
        Ok(&mut buffer[..written])
    }
}

fn frame_nonce(index: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[..8].copy_from_slice(&index.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// Seals `plain` under `key` with a random nonce that no frame can have (its last byte is 0xFF).
pub(crate) fn seal_entry(key: &SecretKey, context: ObjectId, plain: &[u8]) -> Result<Vec<u8>> {
    let mut nonce: [u8; NONCE_LEN] = random_bytes()?;
    nonce[NONCE_LEN - 1] = 0xFF;
    let mut sealed = Vec::with_capacity(plain.len() + ENTRY_OVERHEAD_BYTES);
    sealed.extend_from_slice(&nonce);
    sealed.extend_from_slice(plain);
    let aad = Aad::from(context.to_bytes());
    let tag = key
        .cipher()
        .seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            aad,
            &mut sealed[NONCE_LEN..],
        )
        .map_err(|_| ArchiveError::Internal { what: "an entry is too long".to_owned() })?;
    sealed.extend_from_slice(tag.as_ref());
    Ok(sealed)
}

/// Opens what [`seal_entry`] sealed; returns `None` when key, context or bytes differ.
pub(crate) fn open_entry(key: &SecretKey, context: ObjectId, sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, rest) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let mut buffer = rest.to_vec();
    let plain = key
        .cipher()
        .open_in_place(
            Nonce::assume_unique_for_key(*nonce),
            Aad::from(context.to_bytes()),
            &mut buffer,
        )
        .ok()?
        .len();
    buffer.truncate(plain);
    Some(buffer)
}

#[cfg(test)]
mod tests;

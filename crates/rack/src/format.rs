//! The bytes of a stack, version 1, as in docs/formats/stack.md: header, fragments each with its
//! checksum, trailer.
//!
//! ```text
//! | header, n x 4 KiB | fragment 0 | sum | fragment 1 | sum | ... | trailer, 64 |
//!   who this is, the   128 KiB, the last                         length, sequence,
//!   blob's entry       one of a blob shorter                     sum of the blob
//! ```
//!
//! Pure functions on bytes. `stack` reads and writes files, `blob` handles all stacks of a blob.

use crc_fast::{CrcAlgorithm, Digest};
use fulgurite_units::{BlobId, ByteCount, RackId};

use crate::limits::{CODING_STACKS_MAX, ENTRY_BYTES_MAX};
use crate::{Fault, RackError, Result};

/// Bytes of each fragment but those of a blob's last stripe (Pelican, OSDI 2014, section 3).
pub const FRAGMENT_BYTES: usize = 128 << 10;
/// Bytes of a checksum.
pub const SUM_BYTES: usize = 8;
/// Bytes of a trailer.
pub const TRAILER_BYTES: usize = 64;
/// A header is padded to a multiple of this, so that fragments begin on a page.
pub const HEADER_ALIGN: usize = 4096;
/// The version that this program writes.
pub const VERSION: u8 = 1;

const HEADER_MAGIC: [u8; 8] = *b"FULGSTCK";
const TRAILER_MAGIC: [u8; 8] = *b"FULGSTKE";
/// Bytes of a header before its entry.
const HEADER_FIXED: usize = 56;

/// The erasure code of a blob: how many stacks it has, and how many of them may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coding {
    information: u8,
    redundancy: u8,
}

impl Coding {
    /// Pelican's: 15 stacks of information and 3 of redundancy.
    pub const PELICAN: Self = Self { information: 15, redundancy: 3 };

    /// Creates a coding with this many information and redundancy stacks.
    ///
    /// # Errors
    /// [`RackError::Invalid`] when one of them is zero, or the sum is too large.
    pub fn new(information: u8, redundancy: u8) -> Result<Self> {
        let both = usize::from(information) + usize::from(redundancy);
        if information == 0 || redundancy == 0 || both > CODING_STACKS_MAX {
            let detail = format!(
                "a blob cannot lie in {information} + {redundancy} stacks: each is at least 1, and \
                 both are at most {CODING_STACKS_MAX}"
            );
            return Err(RackError::Invalid { detail });
        }
        Ok(Self { information, redundancy })
    }

    /// Number of information stacks: how many are enough to read a blob.
    #[must_use]
    pub const fn information(self) -> u8 {
        self.information
    }

    /// Number of redundancy stacks: how many may be lost.
    #[must_use]
    pub const fn redundancy(self) -> u8 {
        self.redundancy
    }

    /// Number of stacks of a blob.
    #[must_use]
    pub const fn stacks(self) -> u8 {
        self.information + self.redundancy
    }
}

impl std::fmt::Display for Coding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}+{}", self.information, self.redundancy)
    }
}

/// How the bytes of a blob are divided into stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripes {
    coding: Coding,
    length: u64,
}

impl Stripes {
    /// Returns the stripes of a blob of `length` bytes.
    #[must_use]
    pub const fn new(coding: Coding, length: ByteCount) -> Self {
        Self { coding, length: length.get() }
    }

    /// Bytes of the blob.
    #[must_use]
    pub const fn length(self) -> ByteCount {
        ByteCount::new(self.length)
    }

    /// User bytes of each stripe but the last.
    #[must_use]
    pub fn full_stripe_bytes(self) -> u64 {
        u64::from(self.coding.information) * bytes(FRAGMENT_BYTES)
    }

    /// Number of stripes; none for an empty blob.
    #[must_use]
    pub fn count(self) -> u64 {
        self.length.div_ceil(self.full_stripe_bytes())
    }

    /// Returns the user bytes of stripe `stripe`; zero beyond the last.
    #[must_use]
    pub fn data_bytes(self, stripe: u64) -> usize {
        let before = stripe.saturating_mul(self.full_stripe_bytes());
        let here = self.length.saturating_sub(before).min(self.full_stripe_bytes());
        usize::try_from(here).unwrap_or(usize::MAX)
    }

    /// Returns the bytes of each fragment of stripe `stripe`. Those of the last share its bytes
    /// evenly.
    #[must_use]
    pub fn fragment_bytes(self, stripe: u64) -> usize {
        self.data_bytes(stripe).div_ceil(usize::from(self.coding.information))
    }

    /// Returns where the fragment of stripe `stripe` begins in a stack, relative to the end of its
    /// header.
    #[must_use]
    pub fn offset(self, stripe: u64) -> u64 {
        stripe * bytes(FRAGMENT_BYTES + SUM_BYTES)
    }

    /// Returns the bytes of a whole stack with a header of `header_bytes`.
    #[must_use]
    pub fn stack_bytes(self, header_bytes: u64) -> u64 {
        let fragments = match self.count().checked_sub(1) {
            None => 0,
            Some(last) => self.offset(last) + bytes(self.fragment_bytes(last) + SUM_BYTES),
        };
        header_bytes + fragments + bytes(TRAILER_BYTES)
    }
}

/// Converts a length in memory to one on a disk.
pub(crate) fn bytes(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The header of a stack, in front of its fragments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The rack it belongs to.
    pub rack: RackId,
    /// The blob it belongs to.
    pub blob: BlobId,
    /// How the blob is coded.
    pub coding: Coding,
    /// Which of the blob's stacks it is; information first.
    pub index: u8,
    /// The entry supplied by the blob's writer, the same in each stack: at most
    /// [`ENTRY_BYTES_MAX`].
    pub entry: Vec<u8>,
}

impl Header {
    /// Returns the header of the blob's stack `index`.
    #[must_use]
    pub fn with_index(&self, index: u8) -> Self {
        Self { index, ..self.clone() }
    }

    /// Its length on the disk.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (HEADER_FIXED + self.entry.len() + SUM_BYTES).next_multiple_of(HEADER_ALIGN)
    }

    /// Encodes the header.
    ///
    /// # Errors
    /// [`RackError::Invalid`] when the entry is too long.
    pub fn encode(&self) -> Result<Vec<u8>> {
        if self.entry.len() > ENTRY_BYTES_MAX {
            let detail = format!(
                "an entry of {} bytes is too long for a stack: {ENTRY_BYTES_MAX} are allowed",
                self.entry.len()
            );
            return Err(RackError::Invalid { detail });
        }
        let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
        let mut bytes = Vec::with_capacity(self.bytes());
        bytes.extend(HEADER_MAGIC);
        bytes.extend([VERSION, self.coding.information, self.coding.redundancy, self.index]);
        bytes.extend(length(FRAGMENT_BYTES));
        bytes.extend(self.rack.to_bytes());
        bytes.extend(self.blob.to_bytes());
        bytes.extend(length(self.bytes()));
        bytes.extend(length(self.entry.len()));
        assert_eq!(bytes.len(), HEADER_FIXED, "fixed fields of a header");
        bytes.extend(&self.entry);
        bytes.resize(self.bytes() - SUM_BYTES, 0);
        let sum = sum(&[&bytes]);
        bytes.extend(sum.to_le_bytes());
        Ok(bytes)
    }

    /// Returns the length of the header that begins with these bytes, [`HEADER_ALIGN`] or more of
    /// them.
    ///
    /// # Errors
    /// The fault, if it is no valid header.
    pub fn length(beginning: &[u8]) -> std::result::Result<usize, Fault> {
        let mut fields = Fields(beginning);
        if fields.array::<8>()? != HEADER_MAGIC {
            return Err(Fault::NoStack);
        }
        let version = fields.array::<1>()?[0];
        if version != VERSION {
            return Err(Fault::Newer { version });
        }
        let at = HEADER_FIXED - 8;
        let length = Fields(beginning.get(at..).unwrap_or_default()).u32()?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let longest = (HEADER_FIXED + ENTRY_BYTES_MAX + SUM_BYTES).next_multiple_of(HEADER_ALIGN);
        if length == 0 || length > longest || !length.is_multiple_of(HEADER_ALIGN) {
            return Err(Fault::Damaged { detail: format!("a header of {length} bytes") });
        }
        Ok(length)
    }

    /// Parses a header of as many bytes as [`Self::length`] returned.
    ///
    /// # Errors
    /// The fault.
    pub fn parse(header: &[u8]) -> std::result::Result<Self, Fault> {
        let damaged = |detail: &str| Fault::Damaged { detail: detail.to_owned() };
        let length = Self::length(header)?;
        let checked = header.split_last_chunk::<SUM_BYTES>();
        let (body, expected) = checked.ok_or_else(|| damaged("a cut header"))?;
        if header.len() != length || sum(&[body]) != u64::from_le_bytes(*expected) {
            return Err(damaged("the header's checksum"));
        }
        let mut fields = Fields(body);
        let _magic = fields.array::<8>()?;
        let [_version, information, redundancy, index] = fields.array()?;
        let fragment = fields.u32()?;
        let (rack, blob) = (fields.array()?, fields.array()?);
        let (_length, entry) = (fields.u32()?, fields.u32()?);
        let entry = usize::try_from(entry).unwrap_or(usize::MAX);
        let coding = Coding::new(information, redundancy)
            .map_err(|_| damaged("its header names an impossible coding"))?;
        if usize::try_from(fragment) != Ok(FRAGMENT_BYTES) || index >= coding.stacks() {
            return Err(damaged("its header names impossible fragments or an impossible index"));
        }
        let entry = fields.0.get(..entry).ok_or_else(|| damaged("a cut entry"))?.to_vec();
        let (rack, blob) = (RackId::from_bytes(rack), BlobId::from_bytes(blob));
        Ok(Self { rack, blob, coding, index, entry })
    }
}

/// The trailer of a stack, behind its fragments. A stack without one was never finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// The blob it belongs to.
    pub blob: BlobId,
    /// Which of the blob's stacks it is.
    pub index: u8,
    /// Bytes of the blob.
    pub length: ByteCount,
    /// Of two blobs with the same key, the one with the higher number was written later.
    pub sequence: u64,
    /// CRC-64/NVME of the blob's bytes.
    pub sum: u64,
}

impl Trailer {
    /// Encodes the trailer.
    #[must_use]
    pub fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = Vec::with_capacity(TRAILER_BYTES);
        bytes.extend(TRAILER_MAGIC);
        bytes.extend(self.blob.to_bytes());
        bytes.extend([self.index, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(self.length.get().to_le_bytes());
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(self.sum.to_le_bytes());
        bytes.extend(sum(&[&bytes]).to_le_bytes());
        std::array::from_fn(|at| bytes[at])
    }

    /// Parses a trailer.
    ///
    /// # Errors
    /// The fault.
    pub fn parse(trailer: &[u8; TRAILER_BYTES]) -> std::result::Result<Self, Fault> {
        let mut fields = Fields(trailer);
        if fields.array::<8>()? != TRAILER_MAGIC {
            return Err(Fault::Unfinished);
        }
        let blob = BlobId::from_bytes(fields.array()?);
        let [index, ..] = fields.array::<8>()?;
        let (length, sequence, of_blob) = (fields.u64()?, fields.u64()?, fields.u64()?);
        if sum(&[&trailer[..TRAILER_BYTES - SUM_BYTES]]) != fields.u64()? {
            return Err(Fault::Damaged { detail: "the trailer's checksum".to_owned() });
        }
        Ok(Self { blob, index, length: ByteCount::new(length), sequence, sum: of_blob })
    }
}

/// Returns the checksum of a fragment. It covers the fragment's position as well as its bytes, so a
/// misplaced fragment is detected like a damaged one.
#[must_use]
pub fn fragment_sum(blob: BlobId, index: u8, stripe: u64, fragment: &[u8]) -> u64 {
    sum(&[&blob.to_bytes(), &[index], &stripe.to_le_bytes(), fragment])
}

/// Returns a CRC-64/NVME digest to be updated.
#[must_use]
pub fn running_sum() -> Digest {
    Digest::new(CrcAlgorithm::Crc64Nvme)
}

/// Returns the CRC-64/NVME of the concatenated parts.
fn sum(parts: &[&[u8]]) -> u64 {
    let mut digest = running_sum();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize()
}

/// Bytes that are read from the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> std::result::Result<[u8; N], Fault> {
        let split = self.0.split_first_chunk::<N>();
        let (field, rest) = split.ok_or(Fault::NoStack)?;
        self.0 = rest;
        Ok(*field)
    }

    fn u32(&mut self) -> std::result::Result<u32, Fault> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> std::result::Result<u64, Fault> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}

#[cfg(test)]
mod tests;

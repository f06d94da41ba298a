//! The header of a fragment, byte by byte (docs/formats/fragment.md). It identifies the fragment
//! even if only the blob is left.

use std::fmt;

use fulgurite_units::{ByteCount, UnixTime};

use super::blocks::{BLOCK_BYTES, Place};
use crate::stores::checksum::{SUM_BYTES, sum};
use crate::stores::limits::{CHUNK_BYTES_MAX, HEADER_BYTES_MAX, OBJECT_KEY_BYTES_MAX};

/// The version that is written.
pub const VERSION: u8 = 1;

const MAGIC: [u8; 8] = *b"FULGFRAG";
/// Bytes of a header before the object's key.
const FIXED: usize = 8 + 4 + 4 + 16 + 8 + 4 + 4 + 8 + 8 + 4 + 4 + 8;
/// A header is padded to a multiple of this.
const ALIGN: usize = 64;

/// Id of a put: a unique random number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PutId(u128);

impl PutId {
    /// Creates the id with this number.
    #[must_use]
    pub const fn new(number: u128) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u128 {
        self.0
    }

    /// Returns its stored form.
    pub(super) const fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }
}

impl fmt::Display for PutId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for PutId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PutId({self})")
    }
}

/// A defect of a fragment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It does not start like a fragment.
    #[error("it is not a fragment")]
    NoFragment,
    /// A newer program wrote it.
    #[error("it has format version {version}, which this program does not support")]
    Newer {
        /// The version in its header.
        version: u8,
    },
    /// It has the wrong length.
    #[error("it has {have} bytes instead of {need}")]
    WrongLength {
        /// Its size in bytes.
        have: u64,
        /// The expected size.
        need: u64,
    },
    /// Its header is damaged.
    #[error("its header is damaged: {what}")]
    Header {
        /// The damaged part.
        what: String,
    },
    /// It is a valid fragment, but not the expected one.
    #[error("it is another fragment: {what} is {found}, not {expected}")]
    Foreign {
        /// The field that differs.
        what: &'static str,
        /// The value found.
        found: String,
        /// The expected value.
        expected: String,
    },
    /// A block is not what was written for this position.
    #[error("block {block} is not what was written for this put, chunk and fragment")]
    Block {
        /// Its number, from zero.
        block: u64,
    },
    /// No such fragment can exist: a write or a range read had invalid arguments.
    #[error("invalid fragment: {what}")]
    Unwritable {
        /// The reason.
        what: String,
    },
}

/// Header of a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The put it belongs to.
    pub put: PutId,
    /// The writer's name of the object; any bytes.
    pub object: Vec<u8>,
    /// Size of the whole object in bytes.
    pub object_bytes: ByteCount,
    /// Offset of the chunk in the object.
    pub chunk_offset: ByteCount,
    /// Number of the chunk in the object.
    pub chunk: u32,
    /// Size of the chunk in bytes.
    pub chunk_bytes: u32,
    /// Index of the fragment in the chunk: those below `data` are pieces of the chunk itself.
    pub fragment: u8,
    /// Number of data fragments: as many decode the chunk.
    pub data: u8,
    /// Number of parity fragments.
    pub parity: u8,
    /// Size of the payload in bytes.
    pub payload_bytes: u32,
    /// When the put began, by the writer's clock.
    pub time: UnixTime,
}

impl Header {
    /// Returns the position of the fragment.
    #[must_use]
    pub const fn place(&self) -> Place {
        Place { put: self.put, chunk: self.chunk, fragment: self.fragment }
    }

    /// Size of the header in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        Self::bytes_with(self.object.len())
    }

    /// Returns the size of a header for an object key of this length.
    #[must_use]
    pub const fn bytes_with(object_key_bytes: usize) -> usize {
        (FIXED + object_key_bytes + SUM_BYTES).next_multiple_of(ALIGN)
    }

    /// Checks the counts of a fragment. Returns what is wrong with them, if anything.
    fn fault(&self) -> Option<String> {
        let fragments = u16::from(self.data) + u16::from(self.parity);
        let end = self.chunk_offset.get().checked_add(u64::from(self.chunk_bytes));
        let is_inside = end.is_some_and(|end| end <= self.object_bytes.get());
        if self.data == 0 || self.parity == 0 || fragments > 255 {
            return Some(format!("{} + {} fragments", self.data, self.parity));
        }
        if u16::from(self.fragment) >= fragments {
            return Some(format!("fragment {} of {fragments}", self.fragment));
        }
        if self.chunk_bytes == 0 || u64::from(self.chunk_bytes) > CHUNK_BYTES_MAX || !is_inside {
            return Some(format!("a chunk of {} bytes", self.chunk_bytes));
        }
        if self.payload_bytes != self.chunk_bytes.div_ceil(u32::from(self.data)) {
            return Some(format!("a payload of {} bytes", self.payload_bytes));
        }
        let key = self.object.len();
        (key > OBJECT_KEY_BYTES_MAX).then(|| format!("an object's key of {key} bytes"))
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, Fault> {
        if let Some(what) = self.fault() {
            return Err(Fault::Unwritable { what });
        }
        let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
        let mut bytes = Vec::with_capacity(self.bytes());
        bytes.extend(MAGIC);
        bytes.extend([VERSION, self.data, self.parity, self.fragment]);
        bytes.extend(length(self.bytes()));
        bytes.extend(self.put.to_bytes());
        bytes.extend(self.object_bytes.get().to_le_bytes());
        bytes.extend(self.chunk.to_le_bytes());
        bytes.extend(self.chunk_bytes.to_le_bytes());
        bytes.extend(self.chunk_offset.get().to_le_bytes());
        bytes.extend(self.time.as_millis().to_le_bytes());
        bytes.extend(self.payload_bytes.to_le_bytes());
        bytes.extend(BLOCK_BYTES.to_le_bytes());
        bytes.extend(length(self.object.len()));
        bytes.extend([0; 4]);
        assert_eq!(bytes.len(), FIXED, "fixed fields of a header");
        bytes.extend(&self.object);
        bytes.resize(self.bytes() - SUM_BYTES, 0);
        let sum = sum(&[&bytes]);
        bytes.extend(sum.to_le_bytes());
        Ok(bytes)
    }

    /// Parses the header at the start of a fragment.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(fragment: &[u8]) -> Result<Self, Fault> {
        let have = u64::try_from(fragment.len()).unwrap_or(u64::MAX);
        let too_short = |need: usize| Fault::WrongLength {
            have,
            need: u64::try_from(need).unwrap_or(u64::MAX),
        };
        let mut fields = Fields(fragment);
        if fields.array::<8>() != Some(MAGIC) {
            return Err(Fault::NoFragment);
        }
        let [version, data, parity, number] = fields.array().ok_or_else(|| too_short(FIXED))?;
        if version != VERSION {
            return Err(Fault::Newer { version });
        }
        let length = fields.u32().and_then(|length| usize::try_from(length).ok());
        let length = length.ok_or_else(|| too_short(FIXED))?;
        let lengths = FIXED + SUM_BYTES..=HEADER_BYTES_MAX;
        if !lengths.contains(&length) || !length.is_multiple_of(ALIGN) {
            return Err(Fault::Header { what: format!("it states a length of {length} bytes") });
        }
        let whole = fragment.get(..length).ok_or_else(|| too_short(length))?;
        let (body, expected) =
            whole.split_last_chunk::<SUM_BYTES>().ok_or_else(|| too_short(length))?;
        if sum(&[body]) != u64::from_le_bytes(*expected) {
            return Err(Fault::Header { what: "its checksum does not match".to_owned() });
        }
        let header = fields.rest(number, data, parity).ok_or_else(|| too_short(length))?;
        match header.fault() {
            Some(what) => Err(Fault::Header { what }),
            None if header.bytes() != length => {
                Err(Fault::Header { what: format!("it states a length of {length} bytes") })
            }
            None => Ok(header),
        }
    }

    /// Checks that the fragment is the one of `expected`, except for its time.
    ///
    /// # Errors
    /// [`Fault::Foreign`], with the field that differs.
    pub fn check(&self, expected: &Self) -> Result<(), Fault> {
        let shown = |header: &Self| {
            let counts = format!("{} + {}", header.data, header.parity);
            let chunk = format!("{} bytes at {}", header.chunk_bytes, header.chunk_offset.get());
            [
                ("the put", header.put.to_string()),
                ("the object", header.object.escape_ascii().to_string()),
                ("the object's size", header.object_bytes.get().to_string()),
                ("the chunk", header.chunk.to_string()),
                ("the chunk's span", chunk),
                ("the code", counts),
                ("the fragment", header.fragment.to_string()),
                ("the payload's size", header.payload_bytes.to_string()),
            ]
        };
        for ((what, found), (_, expected)) in shown(self).into_iter().zip(shown(expected)) {
            if found != expected {
                return Err(Fault::Foreign { what, found, expected });
            }
        }
        Ok(())
    }
}

/// Bytes that are read from the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Parses the fields after the length.
    fn rest(mut self, fragment: u8, data: u8, parity: u8) -> Option<Header> {
        let put = PutId(u128::from_le_bytes(self.array()?));
        let object_bytes = ByteCount::new(self.u64()?);
        let (chunk, chunk_bytes) = (self.u32()?, self.u32()?);
        let chunk_offset = ByteCount::new(self.u64()?);
        let time = UnixTime::from_millis(self.u64()?);
        let (payload_bytes, block_bytes) = (self.u32()?, self.u32()?);
        let (key, _) = (self.u32()?, self.u32()?);
        if block_bytes != BLOCK_BYTES {
            return None;
        }
        let object = self.0.get(..usize::try_from(key).ok()?)?.to_vec();
        Some(Header {
            put,
            object,
            object_bytes,
            chunk_offset,
            chunk,
            chunk_bytes,
            fragment,
            data,
            parity,
            payload_bytes,
            time,
        })
    }
}

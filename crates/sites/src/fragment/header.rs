//! The header of a fragment, byte by byte (docs/formats/fragment.md): whoever finds the blob alone
//! knows from it what it is of.

use std::fmt;

use fulgurite_units::{ByteCount, UnixTime};

use super::blocks::{BLOCK_BYTES, Place};
use crate::limits::{CHUNK_BYTES_MAX, HEADER_BYTES_MAX, OBJECT_KEY_BYTES_MAX};
use crate::sum::{SUM_BYTES, sum};

/// The version that is written.
pub const VERSION: u8 = 1;

const MAGIC: [u8; 8] = *b"FULGFRAG";
/// Bytes of a header before the object's key.
const FIXED: usize = 8 + 4 + 4 + 16 + 8 + 4 + 4 + 8 + 8 + 4 + 4 + 8;
/// A header is padded to a multiple of this.
const ALIGN: usize = 64;

/// The id of one put: a random number that no other put has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PutId(u128);

impl PutId {
    /// The id with this number.
    #[must_use]
    pub const fn new(number: u128) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u128 {
        self.0
    }

    /// As it is stored.
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

/// What is wrong with a fragment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It does not begin as a fragment does.
    #[error("it is no fragment")]
    NoFragment,
    /// A newer program wrote it.
    #[error("it is a fragment of version {version}, which this program does not know")]
    Newer {
        /// The version that it says.
        version: u8,
    },
    /// It is not as long as it should be.
    #[error("it is cut: {have} bytes, and {need} should be there")]
    Cut {
        /// Bytes that there are.
        have: u64,
        /// Bytes that there should be.
        need: u64,
    },
    /// Its header is not what was written.
    #[error("its header is damaged: {what}")]
    Header {
        /// What of it.
        what: String,
    },
    /// It is a fragment, and not the one that belongs here.
    #[error("it is another fragment: {what} is {found}, and {expected} was to be found")]
    Stranger {
        /// What says so.
        what: &'static str,
        /// As it is.
        found: String,
        /// As it should be.
        expected: String,
    },
    /// A block is not what was written for this place.
    #[error("block {block} is not what was written for this put, chunk and fragment")]
    Block {
        /// Its number, from zero.
        block: u64,
    },
    /// There is no such fragment: it was to be written, or a part of it read, that it cannot have.
    #[error("there is no such fragment: {what}")]
    Unwritable {
        /// Why.
        what: String,
    },
}

/// What a fragment says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The put that it is of.
    pub put: PutId,
    /// How the writer calls the object; any bytes.
    pub object: Vec<u8>,
    /// Bytes of the whole object.
    pub object_bytes: ByteCount,
    /// Where in the object the chunk begins.
    pub chunk_offset: ByteCount,
    /// Which chunk of the object it is of.
    pub chunk: u32,
    /// Bytes of the chunk.
    pub chunk_bytes: u32,
    /// Which fragment of the chunk it is: those below `data` are the chunk itself, cut in pieces.
    pub fragment: u8,
    /// How many fragments give the chunk back.
    pub data: u8,
    /// How many there are beyond.
    pub parity: u8,
    /// Bytes of the payload.
    pub payload_bytes: u32,
    /// When the put began, by the writer's clock.
    pub time: UnixTime,
}

impl Header {
    /// Where the fragment belongs.
    #[must_use]
    pub const fn place(&self) -> Place {
        Place { put: self.put, chunk: self.chunk, fragment: self.fragment }
    }

    /// Bytes of the header.
    #[must_use]
    pub fn bytes(&self) -> usize {
        Self::bytes_with(self.object.len())
    }

    /// Bytes of a header with the key of an object of so many bytes.
    #[must_use]
    pub const fn bytes_with(object_key_bytes: usize) -> usize {
        (FIXED + object_key_bytes + SUM_BYTES).next_multiple_of(ALIGN)
    }

    /// Whether the counts make a fragment; what is wrong with them.
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

    /// The header that a fragment begins with.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(fragment: &[u8]) -> Result<Self, Fault> {
        let have = u64::try_from(fragment.len()).unwrap_or(u64::MAX);
        let cut = |need: usize| Fault::Cut { have, need: u64::try_from(need).unwrap_or(u64::MAX) };
        let mut fields = Fields(fragment);
        if fields.array::<8>() != Some(MAGIC) {
            return Err(Fault::NoFragment);
        }
        let [version, data, parity, number] = fields.array().ok_or_else(|| cut(FIXED))?;
        if version != VERSION {
            return Err(Fault::Newer { version });
        }
        let length = fields.u32().and_then(|length| usize::try_from(length).ok());
        let length = length.ok_or_else(|| cut(FIXED))?;
        if length < FIXED + SUM_BYTES || length > HEADER_BYTES_MAX || !length.is_multiple_of(ALIGN) {
            return Err(Fault::Header { what: format!("it says that it has {length} bytes") });
        }
        let whole = fragment.get(..length).ok_or_else(|| cut(length))?;
        let (body, expected) = whole.split_last_chunk::<SUM_BYTES>().ok_or_else(|| cut(length))?;
        if sum(&[body]) != u64::from_le_bytes(*expected) {
            return Err(Fault::Header { what: "its sum".to_owned() });
        }
        let header = fields.rest(number, data, parity).ok_or_else(|| cut(length))?;
        match header.fault() {
            Some(what) => Err(Fault::Header { what }),
            None if header.bytes() != length => {
                Err(Fault::Header { what: format!("it says that it has {length} bytes") })
            }
            None => Ok(header),
        }
    }

    /// Whether the fragment is the one that `expected` is of, but for its time.
    ///
    /// # Errors
    /// [`Fault::Stranger`], which says by what.
    pub fn check(&self, expected: &Self) -> Result<(), Fault> {
        let shown = |header: &Self| {
            let counts = format!("{} + {}", header.data, header.parity);
            let chunk = format!("{} bytes at {}", header.chunk_bytes, header.chunk_offset.get());
            [
                ("the put", header.put.to_string()),
                ("the object", header.object.escape_ascii().to_string()),
                ("the object's size", header.object_bytes.get().to_string()),
                ("the chunk", header.chunk.to_string()),
                ("the chunk's place", chunk),
                ("the code", counts),
                ("the fragment", header.fragment.to_string()),
                ("the payload's size", header.payload_bytes.to_string()),
            ]
        };
        for ((what, found), (_, expected)) in shown(self).into_iter().zip(shown(expected)) {
            if found != expected {
                return Err(Fault::Stranger { what, found, expected });
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

    /// What comes behind the length.
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

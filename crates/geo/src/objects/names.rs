//! Names of rows in tables and of fragments in blob stores.
//!
//! ```text
//! o/KEY                 row of an object: its key, with characters that stores reject as =XX
//! map                   row of the site map
//! s/WRITE               row of a stripe that several objects share
//! h/HEX                 a hint: an object that needs repair
//! f/WRITE/CHUNK.INDEX   a fragment: its write, its chunk, its index
//! counts                start counts that reveal older copies of tables and blobs
//! r/COUNT               the start count of a site's blobs
//! ```

use fulgurite_geo_core::{Fragment, WriteId};

use crate::objects::limits::KEY_BYTES_MAX;
use crate::objects::{GeoError, Result};
use crate::stores::Key;

/// Prefix of the rows of objects.
const OBJECTS: &str = "o";
/// Prefix of fragments.
const FRAGMENTS: &str = "f";
/// Prefix of the rows of stripes.
const STRIPES: &str = "s";
/// Prefix of hints.
const HINTS: &str = "h";

/// Prefix of start counts of a site's blobs.
const COUNTS: &str = "r";

/// Key under which the sites store their map. No object has it: object keys cannot contain this
/// byte.
pub(crate) const MAP: &str = "\0map";

/// Prefix of the keys of stripes, which are objects that clients cannot name.
const STRIPE: &str = "\0stripe/";

/// Returns the key of a stripe.
pub(crate) fn stripe(write: WriteId) -> String {
    format!("{STRIPE}{write}")
}

/// Returns the stripe that a key belongs to, if it is the key of one.
pub(crate) fn parse_stripe(key: &str) -> Option<WriteId> {
    let write = u128::from_str_radix(key.strip_prefix(STRIPE)?, 16).ok()?;
    Some(WriteId(write))
}

fn key(text: String) -> Result<Key> {
    let invalid = |error: crate::stores::KeyError| GeoError::Invalid { reason: error.to_string() };
    Key::new(text).map_err(invalid)
}

/// Escapes the key of an object to characters that every store accepts.
fn escape(key: &str) -> String {
    let mut text = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("={byte:02X}"));
        }
    }
    text
}

/// Returns the row name of an object.
pub(crate) fn row(object: &str) -> Result<Key> {
    if object == MAP {
        return key("map".into());
    }
    if let Some(stripe) = object.strip_prefix(STRIPE) {
        return key(format!("{STRIPES}/{stripe}"));
    }
    if object.len() > KEY_BYTES_MAX {
        let reason = format!(
            "a key of {} bytes is too long; at most {KEY_BYTES_MAX} are allowed",
            object.len()
        );
        return Err(GeoError::Invalid { reason });
    }
    key(format!("{OBJECTS}/{}", escape(object)))
}

/// Returns the prefix of the rows of objects below a folder, or of all objects.
pub(crate) fn rows(folder: Option<&str>) -> Result<Key> {
    match folder {
        None | Some("") => key(OBJECTS.into()),
        Some(folder) => key(format!("{OBJECTS}/{}", escape(folder))),
    }
}

/// Returns the prefix of the rows of all stripes.
pub(crate) fn stripes() -> Result<Key> {
    key(STRIPES.into())
}

/// Returns the object key of a row.
pub(crate) fn object(row: &Key) -> Option<String> {
    if let Some(stripe) = row.as_str().strip_prefix(STRIPES).and_then(|rest| rest.strip_prefix('/'))
    {
        return Some(format!("{STRIPE}{stripe}"));
    }
    let text = row.as_str().strip_prefix(OBJECTS)?.strip_prefix('/')?;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'=' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// Returns the blob name of a chunk of a fragment.
pub(crate) fn blob(fragment: Fragment, chunk: u32) -> Result<Key> {
    key(format!("{FRAGMENTS}/{}/{chunk:08x}.{:02x}", fragment.write, fragment.index))
}

/// Returns the prefix of all fragments.
pub(crate) fn blobs() -> Result<Key> {
    key(FRAGMENTS.into())
}

/// Parses the name of a fragment's blob: its write, chunk and index.
pub(crate) fn parse_blob(blob: &Key) -> Option<(WriteId, u32, u8)> {
    let rest = blob.as_str().strip_prefix(FRAGMENTS)?.strip_prefix('/')?;
    let (write, rest) = rest.split_once('/')?;
    let (chunk, index) = rest.split_once('.')?;
    let write = u128::from_str_radix(write, 16).ok()?;
    let chunk = u32::from_str_radix(chunk, 16).ok()?;
    Some((WriteId(write), chunk, u8::from_str_radix(index, 16).ok()?))
}

/// Returns the name of the row of a site's start counts.
pub(crate) fn starts() -> Result<Key> {
    key("counts".into())
}

/// Returns the blob name of a start count.
pub(crate) fn start(count: u64) -> Result<Key> {
    key(format!("{COUNTS}/{count:016x}"))
}

/// Returns the prefix of all start counts of blobs.
pub(crate) fn starts_of_blobs() -> Result<Key> {
    key(COUNTS.into())
}

/// Parses a start count from the name of its blob.
pub(crate) fn parse_start(blob: &Key) -> Option<u64> {
    let count = blob.as_str().strip_prefix(COUNTS)?.strip_prefix('/')?;
    u64::from_str_radix(count, 16).ok()
}

/// Returns the name of a writer's hint.
pub(crate) fn hint(number: u128) -> Result<Key> {
    key(format!("{HINTS}/{number:032x}"))
}

/// Returns the prefix of all hints.
pub(crate) fn hints() -> Result<Key> {
    key(HINTS.into())
}

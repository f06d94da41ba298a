//! What rows and fragments are called in tables and stores of blobs.
//!
//! ```text
//! o/KEY                 the row of an object: its key, letters that stores do not take as =XX
//! map                   the row of the map of sites
//! s/WRITE               the row of a stripe that several objects share
//! h/HEX                 a hint: which object has to be healed
//! f/WRITE/CHUNK.INDEX   a fragment: of a write, of a chunk, which one
//! counts                counts by which older copies of tables and blobs are known
//! r/COUNT               such a count of the blobs of a site
//! ```

use fulgurite_geo::{Fragment, WriteId};
use fulgurite_sites::Key;

use crate::limits::KEY_BYTES_MAX;
use crate::{GeoError, Result};

/// Before the keys of objects.
const OBJECTS: &str = "o";
/// Before fragments.
const FRAGMENTS: &str = "f";
/// Before stripes.
const STRIPES: &str = "s";
/// Before hints.
const HINTS: &str = "h";

/// Before counts of a site's blobs.
const COUNTS: &str = "r";

/// The key under which the sites keep their map. No object has it: keys of objects have no such
/// byte.
pub(crate) const MAP: &str = "\0map";

/// Before the keys of stripes, which are objects that nobody else can name.
const STRIPE: &str = "\0stripe/";

/// The key of a stripe.
pub(crate) fn stripe(write: WriteId) -> String {
    format!("{STRIPE}{write}")
}

/// Which stripe a key is of, if it is one's.
pub(crate) fn of_stripe(key: &str) -> Option<WriteId> {
    let write = u128::from_str_radix(key.strip_prefix(STRIPE)?, 16).ok()?;
    Some(WriteId(write))
}

fn key(text: String) -> Result<Key> {
    let invalid = |error: fulgurite_sites::KeyError| GeoError::Invalid { what: error.to_string() };
    Key::new(text).map_err(invalid)
}

/// A key of an object in letters that every store takes.
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

/// The row of an object.
pub(crate) fn row(object: &str) -> Result<Key> {
    if object == MAP {
        return key("map".into());
    }
    if let Some(stripe) = object.strip_prefix(STRIPE) {
        return key(format!("{STRIPES}/{stripe}"));
    }
    if object.len() > KEY_BYTES_MAX {
        let what = format!("a key of {} bytes; {KEY_BYTES_MAX} are the most", object.len());
        return Err(GeoError::Invalid { what });
    }
    key(format!("{OBJECTS}/{}", escape(object)))
}

/// Rows of all objects below a folder, or of all.
pub(crate) fn rows(folder: Option<&str>) -> Result<Key> {
    match folder {
        None | Some("") => key(OBJECTS.into()),
        Some(folder) => key(format!("{OBJECTS}/{}", escape(folder))),
    }
}

/// Rows of all stripes.
pub(crate) fn stripes() -> Result<Key> {
    key(STRIPES.into())
}

/// The key of an object, of its row.
pub(crate) fn object(row: &Key) -> Option<String> {
    if let Some(stripe) = row.as_str().strip_prefix(STRIPES).and_then(|it| it.strip_prefix('/')) {
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

/// A blob of a fragment.
pub(crate) fn blob(fragment: Fragment, chunk: u32) -> Result<Key> {
    key(format!("{FRAGMENTS}/{}/{chunk:08x}.{:02x}", fragment.write, fragment.index))
}

/// All fragments.
pub(crate) fn blobs() -> Result<Key> {
    key(FRAGMENTS.into())
}

/// Of which write a blob is, which chunk, and which fragment of it.
pub(crate) fn of_blob(blob: &Key) -> Option<(WriteId, u32, u8)> {
    let rest = blob.as_str().strip_prefix(FRAGMENTS)?.strip_prefix('/')?;
    let (write, rest) = rest.split_once('/')?;
    let (chunk, index) = rest.split_once('.')?;
    let write = u128::from_str_radix(write, 16).ok()?;
    let chunk = u32::from_str_radix(chunk, 16).ok()?;
    Some((WriteId(write), chunk, u8::from_str_radix(index, 16).ok()?))
}

/// The row of counts of a site.
pub(crate) fn starts() -> Result<Key> {
    key("counts".into())
}

/// A count of a site's blobs.
pub(crate) fn start(count: u64) -> Result<Key> {
    key(format!("{COUNTS}/{count:016x}"))
}

/// All of them.
pub(crate) fn starts_of_blobs() -> Result<Key> {
    key(COUNTS.into())
}

/// Which count a blob is.
pub(crate) fn of_start(blob: &Key) -> Option<u64> {
    let count = blob.as_str().strip_prefix(COUNTS)?.strip_prefix('/')?;
    u64::from_str_radix(count, 16).ok()
}

/// A hint of a writer.
pub(crate) fn hint(number: u128) -> Result<Key> {
    key(format!("{HINTS}/{number:032x}"))
}

/// All hints.
pub(crate) fn hints() -> Result<Key> {
    key(HINTS.into())
}

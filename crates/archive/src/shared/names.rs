//! What objects of shared buckets are called in the store.
//!
//! ```text
//! shared/BUCKET             says when the bucket was begun, and with which key
//! shared/BUCKET/LETTERS     an object: six bits of its key a letter, a slash after each 180
//! ```
//!
//! Letters are in the order of their bytes, so that names are in the order of keys. Any byte may be
//! in a key, and only a few are taken as they are by every store.

use crate::BucketName;
use crate::limits::{BUCKET_NAME_BYTES_MAX, SHARED_KEY_BYTES_MAX};

/// The folder of all shared buckets.
const FOLDER: &str = "shared";

/// Letters by the six bits that they stand for.
const LETTERS: &[u8; 64] = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/// Letters of a segment: stores of files allow some 200.
const SEGMENT_LETTERS: usize = 180;

/// Bytes of a name that every store takes.
const NAME_BYTES_MAX: usize = 600;

const _: () = {
    let letters = (SHARED_KEY_BYTES_MAX * 8).div_ceil(6);
    let name = FOLDER.len() + 1 + BUCKET_NAME_BYTES_MAX + 1 + letters + letters / SEGMENT_LETTERS;
    assert!(name <= NAME_BYTES_MAX, "every key has a name");
};

/// The name of what tells of a bucket, and the folder of its objects.
pub(super) fn bucket(bucket: &BucketName) -> String {
    format!("{FOLDER}/{bucket}")
}

/// The name of an object.
pub(super) fn object(of: &BucketName, key: &str) -> String {
    named(of, letters(key.as_bytes()))
}

/// A name behind those of all keys that are less than `start`, and before all others; none when
/// there are none before. Of a start that is longer than any key it is that of its beginning.
pub(super) fn before(of: &BucketName, start: &[u8]) -> Option<String> {
    let mut letters = letters(&start[..start.len().min(SHARED_KEY_BYTES_MAX)]);
    let last = LETTERS.iter().position(|letter| Some(*letter) == letters.last().copied())?;
    letters.pop();
    if last > 0 {
        letters.push(LETTERS[last - 1]);
        // In 24 bits that are set there is a byte that no key has.
        letters.extend(b"zzzz");
    }
    (!letters.is_empty()).then(|| named(of, letters))
}

/// The key of a name below the folder of its bucket; none when it is no name of an object.
pub(super) fn key(of: &BucketName, name: &str) -> Option<String> {
    let text = name.strip_prefix(FOLDER)?.strip_prefix('/')?;
    let text = text.strip_prefix(of.as_str())?.strip_prefix('/')?;
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'/') {
        let value = LETTERS.iter().position(|known| *known == letter)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xFF).ok()?);
        }
        bits &= (1 << count) - 1;
    }
    let key = String::from_utf8(bytes).ok()?;
    (object(of, &key) == name).then_some(key)
}

fn letters(bytes: &[u8]) -> Vec<u8> {
    let (mut letters, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        count += 8;
        while count >= 6 {
            count -= 6;
            letters.push(LETTERS[(bits >> count & 63) as usize]);
        }
        bits &= (1 << count) - 1;
    }
    if count > 0 {
        letters.push(LETTERS[(bits << (6 - count) & 63) as usize]);
    }
    letters
}

fn named(of: &BucketName, letters: Vec<u8>) -> String {
    let mut name = bucket(of);
    for (at, letter) in letters.into_iter().enumerate() {
        if at % SEGMENT_LETTERS == 0 {
            name.push('/');
        }
        name.push(char::from(letter));
    }
    name
}

#[cfg(test)]
mod tests;

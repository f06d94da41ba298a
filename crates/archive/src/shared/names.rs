//! Names of objects of shared buckets in the store.
//!
//! ```text
//! shared/BUCKET             states when the bucket was created, and with which key
//! shared/BUCKET/LETTERS     an object: six bits of its key a letter, a slash after each 180
//! ```
//!
//! The letters are in ASCII order, as in an order-preserving base64, so names sort like keys. A key
//! may contain any bytes, and only a few characters are safe in every store.

use crate::BucketName;
use crate::limits::{BUCKET_NAME_BYTES_MAX, SHARED_KEY_BYTES_MAX};

/// The folder of all shared buckets.
const FOLDER: &str = "shared";

/// The alphabet: one letter for each six bits.
const LETTERS: &[u8; 64] = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/// Letters per path segment: file systems allow some 200.
const SEGMENT_LETTERS: usize = 180;

/// Name length that every store accepts.
const NAME_BYTES_MAX: usize = 600;

const _: () = {
    let letters = (SHARED_KEY_BYTES_MAX * 8).div_ceil(6);
    let name = FOLDER.len() + 1 + BUCKET_NAME_BYTES_MAX + 1 + letters + letters / SEGMENT_LETTERS;
    assert!(name <= NAME_BYTES_MAX, "every key has a name");
};

/// Returns the name of a bucket's record, which is also the folder of its objects.
pub(super) fn bucket(bucket: &BucketName) -> String {
    format!("{FOLDER}/{bucket}")
}

/// Returns the name of an object.
pub(super) fn object(bucket_name: &BucketName, key: &str) -> String {
    named(bucket_name, letters(key.as_bytes()))
}

/// Returns a name after those of all keys less than `start` and before all others; `None` when no
/// keys are less. A start longer than any key is truncated.
pub(super) fn before(bucket_name: &BucketName, start: &[u8]) -> Option<String> {
    let mut letters = letters(&start[..start.len().min(SHARED_KEY_BYTES_MAX)]);
    let last = LETTERS.iter().position(|letter| Some(*letter) == letters.last().copied())?;
    letters.pop();
    if last > 0 {
        letters.push(LETTERS[last - 1]);
        // 24 set bits contain the byte 0xFF, which is not in any UTF-8 key.
        letters.extend(b"zzzz");
    }
    (!letters.is_empty()).then(|| named(bucket_name, letters))
}

/// Parses the key from a name in its bucket's folder; `None` if it is not the name of an object.
pub(super) fn key(bucket_name: &BucketName, name: &str) -> Option<String> {
    let text = name.strip_prefix(FOLDER)?.strip_prefix('/')?;
    let text = text.strip_prefix(bucket_name.as_str())?.strip_prefix('/')?;
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
    (object(bucket_name, &key) == name).then_some(key)
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

fn named(bucket_name: &BucketName, letters: Vec<u8>) -> String {
    let mut name = bucket(bucket_name);
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

//! Stored nonces survive a restart until they expire, even after a torn write.

use std::io::Write as _;

use super::{EarlyNonce, NonceFile};
use crate::limits::{ADMIN_CLOCK_SKEW_MS, ADMIN_NONCES_MAX};

const NOW: u64 = 1_790_000_000_000;

fn early(number: u128) -> EarlyNonce {
    (NOW + 1000, number.to_le_bytes())
}

#[test]
fn stored_nonces_survive_reopen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("operator.nonces");
    let (mut file, found) = NonceFile::open(&path, NOW).unwrap();
    assert_eq!(found, []);
    assert!(!path.exists(), "no file before the first nonce");
    for number in 0..3 {
        file.persist(early(number), NOW).unwrap();
    }
    drop(file);
    // A torn line does not damage its neighbors.
    let mut torn = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    torn.write_all(b"\n1790000001000 abab").unwrap();
    let (mut file, found) = NonceFile::open(&path, NOW).unwrap();
    assert_eq!(found, [early(0), early(1), early(2)]);
    file.persist(early(3), NOW).unwrap();
    let (_, found) = NonceFile::open(&path, NOW + 1000 + ADMIN_CLOCK_SKEW_MS).unwrap();
    assert_eq!(found.len(), 4);
    let (_, found) = NonceFile::open(&path, NOW + 1001 + ADMIN_CLOCK_SKEW_MS).unwrap();
    assert_eq!(found, [], "they have expired");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
}

#[test]
fn nonce_file_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("operator.nonces");
    let all: Vec<EarlyNonce> = (0..ADMIN_NONCES_MAX as u128).map(early).collect();
    let (mut file, _) = NonceFile::open(&path, NOW).unwrap();
    file.write(&all).unwrap();
    let later = NOW + 1001 + ADMIN_CLOCK_SKEW_MS;
    file.persist((later + 5, [7; 16]), later).unwrap();
    let (_, found) = NonceFile::open(&path, later).unwrap();
    assert_eq!(found, [(later + 5, [7; 16])]);
    assert!(std::fs::metadata(&path).unwrap().len() < 100);
}

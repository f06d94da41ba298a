//! Shared test helpers, and tests of keys.

use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_units::Seed;

use crate::stores::limits::{KEY_BYTES_MAX, SEGMENT_BYTES_MAX};
use crate::stores::{Entropy, Key};

/// Returns entropy that is the same each time.
pub(crate) fn entropy(seed: u64) -> Entropy {
    let (seed, drawn) = (Seed::new(seed), AtomicU64::new(0));
    Entropy::new(move || {
        let number = drawn.fetch_add(1, Ordering::SeqCst);
        let mut bytes = [0; 16];
        seed.child(&number.to_le_bytes()).stream().fill(&mut bytes);
        bytes
    })
}

#[test]
fn keys_accept_only_portable_characters() {
    let (segment, long) = ("s".repeat(SEGMENT_BYTES_MAX), ["k"; KEY_BYTES_MAX / 2].join("/"));
    for right in ["a", "a/b", "A-Z.0_9=/x", ".a", "...", &segment, &long] {
        assert_eq!(Key::new(right).unwrap().as_str(), right);
    }
    let (segment, long) = (format!("{segment}s"), format!("{long}/kk"));
    let wrong = ["", "/", "a/", "/a", "a//b", ".", "a/..", "a b", "a!", "\u{e4}", "a\0", "a\n"];
    for wrong in wrong.into_iter().chain([&*segment, &*long]) {
        let error = Key::new(wrong).unwrap_err().to_string();
        assert!(error.contains("invalid key") && !error.contains('\n'), "{error}");
    }
}

#[test]
fn is_below_compares_whole_segments() {
    let key = |text| Key::new(text).unwrap();
    assert!(key("a/b").is_below(&key("a")));
    assert!(key("a/b/c").is_below(&key("a")));
    assert!(!key("a").is_below(&key("a")));
    assert!(!key("ab").is_below(&key("a")));
    assert_eq!(key("a").join("b/c").unwrap(), key("a/b/c"));
}

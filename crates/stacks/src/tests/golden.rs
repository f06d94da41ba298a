//! Stacks of version 1, byte by byte: what the writer makes is what `tests/fixtures/stacks-1.txt`
//! has, from which a reader that knows nothing but docs/formats/stack.md is tested as well
//! (`tests/e2e/test_stack_reader.py`). `UPDATE_EXPECT=1` writes the file anew.
//!
//! A line with a path begins a file. The others are its bytes in hexadecimal: as they come, or
//! `byte*count` for what repeats.

use std::fmt::Write as _;

use expect_test::expect_file;
use fulgurite_units::{BlobId, RackId};

use super::file::noise;
use super::write;
use crate::format::{Coding, FRAGMENT_BYTES, Header};
use crate::stack::file_name;

/// Bytes that repeat so often are told by their number.
const RUN_MIN: usize = 8;
/// Words of a line at most.
const LINE_WORDS: usize = 10;

/// A blob's number, its coding, its bytes.
fn blobs() -> [(u8, Coding, Vec<u8>); 3] {
    let coding = |k, r| Coding::new(k, r).unwrap();
    // The last of its two stripes cannot be cut evenly, and what repeats ends nowhere where
    // fragments do.
    let length = 3 * FRAGMENT_BYTES + 100_001;
    let long = noise(1, length / 700 + 1).into_iter().flat_map(|byte| [byte; 700]).take(length);
    [
        (1, coding(3, 2), long.collect()),
        (2, Coding::PELICAN, noise(2, 1000)),
        (3, coding(2, 1), vec![]),
    ]
}

/// Bytes as text: what repeats as `byte*count`.
fn text(bytes: &[u8]) -> String {
    let (mut words, mut literal) = (Vec::new(), String::new());
    for run in bytes.chunk_by(|a, b| a == b) {
        if run.len() < RUN_MIN {
            literal += &hex::encode(run);
            continue;
        }
        if !literal.is_empty() {
            words.push(std::mem::take(&mut literal));
        }
        words.push(format!("{:02x}*{}", run[0], run.len()));
    }
    words.extend((!literal.is_empty()).then_some(literal));
    words.chunks(LINE_WORDS).map(|line| line.join(" ") + "\n").collect()
}

#[test]
fn stacks_of_version_1_stay_as_they_are() {
    let mut golden = String::new();
    for (number, coding, bytes) in blobs() {
        let header = Header {
            rack: RackId::from_bytes(*b"a rack's 16 byte"),
            blob: BlobId::from_bytes([number; 16]),
            coding,
            index: 0,
            entry: format!(r#"{{"key":"blob {number}","modified_ms":1,"attributes":[]}}"#).into(),
        };
        for (index, stack) in (0..).zip(write(&header, &bytes, 1 << 16)) {
            let name = file_name(header.blob, index);
            writeln!(golden, "disk-{index:02}/stacks/{name}").unwrap();
            golden += &text(&stack);
        }
    }
    expect_file!["../../../../tests/fixtures/stacks-1.txt"].assert_eq(&golden);
}

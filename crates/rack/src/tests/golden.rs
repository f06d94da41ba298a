//! Golden stacks of version 1, byte by byte: the writer's output must equal
//! `tests/fixtures/stacks-1.txt`. The same file tests a reader that knows nothing but
//! docs/formats/stack.md (`tests/e2e/test_stack_reader.py`). `UPDATE_EXPECT=1` rewrites it.
//!
//! A line with a path begins a file. The other lines are its bytes in hexadecimal: literal, or
//! `byte*count` for a run.

use std::fmt::Write as _;

use expect_test::expect_file;
use fulgurite_units::{BlobId, RackId};

use super::file::noise;
use super::write;
use crate::format::{Coding, FRAGMENT_BYTES, Header};
use crate::stack::file_name;

/// Shortest run that is written as a count.
const RUN_MIN: usize = 8;
/// Maximum number of words on a line.
const LINE_WORDS: usize = 10;

/// Returns the number, the coding and the bytes of each blob.
fn blobs() -> [(u8, Coding, Vec<u8>); 3] {
    let coding = |k, r| Coding::new(k, r).unwrap();
    // The last of its two stripes does not divide evenly, and no run ends at a fragment boundary.
    let length = 3 * FRAGMENT_BYTES + 100_001;
    let long = noise(1, length / 700 + 1).into_iter().flat_map(|byte| [byte; 700]).take(length);
    [
        (1, coding(3, 2), long.collect()),
        (2, Coding::PELICAN, noise(2, 1000)),
        (3, coding(2, 1), vec![]),
    ]
}

/// Formats bytes as text, with runs as `byte*count`.
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
fn version_1_stacks_match_the_golden_files() {
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

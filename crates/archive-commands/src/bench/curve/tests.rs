//! Each chunk is counted once, and chunks survive a crash in the middle of a line.

use super::*;

fn chunk(number: u64, failures: u64) -> Chunk {
    let counts = Counts { frames: 100, failures, bits: 1000, bit_errors: 3, ..Counts::default() };
    Chunk::new(56_000, number, &counts)
}

#[test]
fn a_chunk_counts_once() {
    let mut chunks = PointChunks::default();
    for number in [4, 7, 4] {
        chunks.add(&chunk(number, 2));
    }
    assert!(chunks.has(7) && !chunks.has(5));
    let point = chunks.point(56_000, 1.0);
    assert_eq!((point.frames, point.failures), (200, 4));
    assert!(point.fer[0] < 0.02 && 0.02 < point.fer[2]);
}

#[test]
fn seeds_are_distinct() {
    let seeds: std::collections::BTreeSet<u64> = [55_000, 55_001, 56_000]
        .into_iter()
        .flat_map(|ser| (0..100).map(move |number| Chunk::seed(ser, number)))
        .collect();
    assert_eq!(seeds.len(), 300);
}

#[test]
fn run_resumes_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curve.ndjson");
    assert_eq!(read(&path).unwrap(), []);
    let chunks = [chunk(0, 1), chunk(1, 0)];
    let mut file = rewrite(&path, &chunks).unwrap();
    file.write_all(b"{\"ser_ppm\":56").unwrap();
    assert_eq!(read(&path).unwrap(), chunks);
    // An invalid line that is not the last is corruption, not a crash.
    file.write_all(b"\n{}\n").unwrap();
    assert!(read(&path).is_err());
}

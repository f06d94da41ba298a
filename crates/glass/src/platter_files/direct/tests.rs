//! Compares windows with the bytes of the file.

use fulgurite_units::Seed;

use super::*;

/// Creates a file of this many bytes and opens it; `None` where it cannot be read directly.
fn file(bytes: usize) -> (tempfile::TempDir, Vec<u8>, Option<Direct>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("platter");
    let mut content = vec![0; bytes];
    Seed::new(1).stream().fill(&mut content);
    std::fs::write(&path, &content).unwrap();
    let direct = Direct::open(&path);
    (folder, content, direct)
}

#[test]
fn any_range_matches_the_file_across_windows() {
    let bytes = 2 * DIRECT_WINDOW_BYTES + 4321;
    let (_folder, content, Some(direct)) = file(bytes) else { return };
    let window = DIRECT_WINDOW_BYTES;
    // Forward, backward, across the ends of windows, longer than one, and up to the last byte.
    for (offset, length) in [
        (0, 100),
        (100, 8320),
        (window - 1, 2),
        (3, 4095),
        (window - 10, window + 20),
        (bytes - 1, 1),
        (0, bytes),
        (bytes, 0),
    ] {
        let mut read = vec![0; length];
        direct.read_at(offset as u64, &mut read).unwrap();
        assert!(read == content[offset..offset + length], "{length} bytes at {offset}");
    }
}

#[test]
fn nothing_is_read_beyond_the_end() {
    for bytes in [1, 4096, DIRECT_WINDOW_BYTES] {
        let (_folder, _, Some(direct)) = file(bytes) else { return };
        for (offset, length) in [(bytes, 1), (0, bytes + 1), (bytes + 5000, 1)] {
            let error = direct.read_at(offset as u64, &mut vec![0; length]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{length} at {offset} of {bytes}");
        }
    }
}

#[test]
fn direct_read_bypasses_the_page_cache() {
    let (folder, mut content, Some(direct)) = file(DIRECT_WINDOW_BYTES + 4096) else { return };
    let mut read = vec![0; 4096];
    direct.read_at(DIRECT_WINDOW_BYTES as u64, &mut read).unwrap();
    direct.read_at(0, &mut read).unwrap();
    content[DIRECT_WINDOW_BYTES] ^= 1;
    std::fs::write(folder.path().join("platter"), &content).unwrap();
    direct.read_at(DIRECT_WINDOW_BYTES as u64, &mut read).unwrap();
    assert!(read == content[DIRECT_WINDOW_BYTES..], "bytes of an earlier window are read again");
}

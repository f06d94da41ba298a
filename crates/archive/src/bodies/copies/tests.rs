//! How much of a copy is checked, and which damage the check finds.

use super::*;
use crate::bodies::cipher::SecretKey;
use crate::testing;

/// Creates a body of ten frames in the restored log, with its key.
fn copied(state: &Arc<ArchiveState>) -> (BodyRow, BodyCipher, Vec<Extent>) {
    let mut body = testing::body_row(LogKind::Staging);
    body.bytes = 9 * FRAME_BYTES as u64 + 5;
    let cipher = BodyCipher::new(&SecretKey::random().unwrap(), body.body_id);
    let mut frames = Vec::new();
    let plain = vec![7; usize::try_from(body.bytes).unwrap()];
    cipher.encrypt(0, &plain, true, &mut frames);
    let mut writer = state.restored.writer(body.body_id, frames.len() as u64).unwrap();
    writer.write(&frames).unwrap();
    writer.keep();
    let extents = writer.extents();
    (body, cipher, extents)
}

fn flip(state: &ArchiveState, extent: Extent, at: u64) {
    use std::os::unix::fs::FileExt as _;
    let name = format!("{:08}.seg", extent.segment);
    let path = state.config.data.join(LogKind::Restored.folder()).join(name);
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, extent.offset + at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], extent.offset + at).unwrap();
}

#[test]
fn check_finds_damage_in_the_frames_it_reads() {
    let dir = testing::dir();
    let state = testing::state(&dir);
    let (body, cipher, extents) = copied(&state);
    let is_intact = |count: u64| {
        let mut reader = state.restored.reader(extents.clone());
        authenticate(&mut reader, &cipher, &body, count, &mut |_| {}).is_ok()
    };
    assert!([1, 2, 3, 9, 10, u64::MAX].into_iter().all(is_intact));
    // Three frames are the first, the last and the one in the middle.
    for (frame, found_by) in
        [(0, vec![1, 3, 10]), (4, vec![3, 10]), (9, vec![3, 10]), (5, vec![10])]
    {
        let at = frame * FRAME_CIPHER_BYTES as u64 + 3;
        flip(&state, extents[0], at);
        for count in [1, 3, 10] {
            assert_eq!(!is_intact(count), found_by.contains(&count), "frame {frame} by {count}");
        }
        flip(&state, extents[0], at);
    }
    assert!(is_intact(10));
    drop(state);
}

#[test]
fn truncated_segment_is_detected_without_reading_it() {
    let dir = testing::dir();
    let state = testing::state(&dir);
    let (_, _, extents) = copied(&state);
    assert!(is_there(&mut state.restored.reader(extents.clone()), &extents).is_ok());
    let path = state.config.data.join(LogKind::Restored.folder());
    let path = path.join(format!("{:08}.seg", extents[0].segment));
    let end = extents[0].offset + extents[0].bytes;
    std::fs::File::options().write(true).open(&path).unwrap().set_len(end - 1).unwrap();
    let found = is_there(&mut state.restored.reader(extents.clone()), &extents);
    assert!(matches!(found, Err(ArchiveError::Corrupt { .. })), "{found:?}");
}

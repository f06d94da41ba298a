//! Which keys a start destroys: unnamed ones of the last run only.

use fulgurite_units::PlatterId;

use super::*;
use crate::bodies::log::LogKind;
use crate::model::object::StorageClass;
use crate::objects::commit::insert_object;
use crate::rows::BodyRow;
use crate::testing;

/// Creates a key in the table, and returns a body row for it.
fn body(state: &Arc<ArchiveState>) -> BodyRow {
    let row = testing::body_row(LogKind::Online);
    let (_, key_slot) = state.keys.create(row.body_id).unwrap();
    BodyRow { key_slot, ..row }
}

fn has_key(state: &Arc<ArchiveState>, body: &BodyRow) -> bool {
    state.keys.load(body.key_slot, body.body_id).is_ok()
}

#[test]
fn startup_destroys_only_keys_of_interrupted_uploads() {
    let dir = testing::dir();
    let state = testing::state(&dir);
    let (older, named) = (body(&state), body(&state));
    drop(state);
    let state = testing::state(&dir);
    let (orphan, in_object, in_part) = (body(&state), body(&state), body(&state));
    let rows = [named.clone(), in_object.clone(), in_part.clone()];
    let commit = move |tx: &mut Transaction<'_>| -> Result<()> {
        let [named, in_object, in_part] = rows;
        for (name, body) in [("a", named), ("b", in_object)] {
            let row = testing::object_row(StorageClass::Standard);
            insert_object(tx, &testing::bucket("vault"), &testing::key(name), row, vec![body])?;
        }
        let upload = fulgurite_units::UploadId::from_bytes([1; 16]);
        let part = PartRow { body: in_part, md5: [0; 16], modified: testing::NOW, checksum: None };
        rows::put(tx, PARTS, rows::part_key(upload, 1), &part)
    };
    state.committer.commit_blocking(commit).unwrap();
    drop(state);

    let state = testing::state(&dir);
    let fresh = body(&state);
    assert_eq!(sweep_orphan_keys(&state).unwrap(), 1);
    assert!(!has_key(&state, &orphan));
    for body in [&older, &named, &in_object, &in_part, &fresh] {
        assert!(has_key(&state, body));
    }
    assert_eq!(sweep_orphan_keys(&state).unwrap(), 0);
}

#[test]
fn catalog_from_backup_destroys_no_keys() {
    let dir = testing::dir();
    let state = testing::state(&dir);
    let run = state.run;
    drop(state);
    let copy = testing::dir();
    copy_folder(&dir.path().join("catalog"), &copy.path().join("catalog"));
    // Two runs pass before the backup is restored.
    let mut made = Vec::new();
    for _ in 0..2 {
        let state = testing::state(&dir);
        made.push(body(&state));
    }
    std::fs::remove_dir_all(dir.path().join("catalog")).unwrap();
    copy_folder(&copy.path().join("catalog"), &dir.path().join("catalog"));
    // With the mark the catalog would not be opened at all.
    std::fs::remove_file(dir.path().join("catalog.mark")).unwrap();
    for start in 0..3 {
        let state = testing::state(&dir);
        assert!(state.run > run + 2, "runs are not numbered again");
        assert_eq!(sweep_orphan_keys(&state).unwrap(), usize::from(start > 0));
        assert!(made.iter().all(|body| has_key(&state, body)));
        body(&state);
    }
}

#[test]
fn unknown_platter_stops_the_orphan_key_sweep() {
    let dir = testing::dir();
    let state = testing::state(&dir);
    let orphan = body(&state);
    drop(state);
    let state = testing::state(&dir);
    let unknown_platter = PlatterId::from_random([7; 16]);
    let path = dir.path().join(format!("platters/{unknown_platter}.glass"));
    std::fs::write(&path, b"a platter").unwrap();
    assert_eq!(sweep_orphan_keys(&state).unwrap(), 0);
    assert!(has_key(&state, &orphan));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(sweep_orphan_keys(&state).unwrap(), 1);
}

fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn interrupted_shred_is_finished_at_startup() {
    let dir = testing::dir();
    let state = testing::state(&dir);
    let (doomed, kept) = (body(&state), body(&state));
    let shred = doomed.clone();
    let commit = move |tx: &mut Transaction<'_>| -> Result<()> {
        rows::put(tx, SHREDS, shred.body_id.to_bytes().to_vec(), &shred.key_slot)
    };
    state.committer.commit_blocking(commit).unwrap();
    drop(state);
    let state = testing::state(&dir);
    finish_shreds(&state).unwrap();
    assert!(!has_key(&state, &doomed) && has_key(&state, &kept));
    let left: Vec<(Vec<u8>, u32)> =
        rows_in(&*state.kv, SHREDS, &KeyRange::prefix(b""), 10).unwrap();
    assert!(left.is_empty());
    finish_shreds(&state).unwrap();
}

#[test]
fn failed_shred_is_retried_without_a_restart() {
    let dir = testing::dir();
    let state = testing::state(&dir);
    let doomed = body(&state);
    let shred = doomed.clone();
    let commit = move |tx: &mut Transaction<'_>| -> Result<()> {
        rows::put(tx, SHREDS, shred.body_id.to_bytes().to_vec(), &shred.key_slot)
    };
    state.committer.commit_blocking(commit).unwrap();
    // A destruction in progress is left to its delete.
    finish_failed_shreds(&state, &mut || {}).unwrap();
    assert!(has_key(&state, &doomed));
    state.has_failed_shreds.store(true, Ordering::SeqCst);
    finish_failed_shreds(&state, &mut || {}).unwrap();
    assert!(!has_key(&state, &doomed));
}

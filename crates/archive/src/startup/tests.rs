//! Which keys a start destroys: unnamed ones of the last run only.

use fulgurite_units::PlatterId;

use super::*;
use crate::bodies::log::LogKind;
use crate::objects::commit::insert_object;
use crate::objects::object::StorageClass;
use crate::rows::BodyRow;
use crate::testing;

/// Creates a key in the table, and returns a body row for it.
fn body(ground: &Arc<Ground>) -> BodyRow {
    let row = testing::body_row(LogKind::Online);
    let (_, key_slot) = ground.keys.create(row.body_id).unwrap();
    BodyRow { key_slot, ..row }
}

fn has_key(ground: &Arc<Ground>, body: &BodyRow) -> bool {
    ground.keys.load(body.key_slot, body.body_id).is_ok()
}

#[test]
fn keys_of_cut_short_uploads_go_and_no_other() {
    let dir = testing::dir();
    let ground = testing::ground(&dir);
    let (older, named) = (body(&ground), body(&ground));
    drop(ground);
    let ground = testing::ground(&dir);
    let (orphan, in_object, in_part) = (body(&ground), body(&ground), body(&ground));
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
    ground.committer.commit_blocking(commit).unwrap();
    drop(ground);

    let ground = testing::ground(&dir);
    let fresh = body(&ground);
    assert_eq!(sweep_orphan_keys(&ground).unwrap(), 1);
    assert!(!has_key(&ground, &orphan));
    for body in [&older, &named, &in_object, &in_part, &fresh] {
        assert!(has_key(&ground, body));
    }
    assert_eq!(sweep_orphan_keys(&ground).unwrap(), 0);
}

#[test]
fn a_catalog_from_a_backup_sweeps_no_keys() {
    let dir = testing::dir();
    let ground = testing::ground(&dir);
    let run = ground.run;
    drop(ground);
    let copy = testing::dir();
    copy_folder(&dir.path().join("catalog"), &copy.path().join("catalog"));
    // Two runs pass before the backup is restored.
    let mut made = Vec::new();
    for _ in 0..2 {
        let ground = testing::ground(&dir);
        made.push(body(&ground));
    }
    std::fs::remove_dir_all(dir.path().join("catalog")).unwrap();
    copy_folder(&copy.path().join("catalog"), &dir.path().join("catalog"));
    // With the mark the catalog would not be opened at all.
    std::fs::remove_file(dir.path().join("catalog.mark")).unwrap();
    for start in 0..3 {
        let ground = testing::ground(&dir);
        assert!(ground.run > run + 2, "runs are not numbered again");
        assert_eq!(sweep_orphan_keys(&ground).unwrap(), usize::from(start > 0));
        assert!(made.iter().all(|body| has_key(&ground, body)));
        body(&ground);
    }
}

#[test]
fn a_platter_that_the_catalog_does_not_know_stops_the_sweep() {
    let dir = testing::dir();
    let ground = testing::ground(&dir);
    let orphan = body(&ground);
    drop(ground);
    let ground = testing::ground(&dir);
    let stranger = PlatterId::from_random([7; 16]);
    let path = dir.path().join(format!("platters/{stranger}.glass"));
    std::fs::write(&path, b"a platter").unwrap();
    assert_eq!(sweep_orphan_keys(&ground).unwrap(), 0);
    assert!(has_key(&ground, &orphan));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(sweep_orphan_keys(&ground).unwrap(), 1);
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
fn a_shredding_that_was_cut_short_is_finished() {
    let dir = testing::dir();
    let ground = testing::ground(&dir);
    let (doomed, kept) = (body(&ground), body(&ground));
    let shred = doomed.clone();
    let commit = move |tx: &mut Transaction<'_>| -> Result<()> {
        rows::put(tx, SHREDS, shred.body_id.to_bytes().to_vec(), &shred.key_slot)
    };
    ground.committer.commit_blocking(commit).unwrap();
    drop(ground);
    let ground = testing::ground(&dir);
    finish_shreds(&ground).unwrap();
    assert!(!has_key(&ground, &doomed) && has_key(&ground, &kept));
    let left: Vec<(Vec<u8>, u32)> =
        rows_in(&*ground.kv, SHREDS, &KeyRange::prefix(b""), 10).unwrap();
    assert!(left.is_empty());
    finish_shreds(&ground).unwrap();
}

#[test]
fn a_destruction_that_failed_is_done_without_a_restart() {
    let dir = testing::dir();
    let ground = testing::ground(&dir);
    let doomed = body(&ground);
    let shred = doomed.clone();
    let commit = move |tx: &mut Transaction<'_>| -> Result<()> {
        rows::put(tx, SHREDS, shred.body_id.to_bytes().to_vec(), &shred.key_slot)
    };
    ground.committer.commit_blocking(commit).unwrap();
    // A destruction in progress is left to its delete.
    finish_failed_shreds(&ground, &mut || {}).unwrap();
    assert!(has_key(&ground, &doomed));
    ground.has_failed_shreds.store(true, Ordering::SeqCst);
    finish_failed_shreds(&ground, &mut || {}).unwrap();
    assert!(!has_key(&ground, &doomed));
}

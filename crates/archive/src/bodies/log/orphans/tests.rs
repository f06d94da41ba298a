//! Names of orphans state what they are, and no other file is taken for one.

use std::ffi::OsStr;

use super::*;

#[test]
fn names_come_back() {
    for kind in LogKind::ALL {
        for (run, again) in [(Some(9), 0), (Some(u64::MAX), 3), (None, 0), (None, 12)] {
            let name = name(kind, 7, run, again);
            assert_eq!(parse_name(OsStr::new(&name)), Some((kind, 7, run)), "{name}");
        }
    }
    assert_eq!(name(LogKind::Staging, 7, Some(9), 0), "staging-00000007-run-9.seg");
    for other in ["00000007.seg", "staging-7.seg", "staging-7-run-x.seg", "glass-7-run-1.seg", "x"]
    {
        assert_eq!(parse_name(OsStr::new(other)), None, "{other}");
    }
}

#[test]
fn orphan_counts_a_body_once_its_upload_has_ended() {
    let dir = crate::testing::dir();
    let state = crate::testing::state(&dir);
    let body = ObjectId::from_bytes([7; 16]);
    let mut writer = state.staging.writer(body, 5000).unwrap();
    writer.write(&[1; 5000]).unwrap();
    let number = writer.extents()[0].segment;
    let path = segment_path(&Paths::new(&state.config.data).log(LogKind::Staging), number);
    let orphan =
        OrphanFile { path, kind: LogKind::Staging, number, run: Some(1), disk_bytes: 5000 };
    assert_eq!(orphan.content().unwrap(), (0, Vec::new()), "headers are written last");
    let written = fulgurite_units::UnixTime::from_millis(5);
    let form = crate::bodies::log::record::EntryForm::Object;
    writer
        .finish(&crate::bodies::log::SealedEntry { form, written, sealed: vec![7; 100] })
        .unwrap();
    writer.keep();
    // Counts both its ciphertext and its entry, which may lie in different segments.
    assert_eq!(orphan.content().unwrap(), (2, vec![body, body]));
}

#[test]
fn discard_removes_only_the_named_orphan() {
    let data = crate::testing::dir();
    let orphans = Orphans::new(data.path());
    assert_eq!(orphans.list().unwrap(), []);
    for number in 0..3 {
        let segment = data.path().join(format!("{number:08}.seg"));
        std::fs::write(&segment, [1; 5000]).unwrap();
        orphans.adopt(&segment, LogKind::Online, number, Some(1)).unwrap();
        assert!(!segment.exists());
    }
    let found = orphans.list().unwrap();
    assert!(found[1].disk_bytes >= 5000);
    assert_eq!(found[1].content().unwrap(), (0, Vec::new()));
    orphans.discard(&found[1]).unwrap();
    assert_eq!(orphans.list().unwrap(), [found[0].clone(), found[2].clone()]);
}

//! Permissions that are too open are fixed in the data directory and rejected outside it.

use super::*;
use crate::testing;

fn set(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn startup_restricts_data_directory_permissions() {
    let dir = testing::dir();
    drop(testing::state(&dir));
    let paths = Paths::new(dir.path());
    let secrets = [
        dir.path().to_owned(),
        paths.keys(),
        paths.key_table(),
        paths.key_table_copy(),
        paths.keys().join("master.key"),
    ];
    for path in &secrets {
        let executable = if path.is_dir() { 0o111 } else { 0 };
        set(path, 0o644 | executable);
    }
    drop(testing::state(&dir));
    for path in &secrets {
        assert_eq!(mode(path).unwrap().unwrap() & NOT_OWNER, 0, "{}", path.display());
    }
}

#[test]
fn world_readable_master_key_is_refused() {
    let dir = testing::dir();
    let elsewhere = testing::dir();
    let path = elsewhere.path().join("master.key");
    std::fs::write(&path, "00".repeat(32)).unwrap();
    let config = ArchiveConfig { master_key: Some(path.clone()), ..testing::config(&dir) };
    set(&path, 0o604);
    assert!(matches!(secure(&config), Err(ArchiveError::Unusable { .. })));
    // A service may get access to a secret through its group.
    set(&path, 0o640);
    secure(&config).unwrap();
}

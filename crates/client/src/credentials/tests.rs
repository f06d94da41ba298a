//! Keys are generated once, kept private, and never shown by accident.

use std::os::unix::fs::PermissionsExt as _;

use super::{credentials_path, read, read_or_generate};

#[test]
fn key_pair_is_generated_once_with_mode_0600() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(read(folder.path()).unwrap(), None);
    let (first, is_new) = read_or_generate(folder.path()).unwrap();
    assert!(is_new);
    assert_eq!(read_or_generate(folder.path()).unwrap(), (first.clone(), false));
    let mode = std::fs::metadata(credentials_path(folder.path())).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!((first.access_key.len(), first.secret_key.len()), (20, 40));
    assert!(!format!("{first:?}").contains(&first.secret_key), "debug output has no secret");
    let (other, _) = read_or_generate(tempfile::tempdir().unwrap().path()).unwrap();
    assert_ne!(first, other);
}

#[test]
fn damaged_credentials_error_shows_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let text = "access_key = \"A\"\nsecret_key = top-secret\n";
    std::fs::write(credentials_path(folder.path()), text).unwrap();
    let error = read(folder.path()).unwrap_err();
    assert!(!format!("{error:#}").contains("top-secret"), "{error:#}");
}

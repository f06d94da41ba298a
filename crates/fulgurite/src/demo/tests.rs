//! Comparison notices every kind of difference.

use std::fs;

use super::compare::is_same;

#[test]
fn is_same_compares_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let long = vec![7u8; 3 << 20];
    let mut changed = long.clone();
    changed[(3 << 20) - 1] = 8;
    fs::write(path("long"), &long).unwrap();
    fs::write(path("same"), &long).unwrap();
    fs::write(path("changed"), &changed).unwrap();
    fs::write(path("short"), &long[1..]).unwrap();
    fs::write(path("empty"), b"").unwrap();
    assert!(is_same(&path("long"), &path("same")).unwrap());
    assert!(is_same(&path("empty"), &path("empty")).unwrap());
    for other in ["changed", "short", "empty", "missing"] {
        assert!(!is_same(&path("long"), &path(other)).unwrap(), "{other}");
    }
    assert!(is_same(&path("missing"), &path("long")).is_err(), "the original must be there");
}

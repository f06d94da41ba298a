//! Tests of the output about an archive.

use fulgurite_archive::status::{FailedRestore, Status};

use super::{show_disk, show_restores};

fn failed(key: &str, is_given_up: bool) -> FailedRestore {
    let error = format!("platter of {key} fails at layer cross-platter");
    let (bucket, key) = ("vault".to_owned(), key.to_owned());
    FailedRestore { bucket, key, failures: 4, error, is_given_up }
}

#[test]
fn failed_restores_are_listed_with_their_errors() {
    let quiet = Status { restores_waiting: 2, restored_objects: 1, ..Status::default() };
    assert_eq!(show_restores(&quiet), "restores   2 waiting, 1 copy held");
    let failing = Status {
        restores_failed: 1,
        failed_restores: vec![failed("over", true), failed("under way", false)],
        ..quiet
    };
    let expected = "restores   2 waiting, 1 copy held, 1 given up; request them again to \
                    retry\n           vault/over given up after 4 failures: platter of over fails \
                    at layer cross-platter\n           vault/under way is tried again after 4 \
                    failures: platter of under way fails at layer cross-platter";
    assert_eq!(show_restores(&failing), expected);
}

#[test]
fn damaged_catalog_is_reported_with_its_remedy() {
    let status = Status { catalog_damage: Some("a block".to_owned()), ..Status::default() };
    let shown = show_disk(&status);
    let expected = "\ncatalog    is damaged: a block; stop the archive and run `fulgurite recover`";
    assert!(shown.ends_with(expected), "{shown}");
}

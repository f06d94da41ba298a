//! Tests of the output about an archive.

use fulgurite_archive::status::{FailedRestore, Status};

use super::{show_disk, show_restores};

fn failed(key: &str, is_given_up: bool) -> FailedRestore {
    let error = format!("platter of {key} fails at layer cross-platter");
    let (bucket, key) = ("vault".to_owned(), key.to_owned());
    FailedRestore { bucket, key, failures: 4, error, is_given_up }
}

#[test]
fn restores_that_failed_are_named_with_why() {
    let quiet = Status { restores_waiting: 2, restored_objects: 1, ..Status::default() };
    assert_eq!(show_restores(&quiet), "restores   2 waiting, 1 copy held");
    let failing = Status {
        restores_failed: 1,
        failed_restores: vec![failed("over", true), failed("under way", false)],
        ..quiet
    };
    let expected = "restores   2 waiting, 1 copy held, 1 given up: asked for again they are tried \
                    again\n           vault/over given up after 4 failures: platter of over fails \
                    at layer cross-platter\n           vault/under way is tried again after 4 \
                    failures: platter of under way fails at layer cross-platter";
    assert_eq!(show_restores(&failing), expected);
}

#[test]
fn a_damaged_catalog_is_named_with_what_mends_it() {
    let status = Status { catalog_damage: Some("a block".to_owned()), ..Status::default() };
    let shown = show_disk(&status);
    let expected = "\ncatalog    is damaged: a block; stop the archive and run `fulgurite recover`";
    assert!(shown.ends_with(expected), "{shown}");
}

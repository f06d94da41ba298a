//! The key of each copy, and the plans that are rejected.

use expect_test::{Expect, expect};

use super::*;

fn listed(key: &str) -> ListedObject {
    ListedObject {
        key: key.to_owned(),
        bytes: 1,
        modified: String::new(),
        etag: "tag".to_owned(),
        class: "STANDARD".to_owned(),
        restore: None,
    }
}

#[track_caller]
fn check(keys: &[&str], from: &str, to: &str, expect: Expect) {
    let objects = keys.iter().copied().map(listed).collect();
    let (from, to): (S3Url, S3Url) = (from.parse().unwrap(), to.parse().unwrap());
    let planned = plan_folder(objects, &from, &to);
    let mut lines: Vec<String> =
        planned.iter().map(|item| format!("{} -> {}", item.from.key, item.to)).collect();
    for verb in [Verb::Copy, Verb::Move] {
        if from.bucket != to.bucket {
            break;
        }
        lines.extend(check_apart(verb, &planned, false).err().map(|error| error.to_string()));
    }
    expect.assert_eq(&lines.join("\n"));
}

#[test]
fn folder_copy_keeps_its_name() {
    check(
        &["a/b/c", "a/b/d/e"],
        "s3://x/a/b",
        "s3://y/z",
        expect![[r#"
        a/b/c -> z/b/c
        a/b/d/e -> z/b/d/e"#]],
    );
    check(
        &["a/b/", "a/b/c"],
        "s3://x/a/b/",
        "s3://y/z/",
        expect![[r#"
        a/b/ -> z/
        a/b/c -> z/c"#]],
    );
    check(
        &["a", "b/c"],
        "s3://x",
        "s3://y",
        expect![[r#"
        a -> a
        b/c -> b/c"#]],
    );
    // The mark of the folder itself has no name at the top of a bucket.
    check(&["a/", "a/b"], "s3://x/a/", "s3://y", expect!["a/b -> b"]);
}

#[test]
fn single_copy_takes_key_or_keeps_name() {
    let to = |from: &str, to: &str| plan_one(listed(from), &to.parse().unwrap()).remove(0).to;
    assert_eq!(to("a/b", "s3://y"), "b");
    assert_eq!(to("a/b", "s3://y/c"), "c");
    assert_eq!(to("a/b", "s3://y/c/"), "c/b");
    assert_eq!(to("a/b/", "s3://y/c/"), "c/b");
}

#[test]
fn copy_onto_a_source_is_rejected() {
    check(
        &["a/b/x", "a/x"],
        "s3://x/a/",
        "s3://x/a/b",
        expect![[r#"
        a/b/x -> a/b/b/x
        a/x -> a/b/x
        "a/b/x" would be overwritten by the copy of "a/x" before it is copied itself
        "a/b/x" would be overwritten by the copy of "a/x" before it is moved itself"#]],
    );
    let same = plan_one(listed("a"), &"s3://x/a".parse().unwrap());
    assert!(check_apart(Verb::Copy, &same, true).is_ok(), "a change of class");
    assert!(check_apart(Verb::Copy, &same, false).is_err());
    assert!(check_apart(Verb::Move, &same, true).is_err(), "it would be deleted");
}

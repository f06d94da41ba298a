//! The key of each file.

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};

use super::plan;

/// Checks the plan of `paths` to `url`, for a folder `photos` with two files, an empty folder and a
/// link.
#[track_caller]
fn check(paths: &[&str], url: &str, expect: Expect) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("photos/sub")).unwrap();
    fs::create_dir(root.join("photos/empty")).unwrap();
    fs::write(root.join("photos/a b+%.jpg"), b"12").unwrap();
    fs::write(root.join("photos/sub/none"), b"").unwrap();
    fs::write(root.join("one.txt"), b"1").unwrap();
    std::os::unix::fs::symlink("sub", root.join("photos/link")).unwrap();
    let text = |path: &str| format!("{}/{path}", root.display());
    let paths: Vec<PathBuf> = paths.iter().map(|path| text(path).into()).collect();
    let shown = match plan(&paths, &url.parse().unwrap()) {
        Ok((planned, skipped)) => {
            let lines: Vec<String> =
                planned.iter().map(|put| format!("{} {}\n", put.key, put.bytes)).collect();
            format!("{}skipped {skipped}", lines.concat())
        }
        Err(error) => error.to_string().replace(&*root.to_string_lossy(), "ROOT"),
    };
    expect.assert_eq(&shown);
}

#[test]
fn folder_put_keeps_its_name() {
    check(
        &["photos"],
        "s3://b/2024",
        expect![[r#"
            2024/photos/a b+%.jpg 2
            2024/photos/empty/ 0
            2024/photos/sub/none 0
            skipped 1"#]],
    );
}

#[test]
fn trailing_slash_puts_only_contents() {
    check(
        &["photos/"],
        "s3://b",
        expect![[r#"
            a b+%.jpg 2
            empty/ 0
            sub/none 0
            skipped 1"#]],
    );
}

#[test]
fn file_put_takes_key_or_folder() {
    check(&["one.txt"], "s3://b/two.txt", expect![["two.txt 1\nskipped 0"]]);
    check(&["one.txt"], "s3://b/two/", expect![["two/one.txt 1\nskipped 0"]]);
    check(&["one.txt"], "s3://b", expect![["one.txt 1\nskipped 0"]]);
    check(
        &["one.txt", "photos/sub"],
        "s3://b/two",
        expect![["two/one.txt 1\ntwo/sub/none 0\nskipped 0"]],
    );
}

#[test]
fn missing_file_is_reported() {
    check(
        &["none"],
        "s3://b/x",
        expect![[r#"cannot read "ROOT/none": No such file or directory (os error 2)"#]],
    );
}

#[test]
fn one_invalid_name_rejects_the_whole_put() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("good"), b"").unwrap();
    let bad = Path::new(std::ffi::OsStr::from_bytes(b"bad\xff"));
    fs::write(folder.path().join(bad), b"").unwrap();
    let error = plan(&[folder.path().to_owned()], &"s3://b".parse().unwrap()).unwrap_err();
    expect!["nothing was put: file name \"bad\u{fffd}\" is not UTF-8, which keys are"]
        .assert_eq(&error.to_string());
}

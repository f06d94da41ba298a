//! Files in, archived, restored, out again: the session of docs/operating.md.

use std::fs;
use std::path::Path;

use expect_test::expect;

use crate::process::{Server, fold, fulgurite, transcript};

/// Removes wall times and rates, which differ from run to run: ` in 1.2 s (3 MiB/s)` becomes ` in
/// TIME`.
pub(crate) fn without_times(text: &str) -> String {
    let is_time = |text: &str| {
        let mut words = text.split([' ', ';']);
        let number = words.next().is_some_and(|word| word.parse::<f64>().is_ok());
        number && matches!(words.next(), Some("ms" | "s" | "min" | "h"))
    };
    let line = |line: &str| match line.split_once(" in ").or_else(|| line.split_once(" after ")) {
        Some((what, rest)) if is_time(rest) => {
            let more =
                rest.split_once(';').map_or_else(String::new, |(_, more)| format!(";{more}"));
            format!("{what} in TIME{more}\n")
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

fn assert_same_files(one: &Path, other: &Path) {
    let mut entries: Vec<_> = fs::read_dir(one).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    let names = |folder: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(one), names(other));
    for entry in entries {
        let twin = other.join(entry.file_name().unwrap());
        if entry.is_dir() {
            assert_same_files(&entry, &twin);
        } else {
            assert!(fs::read(&entry).unwrap() == fs::read(&twin).unwrap(), "{entry:?} differs");
        }
    }
}

/// Creates odd names, an empty file, an empty folder, and a file that is uploaded in parts.
fn make_tree(root: &Path) {
    fs::create_dir_all(root.join("sub dir/empty")).unwrap();
    fs::write(root.join("zero"), b"").unwrap();
    fs::write(root.join("a+b %20 100%.txt"), b"odd").unwrap();
    fs::write(root.join("\u{e4}\u{4e2d}\u{1f980}"), b"unicode").unwrap();
    fs::write(root.join("L".repeat(250)), b"long").unwrap();
    let large = b"seventy mebibytes of no great variety.. ".repeat((70 << 20) / 40);
    fs::write(root.join("sub dir/large"), large).unwrap();
}

#[test]
fn tree_is_archived_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data, &[]);
    make_tree(&folder.path().join("tree"));
    let run = |args: &[&str]| {
        let mut command = fulgurite(args);
        command.current_dir(folder.path()).env("FULGURITE_DATA", &data);
        fold(&without_times(&transcript(&mut command)))
    };
    expect![[r#"
        6 objects, 70.0 MiB in TIME
        exit: 0
    "#]]
    .assert_eq(&run(&["put", "--make-bucket", "tree", "s3://archive/one"]));
    let refused = run(&["get", "s3://archive/one/tree", "out"]);
    let unfolded = refused.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unfolded.contains("first run: fulgurite restore --recursive --wait s3://archive"));
    assert!(refused.ends_with("exit: 5\n"), "{refused}");
    let sealed = run(&["archive", "seal"]);
    assert!(sealed.starts_with("6 objects with 70.") && sealed.contains("released"), "{sealed}");
    expect![[r#"
        6 accepted, 0 extended, 0 already running, 0 not archived
        all copies are ready in TIME
        exit: 0
    "#]]
    .assert_eq(&run(&["restore", "--recursive", "--wait", "s3://archive/one"]));
    expect![[r#"
        restored   6 objects, 70.0 MiB
        exit: 0
    "#]]
    .assert_eq(&run(&["status", "--summary", "s3://archive"]));
    expect![[r#"
        6 objects, 70.0 MiB in TIME
        exit: 0
    "#]]
    .assert_eq(&run(&["get", "s3://archive/one/tree", "out"]));
    assert_same_files(&folder.path().join("tree"), &folder.path().join("out/tree"));
    expect![[r#"
        deleted 6 objects
        exit: 0
    "#]]
    .assert_eq(&run(&["rm", "--recursive", "s3://archive/one"]));
    expect![[r#"
        err: hint: s3://archive is empty: fulgurite put FILE s3://archive
        exit: 0
    "#]]
    .assert_eq(&run(&["ls", "s3://archive"]));
    expect![["deleted s3://archive\nexit: 0\n"]].assert_eq(&run(&["rb", "s3://archive"]));
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn get_skips_keys_that_escape_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let _server = Server::start(&data, &[]);
    fs::write(folder.path().join("file"), b"x").unwrap();
    let run = |args: &[&str]| {
        let mut command = fulgurite(args);
        command.current_dir(folder.path()).env("FULGURITE_DATA", &data);
        fold(&without_times(&transcript(&mut command)))
    };
    let class = ["--storage-class", "STANDARD"];
    for url in ["s3://box//absolute", "s3://box/a//b", "s3://box/good"] {
        let put = run(&[&["put", "--make-bucket", "file", url][..], &class].concat());
        assert!(put.ends_with("exit: 0\n"), "{put}");
    }
    expect![[r#"
        1 object, 1 B in TIME
        err: /absolute: key "/absolute" is not a path below the folder: it has an empty
            segment
        err: a//b: key "a//b" is not a path below the folder: it has an empty segment
        err: fulgurite: 2 of 3 objects could not be fetched
        exit: 10
    "#]]
    .assert_eq(&run(&["get", "s3://box", "out"]));
    assert_eq!(fs::read(folder.path().join("out/good")).unwrap(), b"x");
    assert_eq!(fs::read_dir(folder.path().join("out")).unwrap().count(), 1);
    expect![[r#"
        0 objects, 0 B in TIME
        err: file: key "../up" has a segment "." or "..", which an HTTP path cannot
            carry
        err: fulgurite: 1 of 1 objects could not be put
        exit: 2
    "#]]
    .assert_eq(&run(&["put", "file", "s3://box/../up"]));
    expect![[r#"
        err: fulgurite: s3://box/none does not exist; fulgurite ls s3://box shows what
            does
        exit: 4
    "#]]
    .assert_eq(&run(&["get", "s3://box/none", "out"]));
    expect![[r#"
        err: fulgurite: s3://box/none does not exist; fulgurite ls s3://box shows what
            does
        exit: 4
    "#]]
    .assert_eq(&run(&["rm", "s3://box/none"]));
    // Temporary files never take a name that another object has.
    for name in ["twin", "twin.part", ".twin.part"] {
        fs::write(folder.path().join(name), name).unwrap();
        run(&[&["put", name, "s3://twins"][..], &["--make-bucket"], &class].concat());
    }
    run(&["get", "s3://twins", "twins"]);
    for name in ["twin", "twin.part", ".twin.part"] {
        assert_eq!(fs::read_to_string(folder.path().join("twins").join(name)).unwrap(), name);
    }
    assert_eq!(fs::read_dir(folder.path().join("twins")).unwrap().count(), 3);
    // A symlink in place of a folder is not followed.
    std::os::unix::fs::symlink("/tmp", folder.path().join("out/dir")).unwrap();
    run(&[&["put", "file", "s3://box/dir/inner"][..], &class].concat());
    expect![[r#"
        1 object, 1 B in TIME
        exit: 0
    "#]]
    .assert_eq(&run(&["get", "s3://box/dir/inner", "out/"]));
    expect![[r#"
        0 objects, 0 B in TIME
        err: dir/inner: "out/dir" is in the way: not a folder
        err: fulgurite: 1 of 1 objects could not be fetched
        exit: 1
    "#]]
    .assert_eq(&run(&["get", "s3://box/dir", "out"]));
}

//! Pipes, single files, server-side copies, and synced folders.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use expect_test::expect;

use crate::objects::without_times;
use crate::process::{Server, fold, fulgurite, transcript};

/// Returns a command in `folder`, for the archive in `folder/data`.
fn command(folder: &Path, args: &[&str]) -> std::process::Command {
    let mut command = fulgurite(args);
    command.current_dir(folder).env("FULGURITE_DATA", folder.join("data"));
    command
}

fn run(folder: &Path, args: &[&str]) -> String {
    fold(&without_times(&transcript(&mut command(folder, args))))
}

/// Runs the same with `input` on standard input.
fn run_with(folder: &Path, input: &[u8], args: &[&str]) -> String {
    let mut command = command(folder, args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    text.push_str(&format!("exit: {}\n", output.status.code().unwrap()));
    fold(&without_times(&text))
}

const CLASS: [&str; 2] = ["--storage-class", "STANDARD"];

#[test]
fn pipes_and_single_files_are_transferred() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let _server = Server::start(&root.join("data"), &[]);
    run(root, &["mb", "s3://box"]);
    let put =
        |input: &[u8], url: &str| run_with(root, input, &[&["put", "-", url][..], &CLASS].concat());
    expect![["1 object, 6 B in TIME\nexit: 0\n"]].assert_eq(&put(b"hello\n", "s3://box/a/hi"));
    // Above 64 MiB it is uploaded in parts; the length is not known beforehand.
    let large = b"seventy mebibytes of no great variety.. ".repeat((70 << 20) / 40);
    expect![["1 object, 70 MiB in TIME\nexit: 0\n"]].assert_eq(&put(&large, "s3://box/large"));
    let got = command(root, &["cat", "s3://box/a/hi", "s3://box/large"]).output().unwrap();
    assert!(got.status.success());
    assert!(got.stdout == [b"hello\n", &large[..]].concat(), "both, one after the other");
    expect![["hello\nexit: 0\n"]].assert_eq(&run(root, &["get", "s3://box/a/hi", "-"]));
    run(root, &["get", "s3://box/a/hi", "there"]);
    assert_eq!(fs::read(root.join("there")).unwrap(), b"hello\n");
    fs::create_dir(root.join("into")).unwrap();
    run(root, &["get", "s3://box/a/hi", "into"]);
    run(root, &["get", "s3://box/a/hi", "made/"]);
    for path in ["into/hi", "made/hi"] {
        assert_eq!(fs::read(root.join(path)).unwrap(), b"hello\n", "{path}");
    }
    let refused = [
        (&["put", "-", "s3://box"][..], "standard input has no name: write s3://box/KEY"),
        (
            &["put", "-", "there", "s3://box/x"],
            "standard input (-) is one object: pass no other path",
        ),
        (&["get", "s3://box/a/hi", "/dev/null"], "\"/dev/null\" is not a regular file"),
        (&["cat", "s3://box/a"], "s3://box/a is a folder of 1 object: name one object"),
        (&["cat", "--json", "s3://box/a/hi"], "standard output takes the object's bytes"),
    ];
    for (args, message) in refused {
        let shown = run(root, args).replace("\n   ", "");
        assert!(shown.contains(message) && shown.ends_with("exit: 2\n"), "{shown}");
    }
    assert!(run(root, &["cat", "s3://box/none"]).ends_with("exit: 4\n"));
}

#[test]
fn broken_pipe_does_not_stop_an_upload() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let _server = Server::start(&root.join("data"), &[]);
    fs::create_dir(root.join("many")).unwrap();
    for number in 0..200 {
        fs::write(root.join(format!("many/{number}")), b"x").unwrap();
    }
    let closed = |args: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut child = command(root, args);
        let output = child.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert_eq!(output.status.code(), Some(0), "{args:?}");
    };
    closed(&["put", "--json", "--make-bucket", "many/", "s3://box", CLASS[0], CLASS[1]]);
    let listed = command(root, &["ls", "--json", "s3://box"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&listed.stdout).lines().count(), 200);
    closed(&["ls", "s3://box"]);
    closed(&["cat", "s3://box/7"]);
    closed(&["rm", "--recursive", "--json", "s3://box"]);
    assert!(run(root, &["ls", "s3://box"]).contains("s3://box is empty"));
}

#[test]
fn cp_and_mv_run_on_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let _server = Server::start(&root.join("data"), &[]);
    run(root, &["mb", "s3://one"]);
    run(root, &["mb", "s3://two"]);
    for key in ["f/a", "f/sub/b c+%", "single"] {
        let url = format!("s3://one/{key}");
        run_with(root, key.as_bytes(), &[&["put", "-", &url][..], &CLASS].concat());
    }
    expect![["copied 1 object, 6 B in TIME\nexit: 0\n"]]
        .assert_eq(&run(root, &["cp", "s3://one/single", "s3://two"]));
    expect![["copied 2 objects, 14 B in TIME\nexit: 0\n"]]
        .assert_eq(&run(root, &["cp", "--recursive", "s3://one/f", "s3://two/copy"]));
    expect![["f/sub/b c+%exit: 0\n"]].assert_eq(&run(root, &["cat", "s3://two/copy/f/sub/b c+%"]));
    expect![["moved 2 objects, 14 B in TIME\nexit: 0\n"]]
        .assert_eq(&run(root, &["mv", "-r", "s3://two/copy/f/", "s3://two/g"]));
    let keys = |url: &str| {
        let listed = command(root, &["ls", "--json", "-r", url]).output().unwrap();
        let object = |line: &str| {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            format!("{} {}", object["key"].as_str().unwrap(), object["class"].as_str().unwrap())
        };
        String::from_utf8_lossy(&listed.stdout).lines().map(object).collect::<Vec<_>>()
    };
    assert_eq!(keys("s3://two"), ["g/a STANDARD", "g/sub/b c+% STANDARD", "single STANDARD"]);
    run(root, &["cp", "--storage-class", "DEEP_ARCHIVE", "s3://two/g/a", "s3://two/g/a"]);
    assert_eq!(keys("s3://two/g/a"), ["g/a DEEP_ARCHIVE"], "a copy onto itself changes the class");
    expect![[r#"
        moved 0 objects, 0 B in TIME
        err: g/a: s3://two/g/a is archived; first run: fulgurite restore --wait
            s3://two/g/a
        err: fulgurite: 1 of 1 objects could not be moved
        exit: 5
    "#]]
    .assert_eq(&run(root, &["mv", "s3://two/g/a", "s3://two/h"]));
    for args in [
        &["mv", "s3://one/single", "s3://one/single"][..],
        &["mv", "--recursive", "s3://one/f/", "s3://one/f"],
        &["cp", "s3://one/f", "s3://two"],
        &["mv", "s3://one", "s3://two"],
    ] {
        let before = (keys("s3://one"), keys("s3://two"));
        assert!(run(root, args).ends_with("exit: 2\n"), "{args:?}");
        assert_eq!((keys("s3://one"), keys("s3://two")), before, "{args:?}");
    }
}

#[test]
fn sync_mirrors_folder_and_prefix() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let _server = Server::start(&root.join("data"), &[]);
    fs::create_dir_all(root.join("from/sub/empty")).unwrap();
    fs::write(root.join("from/a"), b"one").unwrap();
    fs::write(root.join("from/sub/b"), b"two").unwrap();
    std::os::unix::fs::symlink("a", root.join("from/link")).unwrap();
    let up = |more: &[&str]| {
        let args = ["sync", "from", "s3://box/p", "--make-bucket"];
        run(root, &[&args[..], &CLASS, more].concat())
    };
    expect![[r#"
        put 3 objects, 6 B, and deleted 0 in TIME; 0 unchanged
        err: skipped 1 entry: links and special files
        exit: 0
    "#]]
    .assert_eq(&up(&[]));
    assert!(up(&[]).starts_with("put 0 objects, 0 B, and deleted 0 in TIME; 3 unchanged"));
    // The same size and other bytes; the modification time shows the change.
    fs::write(root.join("from/a"), b"ONE").unwrap();
    let old = fs::File::options().write(true).open(root.join("from/sub/b")).unwrap();
    old.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1)).unwrap();
    expect![[r#"
        put            3 B  time         p/a
        put            3 B  time         p/sub/b
        would put 2 objects, 6 B, and delete 0; 1 unchanged
        err: skipped 1 entry: links and special files
        exit: 0
    "#]]
    .assert_eq(&up(&["--dry-run"]));
    let same = up(&["--checksum"]);
    assert!(same.starts_with("put 1 object, 3 B, and deleted 0 in TIME; 2 unchanged"), "{same}");

    let down = |more: &[&str]| run(root, &[&["sync", "s3://box/p", "to"][..], more].concat());
    let got = down(&[]);
    assert!(got.starts_with("fetched 3 objects, 6 B, and deleted 0 in TIME; 0 unchanged"), "{got}");
    assert_eq!(fs::read(root.join("to/a")).unwrap(), b"ONE");
    assert!(root.join("to/sub/empty").is_dir());
    let time = |path: &str| fs::metadata(root.join(path)).unwrap().modified().unwrap();
    assert_eq!(time("to/a"), time("from/a"), "a file keeps its time");
    let again = down(&["--delete"]);
    assert!(again.starts_with("fetched 0 objects, 0 B, and deleted 0 in TIME; 3"), "{again}");

    fs::remove_dir_all(root.join("from/sub")).unwrap();
    assert!(up(&["--delete"]).starts_with("put 0 objects, 0 B, and deleted 2 in TIME; 1 unch"));
    fs::create_dir_all(root.join("to/more/deep")).unwrap();
    fs::write(root.join("to/more/deep/file"), b"x").unwrap();
    fs::write(root.join("to/.fulgurite-abc.part"), b"cut short").unwrap();
    assert!(down(&["--delete"]).starts_with("fetched 0 objects, 0 B, and deleted 3 in TIME; 1"));
    assert!(!root.join("to/more").exists() && !root.join("to/sub").exists());
    assert!(root.join("to/.fulgurite-abc.part").exists(), "not a file of either side");

    fs::remove_file(root.join("from/a")).unwrap();
    fs::remove_file(root.join("from/link")).unwrap();
    expect![[r#"
        err: fulgurite: the source is empty: --delete would delete all 1 entry of the
            target; if that is meant, delete them yourself
        exit: 2
    "#]]
    .assert_eq(&up(&["--delete"]));
    assert!(run(root, &["sync", "nowhere", "s3://box/p", "--delete"]).ends_with("exit: 4\n"));
    assert!(run(root, &["sync", "from", "to"]).ends_with("exit: 2\n"));
}

#[test]
fn sync_restores_archived_objects() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let _server = Server::start(&root.join("data"), &[]);
    fs::create_dir(root.join("from")).unwrap();
    fs::write(root.join("from/a"), b"one").unwrap();
    fs::write(root.join("from/b"), b"two").unwrap();
    run(root, &["sync", "from", "s3://box", "--make-bucket"]);
    run(root, &["archive", "seal"]);
    fs::create_dir(root.join("to")).unwrap();
    fs::copy(root.join("from/a"), root.join("to/a")).unwrap();
    // Only what is needed is requested: `a` exists.
    expect![[r#"
        fetched 0 objects, 0 B, and deleted 0 in TIME; 1 unchanged
        err: b is archived (DEEP_ARCHIVE)
        err: fulgurite: 1 object on glass, not fetched: add --restore, and --wait to
            wait for them
        exit: 5
    "#]]
    .assert_eq(&run(root, &["sync", "s3://box", "to", "--checksum"]));
    expect![[r#"
        fetched 1 object, 3 B, and deleted 0 in TIME; 1 unchanged
        exit: 0
    "#]]
    .assert_eq(&run(root, &["sync", "s3://box", "to", "--checksum", "--restore", "--wait"]));
    assert_eq!(fs::read(root.join("to/b")).unwrap(), b"two");
    expect![[r#"
        archived   1 object, 3 B
        restored   1 object, 3 B
        exit: 0
    "#]]
    .assert_eq(&run(root, &["status", "--summary", "s3://box"]));
}

#[test]
fn admin_seal_verify_and_status_report_state() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let _server = Server::start(&root.join("data"), &[]);
    expect![["verdict: nothing is on glass yet\nexit: 0\n"]]
        .assert_eq(&run(root, &["archive", "verify"]));
    expect![["nothing is staged: 0 objects on glass already, in 0 sets\nexit: 0\n"]]
        .assert_eq(&run(root, &["archive", "seal"]));
    fs::write(root.join("file"), b"x").unwrap();
    run(root, &["put", "--make-bucket", "file", "s3://box"]);
    run(root, &["archive", "seal"]);
    expect![["nothing is staged: 1 object on glass already, in 1 set\nexit: 0\n"]]
        .assert_eq(&run(root, &["archive", "seal"]));
    let status = run(root, &["archive", "status"]);
    assert!(status.contains("pipeline   idle\n") && !status.contains("failure"), "{status}");
    let sound = run(root, &["archive", "verify"]);
    let verdict = "verdict: sound, 4 platters read whole and none needs another\nexit: 0\n";
    assert!(sound.ends_with(verdict), "{sound}");
    run(root, &["restore", "--wait", "s3://box/file"]);
    let sound = transcript(&mut command(root, &["archive", "verify"]));
    let verdict = "read whole and none needs another; 1 restored copy as well\nexit: 0\n";
    assert!(sound.ends_with(verdict), "{sound}");
    for copy in fs::read_dir(root.join("data/restored")).unwrap() {
        let path = copy.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        bytes.iter_mut().for_each(|byte| *byte ^= 1);
        fs::write(&path, bytes).unwrap();
    }
    let damaged = transcript(&mut command(root, &["archive", "verify", "--json"]));
    let line = damaged.lines().find(|line| line.contains("is_dropped")).unwrap();
    let copy: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((&copy["bucket"], &copy["key"]), (&"box".into(), &"file".into()));
    assert_eq!(copy["is_dropped"], true);
    assert!(damaged.contains("exit: 8"), "{damaged}");
    let sound = transcript(&mut command(root, &["archive", "verify"]));
    assert!(sound.ends_with("4 platters read whole and none needs another\nexit: 0\n"), "{sound}");
    let platters = fs::read_dir(root.join("data/platters")).unwrap();
    let first = platters.map(|entry| entry.unwrap().path()).min().unwrap();
    let bytes = fs::read(&first).unwrap();
    fs::write(&first, vec![0; bytes.len()]).unwrap();
    let damaged = run(root, &["archive", "verify"]);
    assert!(
        damaged.contains("verdict: damaged, 1 of 4 platters cannot be read alone"),
        "{damaged}"
    );
    assert!(damaged.ends_with("exit: 8\n"), "{damaged}");
    for (choice, is_colored) in [("always", true), ("never", false), ("auto", false)] {
        let shown = run(root, &["archive", "verify", "--color", choice]);
        assert_eq!(shown.contains("\u{1b}["), is_colored, "{choice}: a pipe is no terminal");
    }
}

#[test]
fn status_reports_sets_that_fail_to_seal() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let _server = Server::start(&root.join("data"), &[]);
    fs::write(root.join("file"), b"x").unwrap();
    run(root, &["put", "--make-bucket", "file", "s3://box"]);
    fs::remove_dir(root.join("data/platters")).unwrap();
    let sealed = run(root, &["archive", "seal"]);
    assert!(!sealed.ends_with("exit: 0\n"), "{sealed}");
    let status = transcript(&mut command(root, &["archive", "status"]));
    let failure = status.lines().find(|line| line.starts_with("failure    set "));
    let failure = failure.unwrap_or_else(|| panic!("{status}"));
    assert!(failure.contains("waits, next try in") && failure.contains("No such file"), "{status}");
    fs::create_dir(root.join("data/platters")).unwrap();
    run(root, &["archive", "seal"]);
    let status = transcript(&mut command(root, &["archive", "status"]));
    assert!(!status.contains("failure"), "{status}");
}

//! A first start is killed at every step of what it creates: keys, rack, tomes, archive and
//! certificate. The next start continues, and completes all of it. A start that is refused creates
//! nothing.
//!
//! It runs itself as the process that is killed, so it has its own `main`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "a process is looked at until it is as far as that, and has its own environment"
)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;
use fulgurite_archive_commands::serve::{ServeArgs, serve};
use fulgurite_terminal::output::Output;
use rustix::process::{Pid, Signal, kill_process};

/// The first argument of a server process; its flags follow.
const SERVER: &str = "server";
const TOMES: usize = 8;
/// Names of fail points, and at which passes through each.
const POINTS: [(&str, &[u32]); 6] = [
    ("rack-index-made", &[0]),
    ("rack-disk-named", &[0, 3]),
    ("rack-disk-made", &[0, 3]),
    ("tomes-store-made", &[0]),
    ("tomes-set-made", &[0]),
    ("tomes-disk-named", &[0, 5]),
];
/// The files that a start creates, in order: it is killed as soon as one exists.
const PATHS: [&str; 24] = [
    "credentials.part",
    "credentials.toml",
    "tiers/rack/ledger.new",
    "tiers/rack/ledger",
    "tiers/rack/index",
    "tiers/rack/staging",
    "tiers/tomes/lock",
    "tiers/tomes/set",
    "tiers/tomes/tome-0000/awake",
    "tiers/tomes/tome-0007/spin-ups.jsonl",
    "tiers/tomes/index",
    "lock",
    "catalog",
    "platters",
    "keys/master.part",
    "keys/master.key",
    "archive.json",
    "keys/table",
    "keys/table.copy",
    "catalog.mark",
    "tls",
    "tls/key.pem",
    "tls/cert.pem",
    "server.json",
];
const START_WITHIN: Duration = Duration::from_secs(120);

/// The flags of a server process.
#[derive(Debug, Parser)]
struct Flags {
    #[command(flatten)]
    args: ServeArgs,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).map(String::as_str) == Some(SERVER) {
        let flags = Flags::parse_from(&arguments[1..]);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        if let Err(error) = runtime.block_on(serve(&flags.args, &Output::new(true))) {
            panic!("{error:#}");
        }
        return;
    }
    // Like the test harness: a filter with another name runs none of these.
    let filter = arguments.iter().skip(1).find(|argument| !argument.starts_with('-'));
    if filter.is_some_and(|filter| !"making".contains(filter.as_str())) {
        return;
    }
    // Servers inherit this umask, and must still create nothing that others may read.
    rustix::process::umask(rustix::fs::Mode::empty());
    refused_starts_create_nothing();
    for (point, passages) in POINTS {
        for passage in passages {
            let context = format!("killed at {point}, passage {passage}");
            check(&context, |data| {
                let mut server = start(data, Some(&format!("{point}:{passage}")));
                let status = server.wait().unwrap();
                assert_eq!(status.signal(), Some(9), "{context}: {}", read_stderr(&mut server));
            });
        }
    }
    for path in PATHS {
        check(&format!("killed when there was {path}"), |data| kill_at(data, path));
    }
    // Killed at one after the other, in the same folder.
    check("killed at every step", |data| {
        for path in PATHS {
            kill_at(data, path);
        }
    });
    disks_of_a_lost_index_are_not_reused();
}

/// The address in use, a second tier that does not open, TLS files that are missing: nothing is
/// created, not even the data directory. With an archive there, no new tier is.
fn refused_starts_create_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let refused = |arguments: &[&str]| {
        let mut server = command(&data, None).args(arguments).spawn().unwrap();
        let status = server.wait().unwrap();
        let errors = read_stderr(&mut server);
        assert!(!status.success(), "{arguments:?}: {errors}");
        errors
    };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (cold, gone) = ("cold=rack:laptop", "sites=geo:/nowhere/map.toml");
    let free = ["--listen", "127.0.0.1:0"];
    let errors = refused(&["--tier", cold, "--listen", &address]);
    assert!(errors.contains(&format!("cannot listen on {address}")), "{errors}");
    assert!(errors.contains("--listen"), "{errors}");
    let errors = refused(&[&free[..], &["--tier", cold, "--tier", gone]].concat());
    assert!(errors.contains("/nowhere/map.toml"), "{errors}");
    let errors =
        refused(&[&free[..], &["--tier", cold, "--tls", "/nowhere/c,/nowhere/k"]].concat());
    assert!(errors.contains("/nowhere/c"), "{errors}");
    assert!(!data.exists());
    kill_at(&data, "server.json");
    std::fs::rename(data.join("catalog"), data.join("away")).unwrap();
    std::fs::write(data.join("platters/00.glass"), b"").unwrap();
    let tiers = ["--tier", "tomes=tome:8", "--tier", cold];
    let errors = refused(&[&free[..], &tiers].concat());
    assert!(errors.contains("the catalog is missing"), "{errors}");
    assert!(!data.join("tiers/cold").exists());
}

/// An index without a rack id is left by a killed start, but also when an index was emptied: the
/// disks tell these apart.
fn disks_of_a_lost_index_are_not_reused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    kill_at(&data, "server.json");
    let index = data.join("tiers/rack/index");
    std::fs::remove_dir_all(&index).unwrap();
    std::fs::create_dir(&index).unwrap();
    let before = texts(&data, "fulgurite-disk.json");
    let mut server = start(&data, None);
    let status = server.wait().unwrap();
    let errors = read_stderr(&mut server);
    assert!(!status.success() && errors.contains("its index is lost"), "{status}: {errors}");
    assert!(errors.contains("fulgurite tier recover rack"), "{errors}");
    assert_eq!(texts(&data, "fulgurite-disk.json"), before);
}

/// Interrupts a start, and checks that the next one creates everything that a first start does.
fn check(context: &str, cut_short: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    cut_short(&data);
    // The file of the killed server must not be mistaken for that of the next.
    let _ = std::fs::remove_file(data.join("server.json"));
    let mut server = start(&data, None);
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line.is_empty() {
        let status = server.wait().unwrap();
        panic!("{context}: the next start ended ({status}): {}", read_stderr(&mut server));
    }
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    let status = server.wait().unwrap();
    let errors = read_stderr(&mut server);
    assert!(status.success(), "{context}: {status}: {errors}");
    let places = fulgurite_rack_core::presets::shape("laptop").unwrap().places().count();
    for (name, count) in [
        ("fulgurite-disk.json", places),
        ("fulgurite-disk.copy.json", places),
        ("fulgurite-tome.json", TOMES),
        ("fulgurite-tome.copy.json", TOMES),
    ] {
        assert_eq!(texts(&data, name).len(), count, "{context}: {name}");
    }
    assert_eq!(accessible_to_others(&data), [] as [PathBuf; 0], "{context}");
    for path in ["keys/master.key", "keys/table", "tls/key.pem", "tls/cert.pem", "archive.json"] {
        assert!(data.join(path).exists(), "{context}: {path}");
    }
}

fn start(data: &Path, point: Option<&str>) -> Child {
    let mut command = command(data, point);
    command.args(["--listen", "127.0.0.1:0", "--tls", "auto"]);
    command.args(["--tier", "rack=rack:laptop", "--tier", &format!("tomes=tome:{TOMES}")]);
    command.spawn().unwrap()
}

fn command(data: &Path, point: Option<&str>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("FULGURITE_") {
            command.env_remove(&name);
        }
    }
    command.args([SERVER, "--profile", "demo"]);
    command.arg("--data").arg(data);
    command.env("FULGURITE_FAIL_POINT", point.unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts, and kills the server as soon as a path exists.
fn kill_at(data: &Path, path: &str) {
    let _ = std::fs::remove_file(data.join("server.json"));
    let mut server = start(data, None);
    let began = Instant::now();
    // A short-lived path may be missed: then it is killed at the end of the start.
    while !data.join(path).exists() && !data.join("server.json").exists() {
        if let Some(status) = server.try_wait().unwrap() {
            panic!("{path}: it ended ({status}): {}", read_stderr(&mut server));
        }
        assert!(began.elapsed() < START_WITHIN, "{path} does not come");
        std::thread::yield_now();
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

fn read_stderr(server: &mut Child) -> String {
    let mut text = String::new();
    if let Some(mut errors) = server.stderr.take() {
        errors.read_to_string(&mut text).unwrap();
    }
    text
}

/// Returns the paths in and below a folder that others than the owner can access.
fn accessible_to_others(path: &Path) -> Vec<PathBuf> {
    let found = std::fs::symlink_metadata(path).unwrap();
    let mut open = Vec::new();
    if found.mode() & 0o077 != 0 {
        open.push(path.to_owned());
    }
    if found.is_dir() {
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        open.extend(entries.flat_map(|path| accessible_to_others(&path)));
    }
    open
}

/// Returns files of a name, anywhere below a folder, with their contents.
fn texts(folder: &Path, name: &str) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(texts(&path, name));
        } else if path.ends_with(name) {
            found.insert(path.clone(), std::fs::read_to_string(&path).unwrap());
        }
    }
    found
}

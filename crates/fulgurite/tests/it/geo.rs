//! A tier over several sites, operated with a server and without one: both give the same.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{Server, fulgurite};

const SITES: [&str; 3] = ["lisbon", "oslo", "turin"];

/// A folder with three sites, their map, and the data directory of an archive.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        let mut map = "name = \"records\"\ndata = 2\nparity = 1\nround = \"500ms\"\n\
                       patience = \"2s\"\nlease = \"3s\"\n"
            .to_owned();
        for site in SITES {
            let url = place.url(site);
            map += &format!("[[sites]]\nname = \"{site}\"\ntable = \"{url}\"\nblobs = \"{url}\"\n");
        }
        fs::write(place.folder.path().join("sites.toml"), map).unwrap();
        place
    }

    fn url(&self, site: &str) -> String {
        format!("dir://{}", self.folder.path().join(site).display())
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn tier(&self) -> String {
        format!("sites=geo:{}", self.folder.path().join("sites.toml").display())
    }

    /// Runs `tier VERB sites`; returns the exit code, the last object printed, and messages.
    fn run(&self, verb: &str, more: &[&str]) -> (i32, Value, String) {
        let (data, tier) = (self.data(), self.tier());
        let mut args = vec!["--json", "tier", verb, "sites"];
        args.extend(more);
        args.extend(["--data", data.to_str().unwrap(), "--tier", &tier]);
        let output = fulgurite(&args).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let last =
            printed.lines().last().map_or(Value::Null, |line| serde_json::from_str(line).unwrap());
        let messages = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), last, messages)
    }

    /// The same, for what must succeed.
    fn report(&self, verb: &str, more: &[&str]) -> Value {
        let (code, report, messages) = self.run(verb, more);
        assert_eq!(code, 0, "{verb}: {report} {messages}");
        report
    }
}

/// Loses a site, replaces it by an empty one, and runs every other operation.
fn operate(place: &Place, lost: &str, by: &str) {
    for (verb, more, code, words) in [
        ("retire", &["oslo"][..], 2, "has no operation retire; it has: verify, scrub, replace"),
        ("rebuild", &["1"], 2, "has no operation rebuild"),
        ("scrub", &["oslo"], 2, "scrub is for the whole tier"),
        ("replace", &[lost], 2, "--table URL, --blobs URL"),
        ("replace", &[lost, "--table", "ftp://x"], 2, "its scheme is unknown"),
        ("replace", &["porto", "--table", "dir:///x"], 4, "it has lisbon, oslo, turin"),
    ] {
        let (found, _, messages) = place.run(verb, more);
        assert_eq!(found, code, "{verb}: {messages}");
        assert!(messages.contains(words), "{verb}: {messages}");
    }
    let verified = place.report("verify", &[]);
    assert_eq!((&verified["damaged"], &verified["problems"]), (&json!([]), &json!([])));
    let scrubbed = place.report("scrub", &[]);
    assert_eq!(scrubbed["whole"], scrubbed["objects"]);
    assert_eq!(place.report("collect", &[])["swept"], 0);
    fs::remove_dir_all(place.folder.path().join(lost)).unwrap();
    let url = place.url(by);
    let replaced = place.report("replace", &[lost, "--table", &url, "--blobs", &url]);
    assert!(replaced["replaced"].is_u64(), "{replaced}");
    assert_eq!(place.report("status", &[])["epoch"], replaced["replaced"]);
    assert!(Path::new(&url["dir://".len()..]).is_dir());
}

#[test]
fn sites_are_operated_with_and_without_a_server() {
    let place = Place::new();
    let (code, _, messages) = place.run("status", &[]);
    assert_eq!(code, 7, "{messages}");
    assert_eq!(place.report("init", &[])["epoch"], 1);
    let (code, _, messages) = place.run("init", &[]);
    assert_eq!(code, 3, "{messages}");
    assert!(messages.contains("has rows"), "{messages}");
    operate(&place, "oslo", "oslo-2");

    let tier = place.tier();
    let server = Server::start(&place.data(), &["--tier", &tier]);
    operate(&place, "turin", "turin-2");
    assert_eq!(server.terminate(), Some(0));
}

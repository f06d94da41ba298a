//! Processes that are killed at the fail points of a tier.
//!
//! ```text
//! the test --> the test itself, as the process that is killed: writes, prints what was
//!     |        acknowledged, line by line
//!     '------> opens what that left, and compares it with the lines
//! ```
//!
//! The test has a `main` of its own: [`CrashSuite::main`].

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread::scope;

use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _};

use super::fixture::bytes_of;
use crate::FailPoints;

/// First argument of the process that is killed; the folder, the fail point and the count follow.
const VICTIM: &str = "victim";

/// The last line of a process that was not killed.
const DONE: &str = "done";

/// The objects of [`Victim::put_and_delete`].
const KEYS: [&str; 4] = ["0", "1", "2", "3"];

/// A test that kills a process at each of these fail points.
#[derive(Clone, Copy, Debug)]
pub struct CrashSuite {
    /// All fail points; the process passes each of them.
    pub points: &'static [&'static str],
    /// Passages of a point at which it is killed.
    pub passages: &'static [u32],
    /// Processes that run at a time.
    pub parallel: usize,
    /// What the process does.
    pub work: fn(&Victim),
    /// Checks what it left in a folder.
    pub check: fn(&Path, &Output),
}

impl CrashSuite {
    /// Runs the test and returns true; or, in the process that is killed, does what that does. Like
    /// a test harness, it runs nothing if the filter is for another test.
    ///
    /// # Panics
    /// When a check fails.
    pub fn main(&self) -> bool {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        if let [first, folder, point, count] = &arguments[..]
            && first == VICTIM
        {
            let (folder, point) = (folder.into(), point.clone());
            let victim = Victim { folder, point, count: count.parse().unwrap() };
            (self.work)(&victim);
            victim.print(DONE);
            return false;
        }
        let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
        if filter.is_some_and(|filter| !"crash".contains(filter.as_str())) {
            return false;
        }
        self.kill_at_each();
        true
    }

    #[expect(clippy::disallowed_methods, reason = "most of the time of a process is waiting")]
    fn kill_at_each(&self) {
        let passages =
            |point: &'static &'static str| self.passages.iter().map(move |count| (*point, *count));
        let all: Vec<(&str, u32)> = self.points.iter().flat_map(passages).collect();
        let (all, killed) = (Mutex::new(all.into_iter()), Mutex::new(BTreeSet::new()));
        let next = || all.lock().unwrap().next();
        scope(|scope| {
            for _ in 0..self.parallel {
                scope.spawn(|| {
                    while let Some((point, count)) = next() {
                        if self.kill_at(point, count) {
                            killed.lock().unwrap().insert(point);
                        }
                    }
                });
            }
        });
        let points: BTreeSet<&str> = self.points.iter().copied().collect();
        assert_eq!(killed.into_inner().unwrap(), points, "every fail point is reached");
    }

    /// Has a process killed at a passage of a point, and checks what it left. Returns whether it
    /// was killed.
    fn kill_at(&self, point: &str, count: u32) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let process = Command::new(std::env::current_exe().unwrap())
            .args([VICTIM, folder.path().to_str().unwrap(), point, &count.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let lines = String::from_utf8(process.stdout).unwrap();
        let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        let was_killed = process.status.code().is_none();
        let is_done = lines.last().is_some_and(|last| last == DONE);
        let error = String::from_utf8_lossy(&process.stderr);
        assert!(was_killed || is_done, "{point}: {} {error}", process.status);
        let context = format!("{point}, passage {count}");
        (self.check)(folder.path(), &Output { lines, context });
        was_killed
    }
}

/// The process that is killed.
#[derive(Debug)]
pub struct Victim {
    /// Its folder.
    pub folder: PathBuf,
    /// The fail point.
    pub point: String,
    /// The passage of it, from 0.
    pub count: u32,
}

impl Victim {
    /// Returns the fail points, with the one armed at which it is killed.
    ///
    /// # Panics
    /// When it is none of them.
    #[must_use]
    pub fn fail_points(&self, points: &'static [&'static str]) -> FailPoints {
        FailPoints::armed(points, &self.point, self.count).unwrap()
    }

    /// Prints a line, which is there when the process is killed later.
    ///
    /// # Panics
    /// When that fails.
    pub fn print(&self, line: &str) {
        let mut out = std::io::stdout().lock();
        // In one piece: it may be killed at any time.
        out.write_all(format!("{line}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    }

    /// Puts an object, and prints that it is acknowledged.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn put<T, E>(&self, key: &str, put: impl Future<Output = Result<T, E>>) -> T
    where
        E: std::fmt::Debug,
    {
        let done = put.await.unwrap();
        self.print(&format!("put {key}"));
        done
    }

    /// Deletes an object, and prints that it is to be deleted, and that it was.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn delete<E>(&self, key: &str, delete: impl Future<Output = Result<(), E>>)
    where
        E: std::fmt::Debug,
    {
        self.print(&format!("deleting {key}"));
        delete.await.unwrap();
        self.print(&format!("deleted {key}"));
    }

    /// Puts objects of this size, deletes one, and puts others.
    ///
    /// # Panics
    /// When that is refused.
    pub async fn put_and_delete(&self, store: &dyn ObjectStore, length: usize) {
        for key in KEYS {
            self.put(key, store.put(&Key::from(key), bytes_of(key, length).into())).await;
            if key == "1" {
                self.delete(key, store.delete(&Key::from(key))).await;
            }
        }
    }
}

/// What a process printed.
#[derive(Debug)]
pub struct Output {
    lines: Vec<String>,
    /// Where it was killed.
    pub context: String,
}

impl Output {
    /// Whether it printed a line.
    #[must_use]
    pub fn has(&self, line: &str) -> bool {
        self.lines.iter().any(|printed| printed == line)
    }

    /// Returns the rest of each line that begins so.
    pub fn after(&self, start: &str) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(move |line| line.strip_prefix(start))
    }

    /// Checks what was found of an object: acknowledged, it is there; deleted, it is gone; and it
    /// is whole.
    ///
    /// # Panics
    /// When it is not so.
    pub fn check(&self, key: &str, found: Option<&[u8]>, expected: &[u8]) {
        let context = &self.context;
        let is_wanted = self.has(&format!("put {key}")) && !self.has(&format!("deleting {key}"));
        assert!(found.is_some() || !is_wanted, "{context}: {key} was acknowledged");
        let is_gone = self.has(&format!("deleted {key}"));
        assert!(found.is_none() || !is_gone, "{context}: deleted {key} is back");
        assert!(found.is_none_or(|found| found == expected), "{context}: {key}");
    }

    /// Checks the objects of [`Victim::put_and_delete`]. Returns how many there are.
    ///
    /// # Panics
    /// When one is lost, is back or is not whole.
    pub async fn check_all(&self, store: &dyn ObjectStore, length: usize) -> usize {
        let mut count = 0;
        for key in KEYS {
            let found = match store.get(&Key::from(key)).await {
                Ok(found) => Some(found.bytes().await.unwrap()),
                Err(object_store::Error::NotFound { .. }) => None,
                Err(error) => panic!("{}: {key}: {error}", self.context),
            };
            self.check(key, found.as_deref(), &bytes_of(key, length));
            count += usize::from(found.is_some());
        }
        count
    }
}

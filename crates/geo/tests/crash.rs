//! A table in a directory whose process is killed, at every step of a change and at random moments:
//! the row is the old one or the new one, complete, and the table stays usable. Also a table that
//! several processes use concurrently, and a server over sites with such tables that is killed at
//! the same steps.
//!
//! It starts itself as those processes, so it has its own `main`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "crash/sites.rs"]
mod sites;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_geo::stores::{
    DirectoryStep, DirectoryTable, Entropy, Expect, FaultHook, Key, Table, TableError,
};
use fulgurite_units::Seed;
use futures::TryStreamExt as _;

/// First argument of a process that is killed; the folder and the step follow.
const WRITER: &str = "writer";
/// First argument of a process that counts; the folder follows.
const COUNTER: &str = "counter";
/// Processes that count, and increments of each.
const COUNTERS: u64 = 4;
const INCREMENTS: u64 = 40;
/// Kills at random moments.
const KILLS: u64 = 25;

fn entropy(seed: u64) -> Entropy {
    let (seed, drawn) = (Seed::new(seed), AtomicU64::new(0));
    Entropy::new(move || {
        let mut bytes = [0; 16];
        let number = drawn.fetch_add(1, Ordering::SeqCst);
        seed.child(&number.to_le_bytes()).stream().fill(&mut bytes);
        bytes
    })
}

fn key() -> Key {
    Key::new("a/row").unwrap()
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[expect(clippy::print_stdout, reason = "a test without a harness prints its results")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|first| first == WRITER) {
        return run(run_victim(Path::new(&arguments[2]), arguments[3].parse().unwrap()));
    }
    if arguments.get(1).is_some_and(|first| first == COUNTER) {
        return run(count(Path::new(&arguments[2])));
    }
    if !sites::SUITE.main() {
        return;
    }
    run_counters();
    let mut left = BTreeSet::new();
    for step in 0..DirectoryStep::ALL.len() {
        left.insert((step, kill_before_step(step)));
    }
    // Before the rename the old row, after it the new one.
    let expected = (0..DirectoryStep::ALL.len()).map(|step| (step, step > 4));
    assert_eq!(left, expected.collect(), "which row is left after which step");
    kill_at_random_moments();
    println!("counted by {COUNTERS} concurrent processes");
    println!("killed at {} steps and {KILLS} moments", DirectoryStep::ALL.len());
}

/// Several processes increment one row; one of them creates the table.
fn run_counters() {
    let folder = tempfile::tempdir().unwrap();
    let counters = (0..COUNTERS).map(|_| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(COUNTER).arg(folder.path()).spawn().unwrap()
    });
    let mut counters: Vec<_> = counters.collect();
    assert!(counters.iter_mut().all(|counter| counter.wait().unwrap().success()));
    assert_eq!(reopen_and_read(folder.path()), COUNTERS * INCREMENTS);
}

/// Increments a row several times, concurrently with others.
async fn count(folder: &Path) {
    let table = DirectoryTable::open(folder, true, entropy(u64::from(std::process::id()))).unwrap();
    for _ in 0..INCREMENTS {
        loop {
            let row = table.read(&key()).await.unwrap();
            let next = row.as_ref().map_or(0, |row| number_of(&row.bytes)) + 1;
            let expect = row.map_or(Expect::Absent, |row| Expect::Is(row.tag));
            match table.cas(&key(), expect, image(next).into()).await {
                Ok(_) => break,
                Err(TableError::Conflict(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Writes rows forever and prints each acknowledged one; dies before a step of the second write.
async fn run_victim(folder: &Path, step: usize) {
    let passed = AtomicU64::new(0);
    let fault_hook = FaultHook::new(move |current| {
        if DirectoryStep::ALL.get(step) == Some(&current)
            && passed.fetch_add(1, Ordering::SeqCst) == 1
        {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
                .unwrap();
        }
        Ok(())
    });
    let table = DirectoryTable::open(folder, true, entropy(u64::from(std::process::id()))).unwrap();
    let table = table.with_fault_hook(fault_hook);
    let row = table.read(&key()).await.unwrap();
    let mut number = row.as_ref().map_or(0, |row| number_of(&row.bytes));
    let mut expect = row.map_or(Expect::Absent, |row| Expect::Is(row.tag));
    loop {
        number += 1;
        expect = Expect::Is(table.cas(&key(), expect, image(number).into()).await.unwrap());
        let mut out = std::io::stdout().lock();
        writeln!(out, "{number}").unwrap();
        out.flush().unwrap();
    }
}

/// Returns a row that reveals if it is a mix of two rows.
fn image(number: u64) -> Vec<u8> {
    format!("{number} ").repeat(3000).into_bytes()
}

fn number_of(row: &[u8]) -> u64 {
    let text = std::str::from_utf8(row).unwrap();
    let number = text.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(row, image(number), "a row is whole");
    number
}

fn victim(folder: &Path, step: usize) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(WRITER).arg(folder).arg(step.to_string());
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// Returns what a new process reads, and checks that it can write.
fn reopen_and_read(folder: &Path) -> u64 {
    run(async {
        let table = DirectoryTable::open(folder, false, entropy(0)).unwrap();
        let row = table.read(&key()).await.unwrap().expect("a row was acknowledged");
        let number = number_of(&row.bytes);
        let next = table.cas(&key(), Expect::Is(row.tag), image(number).into()).await.unwrap();
        assert_eq!(table.read(&key()).await.unwrap().unwrap().tag, next);
        let rows: Vec<_> = table.scan(None, None).try_collect().await.unwrap();
        assert_eq!(rows.len(), 1, "nothing else is left");
        number
    })
}

/// Returns whether the second row exists after a kill before a step of its change.
fn kill_before_step(step: usize) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let output = victim(folder.path(), step).wait_with_output().unwrap();
    assert_eq!(output.status.code(), None, "it was killed");
    assert_eq!(output.stdout, b"1\n", "it had acknowledged one row");
    reopen_and_read(folder.path()) == 2
}

/// Kills a process repeatedly while another writes; no acknowledged row is lost.
fn kill_at_random_moments() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Seed::new(8).stream();
    for _ in 0..KILLS {
        let mut victim = victim(folder.path(), usize::MAX);
        let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        // After some acknowledged rows it dies at a random moment.
        let mut last = 0;
        for _ in 0..=random.below(12) {
            last = lines.next().unwrap().unwrap().parse().unwrap();
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
        last = lines.map_while(Result::ok).last().map_or(last, |line| line.parse().unwrap());
        let number = reopen_and_read(folder.path());
        assert!((last..=last + 1).contains(&number), "{last} was acknowledged, {number} is stored");
    }
}

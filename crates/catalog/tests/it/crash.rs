//! Kills a committing process at a random moment, and checks what is left.
//!
//! The child is this test itself: an environment variable makes it commit until it is killed.
//! Each of its closures takes the next number from a counter row. Under that number it writes one
//! row in each of two spaces, and moves a window of recent rows in a third. So what is left must be
//! exactly the closures 1 to n, complete, with n at least the largest acknowledged number.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fulgurite_catalog::keys::{KeyReader, KeyWriter};
use fulgurite_catalog::{
    CatalogError, Committer, Direction, FjallConfig, FjallStore, KeyRange, ReadView, Space,
    Transaction,
};
use fulgurite_units::{ByteCount, RandomStream, Seed};

const COUNTER: Space = Space::new("counter");
const NAMES: Space = Space::new("names");
const BODIES: Space = Space::new("bodies");
const RECENT: Space = Space::new("recent");
const SPACES: [Space; 4] = [COUNTER, NAMES, BODIES, RECENT];

const CHILD_DIRECTORY: &str = "FULGURITE_CRASH_DIRECTORY";
const SEED: &str = "FULGURITE_CRASH_SEED";
const ROUNDS: u32 = 10;
const WRITERS: u32 = 4;
const RUN_MS_MAX: u64 = 250;
const RECENT_ROWS: u64 = 50;

/// Small, so that kills also hit flushes, compactions and journals of several runs.
const CONFIG: FjallConfig = FjallConfig {
    block_cache: ByteCount::mib(4),
    write_buffer: ByteCount::kib(256),
    worker_count: 2,
};

#[test]
fn acknowledged_closures_survive_a_kill_whole() {
    if let Ok(directory) = std::env::var(CHILD_DIRECTORY) {
        commit_until_killed(Path::new(&directory));
    }
    let seed = std::env::var(SEED)
        .map_or_else(|_| u64::from(std::process::id()), |seed| seed.parse().expect("a number"));
    eprint_seed(seed);
    let mut random = Seed::new(seed).stream();
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("catalog");
    let mut survived = 0;
    for round in 0..ROUNDS {
        let acknowledged = run_and_kill(&directory, &mut random);
        let store = FjallStore::open(&directory, &SPACES, &CONFIG).unwrap();
        let count = check(&store);
        assert!(count >= survived, "round {round}: {count} closures left of {survived}");
        assert!(count >= acknowledged, "round {round}: {count} left, {acknowledged} acknowledged");
        survived = count;
    }
    assert!(survived > u64::from(ROUNDS), "the children committed something");
}

#[expect(clippy::print_stderr, reason = "a failure must name its seed")]
fn eprint_seed(seed: u64) {
    eprintln!("{SEED}={seed}");
}

/// Runs the child for a random time. Returns the largest number it acknowledged.
fn run_and_kill(directory: &Path, random: &mut RandomStream) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::acknowledged_closures_survive_a_kill_whole"])
        .args(["--nocapture", "--test-threads", "1"])
        .env(CHILD_DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = child.stdout.take().unwrap();
    let run = Duration::from_millis(random.below(RUN_MS_MAX));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| last_acknowledged(output));
        kill_after(&mut child, run);
        reader.join().unwrap()
    })
}

fn kill_after(child: &mut Child, run: Duration) {
    // The moment of the kill is random on purpose; nothing depends on hitting it.
    std::thread::sleep(run);
    assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn last_acknowledged(output: ChildStdout) -> u64 {
    let mut last = 0;
    let mut output = BufReader::new(output);
    let mut line = String::new();
    while output.read_line(&mut line).unwrap() > 0 {
        // A line torn by the kill has no newline.
        let number = line.strip_prefix("acknowledged ").and_then(|rest| rest.strip_suffix('\n'));
        if let Some(number) = number {
            last = last.max(number.parse().unwrap());
        }
        line.clear();
    }
    last
}

fn commit_until_killed(directory: &Path) -> ! {
    let store = FjallStore::open(directory, &SPACES, &CONFIG).unwrap();
    let committer = Committer::start(Arc::new(store)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                loop {
                    let number = committer.commit_blocking(add_next).unwrap();
                    writeln!(std::io::stdout().lock(), "acknowledged {number}").unwrap();
                }
            });
        }
    });
    unreachable!("the writers never end")
}

fn add_next(rows: &mut Transaction<'_>) -> Result<u64, CatalogError> {
    let number = counter(rows)? + 1;
    rows.put(COUNTER, "count", KeyWriter::new().u64(number).finish())?;
    rows.put(NAMES, key(number), KeyWriter::new().u64(!number).finish())?;
    rows.put(BODIES, scattered_key(number), body(number))?;
    rows.put(RECENT, key(number), [])?;
    if number > RECENT_ROWS {
        rows.delete(RECENT, key(number - RECENT_ROWS))?;
    }
    Ok(number)
}

/// Asserts that the rows are those of the closures 1 to n. Returns n.
fn check(store: &FjallStore) -> u64 {
    let count = counter(store).unwrap();
    let all =
        |space| store.range(space, &KeyRange::all(), Direction::Ascending, usize::MAX).unwrap();
    let names = all(NAMES);
    assert_eq!(names.len() as u64, count, "names");
    for ((name, value), number) in names.iter().zip(1..) {
        assert_eq!((name, value), (&key(number), &KeyWriter::new().u64(!number).finish()));
        let stored = store.get(BODIES, &scattered_key(number)).unwrap();
        assert!(stored == Some(body(number)), "body of {number}");
    }
    assert_eq!(all(BODIES).len() as u64, count, "bodies");
    let recent: Vec<_> = all(RECENT).into_iter().map(|(key, _)| key).collect();
    let first = count.saturating_sub(RECENT_ROWS) + 1;
    assert_eq!(recent, (first..=count).map(key).collect::<Vec<_>>(), "the window of recent rows");
    count
}

fn counter(rows: &dyn ReadView) -> Result<u64, CatalogError> {
    let value = rows.get(COUNTER, b"count")?;
    value.map_or(Ok(0), |value| KeyReader::new(&value).u64())
}

fn key(number: u64) -> Vec<u8> {
    KeyWriter::new().u64(number).finish()
}

/// Returns keys that arrive in random order.
fn scattered_key(number: u64) -> Vec<u8> {
    key(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Returns up to 2 KiB that are unique to this number.
fn body(number: u64) -> Vec<u8> {
    let mut random = Seed::new(number).stream();
    let mut body = vec![0; usize::try_from(random.below(2_048)).unwrap()];
    random.fill(&mut body);
    body
}

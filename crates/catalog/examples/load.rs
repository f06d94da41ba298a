//! Benchmarks the storage engine of the catalog: how fast it fills, how long an open takes after a
//! clean close and after a crash, and how many durable commits per second it reaches.
//!
//! ```text
//!   load fill DIR ROWS [crash]       rows of 300 bytes in 3 spaces; `crash` ends without closing
//!   load open DIR                    one open: seconds, resident memory, reads
//!   load submit DIR WRITERS SECONDS  one row a commit, from that many tasks
//!   load forget DIR                  deletes a row, and takes it out of every file
//! ```
//!
//! Each phase is a process of its own, so that a crash is real and the memory is that of the phase.
//! A tool for comparing numbers, not a test.

#![expect(clippy::print_stdout, reason = "the report is the output")]

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fulgurite_catalog::keys::KeyWriter;
use fulgurite_catalog::{
    Batch, CatalogError, Committer, Direction, FjallConfig, FjallStore, KeyRange, KeyValue,
    ReadView, Space,
};
use fulgurite_units::Seed;

const OBJECTS: Space = Space::new("objects");
const POSITIONS: Space = Space::new("positions");
const JOBS: Space = Space::new("jobs");
const SPACES: [Space; 3] = [OBJECTS, POSITIONS, JOBS];

const VALUE_BYTES: usize = 250;
const FILL_BATCH_ROWS: u64 = 500;
const STREAMS: u64 = 64;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["fill", dir, rows] => fill(Path::new(dir), rows, false),
        ["fill", dir, rows, "crash"] => fill(Path::new(dir), rows, true),
        ["open", dir] => open(Path::new(dir)),
        ["forget", dir] => forget(Path::new(dir)),
        ["submit", dir, writers, seconds] => submit(Path::new(dir), writers, seconds),
        _ => Err("usage: load fill DIR ROWS [crash] | open DIR | submit DIR WRITERS SECONDS | \
                 forget DIR"
            .into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn fill(dir: &Path, rows: &str, crash: bool) -> Outcome {
    let rows: u64 = rows.parse()?;
    let (store, _) = open_timed(dir)?;
    let began = Instant::now();
    let mut slowest = Duration::ZERO;
    let mut random = Seed::new(1).stream();
    for first in (0..rows).step_by(usize::try_from(FILL_BATCH_ROWS)?) {
        let mut batch = Batch::new();
        for row in first..rows.min(first + FILL_BATCH_ROWS) {
            let space = if row % 10 == 9 { POSITIONS } else { OBJECTS };
            batch.put(space, key(row), value(&mut random))?;
        }
        batch.put(JOBS, KeyWriter::new().string("fill").finish(), first.to_le_bytes())?;
        let commit_began = Instant::now();
        store.apply(batch)?;
        slowest = slowest.max(commit_began.elapsed());
    }
    let took = began.elapsed();
    println!(
        "fill: {rows} rows in {:.2} s, slowest batch {:.0} ms, {}, resident {} MiB",
        took.as_secs_f64(),
        slowest.as_secs_f64() * 1e3,
        store.disk_bytes()?,
        resident_mib()?,
    );
    if crash {
        // Ends the process immediately: nothing is closed or flushed.
        std::process::abort();
    }
    let began = Instant::now();
    drop(store);
    println!("close: {:.3} s", began.elapsed().as_secs_f64());
    Ok(())
}

fn open(dir: &Path) -> Outcome {
    let (store, took) = open_timed(dir)?;
    println!("open: {:.3} s, resident {} MiB", took.as_secs_f64(), resident_mib()?);
    let began = Instant::now();
    let mut rows = 0_u64;
    for space in SPACES {
        store.scan(space, &KeyRange::all(), Direction::Ascending, &mut |_, _| {
            rows += 1;
            ControlFlow::Continue(())
        })?;
    }
    println!(
        "scan: {rows} rows in {:.2} s, resident {} MiB",
        began.elapsed().as_secs_f64(),
        resident_mib()?
    );
    let mut random = Seed::new(2).stream();
    let began = Instant::now();
    let (reads, mut found) = (20_000, 0);
    for _ in 0..reads {
        found += u64::from(store.get(OBJECTS, &key(random.below(rows.max(1))))?.is_some());
    }
    let micros = began.elapsed().as_secs_f64() * 1e6 / f64::from(reads);
    println!(
        "get: {micros:.1} us each, {found} of {reads} found, resident {} MiB",
        resident_mib()?
    );
    let began = Instant::now();
    drop(store);
    println!("close: {:.3} s", began.elapsed().as_secs_f64());
    Ok(())
}

fn submit(dir: &Path, writers: &str, seconds: &str) -> Outcome {
    let writers: u64 = writers.parse()?;
    let until = Instant::now() + Duration::from_secs(seconds.parse()?);
    let (store, _) = open_timed(dir)?;
    let committer = Arc::new(Committer::start(Arc::new(store))?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    let began = Instant::now();
    let latencies = runtime.block_on(async {
        let tasks: Vec<_> = (0..writers)
            .map(|writer| tokio::spawn(write_until(Arc::clone(&committer), writer, until)))
            .collect();
        let mut latencies = Vec::new();
        for task in tasks {
            latencies.extend(task.await??);
        }
        Ok::<_, Box<dyn Error>>(latencies)
    })?;
    report_submit(latencies, began.elapsed(), &committer);
    Ok(())
}

async fn write_until(
    committer: Arc<Committer>,
    writer: u64,
    until: Instant,
) -> Result<Vec<Duration>, CatalogError> {
    let mut random = Seed::new(3).child(&writer.to_le_bytes()).stream();
    let mut latencies = Vec::new();
    while Instant::now() < until {
        let count = latencies.len() as u64;
        let row = KeyWriter::new().string("submit").u64(writer).u64(count).finish();
        let value = value(&mut random);
        let began = Instant::now();
        committer.commit(move |rows| rows.put(OBJECTS, row, value)).await?;
        latencies.push(began.elapsed());
    }
    Ok(latencies)
}

fn report_submit(mut latencies: Vec<Duration>, took: Duration, committer: &Committer) {
    latencies.sort_unstable();
    let at = |percent: usize| {
        let index = (latencies.len() * percent / 100).min(latencies.len().saturating_sub(1));
        latencies.get(index).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    };
    let counts = committer.metrics().counts();
    println!(
        "submit: {:.0} commits/s, p50 {:.2} ms, p99 {:.2} ms, {} groups, sizes {:?}",
        latencies.len() as f64 / took.as_secs_f64(),
        at(50),
        at(99),
        counts.groups,
        counts.group_sizes,
    );
}

fn open_timed(dir: &Path) -> Result<(FjallStore, Duration), CatalogError> {
    let began = Instant::now();
    let store = FjallStore::open(dir, &SPACES, &FjallConfig::default())?;
    Ok((store, began.elapsed()))
}

/// Returns keys in interleaved ascending streams, the way buckets fill.
fn key(row: u64) -> Vec<u8> {
    let bucket = format!("bucket-{:02}", row % STREAMS);
    KeyWriter::new().string(&bucket).string(&format!("path/to/{:012}", row / STREAMS)).finish()
}

/// Returns a value that is half random, like metadata.
fn value(random: &mut fulgurite_units::RandomStream) -> Vec<u8> {
    let mut value = vec![b'x'; VALUE_BYTES];
    random.fill(&mut value[..VALUE_BYTES / 2]);
    value
}

fn resident_mib() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: u64 = line.and_then(|line| line.split_whitespace().next()).ok_or("VmRSS")?.parse()?;
    Ok(kib / 1024)
}

fn forget(path: &Path) -> Outcome {
    let store = FjallStore::open(path, &SPACES, &FjallConfig::default())?;
    let first = store.range(OBJECTS, &KeyRange::all(), Direction::Ascending, 1)?;
    let Some((key, _)) = first.first() else { return Err("the store is empty".into()) };
    let mut batch = Batch::new();
    batch.delete(OBJECTS, key.clone())?;
    store.apply(batch)?;
    let mut batch = Batch::new();
    batch.put(JOBS, "mark", "")?;
    store.apply(batch)?;
    let begun = Instant::now();
    let bytes = store.compact(&[OBJECTS])?;
    let compacted = begun.elapsed();
    store.reopen()?;
    let reopened = begun.elapsed() - compacted;
    println!(
        "rewrote {bytes} in {:.2} s; opened again in {:.3} s",
        compacted.as_secs_f64(),
        reopened.as_secs_f64()
    );
    Ok(())
}

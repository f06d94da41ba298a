//! Fills eight simulated tomes with small objects, loses their index, and measures its recovery:
//! one line of JSON.
//!
//! `recover_speed FOLDER OBJECTS BYTES`
//!
//! Disks take no time: a thread advances the clock. What remains is the work of the set and of the
//! file system below.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to its user")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use fulgurite_tome::TomeSet;
use fulgurite_tome::objects::{Progress, PutGuarantee, TomeStore, bench_support};
use fulgurite_tome_core::{CodeParams, Layout, Parts};
use fulgurite_units::{ByteCount, Duration, ManualClock, UnixTime};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use object_store::{ObjectStoreExt as _, PutPayload};

/// Puts that are under way at a time.
const CONCURRENT_PUTS: usize = 256;
/// Steps of the clock: small compared to a lease.
const STEP: Duration = Duration::from_millis(500);
const BLOCK: ByteCount = ByteCount::kib(4);
const REGIONS: u32 = 64;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().map(PathBuf::from);
    let mut number = || arguments.next().and_then(|text| text.to_str()?.parse::<u32>().ok());
    let (Some(folder), Some(objects), Some(bytes)) = (folder, number(), number()) else {
        eprintln!("usage: recover_speed FOLDER OBJECTS BYTES");
        return ExitCode::from(2);
    };
    match measure(&folder, objects, bytes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("recover_speed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the CPU seconds that all threads of this process have used.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program name is in parentheses. User and system time are the 12th and 13th number after
    // it, in hundredths of a second.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn now() -> Instant {
    Instant::now()
}

/// Returns a clock that a thread advances until this process ends.
#[expect(clippy::disallowed_methods, reason = "the clock advances while others wait for it")]
fn running_clock() -> ManualClock {
    let clock = ManualClock::at(UnixTime::from_millis(1_700_000_000_000));
    let advanced = clock.clone();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(std::time::Duration::from_millis(1));
            advanced.advance(STEP);
        }
    });
    clock
}

/// Opens a store whose tomes have room for some objects of one block each.
fn open(folder: &Path, clock: &ManualClock, objects: u32) -> Result<TomeStore, Failure> {
    let mut options = bench_support::set_options(folder, clock.clock())?;
    // Of five regions three have data, and of eight blocks of a segment six; a quarter stays free.
    let blocks = objects.div_ceil(bench_support::TOMES) * 5 / 3 * 8 / 6 * 4 / 3;
    let segments = blocks.div_ceil(8 * REGIONS).max(16);
    let segment = CodeParams::new(6, 2)?;
    options.layout =
        Layout::new(Parts { block: BLOCK, segment, segments, regions: REGIONS, spares: 4096 })?;
    let set = TomeSet::init(options)?;
    Ok(bench_support::open_store(set, folder, clock.clock(), PutGuarantee::Local)?)
}

fn measure(folder: &Path, objects: u32, bytes: u32) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let clock = running_clock();
    let store = open(folder, &clock, objects)?;
    let begun = now();
    runtime.block_on(fill(&store, objects, bytes))?;
    let put_seconds = begun.elapsed().as_secs_f64();
    drop(store);
    std::fs::remove_dir_all(folder.join("set").join("index"))?;

    let store = open(folder, &clock, objects)?;
    let status = runtime.block_on(store.set().status());
    let unprotected: u64 = status.tomes.iter().map(|tome| tome.unprotected.bytes.get()).sum();
    let (begun, processor) = (now(), processor_seconds());
    let found = runtime.block_on(store.recover(&Progress::default()))?;
    let line = serde_json::json!({
        "objects": found.objects,
        "problems": found.problems,
        "put_seconds": put_seconds,
        "unprotected_bytes": unprotected,
        "seconds": begun.elapsed().as_secs_f64(),
        "processor_seconds": processor_seconds() - processor,
    });
    println!("{line}");
    if found.objects != u64::from(objects) {
        return Err(format!("{} of {objects} objects were found", found.objects).into());
    }
    Ok(())
}

async fn fill(store: &TomeStore, objects: u32, bytes: u32) -> Result<(), Failure> {
    let put = |number: u32| async move {
        let path = object_store::path::Path::from(format!("{:05}/{number:08}", number / 1000));
        let body = vec![number.to_le_bytes()[0]; usize::try_from(bytes).unwrap_or(usize::MAX)];
        store.put(&path, PutPayload::from(body)).await
    };
    stream::iter(0..objects)
        .map(put)
        .buffer_unordered(CONCURRENT_PUTS)
        .try_for_each(|_| futures::future::ready(Ok(())))
        .await?;
    Ok(())
}

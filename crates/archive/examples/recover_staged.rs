//! Creates a data directory of staged objects without a catalog, and measures the scan of its log
//! and a recovery: one line of JSON per run.
//!
//! `recover_staged DATA_DIR OBJECTS BYTES REPEATS`

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to its user")]

use std::path::PathBuf;
use std::process::ExitCode;

use fulgurite_archive::{ArchiveError, RecoverOptions, bench_support, recover};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let data = arguments.next().map(PathBuf::from);
    let mut number = || arguments.next().and_then(|text| text.to_str()?.parse::<u32>().ok());
    let (Some(data), Some(objects), Some(bytes), Some(repeats)) =
        (data, number(), number(), number())
    else {
        eprintln!("usage: recover_staged DATA_DIR OBJECTS BYTES REPEATS");
        return ExitCode::from(2);
    };
    match measure(data, objects, bytes, repeats) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("recover_staged: {error}");
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

fn measure(data: PathBuf, objects: u32, bytes: u32, repeats: u32) -> Result<(), ArchiveError> {
    let config = bench_support::config(data)?;
    if !config.data.exists() {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        bench_support::stage(config.clone(), u64::from(objects), bytes)?;
    }
    for _ in 0..repeats {
        let clock = fulgurite_archive::system_clock();
        let records = bench_support::scan(&config)?;
        let scan_seconds = clock.passed().since(fulgurite_units::Instant::ZERO).as_secs_f64();
        let processor = processor_seconds();
        let report = recover(config.clone(), RecoverOptions::default(), &|_| {})?;
        let line = serde_json::json!({
            "records": records,
            "scan_seconds": scan_seconds,
            "processor_seconds": processor_seconds() - processor,
            "report": report,
        });
        println!("{line}");
        bench_support::lose_catalog(&config)?;
    }
    Ok(())
}

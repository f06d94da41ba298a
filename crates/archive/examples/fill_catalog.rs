//! Creates a data directory whose catalog holds many objects, to measure how long startup takes.
//!
//! `fill_catalog DATA_DIR ROWS`

#![expect(clippy::print_stderr, reason = "an example talks to its user")]

use std::path::PathBuf;
use std::process::ExitCode;

use fulgurite_archive::bench_support;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let data = arguments.next().map(PathBuf::from);
    let rows = arguments.next().and_then(|text| text.to_str()?.parse().ok());
    let (Some(data), Some(rows), None) = (data, rows, arguments.next()) else {
        eprintln!("usage: fill_catalog DATA_DIR ROWS");
        return ExitCode::from(2);
    };
    let filled = bench_support::config(data).and_then(|config| bench_support::fill(config, rows));
    match filled {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fill_catalog: {error}");
            ExitCode::FAILURE
        }
    }
}

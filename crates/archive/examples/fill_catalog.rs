//! Makes a data directory whose catalog holds many objects, for measuring how long a start takes.
//!
//! `fill_catalog DATA_DIR ROWS`

#![expect(clippy::print_stderr, reason = "an example talks to its user")]

use std::path::PathBuf;
use std::process::ExitCode;

use fulgurite_archive::config::{
    ArchiveConfig, ExpeditedPolicy, LibraryOptions, MediumOptions, SHARD_SIZE_DEFAULT, SealPolicy,
    SpaceOptions,
};
use fulgurite_glass::Geometry;
use fulgurite_library::{LibraryShape, Policy};
use fulgurite_units::{ByteCount, Duration};

fn config(data: PathBuf) -> Result<ArchiveConfig, Box<dyn std::error::Error>> {
    Ok(ArchiveConfig {
        data,
        geometry: Geometry::profile("demo")?,
        seal: SealPolicy { staged_bytes: ByteCount::gib(1), age: Duration::from_secs(86_400) },
        shard_size: SHARD_SIZE_DEFAULT,
        medium: MediumOptions::perfect(1),
        library: LibraryOptions {
            shape: LibraryShape::small(),
            time_scale: 0.0,
            seed: 1,
            policy: Policy::default(),
            log: None,
        },
        log_capacity: ByteCount::gib(1),
        // No file of 64 MiB for each test.
        space: SpaceOptions { reserve: Some(ByteCount::ZERO), ..SpaceOptions::default() },
        master_key: None,
        key_tables: Vec::new(),
        expedited: ExpeditedPolicy::Refuse,
        day: Duration::from_secs(86_400),
        fail_point: None,
    })
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let data = arguments.next().map(PathBuf::from);
    let rows = arguments.next().and_then(|text| text.to_str()?.parse().ok());
    let (Some(data), Some(rows), None) = (data, rows, arguments.next()) else {
        eprintln!("usage: fill_catalog DATA_DIR ROWS");
        return ExitCode::from(2);
    };
    let filled =
        config(data).and_then(|config| Ok(fulgurite_archive::bench_support::fill(config, rows)?));
    match filled {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fill_catalog: {error}");
            ExitCode::FAILURE
        }
    }
}

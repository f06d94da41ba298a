//! Speed of a rack's data path and of its index: one measurement per run, printed as JSON, one per
//! line.
//!
//! ```text
//! rack_speed coding                      a stripe coded, and coded with the sums of its stacks
//! rack_speed bytes FOLDER MIB ROUNDS     put and get of a blob, against plain files, in turn
//! rack_speed paced FOLDER MIB            put and verification on 18 disks as slow as Pelican's
//! rack_speed memory FOLDER MIB           memory that one stream takes in a running rack
//! rack_speed index FOLDER COUNT          bytes per object in the index, and lookup latency
//! ```
//!
//! `cargo xtask bench rack` runs them all. Times are wall-clock and CPU time: on a shared machine
//! the wall clock includes the work of others.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement for a terminal: it prints, needs the time, and stops at nonsense"
)]

mod bare;
mod bytes;
mod coding;
mod index;
mod measure;
mod memory;
mod paced;
mod plain;
mod shelf;

use std::path::Path;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["coding"] => coding::print(),
        ["bytes", folder, mib, rounds] => {
            bytes::print(Path::new(folder), mib.parse().unwrap(), rounds.parse().unwrap());
        }
        ["paced", folder, mib] => paced::print(Path::new(folder), mib.parse().unwrap()),
        ["memory", folder, mib] => memory::print(Path::new(folder), mib.parse().unwrap()),
        ["index", folder, count] => index::print(Path::new(folder), count.parse().unwrap()),
        _ => panic!("no such measurement: {words:?}"),
    }
}

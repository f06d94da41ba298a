//! Speed of a live set of tomes beside plain files: one measurement per run, printed as JSON, one
//! object per line.
//!
//! ```text
//! tome_speed written FOLDER MIB ROUNDS   put and protect objects, alternating with plain files
//! tome_speed rests FOLDER MIB            the same once, on the real clock
//! tome_speed read FOLDER MIB ROUNDS      get objects, alternating with plain files
//! tome_speed rows FOLDER PUTS            puts of one block, alternating with one synced row
//! ```
//!
//! `cargo xtask bench tomes` runs them all. There are 16 tomes in groups 13+3, in one process and
//! on one disk; their own disks are simulated and take no time. Waits of the protocol are skipped,
//! such as the two seconds that a disk idles before it gives its token away: the set's clock is
//! advanced whenever the process is idle (`clock_advancer`).

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement for a terminal: it prints, needs the time, and stops at nonsense"
)]

mod clock_advancer;
mod measure;
mod plain;
mod read;
mod rows;
mod shelf;
mod write;

use std::path::Path;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["written", folder, mib, rounds] => {
            write::print(Path::new(folder), mib.parse().unwrap(), rounds.parse().unwrap());
        }
        ["rests", folder, mib] => write::print_real_clock(Path::new(folder), mib.parse().unwrap()),
        ["read", folder, mib, rounds] => {
            read::print(Path::new(folder), mib.parse().unwrap(), rounds.parse().unwrap());
        }
        ["rows", folder, puts] => rows::print(Path::new(folder), puts.parse().unwrap()),
        _ => panic!("no such measurement: {words:?}"),
    }
}

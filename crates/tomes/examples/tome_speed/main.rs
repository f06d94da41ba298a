//! How fast a live set of tomes is beside plain files: one measurement a run, printed as JSON, a
//! line each.
//!
//! ```text
//! tome_speed written FOLDER MIB ROUNDS   objects put and protected, beside plain files, in turn
//! tome_speed rests FOLDER MIB            the same once, by a clock that goes by itself
//! tome_speed read FOLDER MIB ROUNDS      objects got, beside plain files, in turn
//! tome_speed rows FOLDER PUTS            puts of a block, beside a row that is synced, in turn
//! ```
//!
//! `cargo xtask bench tomes` runs them all. There are 16 tomes in groups 13+3, in one process and
//! on one disk; their own disks are simulated and take no time. Waits of the protocol, as of a disk
//! that turns two seconds for nothing before it gives its token away, are not waited for: the hands
//! of the set's clock are turned whenever nobody does anything (`hands`).

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement for a terminal: it prints, needs the time, and stops at nonsense"
)]

mod hands;
mod measure;
mod plain;
mod read;
mod rows;
mod shelf;
mod written;

use std::path::Path;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["written", folder, mib, rounds] => {
            written::print(Path::new(folder), mib.parse().unwrap(), rounds.parse().unwrap());
        }
        ["rests", folder, mib] => written::print_rests(Path::new(folder), mib.parse().unwrap()),
        ["read", folder, mib, rounds] => {
            read::print(Path::new(folder), mib.parse().unwrap(), rounds.parse().unwrap());
        }
        ["rows", folder, puts] => rows::print(Path::new(folder), puts.parse().unwrap()),
        _ => panic!("no such measurement: {words:?}"),
    }
}

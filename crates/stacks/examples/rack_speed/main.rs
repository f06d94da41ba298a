//! How fast a rack's bytes and its index are: one measurement a run, printed as JSON, a line each.
//!
//! ```text
//! rack_speed coding                      a stripe coded, and coded with the sums of its stacks
//! rack_speed bytes FOLDER MIB ROUNDS     a blob put and got, beside plain files, in turn
//! rack_speed paced FOLDER MIB            a blob put and verified on 18 disks as slow as Pelican's
//! rack_speed memory FOLDER MIB           what a stream takes of memory in a running rack
//! rack_speed index FOLDER COUNT          bytes of an object in the index, and looks at it
//! ```
//!
//! `cargo xtask bench rack` runs them all. Times are by the clock and of the processor: on a shared
//! machine the clock measures the others as well.

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

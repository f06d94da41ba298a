//! How fast the core of a tome is, and what it takes of memory: one measurement a run, printed as
//! JSON, a line each.
//!
//! ```text
//! core_speed coding                      signatures, folds and parity of a segment, a block each
//! core_speed check BLOCKS ROUNDS         16 tomes compare their group of so many blocks each
//! core_speed memory BLOCKS               what a tome of so many blocks takes
//! ```
//!
//! `cargo xtask bench tomes` runs them all. Everything is on one thread.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement for a terminal: it prints, needs the time, and stops at nonsense"
)]

mod check;
mod coding;
mod filled;
mod memory;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["coding"] => coding::print(),
        ["check", blocks, rounds] => check::print(blocks.parse().unwrap(), rounds.parse().unwrap()),
        ["memory", blocks] => memory::print(blocks.parse().unwrap()),
        _ => panic!("no such measurement: {words:?}"),
    }
}

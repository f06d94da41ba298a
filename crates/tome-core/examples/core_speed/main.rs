//! Speed and memory use of a tome's core: one measurement per run, printed as JSON, one object per
//! line.
//!
//! ```text
//! core_speed coding                      signatures, deltas and segment parity, per block
//! core_speed check BLOCKS ROUNDS         16 tomes compare their group of this many blocks each
//! core_speed memory BLOCKS               memory of a tome of this many blocks
//! ```
//!
//! `cargo xtask bench tomes` runs them all. Everything runs on one thread.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement for a terminal: it prints, reads the clock, and panics on bad arguments"
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
        _ => panic!("unknown measurement: {words:?}"),
    }
}

//! Layouts and segments; trees and groups; tokens; a tome by itself, and a set of them.

mod consistency;
mod damage;
mod groups;
mod layout;
mod mends;
mod nature;
mod placement;
mod rebuilds;
mod segment;
mod set;
mod single;
mod tokens;
mod world;

use fulgurite_units::RandomStream;

use crate::Split;

/// A split as it is written.
fn split(text: &str) -> Split {
    text.parse().unwrap()
}

/// A block of random bytes.
fn block(bytes: usize, stream: &mut RandomStream) -> Vec<u8> {
    let mut block = vec![0; bytes];
    stream.fill(&mut block);
    block
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

//! Layouts and segments; trees and groups; tokens; a single tome, and a set of them.

mod budget;
mod consistency;
mod coverage;
mod damage;
mod groups;
mod layout;
mod nature;
mod object_assembler;
mod placement;
mod rebuilds;
mod repairs;
mod segment;
mod set;
mod single;
mod tokens;
mod world;

use std::collections::BTreeMap;

use fulgurite_units::RandomStream;

use crate::object_assembler::{ExpectedObject, ObjectAssembler, VerifiedObject};
use crate::{CodeParams, PhysicalBlock};

/// Parses a code such as 3+2.
fn split(text: &str) -> CodeParams {
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

/// Assembles an object from the blocks at these physical blocks.
fn assemble(
    disk: &BTreeMap<PhysicalBlock, Vec<u8>>,
    physical_blocks: &[PhysicalBlock],
    wanted: ExpectedObject,
) -> Option<VerifiedObject> {
    let mut assembler = ObjectAssembler::new(wanted);
    for physical_block in physical_blocks {
        let read = |block: &mut [u8]| {
            block.copy_from_slice(disk.get(physical_block)?);
            Some(())
        };
        assembler.next(|block| read(block).ok_or(())).ok().flatten()?;
    }
    assembler.finish()
}

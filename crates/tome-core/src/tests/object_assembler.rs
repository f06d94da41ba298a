//! Assembled objects: complete and verified, or nothing.

use std::collections::BTreeMap;

use fulgurite_codes::{Signature, sector_checksum, signature};
use fulgurite_units::Seed;

use super::{assemble, block};
use crate::PhysicalBlock;
use crate::object_assembler::ExpectedObject;

const BLOCK: usize = 256;

/// Returns three blocks on a disk, the last of them padded, and the object expected from them.
fn object() -> (BTreeMap<PhysicalBlock, Vec<u8>>, Vec<PhysicalBlock>, ExpectedObject, Vec<u8>) {
    let mut stream = Seed::new(5).stream();
    let mut blocks: Vec<Vec<u8>> = (0..3).map(|_| block(BLOCK, &mut stream)).collect();
    blocks[2][200..].fill(0);
    let mut bytes = blocks.concat();
    bytes.truncate(2 * BLOCK + 200);
    let wanted = ExpectedObject {
        signatures: blocks.iter().map(|block| signature(block)).collect(),
        block_bytes: BLOCK,
        bytes: bytes.len() as u64,
        digest: sector_checksum(&bytes),
    };
    let physical_blocks: Vec<PhysicalBlock> = [7, 8, 3].map(PhysicalBlock::new).to_vec();
    let disk = physical_blocks.iter().copied().zip(blocks).collect();
    (disk, physical_blocks, wanted, bytes)
}

#[test]
fn matching_object_is_returned() {
    let (disk, physical_blocks, wanted, bytes) = object();
    assert_eq!(assemble(&disk, &physical_blocks, wanted).unwrap().into_bytes(), bytes);
}

#[test]
fn any_changed_byte_rejects_the_object() {
    let (disk, physical_blocks, wanted, _) = object();
    for physical_block in &physical_blocks {
        for at in 0..BLOCK {
            let mut disk = disk.clone();
            disk.get_mut(physical_block).unwrap()[at] ^= 1;
            assert_eq!(
                assemble(&disk, &physical_blocks, wanted.clone()),
                None,
                "byte {at} of physical block {physical_block}"
            );
        }
        let mut disk = disk.clone();
        disk.remove(physical_block);
        assert_eq!(
            assemble(&disk, &physical_blocks, wanted.clone()),
            None,
            "physical block {physical_block} is missing"
        );
    }
}

#[test]
fn incomplete_or_mismatched_object_is_rejected() {
    let (disk, physical_blocks, wanted, _) = object();
    assert_eq!(assemble(&disk, &physical_blocks[..2], wanted.clone()), None);
    assert_eq!(
        assemble(
            &disk,
            &[physical_blocks[1], physical_blocks[0], physical_blocks[2]],
            wanted.clone()
        ),
        None
    );
    let digest = [9; 32];
    assert_eq!(
        assemble(&disk, &physical_blocks, ExpectedObject { digest, ..wanted.clone() }),
        None,
        "its digest"
    );
    let bytes = wanted.bytes + 1;
    assert_eq!(
        assemble(&disk, &physical_blocks, ExpectedObject { bytes, ..wanted.clone() }),
        None,
        "its length"
    );
    let bytes = 3 * BLOCK as u64 + 1;
    assert_eq!(
        assemble(&disk, &physical_blocks, ExpectedObject { bytes, ..wanted.clone() }),
        None,
        "too long"
    );
    let mut signatures = wanted.signatures.clone();
    signatures[1] ^= Signature([1; 8]);
    assert_eq!(
        assemble(&disk, &physical_blocks, ExpectedObject { signatures, ..wanted }),
        None,
        "a signature"
    );
}

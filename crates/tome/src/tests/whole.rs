//! Assembled objects: complete and verified, or nothing.

use std::collections::BTreeMap;

use fulgurite_codes::{Signature, sector_checksum, signature};
use fulgurite_units::Seed;

use super::{block, gathered};
use crate::Spot;
use crate::whole::Wanted;

const BLOCK: usize = 256;

/// Returns three blocks on a disk, the last of them padded, and the object expected from them.
fn object() -> (BTreeMap<Spot, Vec<u8>>, Vec<Spot>, Wanted, Vec<u8>) {
    let mut stream = Seed::new(5).stream();
    let mut blocks: Vec<Vec<u8>> = (0..3).map(|_| block(BLOCK, &mut stream)).collect();
    blocks[2][200..].fill(0);
    let mut bytes = blocks.concat();
    bytes.truncate(2 * BLOCK + 200);
    let wanted = Wanted {
        signatures: blocks.iter().map(|block| signature(block)).collect(),
        block_bytes: BLOCK,
        bytes: bytes.len() as u64,
        digest: sector_checksum(&bytes),
    };
    let spots: Vec<Spot> = [7, 8, 3].map(Spot::new).to_vec();
    let disk = spots.iter().copied().zip(blocks).collect();
    (disk, spots, wanted, bytes)
}

#[test]
fn what_is_as_it_was_noted_is_given() {
    let (disk, spots, wanted, bytes) = object();
    assert_eq!(gathered(&disk, &spots, wanted).unwrap().into_bytes(), bytes);
}

#[test]
fn one_byte_that_is_another_gives_nothing_wherever_it_is() {
    let (disk, spots, wanted, _) = object();
    for spot in &spots {
        for at in 0..BLOCK {
            let mut disk = disk.clone();
            disk.get_mut(spot).unwrap()[at] ^= 1;
            assert_eq!(gathered(&disk, &spots, wanted.clone()), None, "byte {at} of spot {spot}");
        }
        let mut disk = disk.clone();
        disk.remove(spot);
        assert_eq!(gathered(&disk, &spots, wanted.clone()), None, "nothing in spot {spot}");
    }
}

#[test]
fn less_than_all_or_what_was_noted_otherwise_gives_nothing() {
    let (disk, spots, wanted, _) = object();
    assert_eq!(gathered(&disk, &spots[..2], wanted.clone()), None);
    assert_eq!(gathered(&disk, &[spots[1], spots[0], spots[2]], wanted.clone()), None);
    let digest = [9; 32];
    assert_eq!(gathered(&disk, &spots, Wanted { digest, ..wanted.clone() }), None, "its digest");
    let bytes = wanted.bytes + 1;
    assert_eq!(gathered(&disk, &spots, Wanted { bytes, ..wanted.clone() }), None, "its length");
    let bytes = 3 * BLOCK as u64 + 1;
    assert_eq!(gathered(&disk, &spots, Wanted { bytes, ..wanted.clone() }), None, "too long");
    let mut signatures = wanted.signatures.clone();
    signatures[1] ^= Signature([1; 8]);
    assert_eq!(gathered(&disk, &spots, Wanted { signatures, ..wanted }), None, "a signature");
}

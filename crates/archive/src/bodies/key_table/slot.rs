//! One slot of the key table: 128 bytes that hold a wrapped key, or nothing.
//!
//! ```text
//! 0        8        24                 36                      84       92      124   128
//! | magic  | body id | nonce (12)      | wrapped key (32 + 16) | run    | blake3 |  0  |
//! ```
//!
//! The checksum is BLAKE3 of the first 92 bytes. A slot with a wrong checksum may still hold its
//! key. A single flipped bit is found by trying each. If the damage lies outside the key and body
//! id, the key still opens, because its cipher authenticates both.

use fulgurite_units::ObjectId;

use crate::Result;
use crate::bodies::cipher::{SecretKey, open_entry, seal_entry};

/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = 128;
const MAGIC: &[u8; 8] = b"FGKEY\x01\0\0";
/// Where the magic has the version.
const VERSION: usize = 5;
const BODY: std::ops::Range<usize> = 8..24;
pub(super) const SEALED: std::ops::Range<usize> = 24..84;
const RUN: std::ops::Range<usize> = 84..92;
const CHECKSUM: std::ops::Range<usize> = 92..124;
/// The bytes under the checksum, and the checksum itself; a flipped bit after it changes nothing.
const COVERED: std::ops::Range<usize> = 0..CHECKSUM.end;

/// The bytes of a slot.
pub(crate) type Slot = [u8; SLOT_BYTES];

/// A slot without a key.
pub(super) const EMPTY: Slot = [0; SLOT_BYTES];

/// The state of a slot's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Zeros: no key, or a destroyed one.
    Empty,
    /// A key with a valid checksum.
    Valid { body: ObjectId, run: u64 },
    /// Neither: damage, or a torn write.
    Damaged,
}

/// Encodes a slot that holds `key`, wrapped under `master`.
pub(crate) fn encode(
    master: &SecretKey,
    body: ObjectId,
    key: &SecretKey,
    run: u64,
) -> Result<Slot> {
    let mut slot = EMPTY;
    slot[..8].copy_from_slice(MAGIC);
    slot[BODY].copy_from_slice(&body.to_bytes());
    slot[SEALED].copy_from_slice(&seal_entry(master, body, key.expose())?);
    set_run(&mut slot, run);
    Ok(slot)
}

/// Changes the run, and updates the checksum.
pub(super) fn set_run(slot: &mut Slot, run: u64) {
    slot[RUN].copy_from_slice(&run.to_le_bytes());
    let checksum = blake3::hash(&slot[..CHECKSUM.start]);
    slot[CHECKSUM].copy_from_slice(checksum.as_bytes());
}

/// Classifies a slot by its checksum alone.
pub(crate) fn content(slot: &Slot) -> Content {
    if *slot == EMPTY {
        return Content::Empty;
    }
    let checksum = blake3::hash(&slot[..CHECKSUM.start]);
    if slot[..8] != *MAGIC || slot[CHECKSUM] != *checksum.as_bytes() {
        return Content::Damaged;
    }
    let run = u64::from_le_bytes(std::array::from_fn(|i| slot[RUN.start + i]));
    Content::Valid { body: body_id(slot), run }
}

/// Returns the version of a slot that a newer program wrote. Every version keeps the magic, its own
/// number and the checksum where they are in version 1.
pub(super) fn newer_version(slot: &Slot) -> Option<u8> {
    let checksum = blake3::hash(&slot[..CHECKSUM.start]);
    let (name, version) = (&MAGIC[..VERSION], MAGIC[VERSION]);
    let is_newer = slot.starts_with(name) && slot[VERSION] > version;
    (is_newer && slot[CHECKSUM] == *checksum.as_bytes()).then_some(slot[VERSION])
}

/// Returns the body id in a slot.
pub(super) fn body_id(slot: &Slot) -> ObjectId {
    ObjectId::from_bytes(std::array::from_fn(|i| slot[BODY.start + i]))
}

/// Returns body and key of a slot with a valid checksum.
pub(crate) fn decode(master: &SecretKey, slot: &Slot) -> Option<(ObjectId, SecretKey)> {
    match content(slot) {
        Content::Valid { body, .. } => Some((body, unwrap(master, body, slot)?)),
        Content::Empty | Content::Damaged => None,
    }
}

/// Returns the key in a slot, intact or damaged, if it is the key of `body`.
pub(super) fn unwrap(master: &SecretKey, body: ObjectId, slot: &Slot) -> Option<SecretKey> {
    let key: [u8; 32] = open_entry(master, body, &slot[SEALED])?.try_into().ok()?;
    Some(SecretKey::from_bytes(key))
}

/// Repairs a damaged slot: flips one bit back, or rebuilds the bytes around an intact key. `None`
/// if the key is lost.
pub(crate) fn repair(master: &SecretKey, damaged: &Slot) -> Option<Slot> {
    let mut slot = *damaged;
    for bit in 0..COVERED.end * 8 {
        slot[bit / 8] ^= 1 << (bit % 8);
        if matches!(content(&slot), Content::Valid { .. }) && decode(master, &slot).is_some() {
            return Some(slot);
        }
        slot[bit / 8] ^= 1 << (bit % 8);
    }
    // More than one bit is damaged, but not the key. The run that made it is unknown: 0 is a run
    // whose keys no start sweeps.
    let body = body_id(damaged);
    let key = unwrap(master, body, damaged)?;
    encode(master, body, &key, 0).ok()
}

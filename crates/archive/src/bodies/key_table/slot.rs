//! One slot of the key table: 128 bytes that hold a wrapped key, or nothing.
//!
//! ```text
//! 0        8        24                 36                      84       92      124   128
//! | magic  | body id | nonce (12)      | wrapped key (32 + 16) | run    | blake3 |  0  |
//! ```
//!
//! The checksum is BLAKE3 of the first 92 bytes. A slot that does not fit its checksum may still
//! hold its key: one flipped bit is found by trying each, and a key whose damage lies elsewhere in
//! the slot still opens, for its cipher authenticates it and its body id.

use fulgurite_units::ObjectId;

use crate::Result;
use crate::bodies::cipher::{SecretKey, open_entry, seal_entry};

/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = 128;
const MAGIC: &[u8; 8] = b"FGKEY\x01\0\0";
const BODY: std::ops::Range<usize> = 8..24;
pub(super) const SEALED: std::ops::Range<usize> = 24..84;
const RUN: std::ops::Range<usize> = 84..92;
const CHECKSUM: std::ops::Range<usize> = 92..124;
/// What the checksum is of, and itself: a flipped bit behind it changes nothing.
const COVERED: std::ops::Range<usize> = 0..CHECKSUM.end;

/// The bytes of a slot.
pub(crate) type Slot = [u8; SLOT_BYTES];

/// A slot without a key.
pub(super) const EMPTY: Slot = [0; SLOT_BYTES];

/// What the bytes of a slot are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Zeros: no key, or a destroyed one.
    Empty,
    /// A key that fits its checksum.
    Whole { body: ObjectId, run: u64 },
    /// Neither: damage, or a write that was cut short.
    Damaged,
}

/// The slot that holds `key`, wrapped under `master`.
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

/// Writes another run, and the checksum that fits it.
pub(super) fn set_run(slot: &mut Slot, run: u64) {
    slot[RUN].copy_from_slice(&run.to_le_bytes());
    let checksum = blake3::hash(&slot[..CHECKSUM.start]);
    slot[CHECKSUM].copy_from_slice(checksum.as_bytes());
}

/// What a slot holds, by its checksum alone.
pub(crate) fn content(slot: &Slot) -> Content {
    if *slot == EMPTY {
        return Content::Empty;
    }
    let checksum = blake3::hash(&slot[..CHECKSUM.start]);
    if slot[..8] != *MAGIC || slot[CHECKSUM] != *checksum.as_bytes() {
        return Content::Damaged;
    }
    let run = u64::from_le_bytes(std::array::from_fn(|i| slot[RUN.start + i]));
    Content::Whole { body: body_id(slot), run }
}

/// The body that a slot says its key is of.
pub(super) fn body_id(slot: &Slot) -> ObjectId {
    ObjectId::from_bytes(std::array::from_fn(|i| slot[BODY.start + i]))
}

/// The key of a slot that fits its checksum, with its body.
pub(crate) fn decode(master: &SecretKey, slot: &Slot) -> Option<(ObjectId, SecretKey)> {
    match content(slot) {
        Content::Whole { body, .. } => Some((body, unwrap(master, body, slot)?)),
        Content::Empty | Content::Damaged => None,
    }
}

/// The key in a slot, whole or damaged, if it is that of `body`.
pub(super) fn unwrap(master: &SecretKey, body: ObjectId, slot: &Slot) -> Option<SecretKey> {
    let key: [u8; 32] = open_entry(master, body, &slot[SEALED])?.try_into().ok()?;
    Some(SecretKey::from_bytes(key))
}

/// The slot that a damaged one was: with one bit turned back, or with what is around its key made
/// anew. `None` when its key cannot be had.
pub(crate) fn mend(master: &SecretKey, damaged: &Slot) -> Option<Slot> {
    let mut slot = *damaged;
    for bit in 0..COVERED.end * 8 {
        slot[bit / 8] ^= 1 << (bit % 8);
        if matches!(content(&slot), Content::Whole { .. }) && decode(master, &slot).is_some() {
            return Some(slot);
        }
        slot[bit / 8] ^= 1 << (bit % 8);
    }
    // More is damaged than a bit, but not the key. Which run made it is not known then: 0 is one
    // whose keys no start sweeps.
    let body = body_id(damaged);
    let key = unwrap(master, body, damaged)?;
    encode(master, body, &key, 0).ok()
}

//! Plan rows of versions 1 to 3, for sets that were planned then: with the object, which only the
//! owner of the bodies knows, and with plaintext bytes. Version 1 had no CRC of a shard.

use fulgurite_units::ObjectId;
use serde::{Deserialize, Serialize};

use super::PlanRow;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct PlanRow1 {
    object_id: ObjectId,
    index: u32,
    offset: u64,
    body_offset: u64,
    bytes: u64,
    queued: u64,
    sealed_bytes: u32,
    body_id: ObjectId,
    body_bytes: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct PlanRow3 {
    row: PlanRow1,
    crc: Option<u64>,
}

/// Returns the ciphertext bytes for this many plaintext bytes, as bodies were encrypted then: in
/// frames of 64 KiB, each with a tag of 16 bytes.
const fn cipher_bytes(plain: u64) -> u64 {
    plain.saturating_add(plain.div_ceil(64 << 10).saturating_mul(16))
}

impl From<PlanRow1> for PlanRow {
    fn from(row: PlanRow1) -> Self {
        Self {
            place: row.queued,
            body_id: row.body_id,
            body_bytes: cipher_bytes(row.body_bytes),
            offset: row.offset,
            body_offset: row.body_offset,
            bytes: row.bytes,
            sealed_bytes: row.sealed_bytes,
            crc: None,
        }
    }
}

impl From<PlanRow3> for PlanRow {
    fn from(row: PlanRow3) -> Self {
        Self { crc: row.crc, ..row.row.into() }
    }
}

#[cfg(test)]
mod tests {
    use fulgurite_catalog::row::decode;

    use super::super::PLANS;
    use super::*;

    /// Checks bytes that older programs wrote.
    fn check(golden: &str, crc: Option<u64>) {
        let row: PlanRow = decode(PLANS, &hex::decode(golden).unwrap()).unwrap();
        let expected = PlanRow {
            place: 12,
            body_id: ObjectId::from_bytes([5; 16]),
            body_bytes: 65_552,
            offset: 1 << 20,
            body_offset: 300,
            bytes: 65_552,
            sealed_bytes: 400,
            crc,
        };
        assert_eq!(row, expected);
    }

    #[test]
    fn older_plan_rows_are_read() {
        let row = "100101010101010101010101010101010102808040ac029080040c9003\
                   1005050505050505050505050505050505808004";
        check(&format!("01{row}"), None);
        check(&format!("02{row}00"), None);
        check(&format!("03{row}0107"), Some(7));
    }

    #[test]
    fn older_plan_bytes_include_frame_tags() {
        for (plain, cipher) in
            [(0, 0), (1, 17), (65_536, 65_552), (65_537, 65_569), (1 << 40, (1 << 40) + (1 << 28))]
        {
            assert_eq!(cipher_bytes(plain), cipher);
        }
    }
}

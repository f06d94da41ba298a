//! Rows in version 1, for catalogs from that time: shards without CRC.

use fulgurite_units::{ObjectId, PlatterId, UnixTime};
use serde::{Deserialize, Serialize};

use super::{BodyRow, PartRow, Shard};
use crate::bodies::digest::Checksum;
use crate::bodies::log::{Extent, LogKind};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ShardRow1 {
    platter: PlatterId,
    offset: u64,
    body_offset: u64,
    bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BodyRow1 {
    body_id: ObjectId,
    key_slot: u32,
    bytes: u64,
    digest: u64,
    log: Option<(LogKind, Vec<Extent>)>,
    queued: Option<u64>,
    shards: Vec<ShardRow1>,
    restored: Option<Vec<Extent>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PartRow1 {
    body: BodyRow1,
    md5: [u8; 16],
    modified: UnixTime,
    checksum: Option<Checksum>,
}

impl From<BodyRow1> for BodyRow {
    fn from(row: BodyRow1) -> Self {
        let shard = |shard: &ShardRow1| Shard {
            platter: shard.platter,
            offset: shard.offset,
            body_offset: shard.body_offset,
            bytes: shard.bytes,
            crc: None,
        };
        Self {
            body_id: row.body_id,
            key_slot: row.key_slot,
            bytes: row.bytes,
            digest: row.digest,
            log: row.log,
            queued: row.queued,
            shards: row.shards.iter().map(shard).collect(),
            restored: row.restored,
            framing: Vec::new(),
            tier: None,
        }
    }
}

impl From<PartRow1> for PartRow {
    fn from(row: PartRow1) -> Self {
        Self { body: row.body.into(), md5: row.md5, modified: row.modified, checksum: row.checksum }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BODIES, PARTS, decode};
    use super::*;
    use crate::testing;

    fn version1(row: &impl Serialize) -> Vec<u8> {
        postcard::to_extend(row, vec![1]).unwrap()
    }

    #[test]
    fn rows_of_version_1_are_read() {
        let now = testing::body_row(LogKind::Staging);
        let platter = PlatterId::from_bytes([3; 16]);
        let body = BodyRow1 {
            body_id: now.body_id,
            key_slot: now.key_slot,
            bytes: now.bytes,
            digest: now.digest,
            log: now.log.clone(),
            queued: Some(7),
            shards: vec![ShardRow1 { platter, offset: 1 << 40, body_offset: 9, bytes: 1 }; 2],
            restored: now.restored.clone(),
        };
        let shard = Shard { platter, offset: 1 << 40, body_offset: 9, bytes: 1, crc: None };
        let expected = BodyRow { queued: Some(7), shards: vec![shard; 2], ..now };
        assert_eq!(decode::<BodyRow>(BODIES, &version1(&body)).unwrap(), expected);
        let part = PartRow1 { body, md5: [9; 16], modified: testing::NOW, checksum: None };
        let found: PartRow = decode(PARTS, &version1(&part)).unwrap();
        assert_eq!((found.body, found.md5), (expected, [9; 16]));
    }

    #[test]
    fn version_1_body_matches_golden_bytes() {
        let golden = [
            "011001010101010101010101010101010101ac02808004ef9bafcdf8acd19101",
            "0101010780019080040107011003030303030303030303030303030303808080",
            "80802009010101018001908004",
        ];
        let row: BodyRow = decode(BODIES, &hex::decode(golden.concat()).unwrap()).unwrap();
        let extent = Extent { segment: 7, offset: 128, bytes: 65_552 };
        let platter = PlatterId::from_bytes([3; 16]);
        let expected = BodyRow {
            body_id: ObjectId::from_bytes([1; 16]),
            key_slot: 300,
            bytes: 65_536,
            digest: 0x0123_4567_89AB_CDEF,
            log: Some((LogKind::Online, vec![extent])),
            queued: Some(7),
            shards: vec![Shard { platter, offset: 1 << 40, body_offset: 9, bytes: 1, crc: None }],
            restored: Some(vec![Extent { segment: 1, ..extent }]),
            framing: Vec::new(),
            tier: None,
        };
        assert_eq!(row, expected);
    }
}

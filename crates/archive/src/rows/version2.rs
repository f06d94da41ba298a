//! Rows in version 2, for catalogs from that time: logs without framing.

use fulgurite_units::{ObjectId, UnixTime};
use serde::{Deserialize, Serialize};

use super::{BodyRow, PartRow, Shard};
use crate::bodies::digest::Checksum;
use crate::bodies::log::{Extent, LogKind};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BodyRow2 {
    body_id: ObjectId,
    key_slot: u32,
    bytes: u64,
    digest: u64,
    log: Option<(LogKind, Vec<Extent>)>,
    queued: Option<u64>,
    shards: Vec<Shard>,
    restored: Option<Vec<Extent>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PartRow2 {
    body: BodyRow2,
    md5: [u8; 16],
    modified: UnixTime,
    checksum: Option<Checksum>,
}

impl From<BodyRow2> for BodyRow {
    fn from(row: BodyRow2) -> Self {
        Self {
            body_id: row.body_id,
            key_slot: row.key_slot,
            bytes: row.bytes,
            digest: row.digest,
            log: row.log,
            queued: row.queued,
            shards: row.shards,
            restored: row.restored,
            framing: Vec::new(),
            tier: None,
        }
    }
}

impl From<PartRow2> for PartRow {
    fn from(row: PartRow2) -> Self {
        Self { body: row.body.into(), md5: row.md5, modified: row.modified, checksum: row.checksum }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::{BODIES, PARTS, decode};
    use super::*;
    use crate::testing;

    fn lines(bytes: &[u8]) -> String {
        bytes.chunks(32).map(|line| hex::encode(line) + "\n").collect()
    }

    fn body() -> BodyRow {
        let extent = Extent { segment: 7, offset: 128, bytes: 65_552 };
        let id = |byte| ObjectId::from_bytes([byte; 16]);
        let platter = fulgurite_units::PlatterId::from_bytes([3; 16]);
        BodyRow {
            body_id: id(1),
            key_slot: 300,
            bytes: 65_536,
            digest: 0x0123_4567_89AB_CDEF,
            log: Some((LogKind::Online, vec![extent])),
            queued: Some(7),
            shards: vec![Shard { platter, offset: 1 << 40, body_offset: 9, bytes: 1, crc: None }],
            restored: Some(vec![Extent { segment: 1, ..extent }]),
            framing: vec![Extent { offset: 64, bytes: 64, ..extent }],
            tier: None,
        }
    }

    fn body2(row: BodyRow) -> BodyRow2 {
        BodyRow2 {
            body_id: row.body_id,
            key_slot: row.key_slot,
            bytes: row.bytes,
            digest: row.digest,
            log: row.log,
            queued: row.queued,
            shards: row.shards,
            restored: row.restored,
        }
    }

    #[test]
    fn rows_of_version_2_are_read() {
        let bytes = postcard::to_extend(&body2(body()), vec![2]).unwrap();
        expect![[r#"
            021001010101010101010101010101010101ac02808004ef9bafcdf8acd19101
            0101010780019080040107011003030303030303030303030303030303808080
            8080200901000101018001908004
        "#]]
        .assert_eq(&lines(&bytes));
        let expected = BodyRow { framing: Vec::new(), ..body() };
        assert_eq!(decode::<BodyRow>(BODIES, &bytes).unwrap(), expected);
        let part =
            PartRow2 { body: body2(body()), md5: [9; 16], modified: testing::NOW, checksum: None };
        let bytes = postcard::to_extend(&part, vec![2]).unwrap();
        let found: PartRow = decode(PARTS, &bytes).unwrap();
        assert_eq!((found.body, found.md5), (expected, [9; 16]));
    }
}

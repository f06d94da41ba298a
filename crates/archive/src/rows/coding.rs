//! The version of each kind of row, and the decoding of older ones.

use fulgurite_catalog::row::{Row, RowResult, read_as};

use super::{
    BodyRow, BucketRow, CatalogAge, Checksum, ExpiryRow, ObjectRow, PartRow, PurgeRow, QueueRow,
    RestoreRow, SettledRow, TierName, Totals, UnconfirmedRow, UploadRow, version1, version2,
    version3, version4,
};

impl Row for ObjectRow {
    const VERSION: u8 = 5;

    fn decode_older(version: u8, bytes: &[u8]) -> RowResult<Self> {
        match version {
            1..=3 => read_as::<version3::ObjectRow3, _>(bytes),
            _ => read_as::<version4::ObjectRow4, _>(bytes),
        }
    }
}

impl Row for BodyRow {
    const VERSION: u8 = 4;

    fn decode_older(version: u8, bytes: &[u8]) -> RowResult<Self> {
        match version {
            1 => read_as::<version1::BodyRow1, _>(bytes),
            2 => read_as::<version2::BodyRow2, _>(bytes),
            _ => read_as::<version4::BodyRow3, _>(bytes),
        }
    }
}

impl Row for PartRow {
    const VERSION: u8 = 4;

    fn decode_older(version: u8, bytes: &[u8]) -> RowResult<Self> {
        match version {
            1 => read_as::<version1::PartRow1, _>(bytes),
            2 => read_as::<version2::PartRow2, _>(bytes),
            _ => read_as::<version4::PartRow3, _>(bytes),
        }
    }
}

impl Row for QueueRow {
    const VERSION: u8 = 4;

    fn decode_older(_version: u8, bytes: &[u8]) -> RowResult<Self> {
        read_as::<version3::QueueRow3, _>(bytes)
    }
}

impl Row for RestoreRow {
    const VERSION: u8 = 4;

    fn decode_older(_version: u8, bytes: &[u8]) -> RowResult<Self> {
        read_as::<version3::RestoreRow3, _>(bytes)
    }
}

impl Row for ExpiryRow {
    const VERSION: u8 = 4;

    fn decode_older(_version: u8, bytes: &[u8]) -> RowResult<Self> {
        read_as::<version3::ExpiryRow3, _>(bytes)
    }
}

impl Row for UnconfirmedRow {
    const VERSION: u8 = 5;

    fn decode_older(version: u8, bytes: &[u8]) -> RowResult<Self> {
        match version {
            1..=3 => read_as::<version3::UnconfirmedRow3, _>(bytes),
            _ => read_as::<version4::UnconfirmedRow4, _>(bytes),
        }
    }
}

impl Row for BucketRow {
    const VERSION: u8 = 3;
}

impl Row for UploadRow {
    const VERSION: u8 = 4;

    fn decode_older(_version: u8, bytes: &[u8]) -> RowResult<Self> {
        read_as::<version4::UploadRow3, _>(bytes)
    }
}

impl Row for SettledRow {
    const VERSION: u8 = 3;
}

impl Row for Totals {
    const VERSION: u8 = 4;

    fn decode_older(_version: u8, bytes: &[u8]) -> RowResult<Self> {
        read_as::<version4::Totals3, _>(bytes)
    }
}

impl Row for TierName {
    const VERSION: u8 = 5;
}

impl Row for Checksum {
    const VERSION: u8 = 5;
}

impl Row for CatalogAge {
    const VERSION: u8 = 3;
}

impl Row for PurgeRow {
    const VERSION: u8 = 3;
}

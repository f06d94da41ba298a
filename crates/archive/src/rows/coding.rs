//! The version of each kind of row.

use fulgurite_catalog::row::Row;

use super::tiers::StoreRow;
use super::{
    BodyRow, BucketRow, CatalogAge, Checksum, ExpiryRow, ObjectRow, PartRow, PurgeRow, QueueRow,
    RestoreRow, SettledRow, TierName, Totals, UnconfirmedRow, UploadRow,
};

impl Row for ObjectRow {
    const VERSION: u8 = 1;
}

impl Row for BodyRow {
    const VERSION: u8 = 1;
}

impl Row for PartRow {
    const VERSION: u8 = 1;
}

impl Row for QueueRow {
    const VERSION: u8 = 1;
}

impl Row for RestoreRow {
    const VERSION: u8 = 1;
}

impl Row for ExpiryRow {
    const VERSION: u8 = 1;
}

impl Row for UnconfirmedRow {
    const VERSION: u8 = 1;
}

impl Row for BucketRow {
    const VERSION: u8 = 1;
}

impl Row for UploadRow {
    const VERSION: u8 = 1;
}

impl Row for SettledRow {
    const VERSION: u8 = 1;
}

impl Row for Totals {
    const VERSION: u8 = 1;
}

impl Row for TierName {
    const VERSION: u8 = 1;
}

impl Row for Checksum {
    const VERSION: u8 = 1;
}

impl Row for CatalogAge {
    const VERSION: u8 = 1;
}

impl Row for StoreRow {
    const VERSION: u8 = 1;
}

impl Row for PurgeRow {
    const VERSION: u8 = 1;
}

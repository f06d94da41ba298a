//! Tests which blobs are repaired when.

use fulgurite_units::{BlobId, Duration, Instant};

use super::ReadRepairs;
use crate::limits::{READ_REPAIR_BACKOFF, READ_REPAIR_BACKOFF_MAX, READ_REPAIRS_MAX};

fn blob(number: u128) -> BlobId {
    BlobId::from_random(number.to_le_bytes())
}

#[test]
fn one_repair_per_blob_and_no_backoff_after_success() {
    let (read_repairs, now) = (ReadRepairs::default(), Instant::ZERO);
    assert!(read_repairs.begin(blob(1), now));
    assert!(!read_repairs.begin(blob(1), now + READ_REPAIR_BACKOFF_MAX), "it is still running");
    assert!(read_repairs.begin(blob(2), now), "other blobs are independent");
    assert_eq!(read_repairs.failed_count(), 0);
    read_repairs.end(blob(1), true, now);
    assert!(read_repairs.begin(blob(1), now));
    read_repairs.end(blob(1), false, now);
    assert_eq!(read_repairs.failed_count(), 1);
    assert!(read_repairs.begin(blob(1), now + READ_REPAIR_BACKOFF));
    assert_eq!(read_repairs.failed_count(), 1, "until it is repaired");
    read_repairs.end(blob(1), true, now + READ_REPAIR_BACKOFF);
    assert_eq!(read_repairs.failed_count(), 0);
}

#[test]
fn failed_repair_backs_off_but_is_never_abandoned() {
    let (read_repairs, mut now) = (ReadRepairs::default(), Instant::ZERO);
    let mut backoff = READ_REPAIR_BACKOFF;
    for _ in 0..40 {
        assert!(read_repairs.begin(blob(1), now));
        read_repairs.end(blob(1), false, now);
        assert!(!read_repairs.begin(blob(1), now + Duration::from_nanos(backoff.as_nanos() - 1)));
        now = now + backoff;
        backoff = Duration::from_nanos(backoff.as_nanos() * 2).min(READ_REPAIR_BACKOFF_MAX);
    }
    assert_eq!(backoff, READ_REPAIR_BACKOFF_MAX);
    assert!(read_repairs.begin(blob(1), now));
}

#[test]
fn tracked_repairs_are_bounded() {
    let (read_repairs, now) = (ReadRepairs::default(), Instant::ZERO);
    for number in 0..READ_REPAIRS_MAX {
        assert!(read_repairs.begin(blob(number as u128), now));
        read_repairs.end(blob(number as u128), false, now);
    }
    assert!(!read_repairs.begin(blob(u128::MAX), now));
    assert!(read_repairs.begin(blob(u128::MAX), now + READ_REPAIR_BACKOFF));
}

//! Tests which blobs are repaired when.

use fulgurite_units::{BlobId, Duration, Instant};

use super::ReadRepairs;
use crate::limits::{READ_REPAIR_BACKOFF, READ_REPAIR_BACKOFF_MAX, READ_REPAIRS_MAX};

fn blob(number: u128) -> BlobId {
    BlobId::from_random(number.to_le_bytes())
}

#[test]
fn a_blob_is_mended_once_at_a_time_and_again_at_once_when_it_went_well() {
    let (read_repairs, now) = (ReadRepairs::default(), Instant::ZERO);
    assert!(read_repairs.begin(blob(1), now));
    assert!(
        !read_repairs.begin(blob(1), now + READ_REPAIR_BACKOFF_MAX),
        "it is under way, however long"
    );
    assert!(read_repairs.begin(blob(2), now), "another is no business of it");
    assert_eq!(read_repairs.failed_count(), 0);
    read_repairs.end(blob(1), true, now);
    assert!(read_repairs.begin(blob(1), now));
    read_repairs.end(blob(1), false, now);
    assert_eq!(read_repairs.failed_count(), 1);
    assert!(read_repairs.begin(blob(1), now + READ_REPAIR_BACKOFF));
    assert_eq!(read_repairs.failed_count(), 1, "until it is mended");
    read_repairs.end(blob(1), true, now + READ_REPAIR_BACKOFF);
    assert_eq!(read_repairs.failed_count(), 0);
}

#[test]
fn one_that_cannot_be_mended_rests_longer_and_longer_and_never_for_good() {
    let (read_repairs, mut now) = (ReadRepairs::default(), Instant::ZERO);
    let mut rest = READ_REPAIR_BACKOFF;
    for _ in 0..40 {
        assert!(read_repairs.begin(blob(1), now));
        read_repairs.end(blob(1), false, now);
        assert!(!read_repairs.begin(blob(1), now + Duration::from_nanos(rest.as_nanos() - 1)));
        now = now + rest;
        rest = Duration::from_nanos(rest.as_nanos() * 2).min(READ_REPAIR_BACKOFF_MAX);
    }
    assert_eq!(rest, READ_REPAIR_BACKOFF_MAX);
    assert!(read_repairs.begin(blob(1), now));
}

#[test]
fn no_more_are_remembered_than_the_limit_and_those_that_rested_make_room() {
    let (read_repairs, now) = (ReadRepairs::default(), Instant::ZERO);
    for number in 0..READ_REPAIRS_MAX {
        assert!(read_repairs.begin(blob(number as u128), now));
        read_repairs.end(blob(number as u128), false, now);
    }
    assert!(!read_repairs.begin(blob(u128::MAX), now));
    assert!(read_repairs.begin(blob(u128::MAX), now + READ_REPAIR_BACKOFF));
}

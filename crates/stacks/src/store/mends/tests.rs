//! Tests which blobs are repaired when.

use fulgurite_units::{BlobId, Duration, Instant};

use super::Mends;
use crate::limits::{MEND_REST, MEND_REST_MAX, MENDS_KEPT_MAX};

fn blob(number: u128) -> BlobId {
    BlobId::from_random(number.to_le_bytes())
}

#[test]
fn a_blob_is_mended_once_at_a_time_and_again_at_once_when_it_went_well() {
    let (mends, now) = (Mends::default(), Instant::ZERO);
    assert!(mends.begin(blob(1), now));
    assert!(!mends.begin(blob(1), now + MEND_REST_MAX), "it is under way, however long");
    assert!(mends.begin(blob(2), now), "another is no business of it");
    assert_eq!(mends.in_vain(), 0);
    mends.end(blob(1), true, now);
    assert!(mends.begin(blob(1), now));
    mends.end(blob(1), false, now);
    assert_eq!(mends.in_vain(), 1);
    assert!(mends.begin(blob(1), now + MEND_REST));
    assert_eq!(mends.in_vain(), 1, "until it is mended");
    mends.end(blob(1), true, now + MEND_REST);
    assert_eq!(mends.in_vain(), 0);
}

#[test]
fn one_that_cannot_be_mended_rests_longer_and_longer_and_never_for_good() {
    let (mends, mut now) = (Mends::default(), Instant::ZERO);
    let mut rest = MEND_REST;
    for _ in 0..40 {
        assert!(mends.begin(blob(1), now));
        mends.end(blob(1), false, now);
        assert!(!mends.begin(blob(1), now + Duration::from_nanos(rest.as_nanos() - 1)));
        now = now + rest;
        rest = Duration::from_nanos(rest.as_nanos() * 2).min(MEND_REST_MAX);
    }
    assert_eq!(rest, MEND_REST_MAX);
    assert!(mends.begin(blob(1), now));
}

#[test]
fn no_more_are_remembered_than_the_limit_and_those_that_rested_make_room() {
    let (mends, now) = (Mends::default(), Instant::ZERO);
    for number in 0..MENDS_KEPT_MAX {
        assert!(mends.begin(blob(number as u128), now));
        mends.end(blob(number as u128), false, now);
    }
    assert!(!mends.begin(blob(u128::MAX), now));
    assert!(mends.begin(blob(u128::MAX), now + MEND_REST));
}

//! Expiry is rounded up to midnight UTC, as the S3 guide's own examples have it.

use fulgurite_units::{Duration, UnixTime};

use super::expiry;

fn at(text: &str) -> UnixTime {
    let time: jiff::Timestamp = text.parse().unwrap();
    UnixTime::from_millis(u64::try_from(time.as_millisecond()).unwrap())
}

#[test]
fn the_guides_examples_hold() {
    let day = Duration::from_secs(86_400);
    assert_eq!(expiry(at("2012-10-15T10:30:00Z"), 3, day), at("2012-10-19T00:00:00Z"));
    assert_eq!(expiry(at("2012-10-16T11:00:00Z"), 1, day), at("2012-10-18T00:00:00Z"));
    assert_eq!(expiry(at("2012-10-16T00:00:00Z"), 1, day), at("2012-10-17T00:00:00Z"));
}

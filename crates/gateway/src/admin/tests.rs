//! How errors of the archive are reported.

use super::*;

#[test]
fn busy_archive_error_maps_to_slow_down() {
    let error = ArchiveError::Busy { what: "16 orders".to_owned() };
    assert_eq!(status_of(error.kind()), StatusCode::SERVICE_UNAVAILABLE);
    let reported = Failure::from(error).value();
    assert_eq!(reported["error"]["code"], "SlowDown", "{reported}");
}

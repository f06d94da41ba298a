//! How errors of the archive are reported.

use super::*;

#[test]
fn too_many_orders_are_to_come_again() {
    let error = ArchiveError::Busy { what: "16 orders".to_owned() };
    assert_eq!(status_of(error.kind()), StatusCode::SERVICE_UNAVAILABLE);
    let told = Failure::from(error).value();
    assert_eq!(told["error"]["code"], "SlowDown", "{told}");
}

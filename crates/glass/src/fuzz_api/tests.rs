//! Runs the checks on seeded changes of valid bytes.

use super::*;

#[path = "../../../../fuzz/changes.rs"]
mod changes;

#[test]
fn messages_of_the_decode_queue() {
    let samples = crate::decode_service::sample_messages();
    changes::each(&samples.each_ref().map(|sample| &sample[..]), queue_message);
}

#[test]
fn rows_of_the_glass_tier() {
    let rows = crate::rows::sample_rows();
    for (which, bytes) in [0, 1, 2, 5, 3].into_iter().zip(&rows) {
        changes::each(&[bytes], |input| glass_row(which, input));
    }
}

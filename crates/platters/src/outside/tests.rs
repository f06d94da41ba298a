//! The checks with seeded changes of good bytes.

use super::*;

#[path = "../../../../fuzz/changes.rs"]
mod changes;

#[test]
fn messages_of_the_decode_queue() {
    let samples = crate::decode_service::sample_messages();
    changes::each(&samples.each_ref().map(|sample| &sample[..]), queue_message);
}

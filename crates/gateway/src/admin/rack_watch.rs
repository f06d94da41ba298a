//! The events of the rack for one subscriber.

use bytes::Bytes;
use fulgurite_archive::WatchEnd;
use fulgurite_rack::{Notification, Watch};
use serde_json::json;

use super::events::{EventSource, event};

impl EventSource for Watch<Notification> {
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        let end = match Self::next(self).await {
            Some(Ok(seen)) => return Some((text(&seen), false)),
            Some(Err(_)) => WatchEnd::Late,
            None => WatchEnd::Stopped,
        };
        Some((event("end", None, &end), true))
    }
}

fn text(seen: &Notification) -> Bytes {
    match seen {
        Notification::Snapshot { step, at, rack } => {
            event("snapshot", Some(*step), &json!({ "step": step, "at": at, "rack": rack }))
        }
        Notification::Step { step, at, event: rack_event, commands } => {
            let step_data =
                json!({ "step": step, "at": at, "event": rack_event, "commands": commands });
            event("step", Some(*step), &step_data)
        }
        Notification::Unrepaired { step, at, group, blob, detail } => {
            let blob_data =
                json!({ "step": step, "at": at, "group": group, "blob": blob, "what": detail });
            event("unmended", Some(*step), &blob_data)
        }
    }
}

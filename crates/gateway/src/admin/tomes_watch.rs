//! The events of the set of tomes for one subscriber.

use bytes::Bytes;
use fulgurite_tome::objects::{TomesWatch, WatchItem};
use serde_json::json;

use super::events::{EventSource, event};

impl EventSource for TomesWatch {
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        let text = match Self::next(self).await? {
            WatchItem::Snapshot(step, tomes) => {
                event("snapshot", Some(step), &json!({ "step": step, "tomes": tomes }))
            }
            WatchItem::Step(step, happened) => {
                let (at, what) = (happened.at, happened.what);
                event("step", Some(step), &json!({ "step": step, "at": at, "happened": what }))
            }
            WatchItem::SnapshotDiff(step, diff) => {
                event("poll", Some(step), &json!({ "step": step, "poll": diff }))
            }
            WatchItem::Missed(step, missed) => {
                event("missed", Some(step), &json!({ "step": step, "missed": missed }))
            }
        };
        Some((text, false))
    }
}

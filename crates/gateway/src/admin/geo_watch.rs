//! The events of a namespace over several sites for one subscriber.

use bytes::Bytes;
use fulgurite_geo::objects::{GeoSubscriber, GeoUpdate};
use serde_json::json;

use super::events::{EventSource, event};

impl EventSource for GeoSubscriber {
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        let text = match Self::next(self).await {
            GeoUpdate::Snapshot(geo) => {
                event("snapshot", Some(0), &json!({ "step": 0, "geo": geo }))
            }
            GeoUpdate::Step(step, geo_event) => {
                event("step", Some(step), &json!({ "step": step, "happened": geo_event }))
            }
        };
        Some((text, false))
    }
}

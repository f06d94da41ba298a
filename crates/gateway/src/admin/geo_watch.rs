//! The events of a namespace over several sites for one subscriber.

use bytes::Bytes;
use fulgurite_geo_store::{GeoWatch, Seen};
use serde_json::json;

use super::events::{Watch, event};

impl Watch for GeoWatch {
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        let text = match Self::next(self).await {
            Seen::Scene(geo) => event("scene", Some(0), &json!({ "step": 0, "geo": geo })),
            Seen::Step(step, happened) => {
                event("step", Some(step), &json!({ "step": step, "happened": happened }))
            }
        };
        Some((text, false))
    }
}

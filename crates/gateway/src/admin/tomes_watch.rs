//! The events of the set of tomes for one subscriber.

use bytes::Bytes;
use fulgurite_tome_store::{Seen, TomesWatch};
use serde_json::json;

use super::events::{Watch, event};

impl Watch for TomesWatch {
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        let text = match Self::next(self).await? {
            Seen::Scene(step, tomes) => {
                event("scene", Some(step), &json!({ "step": step, "tomes": tomes }))
            }
            Seen::Step(step, happened) => {
                let (at, what) = (happened.at, happened.what);
                event("step", Some(step), &json!({ "step": step, "at": at, "happened": what }))
            }
            Seen::Look(step, look) => {
                event("look", Some(step), &json!({ "step": step, "look": look }))
            }
            Seen::Missed(step, missed) => {
                event("missed", Some(step), &json!({ "step": step, "missed": missed }))
            }
        };
        Some((text, false))
    }
}

//! The events of the rack for one subscriber: a bounded queue that the rack's driver fills without
//! blocking.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use fulgurite_archive::WatchEnd;
use fulgurite_rack::{Notification, RackError, RackStore};
use serde_json::json;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, channel};

use super::events::{EventSource, event};
use crate::limits::RACK_EVENTS_BUFFERED;

/// The receiving end of a subscriber's queue.
#[derive(Debug)]
pub(super) struct RackWatch {
    events: Receiver<Bytes>,
    is_late: Arc<AtomicBool>,
}

impl RackWatch {
    /// Subscribes to events from now on.
    ///
    /// # Errors
    /// When the rack is stopping.
    pub(super) fn begin(rack: &RackStore) -> Result<Self, RackError> {
        let (sender, events) = channel(RACK_EVENTS_BUFFERED);
        let is_late = Arc::<AtomicBool>::default();
        let late = Arc::clone(&is_late);
        rack.watch(move |seen| match sender.try_send(text(&seen)) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(_)) => {
                // Set before the sender is dropped, because the drop ends the reader's stream.
                late.store(true, Ordering::SeqCst);
                false
            }
        })?;
        Ok(Self { events, is_late })
    }
}

impl EventSource for RackWatch {
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        if let Some(text) = self.events.recv().await {
            return Some((text, false));
        }
        let is_late = self.is_late.load(Ordering::SeqCst);
        let end = if is_late { WatchEnd::Late } else { WatchEnd::Stopped };
        Some((event("end", None, &end), true))
    }
}

fn text(seen: &Notification<'_>) -> Bytes {
    match seen {
        Notification::Snapshot { step, at, rack } => {
            event("scene", Some(*step), &json!({ "step": step, "at": at, "rack": rack }))
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

//! `GET /-/events` and `/-/admin/tiers/NAME/events`: live events of the library and of a tier, as
//! server-sent events (WHATWG HTML, 9.2).
//!
//! ```text
//!   event: snapshot      the state of everything; comes first
//!   id: 41               number of steps so far
//!   data: {..}           one line of JSON
//!
//!   event: step          one input and the decisions on it; without gaps
//!   event: ...           `restore_failed` of the archive, `unrepaired` of a rack
//!   event: end           why the stream ends
//!   :                    keep-alive after some silence
//! ```
//!
//! Slow subscribers apply no back-pressure. One that falls behind gets an `end` event that says so,
//! and starts over with a new snapshot. Subscribers to tomes instead get the number of missed
//! events and the next snapshot in the same response. Events of sites are the differences between
//! two polls a second apart.

use std::convert::Infallible;
use std::future::Future;

use bytes::Bytes;
use fulgurite_archive::{LibraryWatch, RestoreWatch, Seen, WatchEnd};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use s3s::Body;
use serde::Serialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::limits::KEEPALIVE_INTERVAL;

/// A source of events for one subscriber.
pub(super) trait EventSource: Send + 'static {
    /// Returns the next event and whether it is the last; `None` when there are no more.
    /// Cancel-safe: dropping the future loses no event.
    fn next(&mut self) -> impl Future<Output = Option<(Bytes, bool)>> + Send;
}

/// The event stream of one client.
#[derive(Debug)]
pub(super) struct Events<W> {
    watch: W,
    stopping: watch::Receiver<bool>,
    /// Held for as long as the client is connected.
    _slot: OwnedSemaphorePermit,
    is_over: bool,
}

impl<W: EventSource> Events<W> {
    pub(super) const fn new(
        watch: W,
        stopping: watch::Receiver<bool>,
        slot: OwnedSemaphorePermit,
    ) -> Self {
        Self { watch, stopping, _slot: slot, is_over: false }
    }

    /// Returns the response, which ends when the events do.
    pub(super) fn response(self) -> Response<Body> {
        let events = futures::stream::unfold(self, |mut this| async move {
            let text = this.next().await?;
            Some((Ok::<_, Infallible>(Frame::data(text)), this))
        });
        let mut response = Response::new(Body::http_body_unsync(StreamBody::new(events)));
        let kind = HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// Returns the text of the next event.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let (text, is_last) = tokio::select! {
            biased;
            // A dropped sender counts as a stop, too.
            _ = self.stopping.wait_for(|is_stopping| *is_stopping) => {
                (event("end", None, &WatchEnd::Stopped), true)
            }
            next = self.watch.next() => next?,
            // The write detects a client that is gone.
            () = tokio::time::sleep(KEEPALIVE_INTERVAL) => {
                return Some(Bytes::from_static(b":\n\n"));
            }
        };
        self.is_over = is_last;
        Some(text)
    }
}

/// The events of the library, and the restores that are given up.
#[derive(Debug)]
pub(super) struct ArchiveWatch {
    library: LibraryWatch,
    restores: RestoreWatch,
}

impl ArchiveWatch {
    pub(super) const fn new(library: LibraryWatch, restores: RestoreWatch) -> Self {
        Self { library, restores }
    }
}

impl EventSource for ArchiveWatch {
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        let seen = tokio::select! {
            biased;
            seen = self.library.next() => seen?,
            Some(failed) = self.restores.next() => {
                return Some((event("restore_failed", None, &failed), false));
            }
        };
        let text = match &seen {
            Seen::Snapshot(snapshot) => event("snapshot", Some(snapshot.step), snapshot),
            Seen::Step(step) => event("step", Some(step.step), step),
            Seen::End(end) => event("end", None, end),
        };
        Some((text, matches!(seen, Seen::End(_))))
    }
}

/// Formats one event. JSON has no line breaks, so all of it is one `data:` line.
pub(super) fn event(name: &str, id: Option<u64>, value: &impl Serialize) -> Bytes {
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    Bytes::from(format!("event: {name}\n{id}data: {}\n\n", json!(value)))
}

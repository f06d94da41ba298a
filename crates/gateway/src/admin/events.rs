//! `GET /-/events`, `/-/rack-events`, `/-/tomes-events` and `/-/geo-events`: what goes on in the
//! library, in the rack of cold disks, in the set of tomes and over several sites, as server-sent
//! events (WHATWG HTML, 9.2).
//!
//! ```text
//!   event: scene         all of it at one moment; comes first
//!   id: 41               steps until then
//!   data: {..}           one line of JSON
//!
//!   event: step          it was told something, and decided; one for each, without a gap
//!   event: ...           of the archive `restore_failed`, of the rack `unmended`
//!   event: end           why nothing more comes
//!   :                    nothing happened for a while
//! ```
//!
//! Nobody is waited for: whoever reads too slowly misses nothing in silence, but is let go with an
//! `end` that says so, and begins anew with another scene. Of tomes it is told how much it missed,
//! and the next scene in the same answer; of sites what two looks
//! a second apart tell apart.

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

use crate::limits::EVENTS_SILENCE_MAX;

/// What somebody watches.
pub(super) trait Watch: Send + 'static {
    /// The next event, and whether it is the last; none when there are no more. What is not waited
    /// for to the end is not lost.
    fn next(&mut self) -> impl Future<Output = Option<(Bytes, bool)>> + Send;
}

/// The events of one client.
#[derive(Debug)]
pub(super) struct Events<W> {
    watch: W,
    stopping: watch::Receiver<bool>,
    /// Held as long as the client is there.
    _slot: OwnedSemaphorePermit,
    is_over: bool,
}

impl<W: Watch> Events<W> {
    pub(super) const fn new(
        watch: W,
        stopping: watch::Receiver<bool>,
        slot: OwnedSemaphorePermit,
    ) -> Self {
        Self { watch, stopping, _slot: slot, is_over: false }
    }

    /// The answer, which ends when the events do.
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

    /// The text of the next event.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let (text, is_last) = tokio::select! {
            biased;
            // A sender that is gone stops as well.
            _ = self.stopping.wait_for(|is_stopping| *is_stopping) => {
                (event("end", None, &WatchEnd::Stopped), true)
            }
            next = self.watch.next() => next?,
            // A client that is gone is found out when it is written to.
            () = tokio::time::sleep(EVENTS_SILENCE_MAX) => {
                return Some(Bytes::from_static(b":\n\n"));
            }
        };
        self.is_over = is_last;
        Some(text)
    }
}

/// The library, and with it the restores that are given up.
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

impl Watch for ArchiveWatch {
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        let seen = tokio::select! {
            biased;
            seen = self.library.next() => seen?,
            Some(failed) = self.restores.next() => {
                return Some((event("restore_failed", None, &failed), false));
            }
        };
        let text = match &seen {
            Seen::Scene(scene) => event("scene", Some(scene.step), scene),
            Seen::Step(step) => event("step", Some(step.step), step),
            Seen::End(end) => event("end", None, end),
        };
        Some((text, matches!(seen, Seen::End(_))))
    }
}

/// JSON has no line breaks, so that all of it is one line.
pub(super) fn event(name: &str, id: Option<u64>, value: &impl Serialize) -> Bytes {
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    Bytes::from(format!("event: {name}\n{id}data: {}\n\n", json!(value)))
}

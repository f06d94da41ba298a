//! The body of a response. The request ends when its body is sent or its client is gone: only then
//! is its slot released and its duration recorded.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use fulgurite_accept::Busy;
use http::StatusCode;
use http_body::{Frame, SizeHint};
use s3s::{Body, StdError};
use tokio::sync::OwnedSemaphorePermit;

use crate::page::{FinishedRequest, Metrics};
use crate::request::RequestContext;

/// A body, with the guards that are released when it ends.
pub(crate) struct OutboundBody {
    inner: Body,
    record: Option<Record>,
    _slot: Option<OwnedSemaphorePermit>,
    _busy: Busy,
}

/// The metrics of a request, recorded when it ends.
pub(crate) struct Record {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) context: Arc<RequestContext>,
    pub(crate) status: StatusCode,
    pub(crate) started: Instant,
    pub(crate) bytes_out: u64,
}

impl OutboundBody {
    pub(crate) const fn new(
        inner: Body,
        record: Option<Record>,
        slot: Option<OwnedSemaphorePermit>,
        busy: Busy,
    ) -> Self {
        Self { inner, record, _slot: slot, _busy: busy }
    }
}

impl http_body::Body for OutboundBody {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(cx);
        if let (Poll::Ready(Some(Ok(frame))), Some(record)) = (&frame, &mut self.record) {
            record.bytes_out += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let duration = self.started.elapsed();
        let finished = FinishedRequest {
            operation: self.context.operation(),
            status: self.status.as_u16(),
            duration,
            bytes_in: self.context.bytes_in(),
            bytes_out: self.bytes_out,
        };
        self.metrics.record(&finished);
        tracing::debug!(
            id = self.context.id(),
            operation = finished.operation,
            status = finished.status,
            ?duration,
            bytes_in = finished.bytes_in,
            bytes_out = finished.bytes_out,
            "request"
        );
    }
}

//! The body of a request: counts its bytes, limits its pauses, compares it with the digest under
//! the signature, and removes its framing. Other digests are compared by the archive, or before a
//! document is parsed.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use super::chunks::ChunkDecoder;
use super::digests::PayloadDigest;
use crate::request::BodyFault;
use crate::request::RequestContext;

/// The body that s3s reads instead of the connection's own.
pub(crate) struct InboundBody {
    inner: Option<Incoming>,
    context: Arc<RequestContext>,
    body_timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    chunks: Option<ChunkDecoder>,
    ready: VecDeque<Bytes>,
    digest: Option<PayloadDigest>,
}

impl InboundBody {
    pub(crate) fn new(
        inner: Incoming,
        context: Arc<RequestContext>,
        body_timeout: Duration,
    ) -> Self {
        Self {
            inner: Some(inner),
            context,
            body_timeout,
            timer: None,
            chunks: None,
            ready: VecDeque::new(),
            digest: None,
        }
    }

    /// Removes the framing of the body.
    pub(crate) fn with_chunks(mut self, chunks: ChunkDecoder) -> Self {
        self.chunks = Some(chunks);
        self
    }

    /// Compares the body's digest when it ends.
    pub(crate) fn with_digest(mut self, digest: PayloadDigest) -> Self {
        self.digest = Some(digest);
        self
    }

    fn fail(&mut self, fault: BodyFault) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        self.context.set_fault(fault);
        self.ready.clear();
        // A bad body is not worth draining.
        self.inner = None;
        Poll::Ready(Some(Err(fault)))
    }

    /// Polls the next bytes of the connection; a fault when they are late or the connection ends.
    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyFault>>> {
        let Some(inner) = self.inner.as_mut() else { return Poll::Ready(None) };
        let frame = match Pin::new(inner).poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let body_timeout = self.body_timeout;
                let timer =
                    self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(body_timeout)));
                ready!(timer.as_mut().poll(cx));
                return Poll::Ready(Some(Err(BodyFault::TimedOut)));
            }
        };
        if let Some(timer) = &mut self.timer {
            timer.as_mut().reset(Instant::now() + self.body_timeout);
        }
        Poll::Ready(frame.map(|frame| match frame {
            // HTTP's own trailers are not part of S3: nothing would check the digests in them.
            Ok(frame) => frame.into_data().map_err(|_| BodyFault::Trailer),
            Err(_) => Err(BodyFault::Incomplete),
        }))
    }

    fn take(&mut self, bytes: Bytes) -> Result<(), BodyFault> {
        self.context.count_bytes_in(bytes.len() as u64);
        if let Some(digest) = &mut self.digest {
            digest.update(&bytes);
        }
        match &mut self.chunks {
            Some(chunks) => chunks.push(bytes, &mut self.ready)?,
            None if bytes.is_empty() => {}
            None => self.ready.push_back(bytes),
        }
        // s3s may stop reading at the declared length: the result of the checks must come with the
        // last bytes.
        let at_end = self.inner.as_ref().is_none_or(Body::is_end_stream);
        if at_end { self.finish() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<(), BodyFault> {
        if let Some(chunks) = self.chunks.take() {
            self.context.set_trailers(chunks.finish()?);
        }
        self.digest.take().map_or(Ok(()), PayloadDigest::check)
    }
}

impl Body for InboundBody {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            let taken = match ready!(self.poll_inner(cx)) {
                Some(Ok(bytes)) => self.take(bytes),
                Some(Err(fault)) => Err(fault),
                None => {
                    self.inner = None;
                    match self.finish() {
                        Ok(()) => return Poll::Ready(None),
                        Err(fault) => Err(fault),
                    }
                }
            };
            if let Err(fault) = taken {
                return self.fail(fault);
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty()
            && self.digest.is_none()
            && self.chunks.is_none()
            && self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.chunks, &self.inner) {
            (None, Some(inner)) if self.ready.is_empty() => inner.size_hint(),
            _ => SizeHint::default(),
        }
    }
}

impl Drop for InboundBody {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take().filter(|inner| !inner.is_end_stream()) {
            self.context.leave_unread(inner);
        }
    }
}

//! The bytes of a blob as a stream. One operation of the rack reads them. Another reads the rest
//! whenever the client was too slow, or the stacks of the spun-up disks were not enough after all.

use std::ops::{ControlFlow, Range};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use fulgurite_disks::{GroupId, PlaceId};
use fulgurite_units::{BlobId, ByteCount, UnixTime};
use futures::Stream;

use super::Inner;
use super::pipe::{End, Next, Receiver, pipe};
use crate::blob::ReadMode;
use crate::driver::{Kind, Needs, Task};
use crate::work::read;
use crate::{RackError, Result};

/// A stream of the bytes of a blob.
#[derive(Debug)]
pub(super) struct Body {
    inner: Arc<Inner>,
    key: String,
    group: GroupId,
    blob: BlobId,
    /// The range that is left.
    range: Range<u64>,
    /// The kind of read, by a client or a read-back by the writer, and its deadline.
    request: (Kind, Option<UnixTime>),
    receiver: Option<Receiver>,
    /// The needed disks were not enough: the rest is read from all of them.
    must_read_all: bool,
}

impl Body {
    /// Requests the bytes `range`.
    pub(super) fn begin(
        inner: Arc<Inner>,
        key: &str,
        group: u32,
        blob: BlobId,
        range: Range<u64>,
        request: (Kind, Option<UnixTime>),
    ) -> Result<Self> {
        let (group, key) = (GroupId::new(group), key.to_owned());
        let (receiver, must_read_all) = (None, false);
        let mut body = Self { inner, key, group, blob, range, request, receiver, must_read_all };
        body.request_rest()?;
        Ok(body)
    }

    /// Requests the rest.
    fn request_rest(&mut self) -> Result<()> {
        let needs = self.needs()?;
        let has_skipped = needs.is_some();
        let (sender, receiver) = pipe(self.inner.clock());
        self.receiver = Some(receiver);
        let (group, blob, range) = (self.group, self.blob, self.range.clone());
        let (inner, key) = (Arc::clone(&self.inner), self.key.clone());
        let work = move |ready: Result<&crate::work::Group>| {
            let mut end = End::Done;
            let outcome = ready.and_then(|ready| {
                // Looked up now, as stacks may have been rebuilt elsewhere since the request.
                let row = inner.index().blob(group, blob)?;
                let row = row.ok_or_else(|| RackError::NotFound { key: key.clone() })?;
                let mut take = |bytes: Bytes| match sender.send(bytes) {
                    ControlFlow::Continue(()) => ControlFlow::Continue(()),
                    ControlFlow::Break(reason) => {
                        end = reason;
                        ControlFlow::Break(())
                    }
                };
                read(inner.ctx(), ready, blob, &row, range, &mut take)
            });
            match outcome {
                Ok(lost) => {
                    sender.end(end);
                    if !lost.is_empty() {
                        inner.schedule_read_repair(group, blob, &lost);
                    }
                }
                Err(error) if has_skipped && error.has_asleep() => sender.end(End::Short),
                Err(error) => {
                    // Damaged beyond its redundancy: a repair is tried, and the blob counts as
                    // damaged until it succeeds.
                    if let RackError::TooFewStacks { lost, .. } = &error {
                        inner.schedule_read_repair(group, blob, lost);
                    }
                    sender.end(End::Failed(error));
                }
            }
        };
        let bytes = ByteCount::new(self.range.end - self.range.start);
        self.inner.driver().submit(Task {
            group,
            kind: self.request.0,
            bytes,
            due: self.request.1,
            needs,
            work: Box::new(work),
        })
    }

    /// Returns the disks that are enough, if no more are to be read; none for all there are.
    fn needs(&self) -> Result<Option<Needs>> {
        if self.must_read_all || self.inner.ctx().reads == ReadMode::All {
            return Ok(None);
        }
        let Some(row) = self.inner.index().blob(self.group, self.blob)? else { return Ok(None) };
        let enough = u32::from(row.coding()?.information());
        let places = row.places.iter().flatten().map(|&place| PlaceId::new(place)).collect();
        Ok(Some(Needs { places, enough }))
    }
}

impl Stream for Body {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let Some(receiver) = &mut self.receiver else { return Poll::Ready(None) };
            match ready!(receiver.poll_next(context)) {
                Ok(Next::Bytes(bytes)) => {
                    self.range.start += crate::format::bytes(bytes.len());
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Ok(Next::End) => self.receiver = None,
                Ok(next @ (Next::Parked | Next::Short)) => {
                    self.must_read_all |= matches!(next, Next::Short);
                    if let Err(error) = self.request_rest() {
                        self.receiver = None;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                Err(error) => {
                    self.receiver = None;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

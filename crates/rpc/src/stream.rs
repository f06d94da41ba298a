//! A connection with what is known of it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream with a context, which is called with each error.
pub(crate) struct ContextStream<S, T> {
    pub(crate) stream: S,
    pub(crate) context: T,
    pub(crate) on_error: fn(&T, &io::Error),
}

impl<S, T> ContextStream<S, T> {
    fn inspected<R>(&self, done: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if let Poll::Ready(Err(error)) = &done {
            (self.on_error)(&self.context, error);
        }
        done
    }
}

impl<S: AsyncRead + Unpin, T: Unpin> AsyncRead for ContextStream<S, T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.inspected(done)
    }
}

impl<S: AsyncWrite + Unpin, T: Unpin> AsyncWrite for ContextStream<S, T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.inspected(done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        self.inspected(done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

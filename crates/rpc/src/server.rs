//! Answers the calls of peers that were authenticated, until it is stopped.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use fulgurite_accept::{Peer, PeerPermit};
use fulgurite_units::error_chain;
use futures::StreamExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::transport::Server;
use tonic::transport::server::Connected;

use crate::ConnectionLimits;

/// Answers calls of authenticated peers by `calls` until `stopping` is true; then lets running
/// calls end. A call finds what is known of its peer among the extensions of its request, as `I`.
pub async fn serve<S, I>(
    calls: S,
    incoming: mpsc::Receiver<Peer<(TlsStream<TcpStream>, I)>>,
    limits: ConnectionLimits,
    mut stopping: watch::Receiver<bool>,
) where
    S: tower::Service<
            http::Request<Body>,
            Response = http::Response<Body>,
            Error = Infallible,
            Future: Send,
        > + Clone
        + Send
        + 'static,
    I: Clone + Send + Sync + Unpin + 'static,
{
    let stopped = async move {
        // The sender is dropped only on stop.
        let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
    };
    let incoming = ReceiverStream::new(incoming).map(|Peer { session: (stream, peer), permit }| {
        Ok::<_, io::Error>(PeerStream { stream, peer, _permit: permit })
    });
    let serving = Server::builder()
        .max_concurrent_streams(limits.streams)
        .initial_stream_window_size(limits.window_bytes)
        .initial_connection_window_size(limits.connection_window_bytes)
        .http2_keepalive_interval(Some(limits.keep_alive))
        .http2_keepalive_timeout(Some(limits.keep_alive_timeout))
        .serve_with_incoming_shutdown(calls, incoming, stopped);
    if let Err(error) = serving.await {
        tracing::error!("the RPC server stopped: {}", error_chain(&error));
    }
}

/// A connection to an authenticated peer.
struct PeerStream<I> {
    stream: TlsStream<TcpStream>,
    peer: I,
    _permit: PeerPermit,
}

impl<I: Clone + Send + Sync + 'static> Connected for PeerStream<I> {
    type ConnectInfo = I;

    fn connect_info(&self) -> I {
        self.peer.clone()
    }
}

impl<I: Unpin> AsyncRead for PeerStream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<I: Unpin> AsyncWrite for PeerStream<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

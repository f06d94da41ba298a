//! The client's side of calls.

use std::sync::Arc;

use fulgurite_units::error_chain;
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{IntoRequest, IntoStreamingRequest, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::Call;

/// The calls of one connection.
#[derive(Clone, Debug)]
pub struct Client(Grpc<Channel>);

type Codec<C> = ProstCodec<<C as Call>::Request, <C as Call>::Reply>;

/// The result of a call; the status is the peer's, or says what became of the connection.
type CallResult<T> = Result<T, Status>;

impl Client {
    /// Returns a client on this connection. No message is longer than this.
    #[must_use]
    pub fn new(channel: Channel, message_bytes_max: usize) -> Self {
        let grpc = Grpc::new(channel).max_decoding_message_size(message_bytes_max);
        Self(grpc.max_encoding_message_size(message_bytes_max))
    }

    /// Sends one request and returns the reply.
    ///
    /// # Errors
    /// The status of the call.
    pub async fn unary<C: Call>(
        &mut self,
        request: impl IntoRequest<C::Request>,
    ) -> CallResult<C::Reply> {
        self.ready().await?;
        let (path, codec) = (PathAndQuery::from_static(C::PATH), Codec::<C>::default());
        Ok(self.0.unary(request.into_request(), path, codec).await?.into_inner())
    }

    /// Sends one request and returns a stream of replies.
    ///
    /// # Errors
    /// The status of the call.
    pub async fn server_streaming<C: Call>(
        &mut self,
        request: impl IntoRequest<C::Request>,
    ) -> CallResult<Streaming<C::Reply>> {
        self.ready().await?;
        let (path, codec) = (PathAndQuery::from_static(C::PATH), Codec::<C>::default());
        Ok(self.0.server_streaming(request.into_request(), path, codec).await?.into_inner())
    }

    /// Sends a stream of requests and returns the reply.
    ///
    /// # Errors
    /// The status of the call.
    pub async fn client_streaming<C: Call>(
        &mut self,
        requests: impl IntoStreamingRequest<Message = C::Request>,
    ) -> CallResult<C::Reply> {
        self.ready().await?;
        let (path, codec) = (PathAndQuery::from_static(C::PATH), Codec::<C>::default());
        let requests = requests.into_streaming_request();
        Ok(self.0.client_streaming(requests, path, codec).await?.into_inner())
    }

    /// Sends a stream of requests and returns a stream of replies.
    ///
    /// # Errors
    /// The status of the call.
    pub async fn streaming<C: Call>(
        &mut self,
        requests: impl IntoStreamingRequest<Message = C::Request>,
    ) -> CallResult<Streaming<C::Reply>> {
        self.ready().await?;
        let (path, codec) = (PathAndQuery::from_static(C::PATH), Codec::<C>::default());
        Ok(self.0.streaming(requests.into_streaming_request(), path, codec).await?.into_inner())
    }

    async fn ready(&mut self) -> CallResult<()> {
        self.0.ready().await.map_err(|error| {
            let mut status = Status::unknown(error_chain(&error));
            status.set_source(Arc::new(error));
            status
        })
    }
}

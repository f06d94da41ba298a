//! Client side of the calls of proto/node.proto.
//!
//! Not here: what they are for.

use std::time::Duration;

use futures::Stream;
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::remote::limits::WIRE_BYTES_MAX;
use crate::remote::wire::{CreatePart, Done};

pub(crate) const OPEN: &str = "/fulgurite.site.v1.Node/Open";
pub(crate) const STEP: &str = "/fulgurite.site.v1.Node/Step";
pub(crate) const READ: &str = "/fulgurite.site.v1.Node/Read";
pub(crate) const CAS: &str = "/fulgurite.site.v1.Node/Cas";
pub(crate) const REMOVE: &str = "/fulgurite.site.v1.Node/Remove";
pub(crate) const ERASE: &str = "/fulgurite.site.v1.Node/Erase";
pub(crate) const SCAN: &str = "/fulgurite.site.v1.Node/Scan";
pub(crate) const CREATE: &str = "/fulgurite.site.v1.Node/Create";
pub(crate) const GET: &str = "/fulgurite.site.v1.Node/Get";
pub(crate) const HEAD: &str = "/fulgurite.site.v1.Node/Head";
pub(crate) const DELETE: &str = "/fulgurite.site.v1.Node/Delete";
pub(crate) const LIST: &str = "/fulgurite.site.v1.Node/List";

/// All calls.
pub(crate) const CALLS: [&str; 12] =
    [OPEN, STEP, READ, CAS, REMOVE, ERASE, SCAN, CREATE, GET, HEAD, DELETE, LIST];

/// A gRPC client.
#[derive(Clone, Debug)]
pub(crate) struct Client(Grpc<Channel>);

type CallResult<T> = Result<T, Status>;

impl Client {
    pub(crate) fn new(channel: Channel) -> Self {
        let grpc = Grpc::new(channel).max_decoding_message_size(WIRE_BYTES_MAX);
        Self(grpc.max_encoding_message_size(WIRE_BYTES_MAX))
    }

    /// Sends one request and returns the answer. The node cancels the call if nobody waits for it.
    pub(crate) async fn unary<Q, A>(
        &mut self,
        path: &'static str,
        request: Q,
        time_limit: Duration,
    ) -> CallResult<A>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        self.ready().await?;
        let codec = ProstCodec::<Q, A>::default();
        let mut request = Request::new(request);
        request.set_timeout(time_limit);
        Ok(self.0.unary(request, PathAndQuery::from_static(path), codec).await?.into_inner())
    }

    pub(crate) async fn streaming<Q, A>(
        &mut self,
        path: &'static str,
        request: Q,
    ) -> CallResult<Streaming<A>>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        self.ready().await?;
        let codec = ProstCodec::<Q, A>::default();
        let (request, path) = (Request::new(request), PathAndQuery::from_static(path));
        Ok(self.0.server_streaming(request, path, codec).await?.into_inner())
    }

    pub(crate) async fn create<S>(&mut self, parts: S, time_limit: Duration) -> CallResult<Done>
    where
        S: Stream<Item = CreatePart> + Send + 'static,
    {
        self.ready().await?;
        let codec = ProstCodec::<CreatePart, Done>::default();
        let mut request = Request::new(parts);
        request.set_timeout(time_limit);
        let path = PathAndQuery::from_static(CREATE);
        Ok(self.0.client_streaming(request, path, codec).await?.into_inner())
    }

    async fn ready(&mut self) -> Result<(), Status> {
        let ready = self.0.ready().await;
        ready.map_err(|error| Status::from_error(Box::new(error)))
    }
}

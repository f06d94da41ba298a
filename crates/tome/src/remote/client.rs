//! Client stubs for the calls of proto/tome.proto.
//!
//! Not here: what they are for.

use http::uri::PathAndQuery;
use tokio_stream::Stream;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::remote::limits::WIRE_BYTES_MAX;
use crate::remote::wire::{
    Bytes, FromSet, Letter, ListReply, ListRequest, Named, Nothing, PutPart, PutReply, StatusReply,
    ToSet,
};

pub(crate) const LETTERS: &str = "/fulgurite.tome.v1.Tome/Letters";
pub(crate) const SESSION: &str = "/fulgurite.tome.v1.Tome/Session";
pub(crate) const PUT: &str = "/fulgurite.tome.v1.Tome/Put";
pub(crate) const GET: &str = "/fulgurite.tome.v1.Tome/Get";
pub(crate) const DELETE: &str = "/fulgurite.tome.v1.Tome/Delete";
pub(crate) const PROTECTED: &str = "/fulgurite.tome.v1.Tome/Protected";
pub(crate) const STATUS: &str = "/fulgurite.tome.v1.Tome/Status";
pub(crate) const LIST: &str = "/fulgurite.tome.v1.Tome/List";
pub(crate) const ASK: &str = "/fulgurite.tome.v1.Tome/Ask";

/// All calls, for the test that reads the file.
#[cfg(test)]
pub(crate) const CALLS: [&str; 9] =
    [LETTERS, SESSION, PUT, GET, DELETE, PROTECTED, STATUS, LIST, ASK];

/// A client of a tome.
#[derive(Clone, Debug)]
pub(crate) struct Client(Grpc<Channel>);

type RpcResult<T> = Result<T, Status>;

impl Client {
    pub(crate) fn new(channel: Channel) -> Self {
        let grpc = Grpc::new(channel).max_decoding_message_size(WIRE_BYTES_MAX);
        Self(grpc.max_encoding_message_size(WIRE_BYTES_MAX))
    }

    pub(crate) async fn letters<S>(&mut self, letters: Request<S>) -> RpcResult<Nothing>
    where
        S: Stream<Item = Letter> + Send + 'static,
    {
        self.ready().await?;
        let codec = ProstCodec::<Letter, Nothing>::default();
        let done = self.0.client_streaming(letters, PathAndQuery::from_static(LETTERS), codec);
        Ok(done.await?.into_inner())
    }

    pub(crate) async fn session<S>(&mut self, outgoing: S) -> RpcResult<Streaming<ToSet>>
    where
        S: Stream<Item = FromSet> + Send + 'static,
    {
        self.ready().await?;
        let codec = ProstCodec::<FromSet, ToSet>::default();
        let path = PathAndQuery::from_static(SESSION);
        Ok(self.0.streaming(Request::new(outgoing), path, codec).await?.into_inner())
    }

    pub(crate) async fn put<S>(&mut self, parts: S) -> RpcResult<PutReply>
    where
        S: Stream<Item = PutPart> + Send + 'static,
    {
        self.ready().await?;
        let codec = ProstCodec::<PutPart, PutReply>::default();
        let path = PathAndQuery::from_static(PUT);
        Ok(self.0.client_streaming(Request::new(parts), path, codec).await?.into_inner())
    }

    pub(crate) async fn get(&mut self, name: String, is_own: bool) -> RpcResult<Streaming<Bytes>> {
        self.ready().await?;
        let codec = ProstCodec::<Named, Bytes>::default();
        let path = PathAndQuery::from_static(GET);
        let named = Request::new(Named { name, is_own });
        Ok(self.0.server_streaming(named, path, codec).await?.into_inner())
    }

    pub(crate) async fn ask<S>(&mut self, parts: S) -> RpcResult<Streaming<Bytes>>
    where
        S: Stream<Item = Bytes> + Send + 'static,
    {
        self.ready().await?;
        let codec = ProstCodec::<Bytes, Bytes>::default();
        let path = PathAndQuery::from_static(ASK);
        Ok(self.0.streaming(Request::new(parts), path, codec).await?.into_inner())
    }

    pub(crate) async fn delete(&mut self, name: String) -> RpcResult<Nothing> {
        self.unary(DELETE, Named { name, is_own: false }).await
    }

    pub(crate) async fn protected(&mut self, name: String) -> RpcResult<Nothing> {
        self.unary(PROTECTED, Named { name, is_own: false }).await
    }

    pub(crate) async fn status(&mut self) -> RpcResult<StatusReply> {
        self.unary(STATUS, Nothing {}).await
    }

    pub(crate) async fn list(&mut self, request: ListRequest) -> RpcResult<ListReply> {
        self.unary(LIST, request).await
    }

    async fn unary<Q, A>(&mut self, path: &'static str, request: Q) -> RpcResult<A>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        self.ready().await?;
        let codec = ProstCodec::<Q, A>::default();
        let path = PathAndQuery::from_static(path);
        Ok(self.0.unary(Request::new(request), path, codec).await?.into_inner())
    }

    async fn ready(&mut self) -> Result<(), Status> {
        let ready = self.0.ready().await;
        ready.map_err(|error| Status::unknown(fulgurite_units::error_chain(&error)))
    }
}

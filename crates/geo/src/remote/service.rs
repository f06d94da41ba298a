//! Server side of the calls of proto/node.proto.
//!
//! Not here: the answers ([`crate::remote::node_state`]).

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fulgurite_rpc::grpc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::{Request, Response, Status, Streaming};

use crate::remote::calls::{
    CALLS, CAS, CREATE, DELETE, ERASE, GET, HEAD, LIST, OPEN, READ, REMOVE, SCAN, STEP,
};
use crate::remote::limits::WIRE_BYTES_MAX;
use crate::remote::node_state::NodeState;
use crate::remote::wire::{
    CasReply, CasRequest, CreatePart, Done, GetPart, GetRequest, Keyed, ListRequest, MetasReply,
    OpenReply, OpenRequest, RemoveRequest, RowReply, RowsReply, ScanRequest, StepReply,
    StepRequest,
};

/// The gRPC service.
#[derive(Clone)]
pub(crate) struct Calls(pub(crate) Arc<NodeState>);

type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl tower::Service<http::Request<Body>> for Calls {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Answer {
        let state = Arc::clone(&self.0);
        Box::pin(async move {
            if let Some(call) = CALLS.into_iter().find(|call| *call == request.uri().path()) {
                state.count(call);
            }
            let limiter = Arc::clone(&state);
            // The semaphore is never closed.
            let _permit = limiter.call_permits.acquire().await;
            Ok(answer(state, request).await)
        })
    }
}

/// A call with one request and one answer.
macro_rules! unary {
    ($state:ident, $request:ident, $method:ident, $request_type:ty, $answer:ty) => {{
        let call = tower::service_fn(move |request: Request<$request_type>| {
            let state = Arc::clone(&$state);
            async move { state.$method(request).await.map(Response::new) }
        });
        grpc::<$answer, $request_type>(WIRE_BYTES_MAX).unary(call, $request).await
    }};
}

/// A call with one request and a stream of answers.
macro_rules! streaming {
    ($state:ident, $request:ident, $method:ident, $request_type:ty, $answer:ty) => {{
        let call = tower::service_fn(move |request: Request<$request_type>| {
            let state = Arc::clone(&$state);
            async move { state.$method(request).await.map(ReceiverStream::new).map(Response::new) }
        });
        grpc::<$answer, $request_type>(WIRE_BYTES_MAX).server_streaming(call, $request).await
    }};
}

async fn answer(state: Arc<NodeState>, request: http::Request<Body>) -> http::Response<Body> {
    match request.uri().path() {
        OPEN => unary!(state, request, open, OpenRequest, OpenReply),
        STEP => unary!(state, request, step, StepRequest, StepReply),
        READ => unary!(state, request, read, Keyed, RowReply),
        CAS => unary!(state, request, cas, CasRequest, CasReply),
        REMOVE => unary!(state, request, remove, RemoveRequest, Done),
        ERASE => unary!(state, request, erase, Keyed, Done),
        HEAD => unary!(state, request, head, Keyed, MetasReply),
        DELETE => unary!(state, request, delete, Keyed, Done),
        SCAN => streaming!(state, request, scan, ScanRequest, RowsReply),
        LIST => streaming!(state, request, list, ListRequest, MetasReply),
        GET => {
            let call = tower::service_fn(move |request: Request<GetRequest>| {
                let state = Arc::clone(&state);
                async move { state.get(request).await.map(Response::new) }
            });
            grpc::<GetPart, GetRequest>(WIRE_BYTES_MAX).server_streaming(call, request).await
        }
        CREATE => {
            let call = tower::service_fn(move |parts: Request<Streaming<CreatePart>>| {
                let state = Arc::clone(&state);
                async move { state.create(parts).await.map(Response::new) }
            });
            grpc::<Done, CreatePart>(WIRE_BYTES_MAX).client_streaming(call, request).await
        }
        _ => Status::unimplemented("unknown call").into_http(),
    }
}

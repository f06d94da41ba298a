//! Server stubs for the calls of proto/tome.proto.
//!
//! Not here: the answers ([`crate::remote::tome_service`]).

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fulgurite_rpc::grpc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::{Request, Response, Status, Streaming};

use crate::remote::client::{ASK, DELETE, GET, LETTERS, LIST, PROTECTED, PUT, SESSION, STATUS};
use crate::remote::limits::WIRE_BYTES_MAX;
use crate::remote::tome_service::Served;
use crate::remote::wire::{
    Bytes, FromSet, Letter, ListReply, ListRequest, Named, Nothing, PutPart, PutReply, StatusReply,
    ToSet,
};

/// Dispatches calls to a served tome.
#[derive(Clone, Debug)]
pub(crate) struct Calls(pub(crate) Arc<Served>);

type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl tower::Service<http::Request<Body>> for Calls {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Answer {
        let served = Arc::clone(&self.0);
        Box::pin(async move { Ok(answer(served, request).await) })
    }
}

/// Defines a call with one request and one reply.
macro_rules! unary {
    ($served:ident, $request:ident, $method:ident, $query:ty, $answer:ty) => {{
        let call = tower::service_fn(move |request: Request<$query>| {
            let served = Arc::clone(&$served);
            async move { served.$method(request).await.map(Response::new) }
        });
        grpc::<$answer, $query>(WIRE_BYTES_MAX).unary(call, $request).await
    }};
}

async fn answer(served: Arc<Served>, request: http::Request<Body>) -> http::Response<Body> {
    match request.uri().path() {
        DELETE => unary!(served, request, delete, Named, Nothing),
        PROTECTED => unary!(served, request, protected, Named, Nothing),
        STATUS => unary!(served, request, status, Nothing, StatusReply),
        LIST => unary!(served, request, list, ListRequest, ListReply),
        LETTERS => {
            let call = tower::service_fn(move |letters: Request<Streaming<Letter>>| {
                let served = Arc::clone(&served);
                async move { served.letters(letters).await.map(Response::new) }
            });
            grpc::<Nothing, Letter>(WIRE_BYTES_MAX).client_streaming(call, request).await
        }
        PUT => {
            let call = tower::service_fn(move |parts: Request<Streaming<PutPart>>| {
                let served = Arc::clone(&served);
                async move { served.put(parts).await.map(Response::new) }
            });
            grpc::<PutReply, PutPart>(WIRE_BYTES_MAX).client_streaming(call, request).await
        }
        GET => {
            let call = tower::service_fn(move |named: Request<Named>| {
                let served = Arc::clone(&served);
                async move { served.get(named).await.map(ReceiverStream::new).map(Response::new) }
            });
            grpc::<Bytes, Named>(WIRE_BYTES_MAX).server_streaming(call, request).await
        }
        ASK => {
            let call = tower::service_fn(move |parts: Request<Streaming<Bytes>>| {
                let served = Arc::clone(&served);
                async move { served.ask(parts).await.map(ReceiverStream::new).map(Response::new) }
            });
            grpc::<Bytes, Bytes>(WIRE_BYTES_MAX).streaming(call, request).await
        }
        SESSION => {
            let call = tower::service_fn(move |incoming: Request<Streaming<FromSet>>| {
                let served = Arc::clone(&served);
                async move {
                    let answers = served.session(incoming).await?;
                    Ok(Response::new(ReceiverStream::new(answers)))
                }
            });
            grpc::<ToSet, FromSet>(WIRE_BYTES_MAX).streaming(call, request).await
        }
        _ => Status::unimplemented("there is no such call").into_http(),
    }
}

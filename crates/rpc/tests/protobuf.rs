//! What a definition in the notation of protobuf becomes.

use std::sync::Arc;

use fulgurite_rpc::Call as _;
use fulgurite_rpc::prost::Message as _;
use fulgurite_rpc::tonic::{Request, Status, body::Body};
use futures::StreamExt as _;
use http_body_util::{BodyExt as _, Full};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::wire::{Inner, Outer, Sums, answer, calls};

mod wire {
    fulgurite_rpc::protobuf! {
    package fulgurite.test.v1;

    service Sums {
      rpc Sum(Outer) returns (Inner) => sum;
      rpc Count(Inner) returns (stream Inner) => count;
    }

    message Outer {
      bool flag = 1;
      uint32 small = 2;
      optional uint64 large = 3;
      string text = 4;
      repeated bytes parts = 5;
      Inner inner = 6;
      repeated Inner inners = 17;
      repeated uint32 numbers = 18;
    }

    message Inner {
      uint64 sum = 1;
    }
    }
}

struct Service {
    permits: Arc<Semaphore>,
}

impl Sums for Service {
    async fn admit(self: &Arc<Self>, _: &'static str) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }

    async fn count(
        self: &Arc<Self>,
        request: Request<Inner>,
    ) -> Result<fulgurite_rpc::Replies<Inner>, Status> {
        let all = 0..request.into_inner().sum;
        let all = futures::stream::iter(all.map(|sum| Ok(Inner { sum })));
        Ok(all.chain(futures::stream::pending()).boxed())
    }

    async fn sum(self: &Arc<Self>, request: Request<Outer>) -> Result<Inner, Status> {
        Ok(Inner { sum: u64::from(request.into_inner().small) })
    }
}

fn service() -> Arc<Service> {
    Arc::new(Service { permits: Arc::new(Semaphore::new(1)) })
}

#[test]
fn messages_are_encoded_as_proto3() {
    let outer = Outer {
        flag: true,
        small: 300,
        large: Some(0),
        text: "a".to_owned(),
        parts: vec![vec![7].into(), vec![].into()],
        inner: Some(Inner { sum: 1 }),
        inners: vec![Inner { sum: 0 }],
        numbers: vec![1, 2],
    };
    let bytes = outer.encode_to_vec();
    let expected = b"\x08\x01\x10\xac\x02\x18\x00\x22\x01a\x2a\x01\x07\x2a\x00\x32\x02\x08\x01\
        \x8a\x01\x00\x92\x01\x02\x01\x02";
    assert_eq!(bytes, expected);
    assert_eq!(Outer::decode(&bytes[..]).expect("it was just encoded"), outer);
    assert_eq!(Outer::default().encode_to_vec(), b"", "defaults are not sent");
}

#[tokio::test]
async fn calls_have_paths_and_unknown_ones_are_unimplemented() {
    assert_eq!(calls::Sum::PATH, "/fulgurite.test.v1.Sums/Sum");
    let code = async |path: &str| {
        let request = http::Request::post(path).body(Body::empty());
        let reply = answer(service(), 1000, request.expect("a request")).await;
        reply.headers()["grpc-status"].as_bytes().to_vec()
    };
    assert_eq!(code("/fulgurite.test.v1.Sums/Other").await, b"12", "unimplemented");
    assert_eq!(code(calls::Sum::PATH).await, b"13", "a call without a request");
}

#[tokio::test]
async fn permit_of_a_streaming_reply_is_held_until_its_end() {
    let service = service();
    // A message with its length in front.
    let body = Body::new(Full::new(prost_bytes(&Inner { sum: 2 })));
    let request = http::Request::post(calls::Count::PATH).body(body).expect("a request");
    let mut reply = answer(Arc::clone(&service), 1000, request).await;
    assert_eq!(service.permits.available_permits(), 0);
    let first = reply.body_mut().frame().await.expect("a frame").expect("a reply");
    assert!(first.is_data());
    assert_eq!(service.permits.available_permits(), 0);
    drop(reply);
    assert_eq!(service.permits.available_permits(), 1);
}

fn prost_bytes(message: &Inner) -> bytes::Bytes {
    let message = message.encode_to_vec();
    let length = u8::try_from(message.len()).expect("a short message");
    [&[0, 0, 0, 0, length], &message[..]].concat().into()
}

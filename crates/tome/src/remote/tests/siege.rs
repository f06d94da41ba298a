//! A thousand unauthenticated clients at a tome: existing sessions continue, and new ones begin.

use std::time::Duration;

use fulgurite_tome_core::TomeId;
use tokio::time::Instant;
use tonic::Code;

use super::rejections::{answers, one};
use super::strangers::{HELLO, flood};
use crate::remote::PeerName;
use crate::remote::dial::dial;
use crate::remote::wire::{Nothing, calls};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unauthenticated_clients_do_not_block_peers() {
    let (world, address) = one().await;
    let token_manager = world.tls(PeerName::TokenManager);
    let peer = PeerName::Tome(TomeId::new(2));
    let mut established = dial(&address, peer, &token_manager).await.unwrap();
    let _strangers = flood(address.parse().unwrap(), HELLO).await;
    for _ in 0..6 {
        // No set began a session: a client that is authenticated gets this answer.
        let error = established.unary::<calls::Status>(Nothing {}).await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "an established session: {error}");
        assert!(error.message().contains("no set has begun"), "{error}");
        let began = Instant::now();
        assert_eq!(answers(&address, &token_manager).await, Ok(Code::Unavailable));
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }
}

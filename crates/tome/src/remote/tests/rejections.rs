//! Peers that get no answer, and messages that are rejected.

use std::collections::BTreeMap;

use fulgurite_rpc::Client;
use fulgurite_rpc::testing::{Authority, anonymous_client};
use fulgurite_tome_core::message::Message;
use fulgurite_tome_core::{Epoch, GroupId, TomeId};
use fulgurite_units::TomeSetId;
use futures::FutureExt as _;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tonic::Code;

use super::world::{BACKOFF_LIMITS, BLOCK, World, draw, noise};
use crate::remote::dial::dial;
use crate::remote::limits::{ROUTE_BYTES_MAX, ROUTE_MAX};
use crate::remote::peer_network::{PeerNetwork, encode_message};
use crate::remote::queue::queue;
use crate::remote::route::Route;
use crate::remote::wire::{FromSet, Letter, Named, Nothing, PutPart, QueryPart, calls};
use crate::remote::{PeerName, Tls};
use crate::{Network, TomeSet};

const FIRST: TomeId = TomeId::new(0);

/// Returns a world with one tome served, and its address.
pub(super) async fn one() -> (World, String) {
    let mut world = World::new(6, 2).await;
    let tome = TomeId::new(2);
    world.serve(tome).await;
    let address = world.servers[&tome].address().to_string();
    (world, address)
}

fn learned(group: u32) -> Message {
    Message::Learned { group: GroupId::new(group), epoch: Epoch::new(0) }
}

/// Returns the answer of a tome to this identity, or the error if it does not answer.
pub(super) async fn answers(address: &str, tls: &Tls) -> Result<Code, String> {
    let name = PeerName::Tome(TomeId::new(2));
    let mut client = dial(address, name, tls).await.map_err(|error| error.to_string())?;
    match client.unary::<calls::Status>(Nothing {}).await {
        Ok(_) => Ok(Code::Ok),
        // The status of a call that was not answered has the reason as its source.
        Err(status) if std::error::Error::source(&status).is_some() => Err(status.to_string()),
        Err(status) => Ok(status.code()),
    }
}

#[tokio::test]
async fn peer_of_another_authority_or_set_is_rejected() {
    let (world, address) = one().await;
    // No set began a session: that is an answer, for permitted peers.
    assert_eq!(answers(&address, &world.tls(PeerName::TokenManager)).await, Ok(Code::Unavailable));
    let tome_identity = world.tls(PeerName::Tome(TomeId::new(3)));
    assert_eq!(answers(&address, &tome_identity).await, Ok(Code::PermissionDenied));

    let name = PeerName::TokenManager.in_set(world.set);
    let other = Authority::new(&world.folder.path().join("other"));
    let mut files = other.issue(vec![name.clone()], Vec::new());
    let theirs = Tls::read(&files, world.set, PeerName::TokenManager).unwrap();
    assert!(answers(&address, &theirs).await.is_err(), "the client rejects the tome");
    files.ca = world.authority.issue(vec![name.clone()], Vec::new()).ca;
    let theirs = Tls::read(&files, world.set, PeerName::TokenManager).unwrap();
    let refused = answers(&address, &theirs).await;
    assert!(refused.is_err(), "the tome rejects it: {refused:?}");

    // From the same authority, with the name of another set.
    let set = TomeSetId::from_random(draw());
    let files = world.authority.issue(vec![PeerName::TokenManager.in_set(set)], Vec::new());
    let wrong = Tls::read(&files, world.set, PeerName::TokenManager).unwrap_err();
    assert!(wrong.to_string().contains("no member of set"), "{wrong}");
    let forced = Tls::unchecked(&files, world.set).unwrap();
    let refused = answers(&address, &forced).await;
    assert!(refused.is_err(), "{refused:?}");
    // With two names of the set, to act as both.
    let names = vec![name, PeerName::Tome(FIRST).in_set(world.set)];
    let files = world.authority.issue(names, Vec::new());
    let forced = Tls::unchecked(&files, world.set).unwrap();
    let refused = answers(&address, &forced).await;
    assert!(refused.is_err(), "{refused:?}");
}

#[tokio::test]
async fn peer_without_certificate_is_rejected() {
    let (world, address) = one().await;
    let ca = world.authority.issue(vec!["any".to_owned()], Vec::new()).ca;
    let connector = anonymous_client(&ca);
    let name = PeerName::Tome(TomeId::new(2)).in_set(world.set);
    let socket = TcpStream::connect(&address).await.unwrap();
    let connected = connector.connect(ServerName::try_from(name).unwrap(), socket).await;
    // In TLS 1.3 the client finishes its handshake before it learns that it was rejected.
    let mut answer = Vec::new();
    if let Ok(mut stream) = connected {
        let _ = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        let read = stream.read_to_end(&mut answer).await;
        assert!(read.is_err(), "rejected by an alert");
    }
    assert_eq!(answer, b"");
    // Nor is a client without TLS answered.
    let mut plain = TcpStream::connect(&address).await.unwrap();
    plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(&[0, 0]), "no frame of HTTP/2 comes: {answer:?}");
}

#[tokio::test]
async fn server_with_another_name_is_rejected() {
    let (world, address) = one().await;
    let tls = world.tls(PeerName::TokenManager);
    dial(&address, PeerName::Tome(TomeId::new(2)), &tls).await.unwrap();
    let other = dial(&address, PeerName::Tome(TomeId::new(1)), &tls).await.unwrap_err();
    assert!(other.to_string().contains("cannot connect"), "{other}");
}

#[tokio::test]
async fn message_with_forged_sender_is_rejected() {
    let (world, address) = one().await;
    let (own, tome) = (TomeId::new(3), TomeId::new(2));
    let send = async |letters: Vec<Letter>| {
        let tls = world.tls(PeerName::Tome(own));
        let mut client = dial(&address, PeerName::Tome(tome), &tls).await.unwrap();
        let sent = client.client_streaming::<calls::Letters>(tokio_stream::iter(letters)).await;
        sent.map_err(|status| status.code())
    };
    let from = |from: TomeId| encode_message(world.set, from, tome, &learned(0)).unwrap();
    assert!(send(vec![from(own), from(own)]).await.is_ok());
    assert_eq!(send(vec![from(own), from(FIRST)]).await, Err(Code::PermissionDenied));
    assert_eq!(send(vec![from(tome)]).await, Err(Code::PermissionDenied));
    let mut other = from(own);
    other.set = draw().to_vec().into();
    assert_eq!(send(vec![other]).await, Err(Code::PermissionDenied), "of another set");
    let mut other = from(own);
    other.to = 5;
    assert_eq!(send(vec![other]).await, Err(Code::PermissionDenied), "for another tome");
    let mut other = from(own);
    other.body = vec![1, 200, 1, 2].into();
    assert_eq!(send(vec![other]).await, Err(Code::InvalidArgument), "it cannot be decoded");
    let mut newer = from(own);
    newer.body = [&[9], &newer.body[1..]].concat().into();
    assert_eq!(send(vec![newer]).await, Err(Code::InvalidArgument), "of a later version");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_sends_only_for_local_tomes_and_new_session_ends_old() {
    let mut world = World::new(6, 2).await;
    world.serve_all().await;
    let set = world.init().await;
    world.keep(&set, "first", noise("first", BLOCK)).await;
    drop(set);
    let tome = TomeId::new(2);
    let address = world.servers[&tome].address().to_string();
    let tls = world.tls(PeerName::TokenManager);
    let introduction = crate::SetHandshake {
        set: world.set,
        tome,
        layout: super::world::layout(),
        groups: Vec::new(),
        may_make: false,
    };
    let introduction = crate::remote::encoding::encode("a handshake", &introduction).unwrap();
    let first = FromSet { introduction, ..FromSet::default() };
    let messages = |from: u32| {
        let letter = encode_message(world.set, TomeId::new(from), tome, &learned(0));
        vec![first.clone(), FromSet { letter, ..FromSet::default() }]
    };
    let mut client = dial(&address, PeerName::Tome(tome), &tls).await.unwrap();
    // A message that claims to be from a remote tome ends the session; one from a local tome does
    // not.
    let session = tokio_stream::iter(messages(4));
    let mut incoming = client.streaming::<calls::Session>(session).await.unwrap();
    let greeting = incoming.message().await.unwrap().unwrap();
    assert!(greeting.session > 0);
    while let Ok(Some(_)) = incoming.message().await {}
    let (outgoing, stream) = tokio::sync::mpsc::channel(4);
    for message in messages(1) {
        outgoing.send(message).await.unwrap();
    }
    let session = tokio_stream::wrappers::ReceiverStream::new(stream);
    let mut incoming = client.streaming::<calls::Session>(session).await.unwrap();
    let later = incoming.message().await.unwrap().unwrap();
    assert!(later.session > greeting.session);
    check_late_changes(&mut client, tome, (greeting.session, later.session)).await;
    // Only the set may put.
    let tls = world.tls(PeerName::Tome(TomeId::new(3)));
    let mut other = dial(&address, PeerName::Tome(tome), &tls).await.unwrap();
    let parts = tokio_stream::iter(vec![first_part(later.session)]);
    let put = other.client_streaming::<calls::Put>(parts).await.unwrap_err();
    assert_eq!(put.code(), Code::PermissionDenied);
    let session = tokio_stream::iter(vec![first.clone()]);
    let session = other.streaming::<calls::Session>(session).await.unwrap_err();
    assert_eq!(session.code(), Code::PermissionDenied);
    let read =
        other.server_streaming::<calls::Get>(named("first", later.session)).await.unwrap_err();
    assert_eq!(read.code(), Code::PermissionDenied);
    drop((outgoing, incoming));
}

fn first_part(session: u64) -> PutPart {
    PutPart { session, name: "late".to_owned(), length: 1, ..PutPart::default() }
}

fn named(name: &str, session: u64) -> Named {
    Named { name: name.to_owned(), is_own: false, session }
}

/// Checks that changes of a session that is over are refused, and those of a later one are not.
async fn check_late_changes(client: &mut Client, tome: TomeId, (over, later): (u64, u64)) {
    let check = |late: tonic::Status| {
        let late = crate::remote::failure::error(tome, &late);
        assert!(late.to_string().contains("its set has started another session"), "{late}");
    };
    let parts = [first_part(over), PutPart { bytes: vec![1].into(), ..PutPart::default() }];
    check(client.client_streaming::<calls::Put>(tokio_stream::iter(parts)).await.unwrap_err());
    check(client.unary::<calls::Delete>(named("first", over)).await.unwrap_err());
    let query = crate::TomeQuery::Absent { tomes: [FIRST].into() };
    let query = crate::remote::encoding::encode("a query", &query).unwrap();
    let mut ask = async |session| {
        let first = QueryPart { session, ..QueryPart::default() };
        let parts = [first, QueryPart { bytes: query.clone(), ..QueryPart::default() }];
        client.streaming::<calls::Ask>(tokio_stream::iter(parts)).await
    };
    check(ask(over).await.unwrap_err());
    assert!(ask(later).await.is_ok());
    let none = client.unary::<calls::Delete>(named("none", later)).await.unwrap_err();
    assert_eq!(none.code(), Code::NotFound);
}

#[tokio::test]
async fn full_queue_drops_and_counts_without_blocking() {
    let world = World::new(6, 0).await;
    let (own, to) = (TomeId::new(3), TomeId::new(2));
    world.proxies[&to].cut();
    let address = world.proxies[&to].address.to_string();
    let tls = world.tls(PeerName::Tome(own));
    let route = Route::new(PeerName::Tome(to), address, tls, BACKOFF_LIMITS, &Handle::current());
    let peer_network = PeerNetwork::new(world.set, BTreeMap::from([(to, route)]));
    let all = ROUTE_MAX as u64 * 3;
    for number in 0..all {
        peer_network.send(own, to, learned(u32::try_from(number).unwrap()));
    }
    // One may be in flight already.
    let queued = all - peer_network.lost();
    assert!((ROUTE_MAX as u64..=ROUTE_MAX as u64 + 1).contains(&queued), "{queued}");
    // To a set that is not connected.
    peer_network.send(own, TomeId::new(0), learned(0));
    assert_eq!(peer_network.lost(), all - queued + 1);
}

#[test]
fn older_session_does_not_replace_a_newer_one() {
    let peer_network = PeerNetwork::new(TomeSetId::from_bytes([7; 16]), BTreeMap::new());
    let (answers, mut second) = queue();
    assert!(peer_network.session_started(2, answers));
    let (answers, _first) = queue();
    assert!(!peer_network.session_started(1, answers));
    peer_network.end_session(1);
    peer_network.send(TomeId::new(3), FIRST, learned(0));
    assert!(second.next().now_or_never().flatten().is_some());
    let (answers, mut third) = queue();
    assert!(peer_network.session_started(3, answers));
    peer_network.send(TomeId::new(3), FIRST, learned(0));
    assert!(third.next().now_or_never().flatten().is_some());
    assert_eq!(second.next().now_or_never(), Some(None), "it is over");
    assert_eq!(peer_network.lost(), 0);
}

#[test]
fn queue_is_bounded_in_bytes() {
    let (sender, mut receiver) = queue();
    let letter = |bytes: usize| Letter { body: vec![0; bytes].into(), ..Letter::default() };
    assert!(sender.send(letter(ROUTE_BYTES_MAX / 2)));
    assert!(!sender.send(letter(ROUTE_BYTES_MAX / 2)), "with what is around it there is no room");
    assert!(sender.send(letter(ROUTE_BYTES_MAX / 4)));
    assert!(receiver.next().now_or_never().flatten().is_some());
    assert!(sender.send(letter(ROUTE_BYTES_MAX / 2)));
    receiver.clear();
    assert!(sender.send(letter(ROUTE_BYTES_MAX + 1)), "one message always fits");
    assert!(!sender.send(letter(0)));
}

#[tokio::test]
async fn tomes_of_another_set_are_not_opened() {
    let world = World::new(6, 6).await;
    drop(TomeSet::init(world.options()).unwrap());
    let mut options = world.options();
    options.set = Some(TomeSetId::from_random(draw()));
    let wrong = TomeSet::open(options).unwrap_err();
    assert!(wrong.to_string().contains("the set is"), "{wrong}");
}

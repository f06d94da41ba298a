//! Tests a client that keeps up, one that disconnects, and one that is too slow.

use std::task::Waker;

use fulgurite_units::{ManualClock, UnixTime};

use super::*;

fn taken(receiver: &mut Receiver) -> String {
    match receiver.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(Next::Bytes(bytes))) => String::from_utf8(bytes.to_vec()).unwrap(),
        Poll::Ready(Ok(Next::End)) => "end".to_owned(),
        Poll::Ready(Ok(Next::Parked)) => "parked".to_owned(),
        Poll::Ready(Ok(Next::Short)) => "short".to_owned(),
        Poll::Ready(Err(error)) => error.to_string(),
        Poll::Pending => "pending".to_owned(),
    }
}

fn send(sender: &Sender, text: &'static str) -> ControlFlow<End> {
    sender.send(Bytes::from_static(text.as_bytes()))
}

#[test]
fn bytes_arrive_in_order_up_to_the_end() {
    let (sender, mut receiver) = pipe(&ManualClock::at(UnixTime::default()).clock());
    assert_eq!(taken(&mut receiver), "pending");
    assert!(send(&sender, "one").is_continue() && send(&sender, "two").is_continue());
    sender.end(End::Done);
    assert_eq!(["one", "two", "end"].map(str::to_owned), [(); 3].map(|()| taken(&mut receiver)));
}

#[test]
fn sender_dropped_without_an_end_is_an_error() {
    let (sender, mut receiver) = pipe(&ManualClock::at(UnixTime::default()).clock());
    drop(sender);
    assert_eq!(taken(&mut receiver), "rack is stopping");
}

#[test]
fn disconnected_client_is_sent_nothing_more() {
    let (sender, receiver) = pipe(&ManualClock::at(UnixTime::default()).clock());
    drop(receiver);
    assert!(matches!(send(&sender, "one"), ControlFlow::Break(End::Done)));
}

#[test]
fn stalled_client_gets_what_was_queued_then_requests() {
    let clock = ManualClock::at(UnixTime::default());
    let (sender, mut receiver) = pipe(&clock.clock());
    for _ in 0..PIPE_STRIPES_MAX {
        assert!(send(&sender, "one").is_continue());
    }
    // The worker blocks until the clock is advanced, whichever thread is first.
    let worker = std::thread::spawn(move || match send(&sender, "two") {
        ControlFlow::Break(end) => sender.end(end),
        ControlFlow::Continue(()) => panic!("the queue is full"),
    });
    while !worker.is_finished() {
        clock.advance(CLIENT_STALL_TIMEOUT);
    }
    worker.join().unwrap();
    for _ in 0..PIPE_STRIPES_MAX {
        assert_eq!(taken(&mut receiver), "one");
    }
    assert_eq!(taken(&mut receiver), "parked");
}

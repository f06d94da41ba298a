//! Tests a client that keeps up, one that disconnects, and one that is too slow.

use std::task::Waker;

use fulgurite_units::{ManualClock, UnixTime};

use super::*;

fn taken(taker: &mut Taker) -> String {
    match taker.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(Next::Bytes(bytes))) => String::from_utf8(bytes.to_vec()).unwrap(),
        Poll::Ready(Ok(Next::End)) => "end".to_owned(),
        Poll::Ready(Ok(Next::Parked)) => "parked".to_owned(),
        Poll::Ready(Ok(Next::Short)) => "short".to_owned(),
        Poll::Ready(Err(error)) => error.to_string(),
        Poll::Pending => "pending".to_owned(),
    }
}

fn give(giver: &Giver, text: &'static str) -> ControlFlow<End> {
    giver.give(Bytes::from_static(text.as_bytes()))
}

#[test]
fn what_is_given_is_taken_in_its_order_up_to_the_end() {
    let (giver, mut taker) = pipe(&ManualClock::at(UnixTime::default()).clock());
    assert_eq!(taken(&mut taker), "pending");
    assert!(give(&giver, "one").is_continue() && give(&giver, "two").is_continue());
    giver.end(End::Done);
    assert_eq!(["one", "two", "end"].map(str::to_owned), [(); 3].map(|()| taken(&mut taker)));
}

#[test]
fn a_giver_that_is_gone_without_a_word_is_an_error() {
    let (giver, mut taker) = pipe(&ManualClock::at(UnixTime::default()).clock());
    drop(giver);
    assert_eq!(taken(&mut taker), "rack is stopping");
}

#[test]
fn a_client_that_left_is_given_nothing_more() {
    let (giver, taker) = pipe(&ManualClock::at(UnixTime::default()).clock());
    drop(taker);
    assert!(matches!(give(&giver, "one"), ControlFlow::Break(End::Done)));
}

#[test]
fn a_client_that_is_too_slow_finds_the_giver_gone_and_what_was_given() {
    let clock = ManualClock::at(UnixTime::default());
    let (giver, mut taker) = pipe(&clock.clock());
    for _ in 0..PIPE_STRIPES_MAX {
        assert!(give(&giver, "one").is_continue());
    }
    // The worker blocks until the clock is advanced, whichever thread is first.
    let worker = std::thread::spawn(move || match give(&giver, "two") {
        ControlFlow::Break(end) => giver.end(end),
        ControlFlow::Continue(()) => panic!("there was no room"),
    });
    while !worker.is_finished() {
        clock.advance(PATIENCE);
    }
    worker.join().unwrap();
    for _ in 0..PIPE_STRIPES_MAX {
        assert_eq!(taken(&mut taker), "one");
    }
    assert_eq!(taken(&mut taker), "parked");
}

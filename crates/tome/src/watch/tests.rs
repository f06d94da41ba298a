//! Subscribers that read in time, that are late, and that are gone.

use fulgurite_tier::watch::Missed;
use fulgurite_units::{ManualClock, UnixTime};

use super::*;

fn token(number: u32) -> TomeEvent {
    TomeEvent::Token { token: TokenId(number), tome: None }
}

#[tokio::test]
async fn slow_subscriber_learns_how_many_events_it_missed() {
    let clock = ManualClock::at(UnixTime::from_millis(1_700_000_000_000)).clock();
    let events = EventPublisher::new(clock);
    events.send(|| unreachable!("without subscribers no event is made"));
    let mut watching = events.watch();
    let all = u32::try_from(EVENTS_BUFFERED).unwrap() + 10;
    (0..all).for_each(|number| events.send(|| token(number)));
    assert_eq!(watching.next().await, Some(Err(Missed(10))));
    for number in 10..all {
        let event = watching.next().await.unwrap().unwrap();
        assert_eq!((event.at.as_millis(), event.what), (1_700_000_000_000, token(number)));
    }
    drop(events);
    assert_eq!(watching.next().await, None, "the set is gone");
}

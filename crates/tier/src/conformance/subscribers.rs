//! Subscribers of a tier: they see what happens, and nothing waits for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt as _;
use futures::stream::BoxStream;

use super::fixture::{TierFixture, put, read, stop_tier, within};
use crate::{Tier, TierEvent};

type Events = BoxStream<'static, TierEvent>;

/// Steps that a subscriber waits for.
const STEPS: u64 = 3;

/// Objects that are put over and over.
const OBJECTS: u64 = 8;

pub(super) async fn suite<F: TierFixture>(fixture: &F) {
    let tier = fixture.open_tier().await;
    let (mut prompt, mut slow) = (subscribe(&tier).await, subscribe(&tier).await);
    let seen = Arc::<AtomicU64>::default();
    let (watched, counter) = (tier.clone(), Arc::clone(&seen));
    let reader = tokio::spawn(async move {
        loop {
            match read_steps(&mut prompt, Some(&counter)).await {
                // On a slow machine it may be too slow as well.
                Gap::Late => prompt = subscribe(&watched).await,
                Gap::Missed => {}
                Gap::Stopped => return,
            }
        }
    });
    let mut round = 0;
    let wanted = F::EVENTS_MAX.map_or(STEPS, |max| max + max / 4);
    within("events", async {
        while seen.load(Ordering::Relaxed) < wanted {
            fixture.disturb(round);
            let key = format!("watch/{}", round % OBJECTS);
            put::<F>(&tier, &key).await.unwrap();
            assert!(read::<F>(&tier, &key).await.unwrap());
            round += 1;
        }
    })
    .await;
    fixture.mend();
    if F::EVENTS_MAX.is_some() {
        let gap = within("a slow subscriber", read_steps(&mut slow, None)).await;
        assert_ne!(gap, Gap::Stopped, "the subscriber was too slow, and learns it");
    }
    let mut last = subscribe(&tier).await;
    stop_tier(tier.clone()).await;
    within("a subscriber after the stop", async { while last.next().await.is_some() {} }).await;
    within("subscribers after the stop", async {
        while slow.next().await.is_some() {}
        reader.await.unwrap();
        if let Ok(mut after) = tier.watch().await {
            while after.next().await.is_some() {}
        }
    })
    .await;
}

/// Subscribes, and reads the snapshot that comes first.
async fn subscribe(tier: &dyn Tier) -> Events {
    let mut events = tier.watch().await.unwrap().fuse().boxed();
    let first = within("a snapshot", events.next()).await;
    assert!(
        matches!(&first, Some(TierEvent::Event { name: "snapshot", data, .. }) if data.is_object()),
        "{first:?}"
    );
    events
}

/// How a subscriber's steps end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    /// It was too slow: this was the last event.
    Late,
    /// It was too slow: a new snapshot follows, and then the next steps.
    Missed,
    /// The tier was stopped.
    Stopped,
}

/// Reads steps, whose numbers have no gap, until there is one. Counts them.
async fn read_steps(events: &mut Events, counter: Option<&AtomicU64>) -> Gap {
    let mut last: Option<u64> = None;
    while let Some(event) = events.next().await {
        let TierEvent::Event { name, step, data } = event else {
            assert!(events.next().await.is_none(), "it was the last event");
            return Gap::Late;
        };
        assert_eq!(data["step"], step);
        if name == "missed" {
            let next = events.next().await;
            let is_snapshot =
                matches!(next, None | Some(TierEvent::Event { name: "snapshot", .. }));
            assert!(is_snapshot, "what was missed is in it: {next:?}");
            return Gap::Missed;
        }
        let expected = last.map_or(step, |last| last + u64::from(name == "step"));
        assert_eq!(step, expected, "{name}: steps are numbered without a gap");
        last = Some(step);
        if let Some(counter) = counter.filter(|_| name == "step") {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
    Gap::Stopped
}

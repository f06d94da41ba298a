//! A tier that is stopped while objects are put and read.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::fixture::{RETRY, TierFixture, put, read, stop_tier, within};

const WRITERS: usize = 4;
const READERS: usize = 2;

/// Objects that a writer puts, unless it is stopped.
const PUTS_MAX: usize = 50;

/// Objects that are there when it is stopped.
const PUTS_MIN: usize = 10;

#[derive(Default)]
struct State {
    acknowledged: Mutex<BTreeSet<String>>,
    /// Not acknowledged.
    failed: Mutex<BTreeSet<String>>,
    is_stopping: AtomicBool,
}

pub(super) async fn suite<F: TierFixture>(fixture: &F) {
    let tier = fixture.open_tier().await;
    let state = Arc::<State>::default();
    put::<F>(&tier, "stop/first").await.unwrap();
    let writers = (0..WRITERS).map(|writer| {
        let (tier, state) = (tier.clone(), Arc::clone(&state));
        tokio::spawn(async move { write::<F>(&tier, &state, writer).await })
    });
    let readers = (0..READERS).map(|_| {
        let (tier, state) = (tier.clone(), Arc::clone(&state));
        tokio::spawn(async move { read_on::<F>(&tier, &state).await })
    });
    let running: Vec<_> = writers.chain(readers).collect();
    within("puts", async {
        while state.acknowledged.lock().unwrap().len() < PUTS_MIN {
            tokio::time::sleep(RETRY).await;
        }
    })
    .await;
    state.is_stopping.store(true, Ordering::Release);
    stop_tier(tier.clone()).await;
    within("writers and readers", async {
        for running in running {
            running.await.unwrap();
        }
    })
    .await;
    stop_tier(tier).await;
    let tier = fixture.open_tier().await;
    let taken = |keys: &Mutex<BTreeSet<String>>| std::mem::take(&mut *keys.lock().unwrap());
    for key in &taken(&state.acknowledged) {
        assert!(read::<F>(&tier, key).await.unwrap(), "{key} was acknowledged");
    }
    for key in &taken(&state.failed) {
        // It is there whole, or not at all.
        read::<F>(&tier, key).await.unwrap();
    }
    stop_tier(tier).await;
}

/// Puts objects until it is refused.
async fn write<F: TierFixture>(tier: &F::Tier, state: &State, writer: usize) {
    for number in 0..PUTS_MAX {
        let key = format!("stop/{writer}/{number}");
        if let Err(error) = put::<F>(tier, &key).await {
            assert!(state.is_stopping.load(Ordering::Acquire), "{key}: {error}");
            state.failed.lock().unwrap().insert(key);
            return;
        }
        state.acknowledged.lock().unwrap().insert(key);
    }
}

/// Reads an object until it is refused, or a little longer than until the stop.
async fn read_on<F: TierFixture>(tier: &F::Tier, state: &State) {
    loop {
        let is_stopping = || state.is_stopping.load(Ordering::Acquire);
        let is_last = is_stopping();
        match read::<F>(tier, "stop/first").await {
            Ok(is_there) => assert!(is_there, "it is not lost"),
            Err(error) => return assert!(is_stopping(), "{error}"),
        }
        if is_last {
            return;
        }
    }
}

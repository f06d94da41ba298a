//! A client that puts, gets and deletes objects, and tracks what was acknowledged of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use fulgurite_tome::{TomeSet, TomesError};
use fulgurite_tome_core::TomeId;
use fulgurite_units::{ErrorKind, RandomStream, Seed};
use tokio::sync::watch;

use crate::Tally;
use crate::world::BLOCK;

/// Names of each client, used by no other.
const NAMES: u64 = 24;
/// Most blocks of an object.
const BLOCKS_MAX: u64 = 6;

/// Known state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Acknowledged as local: lost with its tome at most.
    Local,
    /// Acknowledged as protected: never lost.
    Protected,
    /// Whole or absent: the request got no answer, or its tome was lost.
    Unknown,
    /// Absent.
    Gone,
}

/// An object, and its latest bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) state: State,
    /// Number of puts.
    generation: u64,
    length: usize,
}

/// A client.
pub(crate) struct Client {
    seed: Seed,
    random: RandomStream,
    pub(crate) objects: BTreeMap<String, Known>,
    pub(crate) tally: Tally,
}

impl Client {
    pub(crate) fn new(seed: Seed, number: u32) -> Self {
        let gone = Known { state: State::Gone, generation: 0, length: 0 };
        let names = (0..NAMES).map(|index| format!("client {number}/{index}"));
        Self {
            seed,
            random: seed.child(format!("client {number}").as_bytes()).stream(),
            objects: names.map(|name| (name, gone)).collect(),
            tally: Tally::default(),
        }
    }

    /// Returns the expected bytes of an object.
    pub(crate) fn content(&self, name: &str, known: &Known) -> Vec<u8> {
        let mut bytes = vec![0; known.length];
        let seed = self.seed.child(format!("{name} {}", known.generation).as_bytes());
        seed.stream().fill(&mut bytes);
        bytes
    }

    /// Runs one operation after the other until the end is signaled.
    pub(crate) async fn work(mut self, set: Arc<TomeSet>, mut over: watch::Receiver<bool>) -> Self {
        while !*over.borrow() {
            let index = usize::try_from(self.random.below(NAMES)).unwrap();
            let (name, known) = self.objects.iter().nth(index).unwrap();
            let (name, known) = (name.clone(), *known);
            match (known.state, self.random.below(4)) {
                (State::Gone, _) => self.put(&set, &name, &mut over).await,
                (State::Local | State::Protected, 0) => self.delete(&set, &name).await,
                (State::Local | State::Protected, 1) => {
                    self.delete(&set, &name).await;
                    if self.objects[&name].state == State::Gone {
                        self.put(&set, &name, &mut over).await;
                        self.tally.overwrites += 1;
                    }
                }
                (State::Local | State::Protected | State::Unknown, _) => {
                    self.get(&set, &name).await;
                }
            }
            // After an immediate refusal, others must get their turn.
            tokio::task::yield_now().await;
        }
        self
    }

    async fn put(&mut self, set: &TomeSet, name: &str, over: &mut watch::Receiver<bool>) {
        let blocks = self.random.below(BLOCKS_MAX) + 1;
        let cut = usize::try_from(self.random.below(BLOCK as u64)).unwrap();
        let length = usize::try_from(blocks).unwrap() * BLOCK - cut;
        let generation = self.objects[name].generation + 1;
        let mut known = Known { state: State::Local, generation, length };
        let bytes = self.content(name, &known);
        self.tally.puts += 1;
        match set.put(name, bytes).await {
            Ok(_) => self.tally.bytes += length as u64,
            Err(error) => known.state = self.after_put(name, &error),
        }
        self.objects.insert(name.to_owned(), known);
        let waits = known.state == State::Local && self.random.below(2) == 0;
        if !waits {
            return;
        }
        tokio::select! {
            protected = set.protected(name) => match protected {
                Ok(()) => self.protected(name),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error}"),
            },
            _ = over.wait_for(|over| *over) => {}
        }
    }

    fn after_put(&mut self, name: &str, error: &TomesError) -> State {
        if matches!(error, TomesError::GivenUp { .. } | TomesError::Stopped) {
            self.tally.unknown += 1;
            return State::Unknown;
        }
        // A segment that it goes to has more bad blocks than parity, until the group has recovered
        // it.
        let is_damaged = error.kind() == ErrorKind::Corrupt;
        self.tally.beyond += u64::from(is_damaged);
        assert!(is_damaged || error.is_backlog() || is_full(error), "{name}: {error}");
        self.tally.refused += 1;
        State::Gone
    }

    /// Records that an object was acknowledged as protected.
    pub(crate) fn protected(&mut self, name: &str) {
        self.objects.get_mut(name).unwrap().state = State::Protected;
        self.tally.protected += 1;
    }

    async fn delete(&mut self, set: &TomeSet, name: &str) {
        self.tally.deletes += 1;
        let before = set.tome_of(name).ok();
        let state = match set.delete(name).await {
            Ok(()) => State::Gone,
            // A lost tome gets no requests.
            Err(error) if before.is_some_and(|tome| is_on_lost_tome(set, name, tome)) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error}");
                return self.tally.refused += 1;
            }
            Err(error) if error.is_backlog() => return self.tally.refused += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error}");
                self.tally.unknown += 1;
                State::Unknown
            }
        };
        self.objects.get_mut(name).unwrap().state = state;
    }

    async fn get(&mut self, set: &TomeSet, name: &str) {
        let got = set.get(name).await;
        self.tally.gets += 1;
        match got {
            Ok(bytes) => self.compare(name, &bytes),
            Err(error) => {
                let known = &self.objects[name];
                // More bad blocks than segment parity, until the group has recovered it.
                let is_tolerated =
                    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Corrupt)
                        || is_absent(&error) && known.state == State::Unknown;
                assert!(is_tolerated, "{name} {known:?}: {error}");
                self.tally.refused += 1;
            }
        }
    }

    /// Asserts that the bytes read are those put.
    fn compare(&self, name: &str, bytes: &[u8]) {
        let known = &self.objects[name];
        assert!(known.state != State::Gone, "{name}: it was deleted, and is back");
        assert!(bytes == self.content(name, known), "{name} {known:?}: other bytes");
    }

    /// Records what a read shows of an object, whether its state was unknown or known.
    pub(crate) fn settle(&mut self, name: &str, got: Result<Vec<u8>, TomesError>) {
        let state = self.objects[name].state;
        match (got, state) {
            (Ok(bytes), State::Unknown) => {
                self.compare(name, &bytes);
                self.objects.get_mut(name).unwrap().state = State::Local;
            }
            (Ok(bytes), State::Local | State::Protected | State::Gone) => {
                self.compare(name, &bytes);
            }
            (Err(error), State::Unknown | State::Gone) if is_absent(&error) => {
                self.objects.get_mut(name).unwrap().state = State::Gone;
            }
            (Err(error), _) => panic!("{name} {:?}: {error}", self.objects[name]),
        }
    }

    /// Records that a tome was lost: its objects that not every parity had may be lost with it.
    pub(crate) fn lost(&mut self, names: &[(String, TomeId)], tome: TomeId) {
        let own = names.iter().filter(|(_, holder)| *holder == tome);
        for (name, _) in own {
            if let Some(known) = self.objects.get_mut(name)
                && known.state == State::Local
            {
                known.state = State::Unknown;
            }
        }
    }

    /// Returns the names of objects in a state.
    pub(crate) fn names(&self, state: State) -> Vec<String> {
        let such = self.objects.iter().filter(|(_, known)| known.state == state);
        such.map(|(name, _)| name.clone()).collect()
    }
}

/// Whether an object is still with a tome that is lost.
fn is_on_lost_tome(set: &TomeSet, name: &str, before: TomeId) -> bool {
    set.tome_of(name).is_ok_and(|tome| tome == before) && set.unknown().contains(&before)
}

fn is_absent(error: &TomesError) -> bool {
    error.kind() == ErrorKind::NotFound
}

fn is_full(error: &TomesError) -> bool {
    matches!(error, TomesError::Tome(fulgurite_tome_core::TomeError::Full { .. }))
}

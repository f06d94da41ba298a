//! Tokens over a network that loses, duplicates and delays, with tomes and a token manager that
//! restart.

use std::collections::BTreeMap;

use fulgurite_units::{Controller, Duration, ErrorKind, Instant, Outbox, RandomStream, Seed};
use proptest::prelude::*;

use crate::limits::{LEASE, OFFER_TIMEOUT, RETRY_INTERVAL, TOKEN_HOLD_MAX};
use crate::token::{
    Command, Event, Fence, FromTokenManager, Holder, Need, ToTokenManager, TokenId, TokenManager,
    TokenState, token_count,
};
use crate::{Epoch, TomeError, TomeId};

enum Message {
    ToManager(ToTokenManager),
    ToTome(FromTokenManager),
}

/// A token manager, tomes that want to spin now and then, and the network between them.
struct World {
    now: Instant,
    token_manager: TokenManager,
    rows: BTreeMap<TokenId, TokenState>,
    holders: Vec<Holder>,
    wants: Vec<Option<Need>>,
    /// Messages by arrival time, with the tome that each concerns.
    wires: BTreeMap<(Instant, u64), (usize, Message)>,
    sent: u64,
    faults: u64,
    fence: Fence,
    stream: RandomStream,
}

impl World {
    /// Each message is lost, or duplicated, with a probability of `faults` in a hundred.
    fn new(tomes: u32, faults: u64, seed: u64) -> Self {
        let count = tomes as usize;
        Self {
            now: Instant::ZERO,
            token_manager: TokenManager::new(Instant::ZERO, tomes, &BTreeMap::new()),
            rows: BTreeMap::new(),
            holders: (0..1u64 << 20).step_by(1 << 10).map(Holder::new).take(count).collect(),
            wants: vec![None; count],
            wires: BTreeMap::new(),
            sent: 0,
            faults,
            fence: Fence::default(),
            stream: Seed::new(seed).stream(),
        }
    }

    fn send(&mut self, tome: usize, message: impl Fn() -> Message) {
        let copies = match self.stream.below(100) {
            chance if chance < self.faults => 0,
            chance if chance < 2 * self.faults => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let delay = match self.stream.below(20) {
                0 => Duration::from_millis(self.stream.below(400_000)),
                _ => Duration::from_millis(self.stream.below(500)),
            };
            self.sent += 1;
            self.wires.insert((self.now + delay, self.sent), (tome, message()));
        }
    }

    fn step_token_manager(&mut self, event: Event) {
        let mut out = Outbox::new();
        self.token_manager.step(self.now, event, &mut out);
        self.token_manager.check();
        for command in out.drain() {
            match command {
                Command::Commit { token, state } => {
                    self.rows.insert(token, state);
                }
                Command::Send { tome, message } => {
                    self.send(tome.get() as usize, || Message::ToTome(message));
                }
            }
        }
    }

    fn send_to_manager(&mut self, tome: usize, message: Option<ToTokenManager>) {
        if let Some(message) = message {
            self.send(tome, || Message::ToManager(message));
        }
    }

    /// Advances by a second.
    fn pass(&mut self) {
        self.now = self.now + Duration::from_secs(1);
        while let Some(first) = self.wires.first_entry().filter(|first| first.key().0 <= self.now) {
            let (tome, message) = first.remove();
            match message {
                Message::ToManager(message) => {
                    self.step_token_manager(Event::Received { tome: id(tome), message });
                }
                Message::ToTome(message) => {
                    let answer = self.holders[tome].handle_message(self.now, message);
                    self.send_to_manager(tome, answer);
                }
            }
            self.check_invariants();
        }
        self.step_token_manager(Event::Timer);
        for tome in 0..self.holders.len() {
            let message = match self.wants[tome] {
                Some(need) => self.holders[tome].want(self.now, need),
                None => self.holders[tome].release(),
            };
            self.send_to_manager(tome, message);
        }
        self.check_invariants();
    }

    /// Asserts what must hold at every moment.
    fn check_invariants(&mut self) {
        let mut spinning = BTreeMap::new();
        for (tome, holder) in self.holders.iter().enumerate() {
            if let Some((token, epoch)) = holder.current_token(self.now) {
                let other = spinning.insert(token, tome);
                assert_eq!(other, None, "two tomes hold one token");
                let before = self.fence.admit(token, epoch, id(tome));
                if let Some(before) = before.expect("the fence admits the holder of a token") {
                    assert_ne!(before, id(tome));
                }
            }
        }
        let tomes = u32::try_from(self.holders.len()).unwrap();
        assert!(spinning.len() <= token_count(tomes) as usize);
    }
}

fn id(tome: usize) -> TomeId {
    TomeId::new(u32::try_from(tome).unwrap())
}

fn need(age: u64) -> Need {
    Need { age: Duration::from_secs(age), ..Need::default() }
}

#[test]
fn one_token_per_twenty_tomes_and_at_least_one() {
    let counts = [1, 19, 20, 39, 40, 1000].map(token_count);
    assert_eq!(counts, [1, 1, 1, 1, 2, 50]);
}

#[test]
fn more_urgent_needs_score_higher() {
    let score = |need: Need| need.score(Duration::ZERO);
    let read = Need { read: true, ..need(60) };
    let rebuild = Need { rebuild: true, ..need(60) };
    assert!(score(rebuild) > score(read) && score(read) > score(need(60)));
    assert!(score(need(7200)) > score(need(3600)));
    let many = Need { pending: 1000, ..need(60) };
    assert!(score(many) > score(need(60)));
    let spared = Need { still: Some(Duration::from_secs(10)), ..need(60) };
    assert!(score(spared) < score(need(60)), "a disk that just spun scores lower");
    let most = Need { rebuild: true, read: true, pending: u32::MAX, still: None, ..need(1 << 32) };
    assert!(
        need(0).score(Duration::from_secs(24 * 3600)) > score(most),
        "waiting outweighs every other term"
    );
}

#[test]
fn fence_refuses_an_older_lease() {
    let (mut fence, token) = (Fence::default(), TokenId(0));
    let (one, two) = (TomeId::new(1), TomeId::new(2));
    assert_eq!(fence.admit(token, Epoch::new(4), one), Ok(None));
    assert_eq!(
        fence.admit(token, Epoch::new(4), one),
        Ok(None),
        "a second spin-up under the same lease"
    );
    assert_eq!(
        fence.admit(token, Epoch::new(5), two),
        Ok(Some(one)),
        "the previous holder is to spin down"
    );
    let stale = fence.admit(token, Epoch::new(4), one).unwrap_err();
    let (epoch, latest) = (Epoch::new(4), Epoch::new(5));
    assert_eq!(stale, TomeError::StaleEpoch { tome: one, epoch, latest });
    assert_eq!(stale.kind(), ErrorKind::Conflict);
    assert!(fence.admit(token, Epoch::new(5), one).is_err(), "one lease has one holder");
}

#[test]
fn token_of_a_silent_holder_expires() {
    let mut world = World::new(2, 0, 1);
    world.wants[0] = Some(need(10));
    (0..300).for_each(|_| world.pass());
    assert!(world.holders[0].current_token(world.now).is_some());
    // It crashed: it sends no requests and no answers.
    (world.wants[0], world.holders[0]) = (None, Holder::new(77));
    world.wants[1] = Some(need(10));
    let mut waited = 0;
    while world.holders[1].current_token(world.now).is_none() {
        world.pass();
        waited += 1;
    }
    let lease = LEASE.as_nanos() / 1_000_000_000;
    assert!((lease / 2..2 * lease + 60).contains(&waited), "{waited} s");
}

#[test]
fn low_priority_tome_does_not_starve() {
    let mut world = World::new(12, 0, 2);
    let strong = Need { rebuild: true, read: true, pending: 500, ..need(5000) };
    world.wants = vec![Some(strong); 12];
    world.wants[5] = Some(need(1));
    let hold = TOKEN_HOLD_MAX.as_nanos() / 1_000_000_000;
    let mut waited = 0;
    while world.holders[5].current_token(world.now).is_none() {
        world.pass();
        waited += 1;
        assert!(waited < 40 * hold, "the tome starves");
    }
    assert!(waited > hold, "more urgent tomes come first");
}

#[test]
fn unclaimed_offer_goes_to_the_next_tome() {
    let mut token_manager = TokenManager::new(Instant::ZERO, 3, &BTreeMap::new());
    let mut out = Outbox::new();
    let mut step = |token_manager: &mut TokenManager, seconds: u64, event| {
        let now = Instant::ZERO + Duration::from_secs(seconds);
        token_manager.step(now, event, &mut out);
        out.drain().collect::<Vec<_>>()
    };
    let request = ToTokenManager::Ask { need: need(1), nonce: 5 };
    let ask = |tome| Event::Received { tome: TomeId::new(tome), message: request };
    let token = TokenId(0);
    let offered = |tome, epoch| {
        let (tome, epoch) = (TomeId::new(tome), Epoch::new(epoch));
        let state = TokenState { epoch, holder: Some(tome) };
        let message = FromTokenManager::Offer { token, epoch, nonce: 5 };
        vec![Command::Commit { token, state }, Command::Send { tome, message }]
    };
    assert_eq!(step(&mut token_manager, 0, ask(0)), offered(0, 1));
    assert_eq!(step(&mut token_manager, 1, ask(1)), []);
    assert_eq!(step(&mut token_manager, 2, ask(0)), offered(0, 1)[1..], "the offer was lost");
    assert_eq!(token_manager.deadline(), Some(Instant::ZERO + OFFER_TIMEOUT));
    let after = OFFER_TIMEOUT.as_nanos() / 1_000_000_000;
    assert_eq!(step(&mut token_manager, after, Event::Timer), offered(1, 2));
    let message = ToTokenManager::Claim { token, epoch: Epoch::new(1), sent: Instant::ZERO };
    let late = Event::Received { tome: TomeId::new(0), message };
    let stale = FromTokenManager::Stale { token, epoch: Epoch::new(1) };
    let notice = [Command::Send { tome: TomeId::new(0), message: stale }];
    assert_eq!(step(&mut token_manager, after + 1, late), notice);
}

#[test]
fn holder_is_notified_periodically_of_waiting_tomes() {
    let mut token_manager = TokenManager::new(Instant::ZERO, 3, &BTreeMap::new());
    let mut out = Outbox::new();
    let mut step = |seconds: u64, tome, message| {
        let now = Instant::ZERO + Duration::from_secs(seconds);
        token_manager.step(now, Event::Received { tome: TomeId::new(tome), message }, &mut out);
        out.drain().collect::<Vec<_>>()
    };
    let (token, epoch) = (TokenId(0), Epoch::new(1));
    let ask = ToTokenManager::Ask { need: need(1), nonce: 5 };
    step(0, 0, ask);
    step(0, 0, ToTokenManager::Claim { token, epoch, sent: Instant::ZERO });
    let notice = [Command::Send {
        tome: TomeId::new(0),
        message: FromTokenManager::Wanted { token, epoch },
    }];
    assert_eq!(step(1, 1, ask), notice);
    assert_eq!(step(2, 2, ask), []);
    assert_eq!(step(1 + RETRY_INTERVAL.as_nanos() / 1_000_000_000, 2, ask), notice);
}

#[test]
fn holder_is_notified_at_once_of_a_waiting_reader() {
    let mut token_manager = TokenManager::new(Instant::ZERO, 3, &BTreeMap::new());
    let mut out = Outbox::new();
    let mut step = |seconds: u64, tome, message| {
        let now = Instant::ZERO + Duration::from_secs(seconds);
        token_manager.step(now, Event::Received { tome: TomeId::new(tome), message }, &mut out);
        out.drain().collect::<Vec<_>>()
    };
    let (token, epoch) = (TokenId(0), Epoch::new(1));
    let mut holder = Holder::new(5);
    let write = Need { read: false, ..need(1) };
    step(0, 0, ToTokenManager::Ask { need: write, nonce: 5 });
    step(0, 0, ToTokenManager::Claim { token, epoch, sent: Instant::ZERO });
    // It wants to write, and a moment later it has a reader.
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let asks = holder.want(at(1), write).unwrap();
    assert_eq!(step(1, 1, asks).len(), 1);
    assert_eq!(holder.want(at(2), write), None);
    let asks = holder.want(at(2), Need { read: true, ..write }).unwrap();
    let message = FromTokenManager::WantedToRead { token, epoch };
    assert_eq!(step(2, 1, asks), [Command::Send { tome: TomeId::new(0), message }]);
    assert_eq!(holder.want(at(3), Need { read: true, ..write }), None, "it is output once");
    assert_eq!(step(3, 1, asks), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn no_token_has_two_holders_despite_message_loss(seed: u64, faults in 0u64..30) {
        let mut world = World::new(45, faults, seed);
        for second in 0..3600u32 {
            let tome = usize::try_from(world.stream.below(45)).unwrap();
            match world.stream.below(300) {
                0 => {
                    // The token manager restarts with what it persisted.
                    world.token_manager = TokenManager::new(world.now, 45, &world.rows);
                }
                1..5 => world.holders[tome] = Holder::new(world.stream.next_u64()),
                5..80 => world.wants[tome] = Some(need(world.stream.below(10_000))),
                80..150 => world.wants[tome] = None,
                _ => {}
            }
            world.pass();
            if second % 60 == 0 {
                world.step_token_manager(Event::Timer);
            }
        }
        // Every tome gets a token once the network is reliable again.
        world.faults = 0;
        world.wants = vec![None; 45];
        world.wants[7] = Some(need(1));
        let until = world.now + LEASE + LEASE + RETRY_INTERVAL + OFFER_TIMEOUT;
        while world.holders[7].current_token(world.now).is_none() {
            prop_assert!(world.now < until, "the tome gets no token");
            world.pass();
        }
    }
}

//! The token manager: which tome holds which token, and which gets the next.
//!
//! It must not forget the epoch of each token and the tome that it was granted to: that is
//! committed before an offer is sent. The queue may be forgotten, for tomes ask again. After a
//! restart every granted token counts as held for a full lease.

use std::collections::BTreeMap;

use fulgurite_units::{Controller, Instant, Outbox};
use serde::{Deserialize, Serialize};

use super::{FromTokenManager, Need, ToTokenManager, TokenId, claim_validity, token_count};
use crate::limits::{OFFER_TIMEOUT, RETRY_INTERVAL, TOKEN_HOLD_MAX, WAITER_EXPIRY};
use crate::{Epoch, TomeId};

/// Persistent state of one token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenState {
    /// Epoch of its last lease.
    pub epoch: Epoch,
    /// Holder of that lease; `None` once released.
    pub holder: Option<TomeId>,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message from a tome.
    Received {
        /// The sender.
        tome: TomeId,
        /// The message.
        message: ToTokenManager,
    },
    /// Time passed.
    Timer,
}

/// Commands, executed in order: a commit is durable before later messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Persist the state of a token.
    Commit {
        /// The token.
        token: TokenId,
        /// Its state.
        state: TokenState,
    },
    /// Send a message to a tome.
    Send {
        /// The receiver.
        tome: TomeId,
        /// The message.
        message: FromTokenManager,
    },
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    epoch: Epoch,
    lease: Option<Lease>,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    holder: TomeId,
    /// Not granted to another tome before then.
    until: Instant,
    /// Whether it is claimed, and not only offered.
    is_claimed: bool,
    /// Nonce of the request that its offer answers; `None` after a restart.
    nonce: Option<u64>,
    /// Since when the holder has had the token, across epochs.
    since: Instant,
    /// When the holder was last notified that others wait.
    wanted_sent: Option<Instant>,
    /// When the holder was last notified that others wait to read.
    wanted_to_read_sent: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Time of the first request.
    since: Instant,
    /// Time of the last request.
    last_request: Instant,
    need: Need,
    nonce: u64,
}

/// The token manager of a set.
#[derive(Clone, Debug)]
pub struct TokenManager {
    now: Instant,
    slots: Vec<Slot>,
    waiting: BTreeMap<TomeId, Waiting>,
}

impl TokenManager {
    /// Returns the token manager of a set of this many tomes, from its persisted state.
    #[must_use]
    pub fn new(now: Instant, tomes: u32, persisted: &BTreeMap<TokenId, TokenState>) -> Self {
        let slot = |number: u32| {
            let known = persisted.get(&TokenId(number)).copied().unwrap_or_default();
            let lease = |holder| Lease {
                holder,
                until: now + claim_validity(),
                is_claimed: true,
                nonce: None,
                since: now,
                wanted_sent: None,
                wanted_to_read_sent: None,
            };
            Slot { epoch: known.epoch, lease: known.holder.map(lease) }
        };
        let slots = (0..token_count(tomes)).map(slot).collect();
        Self { now, slots, waiting: BTreeMap::new() }
    }

    /// Returns the tomes that hold or are offered a token.
    #[must_use]
    pub fn holders(&self) -> Vec<TomeId> {
        self.slots.iter().filter_map(|slot| slot.lease.map(|lease| lease.holder)).collect()
    }

    /// Number of tomes that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn handle_ask(&mut self, tome: TomeId, need: Need, nonce: u64, out: &mut Outbox<Command>) {
        let own = self.slots.iter().position(|slot| is_held_by(slot, tome));
        let held = own.and_then(|index| Some((index, self.slots[index].lease?)));
        let Some((index, lease)) = held else {
            let now = self.now;
            let waiting = Waiting { since: now, last_request: now, need, nonce };
            let known = self.waiting.entry(tome).or_insert(waiting);
            (known.last_request, known.need, known.nonce) = (now, need, nonce);
            return;
        };
        // It does not know of its token: the offer was lost, or it restarted.
        if !lease.is_claimed && lease.nonce == Some(nonce) {
            let epoch = self.slots[index].epoch;
            let message = FromTokenManager::Offer { token: token(index), epoch, nonce };
            out.push(Command::Send { tome, message });
        } else if !self.is_over(lease.since) {
            self.offer(index, Lease { nonce: Some(nonce), ..lease }, out);
        }
    }

    fn handle_claim(
        &mut self,
        tome: TomeId,
        id: TokenId,
        epoch: Epoch,
        sent: Instant,
    ) -> FromTokenManager {
        let stale = FromTokenManager::Stale { token: id, epoch };
        let slot = self.slots.get(id.0 as usize).filter(|slot| slot.epoch == epoch);
        let lease = slot.and_then(|slot| slot.lease).filter(|lease| lease.holder == tome);
        let Some(mut lease) = lease.filter(|lease| !self.is_over(lease.since)) else {
            return stale;
        };
        lease.is_claimed = true;
        lease.until = lease.until.max(self.now + claim_validity());
        self.slots[id.0 as usize].lease = Some(lease);
        FromTokenManager::Held { token: id, epoch, sent }
    }

    fn handle_release(
        &mut self,
        tome: TomeId,
        id: TokenId,
        epoch: Epoch,
        out: &mut Outbox<Command>,
    ) {
        let slot = self.slots.get_mut(id.0 as usize);
        if let Some(slot) = slot.filter(|slot| slot.epoch == epoch && is_held_by(slot, tome)) {
            slot.lease = None;
            let state = TokenState { epoch, holder: None };
            out.push(Command::Commit { token: id, state });
        }
    }

    /// Whether a tome has had its token too long while others wait.
    fn is_over(&self, since: Instant) -> bool {
        self.now.since(since) > TOKEN_HOLD_MAX && !self.waiting.is_empty()
    }

    /// Grants free tokens to the tomes with the highest score.
    fn grant_free(&mut self, out: &mut Outbox<Command>) {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.lease.is_some_and(|lease| lease.until <= self.now) {
                slot.lease = None;
            }
            if slot.lease.is_some() {
                continue;
            }
            let now = self.now;
            self.waiting.retain(|_, waiting| now.since(waiting.last_request) < WAITER_EXPIRY);
            let score = |waiting: &Waiting| waiting.need.score(now.since(waiting.since));
            let most = self.waiting.iter().max_by_key(|(tome, waiting)| {
                (score(waiting), std::cmp::Reverse(waiting.since), std::cmp::Reverse(**tome))
            });
            let Some((&tome, &Waiting { nonce, .. })) = most else { continue };
            self.waiting.remove(&tome);
            let nonce = Some(nonce);
            let lease = Lease {
                holder: tome,
                until: now,
                is_claimed: false,
                nonce,
                since: now,
                wanted_sent: None,
                wanted_to_read_sent: None,
            };
            self.offer(index, lease, out);
        }
    }

    /// Notifies holders that another tome waits, so that no token is held idle.
    fn notify_holders(&mut self, tome: TomeId, out: &mut Outbox<Command>) {
        let Some(reads) = self.waiting.get(&tome).map(|waiting| waiting.need.read) else { return };
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let epoch = slot.epoch;
            let Some(lease) = slot.lease.as_mut().filter(|lease| lease.is_claimed) else {
                continue;
            };
            let wanted_sent =
                if reads { &mut lease.wanted_to_read_sent } else { &mut lease.wanted_sent };
            if wanted_sent.is_some_and(|at| self.now.since(at) < RETRY_INTERVAL) {
                continue;
            }
            *wanted_sent = Some(self.now);
            let token = token(index);
            let message = match reads {
                true => FromTokenManager::WantedToRead { token, epoch },
                false => FromTokenManager::Wanted { token, epoch },
            };
            out.push(Command::Send { tome: lease.holder, message });
        }
    }

    /// Offers a token under a new epoch to its previous holder or the next one chosen.
    fn offer(&mut self, index: usize, mut lease: Lease, out: &mut Outbox<Command>) {
        lease.is_claimed = false;
        lease.until = lease.until.max(self.now + OFFER_TIMEOUT);
        let (epoch, tome) = (self.slots[index].epoch.next(), lease.holder);
        self.slots[index] = Slot { epoch, lease: Some(lease) };
        let state = TokenState { epoch, holder: Some(tome) };
        out.push(Command::Commit { token: token(index), state });
        let nonce = lease.nonce.unwrap_or_default();
        let message = FromTokenManager::Offer { token: token(index), epoch, nonce };
        out.push(Command::Send { tome, message });
    }
}

impl Controller for TokenManager {
    type Event = Event;
    type Command = Command;

    fn step(&mut self, now: Instant, event: Event, out: &mut Outbox<Command>) {
        self.now = self.now.max(now);
        let mut asks = None;
        if let Event::Received { tome, message } = event {
            match message {
                ToTokenManager::Ask { need, nonce } => {
                    self.handle_ask(tome, need, nonce, out);
                    asks = Some(tome);
                }
                ToTokenManager::Claim { token, epoch, sent } => {
                    let message = self.handle_claim(tome, token, epoch, sent);
                    out.push(Command::Send { tome, message });
                }
                ToTokenManager::Release { token, epoch } => {
                    self.handle_release(tome, token, epoch, out)
                }
            }
        }
        self.grant_free(out);
        if let Some(tome) = asks {
            self.notify_holders(tome, out);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let leases = self.slots.iter().filter_map(|slot| slot.lease.map(|lease| lease.until));
        leases.min().filter(|_| !self.waiting.is_empty())
    }

    fn check(&self) {
        let mut holders = self.holders();
        holders.sort_unstable();
        let count = holders.len();
        holders.dedup();
        assert_eq!(holders.len(), count, "no tome has two tokens");
        let waits = holders.iter().find(|holder| self.waiting.contains_key(holder));
        assert_eq!(waits, None, "no tome waits for a token while it holds one");
        let is_open = |slot: &Slot| {
            slot.lease.is_none_or(|lease| lease.is_claimed || lease.until >= self.now)
        };
        assert!(self.slots.iter().all(is_open), "no expired offer remains");
    }
}

fn is_held_by(slot: &Slot, tome: TomeId) -> bool {
    slot.lease.is_some_and(|lease| lease.holder == tome)
}

fn token(index: usize) -> TokenId {
    TokenId(u32::try_from(index).expect("token numbers fit in 32 bits"))
}

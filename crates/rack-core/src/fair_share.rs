//! Fair sharing between clients and background work (rebuilds and scrubs).
//!
//! Weighted fair queuing by virtual time: the time a side had its turn, divided by its weight. Each
//! switch of groups costs ten seconds or more, so the turn changes only when one side is ahead by a
//! whole turn (hysteresis). An idle side gets no credit for its idle time, except that clients get
//! one turn, so that a client of an idle rack is served next. Pelican (OSDI 2014), section 2.2.3,
//! rate limiting; the virtual time of its reference 6.

use fulgurite_units::{Duration, Instant, Ratio};

use crate::event::Side;

/// The turns of one class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FairShare {
    turn: Side,
    since: Instant,
    client: Account,
    background: Account,
    hysteresis_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Account {
    virtual_ns: u64,
    /// Virtual time per time, in thousandths.
    per_mille: u64,
}

impl FairShare {
    pub(crate) fn new(background_share: Ratio, turn: Duration) -> Self {
        // Half a share counts one to one; the clamp prevents starvation.
        let account = |share: f64| {
            let factor = Duration::from_secs_f64(0.5 / share.clamp(0.001, 1.0) / 1e6);
            Account { virtual_ns: 0, per_mille: factor.as_nanos().max(1) }
        };
        Self {
            turn: Side::Client,
            since: Instant::ZERO,
            client: account(1.0 - background_share.get()),
            background: account(background_share.get()),
            hysteresis_ns: turn.as_nanos(),
        }
    }

    /// Returns whose turn it is.
    pub(crate) const fn turn(&self) -> Side {
        self.turn
    }

    /// Charges the time since the last call to the side whose turn it is, if the class was busy.
    pub(crate) fn charge(&mut self, now: Instant, is_busy: bool) {
        let elapsed = now.since(self.since).as_nanos();
        self.since = self.since.max(now);
        if is_busy {
            let account = match self.turn {
                Side::Client => &mut self.client,
                Side::Background => &mut self.background,
            };
            account.virtual_ns += elapsed.saturating_mul(account.per_mille) / 1000;
        }
    }

    /// Handles the first operation of a side that was idle.
    pub(crate) fn activate(&mut self, side: Side) {
        match side {
            Side::Client => {
                let credited = self.background.virtual_ns.saturating_sub(self.hysteresis_ns);
                self.client.virtual_ns = self.client.virtual_ns.max(credited);
            }
            Side::Background => {
                self.background.virtual_ns = self.background.virtual_ns.max(self.client.virtual_ns);
            }
        }
    }

    /// Decides whose turn it is from now on.
    pub(crate) const fn choose(&mut self, client_waits: bool, background_waits: bool) {
        let (own, other) = match self.turn {
            Side::Client => (self.client.virtual_ns, self.background.virtual_ns),
            Side::Background => (self.background.virtual_ns, self.client.virtual_ns),
        };
        let is_turn_over = own >= other.saturating_add(self.hysteresis_ns);
        self.turn = match (client_waits, background_waits) {
            (false, false) => self.turn,
            (true, false) => Side::Client,
            (false, true) => Side::Background,
            (true, true) => match (self.turn, is_turn_over) {
                (Side::Client, false) | (Side::Background, true) => Side::Client,
                (Side::Background, false) | (Side::Client, true) => Side::Background,
            },
        };
    }
}

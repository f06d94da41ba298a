//! Who gives way to whom, so that everyone arrives.
//!
//! A shuttle whose next piece of way is not free claims the piece and waits. Whoever works there
//! will be done; whoever waits there for it, or has nothing to do, is sent away:
//!
//! ```text
//!   9 wants along, 4 stands in its way      4 crabs to a free lane, or moves aside,
//!   [ 9 ]=====>{      [ 4 ]     }    -->    or has the next one make room for it first
//! ```
//!
//! Why nobody waits for ever (after PIBT, Okumura et al. 2019, priority inheritance on a graph in
//! which every place has two ways out): of all shuttles on a trip one ranks highest. Its claim is
//! entered by nobody else. Who is inside and works ends its operation, for none lasts for ever.
//! Who is inside and stands is sent away, after whoever stands in its way out (`sidesteps.rs`):
//! one step at a time, each of which brings the next nearer, while a claim keeps lower ranks out
//! of the places that are needed for it. So the claim becomes free, and the shuttle gets nearer to
//! its goal with each piece. With ranks by age of the trip (`RightOfWay::Age`) each trip ranks
//! highest at last. With ranks by identifier (the paper's) the highest always arrives and lower
//! ones when it rests.
//!
//! That there is an order of steps for every crowd is not proven: the search gives up after a
//! thousand looks. Lanes are two or more and at most a third of the places are taken
//! ([`LibraryShape`]'s check), and with that it was found in thousands of random runs.
//!
//! [`LibraryShape`]: crate::LibraryShape

use fulgurite_units::{Outbox, ShuttleIndex};

use crate::controller::Library;
use crate::floor::Position;
use crate::sidesteps::Order;
use crate::state::{Travel, Trip};
use crate::traffic::{Holder, Span};
use crate::{Output, PanelIndex};

/// Steps that may be made to clear a way, for the highest rank that waits and for others.
const STEPS_MAX_TOP: usize = 12;
const STEPS_MAX: usize = 3;

/// Room for lists that are made and dropped within an event; empty between events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rooms {
    waiting: Vec<(u64, ShuttleIndex)>,
    standing: Vec<ShuttleIndex>,
}

impl Library {
    /// Notes that a shuttle waits for a piece of its way.
    pub(crate) fn block(&mut self, index: ShuttleIndex, span: Span) {
        let now = self.now;
        let trip = self.trip_mut(index);
        if trip.blocked.is_some_and(|(before, _)| before == span) {
            return;
        }
        let since = trip.blocked.map(|(_, since)| since);
        trip.blocked = Some((span, since.unwrap_or(now)));
        if since.is_none() {
            self.blocked.push(index);
            self.counters.waits += 1;
        }
        self.traffic.claim(index.get(), self.rank(index), span);
        self.dirty.panel(self.floor.panel_of(index));
    }

    /// It goes on, or gave up.
    pub(crate) fn unblock(&mut self, index: ShuttleIndex) {
        let trip = self.shuttles[index.as_usize()].trip.as_mut();
        if trip.is_some_and(|trip| trip.blocked.take().is_some()) {
            self.traffic.unclaim(index.get());
            self.blocked.retain(|blocked| *blocked != index);
            // A claim less: lower ranks may go.
            self.dirty.panel(self.floor.panel_of(index));
        }
    }

    pub(crate) const fn is_anyone_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    /// Lets those that wait go on where they can, the highest rank first, and clears their way
    /// where nobody else will.
    pub(crate) fn retry_blocked(&mut self, panel: PanelIndex, out: &mut Outbox<Output>) {
        if self.blocked.is_empty() {
            return;
        }
        // In room that is used again: somebody waits at nearly every event of a crowded panel.
        let mut waiting = std::mem::take(&mut self.rooms.waiting);
        let here = self.blocked.iter().filter(|index| self.floor.panel_of(**index) == panel);
        waiting.extend(here.map(|index| (self.rank(*index), *index)));
        waiting.sort_unstable_by(|a, b| b.cmp(a));
        let top = waiting.first().map(|(rank, index)| (*rank, index.get()));
        for (_, index) in waiting.drain(..) {
            let still = self.shuttles[index.as_usize()].trip.as_ref();
            if still.is_some_and(|trip| trip.blocked.is_some()) && !self.advance(index, out) {
                self.clear_way(index, top, out);
            }
        }
        self.rooms.waiting = waiting;
    }

    fn rank(&self, index: ShuttleIndex) -> u64 {
        match &self.shuttles[index.as_usize()].trip {
            Some(trip) => trip.rank,
            None => 0,
        }
    }

    fn order_of(&self, index: ShuttleIndex) -> (u64, u16) {
        (self.rank(index), index.get())
    }

    /// Sends away whoever stands in the way and would stand there for ever. `top` is the highest
    /// rank that waits: it sends away all that stand there, so that it gets on whatever they do.
    fn clear_way(
        &mut self,
        index: ShuttleIndex,
        top: Option<(u64, u16)>,
        out: &mut Outbox<Output>,
    ) {
        let blocked = self.shuttles[index.as_usize()].trip.as_ref().and_then(|trip| trip.blocked);
        let Some((span, _)) = blocked else { return };
        let (rank, number) = self.order_of(index);
        self.traffic.unclaim_for_others(number);
        let is_top = Some((rank, number)) == top;
        let steps = if is_top { STEPS_MAX_TOP } else { STEPS_MAX };
        let mut order = Order { shuttle: index, rank, span, steps };
        let mut standing = std::mem::take(&mut self.rooms.standing);
        self.standing_in(span, index, &mut standing);
        for other in standing.drain(..) {
            let shuttle = &self.shuttles[other.as_usize()];
            let for_ever = shuttle.is_idle()
                || (rank, number) >= self.order_of(other)
                    && (is_top || self.waits_for(other, index, &mut Vec::new()));
            if !for_ever || shuttle.broken {
                continue;
            }
            let Some(steps) = self.sidesteps(order, other) else { continue };
            if steps.len() > 1 {
                // One such at a time: two might undo each other's steps.
                order.steps = 1;
            }
            for step in &steps {
                self.traffic.claim_for_others(number, rank, step.needs);
            }
            let Some(first) = steps.first() else { continue };
            let who = first.shuttle;
            let rests = self.shuttles[who.as_usize()].current().is_none();
            if rests && self.traffic.holders(first.needs, who.get()).next().is_none() {
                self.make_way(who, first.to, out);
            }
        }
        self.rooms.standing = standing;
    }

    /// Shuttles that hold part of a piece and do nothing about it themselves.
    fn standing_in(&self, span: Span, me: ShuttleIndex, standing: &mut Vec<ShuttleIndex>) {
        let shuttles = self.traffic.holders(span, me.get()).filter_map(|holder| match holder {
            Holder::Shuttle(number) => Some(ShuttleIndex::new(number)),
            Holder::Rail => None,
        });
        standing
            .extend(shuttles.filter(|other| self.shuttles[other.as_usize()].current().is_none()));
        standing.sort_unstable();
    }

    /// Whether a shuttle waits for another, or for one that waits for it.
    fn waits_for(
        &self,
        index: ShuttleIndex,
        other: ShuttleIndex,
        seen: &mut Vec<ShuttleIndex>,
    ) -> bool {
        let blocked = self.shuttles[index.as_usize()].trip.as_ref().and_then(|trip| trip.blocked);
        let Some((span, _)) = blocked else { return false };
        seen.push(index);
        let mut before = Vec::new();
        self.standing_in(span, index, &mut before);
        let claimants = self.traffic.claimants(span, index.get(), self.rank(index));
        before.extend(claimants.map(ShuttleIndex::new));
        before.contains(&other)
            || before
                .into_iter()
                .any(|next| !seen.contains(&next) && self.waits_for(next, other, seen))
    }

    /// Sets a shuttle on its way out.
    fn make_way(&mut self, index: ShuttleIndex, to: Position, out: &mut Outbox<Output>) {
        self.counters.give_ways += 1;
        self.unblock(index);
        let at = self.shuttles[index.as_usize()].at;
        let shuttle = &mut self.shuttles[index.as_usize()];
        match &mut shuttle.trip {
            Some(trip) => trip.detour = Some(to),
            None => {
                let travel = Travel { from: at, started: self.now, steps: 0, strayed: 0 };
                let (goal, detour) = (to, Some(to));
                let (errand, current, blocked, rank, charges) = (None, None, None, 0, false);
                let trip = Trip { errand, charges, goal, detour, current, blocked, rank, travel };
                shuttle.trip = Some(trip);
            }
        }
        self.advance(index, out);
    }
}

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
use crate::fleet::Trip;
use crate::floor::Position;
use crate::sidesteps::{Order, sidesteps};
use crate::state::Travel;
use crate::traffic::{Holder, Span};
use crate::{Output, PanelIndex};

/// Steps that may be made to clear a way, for the highest rank that waits and for others.
const STEPS_MAX_TOP: usize = 12;
const STEPS_MAX: usize = 3;

impl Library {
    /// Notes that a shuttle waits for a piece of its way.
    pub(crate) fn block(&mut self, index: ShuttleIndex, span: Span) {
        if let Some(is_new) = self.fleet.block(index, span, self.sequence.now()) {
            self.counters.waits += u64::from(is_new);
            self.dirty.panel(self.floor.panel_of(index));
        }
    }

    /// It goes on, or gave up.
    pub(crate) fn unblock(&mut self, index: ShuttleIndex) {
        if self.fleet.unblock(index) {
            // A claim less: lower ranks may go.
            self.dirty.panel(self.floor.panel_of(index));
        }
    }

    /// Ends the trip of a shuttle, and what it waits for.
    pub(crate) fn end_trip(&mut self, index: ShuttleIndex) -> Option<Trip> {
        self.unblock(index);
        self.fleet.end(index)
    }

    /// Lets those that wait go on where they can, the highest rank first, and clears their way
    /// where nobody else will.
    pub(crate) fn retry_blocked(&mut self, panel: PanelIndex, out: &mut Outbox<Output>) {
        if self.fleet.blocked().is_empty() {
            return;
        }
        // In room that is used again: somebody waits at nearly every event of a crowded panel.
        let mut waiting = std::mem::take(&mut self.rooms.waiting);
        let blocked = self.fleet.blocked().iter().copied();
        let here = blocked.filter(|index| self.floor.panel_of(*index) == panel);
        waiting.extend(here.map(|index| (self.fleet.get(index).rank(), index)));
        waiting.sort_unstable_by(|a, b| b.cmp(a));
        let top = waiting.first().map(|(rank, index)| (*rank, index.get()));
        for (_, index) in waiting.drain(..) {
            if self.fleet.get(index).blocked().is_some() && !self.advance(index, out) {
                self.clear_way(index, top, out);
            }
        }
        self.rooms.waiting = waiting;
    }

    fn order_of(&self, index: ShuttleIndex) -> (u64, u16) {
        (self.fleet.get(index).rank(), index.get())
    }

    /// Sends away whoever stands in the way and would stand there for ever. `top` is the highest
    /// rank that waits: it sends away all that stand there, so that it gets on whatever they do.
    fn clear_way(
        &mut self,
        index: ShuttleIndex,
        top: Option<(u64, u16)>,
        out: &mut Outbox<Output>,
    ) {
        let Some((span, _)) = self.fleet.get(index).blocked() else { return };
        let (rank, number) = self.order_of(index);
        self.fleet.unclaim_for_others(index);
        let is_top = Some((rank, number)) == top;
        let steps = if is_top { STEPS_MAX_TOP } else { STEPS_MAX };
        let mut order = Order { shuttle: index, rank, span, steps };
        let mut standing = std::mem::take(&mut self.rooms.standing);
        self.standing_in(span, index, &mut standing);
        for other in standing.drain(..) {
            let shuttle = self.fleet.get(other);
            let for_ever = shuttle.is_idle()
                || (rank, number) >= self.order_of(other)
                    && (is_top || self.waits_for(other, index, &mut Vec::new()));
            if !for_ever || shuttle.is_broken() {
                continue;
            }
            let Some(steps) = sidesteps(&self.floor, &self.fleet, order, other) else { continue };
            if steps.len() > 1 {
                // One such at a time: two might undo each other's steps.
                order.steps = 1;
            }
            for step in &steps {
                self.fleet.claim_for_others(index, rank, step.needs);
            }
            let Some(first) = steps.first() else { continue };
            let who = first.shuttle;
            let rests = self.fleet.get(who).current().is_none();
            if rests && self.fleet.traffic().holders(first.needs, who.get()).next().is_none() {
                self.make_way(who, first.to, out);
            }
        }
        self.rooms.standing = standing;
    }

    /// Shuttles that hold part of a piece and do nothing about it themselves.
    fn standing_in(&self, span: Span, me: ShuttleIndex, standing: &mut Vec<ShuttleIndex>) {
        let shuttles =
            self.fleet.traffic().holders(span, me.get()).filter_map(|holder| match holder {
                Holder::Shuttle(number) => Some(ShuttleIndex::new(number)),
                Holder::Rail => None,
            });
        standing.extend(shuttles.filter(|other| self.fleet.get(*other).current().is_none()));
        standing.sort_unstable();
    }

    /// Whether a shuttle waits for another, or for one that waits for it.
    fn waits_for(
        &self,
        index: ShuttleIndex,
        other: ShuttleIndex,
        seen: &mut Vec<ShuttleIndex>,
    ) -> bool {
        let Some((span, _)) = self.fleet.get(index).blocked() else { return false };
        seen.push(index);
        let mut before = Vec::new();
        self.standing_in(span, index, &mut before);
        let rank = self.fleet.get(index).rank();
        let claimants = self.fleet.traffic().claimants(span, index.get(), rank);
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
        let shuttle = self.fleet.get(index);
        if shuttle.trip().is_some() {
            self.fleet.begin_detour(index, to);
        } else {
            let (from, started) = (shuttle.at(), self.sequence.now());
            let travel = Travel { from, started, steps: 0, strayed: 0 };
            self.fleet.begin(index, Trip::aside(to, travel));
        }
        self.advance(index, out);
    }
}

//! Right of way: which shuttle gives way to which, so that all of them arrive.
//!
//! A shuttle whose next span is not free claims the span and waits. A shuttle that works there will
//! be done; one that waits there for it, or has nothing to do, is sent away:
//!
//! ```text
//!   9 wants along, 4 stands in its way      4 crabs to a free lane, or moves aside,
//!   [ 9 ]=====>{      [ 4 ]     }    -->    or has the next one make room for it first
//! ```
//!
//! Why no shuttle waits forever (after PIBT, Okumura et al. 2019, priority inheritance on a graph
//! in which every place has two ways out): of all shuttles on a trip one ranks highest. No other
//! enters its claim. A shuttle that works inside the claim ends its operation, because no operation
//! lasts forever. A shuttle that stands inside is sent away, after those in its way out
//! (`sidesteps.rs`): one step at a time, each of which brings the next nearer, while a claim keeps
//! lower ranks out of the places that are needed for it. So the claim becomes free, and the shuttle
//! gets nearer to its goal with each span. With ranks by age of the trip (`RightOfWay::Age`) each
//! trip eventually ranks highest. With ranks by identifier (the paper's) the highest always
//! arrives, and lower ones when it is idle.
//!
//! It is not proven that every crowd has such an order of steps: the search gives up after a
//! thousand attempts. There are two or more lanes, and at most a third of the places are taken
//! ([`LibraryShape`]'s check); with that an order was found in thousands of random runs.
//!
//! [`LibraryShape`]: crate::control::LibraryShape

use fulgurite_units::{Outbox, ShuttleIndex};

use crate::control::controller::Library;
use crate::control::fleet::Trip;
use crate::control::floor::Position;
use crate::control::sidesteps::{Order, sidesteps};
use crate::control::state::TripLeg;
use crate::control::traffic::{Holder, Span};
use crate::control::{Output, PanelIndex};

/// Maximum steps to clear a way, for the highest rank that waits and for others.
const STEPS_MAX_TOP: usize = 12;
const STEPS_MAX: usize = 3;

impl Library {
    /// Blocks a shuttle on a span of its way.
    pub(crate) fn block(&mut self, index: ShuttleIndex, span: Span) {
        if let Some(is_new) = self.fleet.block(index, span, self.sequence.now()) {
            self.counters.waits += u64::from(is_new);
            self.dirty.panel(self.floor.panel_of(index));
        }
    }

    /// Unblocks a shuttle, to go on or to give up.
    pub(crate) fn unblock(&mut self, index: ShuttleIndex) {
        if self.fleet.unblock(index) {
            // One claim less: lower ranks may go.
            self.dirty.panel(self.floor.panel_of(index));
        }
    }

    /// Ends the trip of a shuttle, and its wait.
    pub(crate) fn end_trip(&mut self, index: ShuttleIndex) -> Option<Trip> {
        self.unblock(index);
        self.fleet.end(index)
    }

    /// Lets blocked shuttles go on where they can, the highest rank first, and clears their way
    /// where nothing else will.
    pub(crate) fn retry_blocked(&mut self, panel: PanelIndex, out: &mut Outbox<Output>) {
        if self.fleet.blocked().is_empty() {
            return;
        }
        // Reuses a buffer: on a crowded panel shuttles wait at nearly every event.
        let mut waiting = std::mem::take(&mut self.scratch.waiting);
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
        self.scratch.waiting = waiting;
    }

    fn priority_of(&self, index: ShuttleIndex) -> (u64, u16) {
        (self.fleet.get(index).rank(), index.get())
    }

    /// Sends away shuttles that would stand in the way forever. `top` is the highest rank that
    /// waits: it sends away all that stand there, so that it gets on whatever they do.
    fn clear_way(
        &mut self,
        index: ShuttleIndex,
        top: Option<(u64, u16)>,
        out: &mut Outbox<Output>,
    ) {
        let Some((span, _)) = self.fleet.get(index).blocked() else { return };
        let (rank, number) = self.priority_of(index);
        self.fleet.unclaim_for_others(index);
        let is_top = Some((rank, number)) == top;
        let steps = if is_top { STEPS_MAX_TOP } else { STEPS_MAX };
        let mut order = Order { shuttle: index, rank, span, steps };
        let mut standing = std::mem::take(&mut self.scratch.standing);
        self.standing_in(span, index, &mut standing);
        for other in standing.drain(..) {
            let shuttle = self.fleet.get(other);
            let for_ever = shuttle.is_idle()
                || (rank, number) >= self.priority_of(other)
                    && (is_top || self.waits_for(other, index, &mut Vec::new()));
            if !for_ever || shuttle.is_broken() {
                continue;
            }
            let Some(steps) = sidesteps(&self.floor, &self.fleet, order, other) else { continue };
            if steps.len() > 1 {
                // Only one such sequence at a time: two might undo each other's steps.
                order.steps = 1;
            }
            for step in &steps {
                self.fleet.claim_for_others(index, rank, step.needs);
            }
            let Some(first) = steps.first() else { continue };
            let mover = first.shuttle;
            let is_standing = self.fleet.get(mover).current().is_none();
            if is_standing
                && self.fleet.traffic().holders(first.needs, mover.get()).next().is_none()
            {
                self.make_way(mover, first.to, out);
            }
        }
        self.scratch.standing = standing;
    }

    /// Collects the shuttles that hold part of a span and are not working.
    fn standing_in(&self, span: Span, requester: ShuttleIndex, standing: &mut Vec<ShuttleIndex>) {
        let shuttles =
            self.fleet.traffic().holders(span, requester.get()).filter_map(|holder| match holder {
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
        let higher_claimants = self.fleet.traffic().higher_claimants(span, index.get(), rank);
        before.extend(higher_claimants.map(ShuttleIndex::new));
        before.contains(&other)
            || before
                .into_iter()
                .any(|next| !seen.contains(&next) && self.waits_for(next, other, seen))
    }

    /// Sends a shuttle out of the way.
    fn make_way(&mut self, index: ShuttleIndex, to: Position, out: &mut Outbox<Output>) {
        self.counters.give_ways += 1;
        self.unblock(index);
        let shuttle = self.fleet.get(index);
        if shuttle.trip().is_some() {
            self.fleet.begin_detour(index, to);
        } else {
            let (from, started) = (shuttle.position(), self.sequence.now());
            let travel = TripLeg { from, started, steps: 0, strayed: 0 };
            self.fleet.begin(index, Trip::aside(to, travel));
        }
        self.advance(index, out);
    }
}

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
//! entered by nobody else, except by those that make way at its own order, which leave it. Who is
//! inside and works ends its operation, for none lasts for ever. Who is inside and stands is sent
//! away; as lanes are two or more and at most a third of the places are taken ([`LibraryShape`]'s
//! check), some chain of neighbors ends at a free place, and each link of it is a free move once
//! the next has gone. So the claim becomes free, and the shuttle gets nearer to its goal with each
//! piece. With ranks by age of the trip (`RightOfWay::Age`) each trip ranks highest at last. With
//! ranks by identifier (the paper's) the highest always arrives and lower ones when it rests.
//!
//! [`LibraryShape`]: crate::LibraryShape

use fulgurite_units::{Outbox, ShuttleIndex};

use crate::controller::Library;
use crate::floor::Position;
use crate::state::{Travel, Trip};
use crate::traffic::{Holder, MAKING_WAY, Span};
use crate::{Output, PanelIndex, ShelfIndex};

impl Library {
    /// Notes that a shuttle waits for a piece of its way.
    pub(crate) fn block(&mut self, index: ShuttleIndex, span: Span) {
        let now = self.now;
        let trip = self.trip_mut(index);
        let since = trip.blocked.map(|(_, since)| since);
        let news = trip.blocked.is_none_or(|(before, _)| before != span);
        trip.blocked = Some((span, since.unwrap_or(now)));
        if since.is_none() {
            self.blocked.push(index);
            self.counters.waits += 1;
        }
        if news {
            self.traffic.claim(index.get(), self.behalf(index), span);
            self.dirty.panel(self.floor.panel_of(index));
        }
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
        let mut waiting: Vec<(u64, ShuttleIndex)> = self
            .blocked
            .iter()
            .filter(|index| self.floor.panel_of(**index) == panel)
            .map(|index| (self.rank(*index), *index))
            .collect();
        waiting.sort_unstable_by(|a, b| b.cmp(a));
        let top = waiting.iter().map(|(_, index)| self.behalf(*index)).max();
        for (_, index) in waiting {
            let still = self.shuttles[index.as_usize()].trip.as_ref();
            if still.is_some_and(|trip| trip.blocked.is_some()) && !self.advance(index, out) {
                self.clear_way(index, top, out);
            }
        }
    }

    fn rank(&self, index: ShuttleIndex) -> u64 {
        match &self.shuttles[index.as_usize()].trip {
            Some(trip) if trip.detour.is_some() => MAKING_WAY,
            Some(trip) => trip.rank,
            None => 0,
        }
    }

    /// Whose order a shuttle carries out: its own, or that of who made it make way.
    fn behalf(&self, index: ShuttleIndex) -> (u64, u16) {
        match &self.shuttles[index.as_usize()].trip {
            Some(trip) if trip.detour.is_some() => trip.behalf,
            Some(trip) => (trip.rank, index.get()),
            None => (0, index.get()),
        }
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
        let behalf = self.behalf(index);
        for other in self.standing_in(span, index) {
            let shuttle = &self.shuttles[other.as_usize()];
            let for_ever = shuttle.is_idle()
                || behalf >= self.behalf(other)
                    && (Some(behalf) == top || self.waits_for(other, index, &mut Vec::new()));
            if for_ever && !shuttle.broken {
                let mut chain = vec![ShuttleIndex::new(behalf.1), index];
                self.send_away(other, span, behalf, &mut chain, out);
            }
        }
    }

    /// Shuttles that hold part of a piece and do nothing about it themselves.
    fn standing_in(&self, span: Span, me: ShuttleIndex) -> Vec<ShuttleIndex> {
        let shuttles = self.traffic.holders(span, me.get()).filter_map(|holder| match holder {
            Holder::Shuttle(number) => Some(ShuttleIndex::new(number)),
            Holder::Rail => None,
        });
        shuttles.filter(|other| self.shuttles[other.as_usize()].current().is_none()).collect()
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
        let holders = self.standing_in(span, index);
        let claimants = self.traffic.claimants(span, index.get(), self.rank(index));
        let claimants = claimants.map(ShuttleIndex::new);
        let before: Vec<_> = holders.into_iter().chain(claimants).collect();
        before.contains(&other)
            || before
                .into_iter()
                .any(|next| !seen.contains(&next) && self.waits_for(next, other, seen))
    }

    /// Has a shuttle leave a piece of lane: up, down or aside, whatever is free; if nothing is, has
    /// the next one make room first. Whether that was begun, or will be when someone is done.
    fn send_away(
        &mut self,
        index: ShuttleIndex,
        span: Span,
        behalf: (u64, u16),
        chain: &mut Vec<ShuttleIndex>,
        out: &mut Outbox<Output>,
    ) -> bool {
        let shuttle = &self.shuttles[index.as_usize()];
        if chain.contains(&index) || shuttle.broken {
            return false;
        }
        if shuttle.current().is_some() {
            return true;
        }
        if let Some(trip) = &shuttle.trip
            && let Some(detour) = trip.detour
            && trip.behalf >= behalf
            && !self.traffic.footprint(detour).overlaps(&span)
            && !trip.blocked.is_some_and(|(needs, _)| self.is_held_by(needs, chain))
        {
            // It is leaving already, on an order that counts as much.
            return true;
        }
        chain.push(index);
        let ways = self.ways_out(shuttle.at, span);
        let open = |way: &&WayOut| {
            !self.traffic.is_barred(&way.needs)
                && !self.traffic.is_claimed(&way.ends, index.get(), behalf)
                && self.stays_clear(&way.ends, chain)
        };
        let open: Vec<WayOut> = ways.iter().filter(open).copied().collect();
        let me = index.get();
        let free = |way: &&WayOut| self.traffic.holders(way.needs, me).next().is_none();
        if let Some(way) = open.iter().find(free) {
            self.make_way(index, way.to, behalf, out);
            return true;
        }
        let way = open.into_iter().find(|way| {
            let inside: Vec<_> = self.traffic.holders(way.needs, me).collect();
            inside.into_iter().all(|holder| match holder {
                Holder::Shuttle(next) => {
                    self.send_away(ShuttleIndex::new(next), way.needs, behalf, chain, out)
                }
                Holder::Rail => false,
            })
        });
        if let Some(way) = way {
            // It claims the place, so that nobody enters it meanwhile.
            self.make_way(index, way.to, behalf, out);
        }
        way.is_some()
    }

    /// Whether one of some shuttles holds part of a piece.
    fn is_held_by(&self, span: Span, shuttles: &[ShuttleIndex]) -> bool {
        let mut holders = self.traffic.holders(span, u16::MAX);
        holders.any(|holder| match holder {
            Holder::Shuttle(number) => shuttles.contains(&ShuttleIndex::new(number)),
            Holder::Rail => false,
        })
    }

    /// Whether a way out keeps clear of what the one that ordered it wants.
    fn stays_clear(&self, ends: &Span, chain: &[ShuttleIndex]) -> bool {
        let first = chain.first().and_then(|first| self.shuttles[first.as_usize()].trip.as_ref());
        let wanted = first.and_then(|trip| trip.blocked);
        wanted.is_none_or(|(span, _)| !span.overlaps(ends))
    }

    /// Where a shuttle could go to leave a piece of lane, and what it needs for that: nearest
    /// first.
    fn ways_out(&self, at: Position, span: Span) -> Vec<WayOut> {
        let shelf = at.shelf.get();
        let mut ways = Vec::with_capacity(4);
        let above = (shelf + 1 < self.shape().shelves_per_panel).then_some(shelf + 1);
        for shelf in [above, shelf.checked_sub(1)].into_iter().flatten() {
            let to = Position { shelf: ShelfIndex::new(shelf), ..at };
            let ends = self.traffic.footprint(to);
            ways.push(WayOut { to, ends, needs: ends });
        }
        let mut aside: Vec<_> = self.traffic.beside(&span).into_iter().flatten().collect();
        aside.sort_unstable_by_key(|rail| rail.get().abs_diff(at.rail.get()));
        for rail in aside {
            let to = Position { rail, ..at };
            let (ends, needs) = (self.traffic.footprint(to), self.traffic.sweep(at, rail));
            ways.push(WayOut { to, ends, needs });
        }
        ways
    }

    /// Sets a shuttle on its way out.
    fn make_way(
        &mut self,
        index: ShuttleIndex,
        to: Position,
        behalf: (u64, u16),
        out: &mut Outbox<Output>,
    ) {
        self.counters.give_ways += 1;
        self.unblock(index);
        let at = self.shuttles[index.as_usize()].at;
        let shuttle = &mut self.shuttles[index.as_usize()];
        match &mut shuttle.trip {
            Some(trip) => (trip.detour, trip.behalf) = (Some(to), behalf),
            None => {
                let travel = Travel { from: at, started: self.now, steps: 0, strayed: 0 };
                let (goal, detour) = (to, Some(to));
                let (errand, current, blocked, rank) = (None, None, None, 0);
                let trip = Trip { errand, goal, detour, behalf, current, blocked, rank, travel };
                shuttle.trip = Some(trip);
            }
        }
        self.advance(index, out);
    }
}

/// A place to make way to.
#[derive(Clone, Copy, Debug)]
struct WayOut {
    to: Position,
    /// What it covers there.
    ends: Span,
    /// What it needs to get there.
    needs: Span,
}

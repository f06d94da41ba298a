//! Reservations of space on a panel, so that no two shuttles are ever in one place.
//!
//! A lane is the space in front of one shelf, along the whole panel. A shuttle holds the span of
//! its lane that it covers; while it moves, the whole span it sweeps; while it crabs, its span of
//! both lanes. Holds of two shuttles never overlap: that is the invariant, checked when a hold is
//! taken and again by `check`.
//!
//! ```text
//!   lane 2   ....[ 7 ]..............      7 stands
//!   lane 1   .........[  3 -------> ]     3 moves and holds its whole way
//!   lane 0   ..[ 5 ]....{ claimed by 9 }  9 waits for a way through; lower ranks stay out
//! ```
//!
//! A shuttle that cannot take the next span of its way claims it and waits. A claim keeps lower
//! ranks out, so the obstacles only get fewer; `right_of_way.rs` moves away shuttles that would
//! wait forever. Not here: which shuttle ranks higher, and where shuttles want to go.

use crate::control::floor::{Floor, Position};
use crate::control::{PanelIndex, RailPosition, ShelfIndex};

/// A span of a lane, half open, in micrometers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) lane: u16,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Span {
    pub(crate) const fn overlaps(&self, other: &Self) -> bool {
        self.lane == other.lane && self.from < other.to && other.from < self.to
    }
}

/// The holder of a span: a shuttle by its index, or a broken rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    Shuttle(u16),
    Rail,
}

/// A claim on a span, which lower ranks respect.
#[derive(Clone, Copy, Debug)]
struct Claim {
    shuttle: u16,
    rank: u64,
    span: Span,
    /// Whether it is for the shuttles that make way for this one.
    for_others: bool,
}

impl Claim {
    const fn priority(&self) -> (u64, u16) {
        (self.rank, self.shuttle)
    }
}

/// The next step of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Arrived,
    Move {
        to: RailPosition,
    },
    Crab {
        to: ShelfIndex,
    },
    /// The way goes on there, but another shuttle holds or claims the span.
    Blocked(Span),
    /// Broken machines leave no way.
    Cut,
}

/// The rank of shuttles that make way, which no claim stops.
pub(crate) const MAKING_WAY: u64 = u64::MAX;

/// Minimum length of a partial way that is worth a start: about one rack, 7 s at 0.17 m/s.
const PART_WAY_MIN_UM: u64 = 1_200_000;

/// All lanes of a library.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    /// The holds of each lane.
    lanes: Vec<Vec<(Holder, u64, u64)>>,
    claims: Vec<Claim>,
    /// Spans that broken machines hold.
    barred: Vec<Span>,
    shelves: u16,
    half_width: u64,
    length: u64,
}

impl Traffic {
    pub(crate) fn new(floor: &Floor) -> Self {
        let shape = floor.shape();
        Self {
            lanes: vec![Vec::new(); usize::from(shape.panels * shape.shelves_per_panel)],
            claims: Vec::new(),
            barred: Vec::new(),
            shelves: shape.shelves_per_panel,
            half_width: u64::from(shape.shuttle_width_mm) * 500,
            length: shape.length_um(),
        }
    }

    pub(crate) const fn lane(&self, panel: PanelIndex, shelf: ShelfIndex) -> u16 {
        panel.get() * self.shelves + shelf.get()
    }

    /// Returns the span that a shuttle covers standing there.
    pub(crate) const fn footprint(&self, at: Position) -> Span {
        self.sweep(at, at.rail)
    }

    /// Returns the span that a shuttle covers on its way along the rails.
    pub(crate) const fn sweep(&self, at: Position, to: RailPosition) -> Span {
        let (a, b) = (at.rail.get(), to.get());
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        Span {
            lane: self.lane(at.panel, at.shelf),
            from: low.saturating_sub(self.half_width),
            to: high + self.half_width,
        }
    }

    /// Returns the positions just clear of a span of its lane, to the left and right.
    pub(crate) fn beside(&self, span: &Span) -> [Option<RailPosition>; 2] {
        let left = span.from.checked_sub(self.half_width).filter(|at| *at >= self.half_width);
        let right = span.to + self.half_width;
        let right = (right + self.half_width <= self.length).then_some(right);
        [left.map(RailPosition::new), right.map(RailPosition::new)]
    }

    /// Takes a span, which must be free.
    pub(crate) fn take(&mut self, shuttle: u16, span: Span) {
        let lane = &mut self.lanes[usize::from(span.lane)];
        let requester = Holder::Shuttle(shuttle);
        // A rail may break under a shuttle.
        let clear = lane.iter().all(|&(holder, from, to)| {
            holder == requester || holder == Holder::Rail || span.to <= from || to <= span.from
        });
        assert!(clear, "shuttle {shuttle} would run into another at {span:?}");
        match lane.iter_mut().find(|(holder, ..)| *holder == requester) {
            Some(hold) => *hold = (requester, span.from, span.to),
            None => lane.push((requester, span.from, span.to)),
        }
    }

    /// Releases what a shuttle holds of a lane.
    pub(crate) fn leave(&mut self, shuttle: u16, lane: u16) {
        let lane = &mut self.lanes[usize::from(lane)];
        let hold = lane.iter().position(|(holder, ..)| *holder == Holder::Shuttle(shuttle));
        lane.swap_remove(hold.expect("a shuttle leaves a lane it was on"));
    }

    /// Returns the spans that a shuttle holds, on one lane or two.
    pub(crate) fn held_by(&self, shuttle: u16) -> impl Iterator<Item = Span> + '_ {
        (0..).zip(&self.lanes).flat_map(move |(lane, holds)| {
            let mine = holds.iter().filter(move |(holder, ..)| *holder == Holder::Shuttle(shuttle));
            mine.map(move |&(_, from, to)| Span { lane, from, to })
        })
    }

    /// Returns the others that hold part of a span.
    pub(crate) fn holders(&self, span: Span, requester: u16) -> impl Iterator<Item = Holder> + '_ {
        let holds = self.lanes[usize::from(span.lane)].iter();
        let inside = holds.filter(move |(_, from, to)| *from < span.to && span.from < *to);
        inside
            .map(|(holder, ..)| *holder)
            .filter(move |holder| *holder != Holder::Shuttle(requester))
    }

    /// Returns the shuttles that rank higher and claim part of a span.
    pub(crate) fn higher_claimants(
        &self,
        span: Span,
        requester: u16,
        rank: u64,
    ) -> impl Iterator<Item = u16> + '_ {
        let claims = self.claims.iter();
        let above = claims.filter(move |claim| {
            claim.shuttle != requester && claim.priority() > (rank, requester)
        });
        above.filter(move |claim| claim.span.overlaps(&span)).map(|claim| claim.shuttle)
    }

    /// Whether another shuttle claims part of a span with the same or a higher rank.
    pub(crate) fn is_claimed(&self, span: &Span, requester: u16, priority: (u64, u16)) -> bool {
        let mut other_claims = self.claims.iter().filter(|claim| claim.shuttle != requester);
        other_claims.any(|claim| claim.priority() >= priority && claim.span.overlaps(span))
    }

    /// Returns the other shuttles that claim part of a span, whatever their rank.
    pub(crate) fn claimants(&self, span: Span, requester: u16) -> impl Iterator<Item = u16> + '_ {
        let other_claims = self.claims.iter().filter(move |claim| claim.shuttle != requester);
        other_claims.filter(move |claim| claim.span.overlaps(&span)).map(|claim| claim.shuttle)
    }

    /// Whether a shuttle may take a span now.
    pub(crate) fn is_free(&self, span: Span, requester: u16, rank: u64) -> bool {
        self.holders(span, requester).next().is_none()
            && (self.claims.is_empty()
                || self.higher_claimants(span, requester, rank).next().is_none())
    }

    pub(crate) fn claim(&mut self, shuttle: u16, rank: u64, span: Span) {
        self.unclaim(shuttle);
        self.claims.push(Claim { shuttle, rank, span, for_others: false });
    }

    /// Claims another span, for those that make way.
    pub(crate) fn claim_for_others(&mut self, shuttle: u16, rank: u64, span: Span) {
        self.claims.push(Claim { shuttle, rank, span, for_others: true });
    }

    pub(crate) fn unclaim_for_others(&mut self, shuttle: u16) {
        self.claims.retain(|claim| claim.shuttle != shuttle || !claim.for_others);
    }

    pub(crate) fn unclaim(&mut self, shuttle: u16) {
        self.claims.retain(|claim| claim.shuttle != shuttle);
    }

    /// Bars a span that nothing can pass until it is repaired.
    pub(crate) fn bar(&mut self, span: Span) {
        self.barred.push(span);
    }

    /// Bars a broken rail and holds its span, so that no shuttle enters it that is not on its way
    /// already.
    pub(crate) fn bar_rail(&mut self, span: Span) {
        self.bar(span);
        self.lanes[usize::from(span.lane)].push((Holder::Rail, span.from, span.to));
    }

    pub(crate) fn unbar(&mut self, span: Span) {
        if let Some(index) = self.barred.iter().position(|barred| *barred == span) {
            self.barred.swap_remove(index);
        }
    }

    pub(crate) fn unbar_rail(&mut self, span: Span) {
        self.unbar(span);
        let lane = &mut self.lanes[usize::from(span.lane)];
        let rail = (Holder::Rail, span.from, span.to);
        if let Some(index) = lane.iter().position(|hold| *hold == rail) {
            lane.swap_remove(index);
        }
    }

    /// Whether broken machines hold part of a span.
    pub(crate) fn is_barred(&self, span: &Span) -> bool {
        self.barred.iter().any(|barred| barred.overlaps(span))
    }

    pub(crate) fn is_damaged(&self) -> bool {
        !self.barred.is_empty()
    }

    /// Returns the next step of the way to `goal`: along the rails if that is free, otherwise up or
    /// down; around broken machines if there are any.
    ///
    /// If both are occupied: along another shelf that is free, if that costs no more than two crabs
    /// and `may_stray`; otherwise as far along the rails as is free, if that is worth a start.
    pub(crate) fn next_step(
        &self,
        requester: u16,
        rank: u64,
        at: Position,
        goal: Position,
        may_stray: bool,
    ) -> Step {
        if at == goal {
            return Step::Arrived;
        }
        if self.is_damaged() {
            return self.next_step_around(requester, rank, at, goal);
        }
        let up_or_down = next_shelf(at.shelf, goal.shelf);
        let mut blocked = None;
        if at.rail != goal.rail {
            let sweep = self.sweep(at, goal.rail);
            if self.is_free(sweep, requester, rank) {
                return Step::Move { to: goal.rail };
            }
            blocked = Some(sweep);
        }
        if let Some(shelf) = up_or_down {
            let span = self.footprint(Position { shelf, ..at });
            if self.is_free(span, requester, rank) {
                return Step::Crab { to: shelf };
            }
            blocked = blocked.or(Some(span));
        }
        let Some(span) = blocked else { return Step::Arrived };
        if at.rail != goal.rail {
            if may_stray && let Some(to) = self.free_shelf_beside(requester, rank, at, goal) {
                return Step::Crab { to };
            }
            if let Some(to) = self.part_way(requester, rank, at, goal) {
                return Step::Move { to };
            }
        }
        Step::Blocked(span)
    }

    /// Returns the shelf above or below along which the whole way is free.
    fn free_shelf_beside(
        &self,
        requester: u16,
        rank: u64,
        at: Position,
        goal: Position,
    ) -> Option<ShelfIndex> {
        let shelf = at.shelf.get();
        let above = (shelf + 1 < self.shelves).then_some(shelf + 1);
        let beside = [above, shelf.checked_sub(1)].into_iter().flatten();
        beside.map(ShelfIndex::new).find(|shelf| {
            let there = Position { shelf: *shelf, ..at };
            self.is_free(self.sweep(there, goal.rail), requester, rank)
        })
    }

    /// Returns how far along the rails the way is free, if that is far enough.
    fn part_way(
        &self,
        requester: u16,
        rank: u64,
        at: Position,
        goal: Position,
    ) -> Option<RailPosition> {
        let sweep = self.sweep(at, goal.rail);
        let holds = self.lanes[usize::from(sweep.lane)].iter();
        let occupied = holds.filter(|(holder, ..)| *holder != Holder::Shuttle(requester));
        let occupied = occupied.map(|&(_, from, to)| (from, to));
        let above = self
            .claims
            .iter()
            .filter(|claim| claim.shuttle != requester && claim.priority() > (rank, requester));
        let claimed = above.filter(|claim| claim.span.lane == sweep.lane);
        let claimed = claimed.map(|claim| (claim.span.from, claim.span.to));
        let inside =
            occupied.chain(claimed).filter(|(from, to)| *from < sweep.to && sweep.from < *to);
        let (here, half) = (at.rail.get(), self.half_width);
        let to = if here < goal.rail.get() {
            let first = inside.map(|(from, _)| from).min()?;
            first.checked_sub(half)?.min(goal.rail.get())
        } else {
            let last = inside.map(|(_, to)| to).max()?;
            (last + half).max(goal.rail.get())
        };
        let forward = (here < goal.rail.get()) == (here < to);
        (forward && here.abs_diff(to) >= PART_WAY_MIN_UM).then(|| RailPosition::new(to))
    }

    fn next_step_around(&self, requester: u16, rank: u64, at: Position, goal: Position) -> Step {
        let Some(shelf) = self.shelf_around(at, goal) else { return Step::Cut };
        let (span, step) = if at.rail != goal.rail && at.shelf == shelf {
            (self.sweep(at, goal.rail), Step::Move { to: goal.rail })
        } else {
            let toward = if at.rail == goal.rail { goal.shelf } else { shelf };
            let Some(to) = next_shelf(at.shelf, toward) else { return Step::Arrived };
            (self.footprint(Position { shelf: to, ..at }), Step::Crab { to })
        };
        if self.is_free(span, requester, rank) { step } else { Step::Blocked(span) }
    }

    /// Returns the shelf along which `goal` is reached with the fewest crabs, if there is one.
    pub(crate) fn shelf_around(&self, at: Position, goal: Position) -> Option<ShelfIndex> {
        let crabs = |shelf: u16| at.shelf.get().abs_diff(shelf) + shelf.abs_diff(goal.shelf.get());
        let open = |shelf: &u16| {
            let here = Position { shelf: ShelfIndex::new(*shelf), ..at };
            !self.is_barred(&self.sweep(here, goal.rail))
                && self.is_column_open(at, *shelf)
                && self.is_column_open(goal, *shelf)
        };
        let shelves = (0..self.shelves).filter(open);
        shelves.min_by_key(|shelf| crabs(*shelf)).map(ShelfIndex::new)
    }

    /// Whether nothing broken is between a position and a shelf above or below it. Damage at the
    /// position itself does not count: a shuttle stands there.
    fn is_column_open(&self, at: Position, shelf: u16) -> bool {
        let (low, high) = (at.shelf.get().min(shelf), at.shelf.get().max(shelf));
        (low..=high).filter(|between| *between != at.shelf.get()).all(|between| {
            let between = Position { shelf: ShelfIndex::new(between), ..at };
            !self.is_barred(&self.footprint(between))
        })
    }

    /// Returns what shuttles claim for themselves.
    pub(crate) fn claims(&self) -> impl Iterator<Item = (u16, Span)> + '_ {
        let own = self.claims.iter().filter(|claim| !claim.for_others);
        own.map(|claim| (claim.shuttle, claim.span))
    }

    /// Asserts that no two holds of a lane overlap.
    pub(crate) fn check(&self) {
        for (lane, holds) in self.lanes.iter().enumerate() {
            for (index, (holder, from, to)) in holds.iter().enumerate() {
                for (other, other_from, other_to) in &holds[index + 1..] {
                    let apart = to <= other_from || other_to <= from;
                    let broken = *holder == Holder::Rail || *other == Holder::Rail;
                    assert!(apart || broken, "{holder:?} and {other:?} meet on lane {lane}");
                }
            }
        }
    }
}

/// Returns the shelf next to `from` on the way to `to`, if they differ.
fn next_shelf(from: ShelfIndex, to: ShelfIndex) -> Option<ShelfIndex> {
    let (from, to) = (from.get(), to.get());
    match from.cmp(&to) {
        std::cmp::Ordering::Less => Some(ShelfIndex::new(from + 1)),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(ShelfIndex::new(from - 1)),
    }
}

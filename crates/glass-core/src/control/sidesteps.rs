//! Finds the order in which shuttles step aside, so that a span of a lane becomes free.
//!
//! ```text
//!   w wants along lane 1         1. c goes down: the shuttle next to the hole moves first
//!   lane 2   [ b ][ c ]   .      2. b goes to the right
//!   lane 1   w--->[ a ]   .      3. a goes up
//! ```
//!
//! A search over sequences of steps, shortest first: a shuttle in the way takes one of its ways
//! out, after the shuttles in that way have moved, and so on, each from where the earlier steps
//! left the others. Only the first step is made; then the search runs again. As the rest of the
//! sequence is still possible, it finds a shorter one: every maneuver ends and never goes in a
//! circle.

use fulgurite_units::ShuttleIndex;

use crate::control::ShelfIndex;
use crate::control::fleet::{Fleet, Trip};
use crate::control::floor::{Floor, Position};
use crate::control::traffic::{Holder, Span};

/// One step of one shuttle, up, down or aside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sidestep {
    pub(crate) shuttle: ShuttleIndex,
    pub(crate) to: Position,
    /// The span it covers there.
    ends: Span,
    /// The span it needs to get there.
    pub(crate) needs: Span,
}

/// The shuttle for which a way is cleared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) shuttle: ShuttleIndex,
    pub(crate) rank: u64,
    /// The span it wants, which no other may step into.
    pub(crate) span: Span,
    /// Steps that may be made for it.
    pub(crate) steps: usize,
}

/// Shuttles examined before a search gives up. In 1,500 random runs none needed more than 30.
const EXPANSIONS_MAX: u32 = 1_000;

struct Search<'a> {
    floor: &'a Floor,
    fleet: &'a Fleet,
    order: Order,
    /// Positions of shuttles that have stepped aside; the last entry of each counts.
    moved: Vec<(ShuttleIndex, Position)>,
    steps: Vec<Sidestep>,
    depth_max: usize,
    expansions_left: u32,
    /// Whether more steps might have helped.
    is_cut_off: bool,
}

/// What is left to do, the last item first.
#[derive(Clone, Copy, Debug)]
enum Task {
    Leave(ShuttleIndex, Span),
    Step(Sidestep),
}

/// Returns the steps that get a shuttle out of a way, if there are any.
pub(crate) fn sidesteps(
    floor: &Floor,
    fleet: &Fleet,
    order: Order,
    index: ShuttleIndex,
) -> Option<Vec<Sidestep>> {
    let panel = floor.panel_of(index);
    let detours = fleet.indexed().filter_map(|(at, shuttle)| {
        let detour = shuttle.trip().and_then(Trip::detour);
        detour.filter(|to| to.panel == panel).map(|to| (at, to))
    });
    let moved = detours.collect();
    let (steps, expansions_left) = (Vec::new(), EXPANSIONS_MAX);
    let mut search = Search {
        floor,
        fleet,
        order,
        moved,
        steps,
        depth_max: 0,
        expansions_left,
        is_cut_off: false,
    };
    for depth_max in 1..=order.steps {
        (search.depth_max, search.is_cut_off) = (depth_max, false);
        if search.solve(&[Task::Leave(index, order.span)], 0) {
            return Some(search.steps);
        }
        if !search.is_cut_off {
            break;
        }
    }
    None
}

impl Search<'_> {
    /// Returns where a shuttle could go to leave a span of a lane, nearest first.
    fn ways_out(&self, shuttle: ShuttleIndex, at: Position, span: Span) -> Vec<Sidestep> {
        let shelf = at.shelf.get();
        let mut ways = Vec::with_capacity(4);
        let above = (shelf + 1 < self.floor.shape().shelves_per_panel).then_some(shelf + 1);
        for shelf in [above, shelf.checked_sub(1)].into_iter().flatten() {
            let to = Position { shelf: ShelfIndex::new(shelf), ..at };
            let ends = self.fleet.traffic().footprint(to);
            ways.push(Sidestep { shuttle, to, ends, needs: ends });
        }
        let mut aside: Vec<_> = self.fleet.traffic().beside(&span).into_iter().flatten().collect();
        aside.sort_unstable_by_key(|rail| rail.get().abs_diff(at.rail.get()));
        for rail in aside {
            let to = Position { rail, ..at };
            let (ends, needs) =
                (self.fleet.traffic().footprint(to), self.fleet.traffic().sweep(at, rail));
            ways.push(Sidestep { shuttle, to, ends, needs });
        }
        ways
    }

    /// Does the remaining tasks, of which `due` are steps.
    fn solve(&mut self, tasks: &[Task], due: usize) -> bool {
        let Some((task, rest)) = tasks.split_last() else { return true };
        match *task {
            Task::Step(step) => {
                let stays = |holder: &Holder| match holder {
                    Holder::Shuttle(index) => !self.leaves_unaided(ShuttleIndex::new(*index)),
                    Holder::Rail => true,
                };
                if self.inside(step.needs, step.shuttle).iter().any(stays) {
                    return false;
                }
                self.moved.push((step.shuttle, step.to));
                self.steps.push(step);
                let done = self.solve(rest, due - 1);
                if !done {
                    self.moved.pop();
                    self.steps.pop();
                }
                done
            }
            Task::Leave(index, span) => self.leave(index, span, rest, due),
        }
    }

    fn leave(&mut self, index: ShuttleIndex, span: Span, rest: &[Task], due: usize) -> bool {
        let at = self.position(index);
        if self.leaves_unaided(index) || !self.fleet.traffic().footprint(at).overlaps(&span) {
            return self.solve(rest, due);
        }
        let comes_later = |task: &Task| matches!(task, Task::Step(step) if step.shuttle == index);
        if !self.is_movable(index) || rest.iter().any(comes_later) || self.expansions_left == 0 {
            return false;
        }
        if self.steps.len() + due >= self.depth_max {
            self.is_cut_off = true;
            return false;
        }
        self.expansions_left -= 1;
        let mut ways: Vec<_> = self
            .ways_out(index, at, span)
            .into_iter()
            .filter(|way| self.is_open(way))
            .map(|way| (self.inside(way.needs, index), way))
            .collect();
        ways.sort_by_key(|(inside, _)| inside.len());
        ways.into_iter().any(|(inside, way)| {
            let mut tasks = rest.to_vec();
            tasks.push(Task::Step(way));
            for holder in inside {
                let Holder::Shuttle(next) = holder else { return false };
                tasks.push(Task::Leave(ShuttleIndex::new(next), way.needs));
            }
            self.solve(&tasks, due + 1)
        })
    }

    /// Whether broken machines and higher ranks leave a way out open.
    fn is_open(&self, way: &Sidestep) -> bool {
        let order = (self.order.rank, self.order.shuttle.get());
        let traffic = self.fleet.traffic();
        !way.ends.overlaps(&self.order.span)
            && !traffic.is_barred(&way.needs)
            && !traffic.is_claimed(&way.ends, way.shuttle.get(), order)
    }

    /// Whether a shuttle is working for itself and goes on when it is done.
    fn leaves_unaided(&self, index: ShuttleIndex) -> bool {
        let trip = self.fleet.get(index).trip();
        trip.is_some_and(|trip| trip.current().is_some() && trip.detour().is_none())
    }

    fn is_movable(&self, index: ShuttleIndex) -> bool {
        let shuttle = self.fleet.get(index);
        let order = (self.order.rank, self.order.shuttle.get());
        // A shuttle that only makes way has no rank of its own.
        let trip = shuttle.trip().filter(|trip| trip.has_purpose());
        let ranks_higher = trip.is_some_and(|trip| (trip.rank(), index.get()) > order);
        !shuttle.is_broken() && index != self.order.shuttle && !ranks_higher
    }

    fn position(&self, index: ShuttleIndex) -> Position {
        let moved = self.moved.iter().rfind(|(shuttle, _)| *shuttle == index);
        moved.map_or_else(|| self.fleet.get(index).position(), |(_, to)| *to)
    }

    /// Returns what holds a span after the steps so far.
    fn inside(&self, span: Span, requester: ShuttleIndex) -> Vec<Holder> {
        let has_moved = |holder: &Holder| {
            let mut moved = self.moved.iter();
            moved.any(|(shuttle, _)| *holder == Holder::Shuttle(shuttle.get()))
        };
        let traffic = self.fleet.traffic();
        let mut inside: Vec<_> =
            traffic.holders(span, requester.get()).filter(|holder| !has_moved(holder)).collect();
        for (shuttle, _) in &self.moved {
            let holder = Holder::Shuttle(shuttle.get());
            let there = traffic.footprint(self.position(*shuttle)).overlaps(&span);
            if *shuttle != requester && there && !inside.contains(&holder) {
                inside.push(holder);
            }
        }
        inside
    }
}

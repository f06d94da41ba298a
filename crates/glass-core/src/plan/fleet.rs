//! Assigns platters of a set to zones of several libraries: spread over libraries first, then over
//! zones.
//!
//! ```text
//! states of all libraries --spread--> platters for each library --search--> a zone for each
//!        ^                                   |
//!        '------ a library holds fewer ------'
//! ```
//!
//! 1. Libraries take platters in turn: the next one is always the one with the fewest of this set,
//!    and among those the one with the smallest share of used slots. So no library has two more of
//!    a set than another that could take one ("spread them out within and across libraries as much
//!    as possible", Silica section 6).
//! 2. Within a library, the zones are those with the smallest sum of costs that hold its platters,
//!    no two in one blast zone; a zone costs more the fuller it is. For one platter, or where a
//!    blast zone is one cell, these are the emptiest zones, found by sorting; otherwise the exact
//!    search finds them. A greedy choice of the emptiest zone would strand platters: badly chosen
//!    cells leave no room for as many as the library can hold.
//!
//! Cost: O(zones + platters log platters) where sorting is enough. The plan is a pure function of
//! its arguments; [`crate::plan::audit_fleet`] checks it.

use std::collections::BTreeSet;

use fulgurite_units::SlotIndex;

use crate::plan::place::{ZoneState, compare_used_share};
use crate::plan::reach::Reach;
use crate::plan::search::GridSearch;
use crate::plan::{BlastModel, Cell, Grid, LayoutError, LibraryIndex};

/// Steepness of a zone's cost: the number of doublings from empty to full. The bottleneck of a
/// small library is a zone that more sets need than it has slots for. Costs in proportion to the
/// used share fill it too early (45 instead of 50 % of seven racks are filled).
const COST_DOUBLINGS: u64 = 16;

/// One library as the planner sees it.
#[derive(Clone, Copy, Debug)]
pub struct LibraryState<'a> {
    /// Number of storage racks; the model has panels and shelves.
    pub racks: u16,
    /// Its zones, numbered as by [`Grid::zone`], in any order. Omitted zones take no platters.
    pub zones: &'a [ZoneState],
}

/// The place of a platter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetSlot {
    /// The library.
    pub library: LibraryIndex,
    /// The zone.
    pub zone: u32,
    /// The slot.
    pub slot: SlotIndex,
}

/// Chooses a slot for each of `platters` platters of one set. Consecutive platters in the result
/// are in different libraries if possible, so that information platters are spread too.
///
/// # Errors
/// [`LayoutError::TooFewPlaces`] when the libraries cannot take the platters, and errors for
/// invalid models and zones.
pub fn choose_fleet(
    model: &BlastModel,
    libraries: &[LibraryState<'_>],
    platters: usize,
) -> Result<Vec<FleetSlot>, LayoutError> {
    model.validate()?;
    let reach = Reach::new(model);
    let mut capacities = Vec::new();
    for (n, library) in libraries.iter().enumerate() {
        capacities.push(LibraryCapacity::new(
            model.grid(library.racks),
            &reach,
            library,
            LibraryIndex::new(n),
        )?);
    }
    // Every round but the last lowers the room of a library, at most once per library.
    loop {
        let quotas = spread(&capacities, platters)?;
        let mut plans = Vec::new();
        for (capacity, &quota) in capacities.iter_mut().zip(&quotas) {
            let plan = capacity.plan(&reach, quota);
            capacity.room = if plan.len() < quota { plan.len() } else { capacity.room };
            plans.push(plan);
        }
        if plans.iter().map(Vec::len).eq(quotas) {
            return Ok(interleave(&plans));
        }
    }
}

/// The capacity of one library for the set.
#[derive(Debug)]
struct LibraryCapacity<'a> {
    library: LibraryIndex,
    grid: Grid,
    /// Zones with a free slot that share no blast zone with an earlier platter of the set.
    usable: Vec<(&'a ZoneState, SlotIndex)>,
    /// Number of platters of the set that are here already.
    members: usize,
    /// Upper bound of the platters that it can take; lowered when a plan fails.
    room: usize,
    used: u64,
    total: u64,
}

impl<'a> LibraryCapacity<'a> {
    fn new(
        grid: Grid,
        reach: &Reach,
        library: &LibraryState<'a>,
        index: LibraryIndex,
    ) -> Result<Self, LayoutError> {
        let mut seen = vec![false; grid.cell_count() as usize];
        let mut members: Vec<Cell> = Vec::new();
        let (mut used, mut total) = (0, 0);
        for zone in library.zones {
            let known = seen.get_mut(zone.zone as usize);
            let is_first = known.is_some_and(|seen| !std::mem::replace(seen, true));
            let Some(cell) = grid.cell(zone.zone).filter(|_| is_first) else {
                let (zone, zones) = (zone.zone, grid.cell_count());
                return Err(LayoutError::BadZone { library: index, zone, zones });
            };
            members.extend(zone.holds_member.then_some(cell));
            used += u64::from(zone.total.saturating_sub(zone.free));
            total += u64::from(zone.total);
        }
        let is_usable = |zone: &&ZoneState| {
            let apart =
                |cell: Cell| members.iter().all(|&other| !reach.can_fail_together(cell, other));
            !zone.holds_member
                && zone.free > 0
                && (members.is_empty() || grid.cell(zone.zone).is_some_and(apart))
        };
        let usable: Vec<_> = library
            .zones
            .iter()
            .filter(is_usable)
            .filter_map(|zone| zone.next.map(|slot| (zone, slot)))
            .collect();
        let (members, room) = (members.len(), usable.len());
        Ok(Self { library: index, grid, usable, members, room, used, total })
    }

    /// Plans slots for `platters` platters, or fewer when that many do not fit.
    fn plan(&self, reach: &Reach, platters: usize) -> Vec<FleetSlot> {
        let place = |&(zone, slot): &(&ZoneState, SlotIndex)| FleetSlot {
            library: self.library,
            zone: zone.zone,
            slot,
        };
        if platters == 1 {
            let first = self.usable.iter().min_by(|(a, _), (b, _)| compare_used_share(a, b));
            return first.map(place).into_iter().collect();
        }
        if reach.is_empty() || platters == 0 {
            let mut usable = self.usable.clone();
            usable.sort_unstable_by(|(a, _), (b, _)| compare_used_share(a, b));
            return usable.iter().take(platters).map(place).collect();
        }
        let mut costs = vec![None; self.grid.cell_count() as usize];
        let mut slots = vec![None; costs.len()];
        for entry in &self.usable {
            let zone = entry.0.zone as usize;
            costs[zone] = Some(cost(entry.0));
            slots[zone] = Some(place(entry));
        }
        let search = GridSearch::new(reach, self.grid, &costs, platters);
        let cells = search.cells(search.largest().min(platters));
        cells.iter().filter_map(|&cell| slots[self.grid.zone(cell)? as usize]).collect()
    }
}

/// Returns how many platters each library takes: next is the one with the fewest of the set, among
/// equals the emptiest.
fn spread(capacities: &[LibraryCapacity<'_>], platters: usize) -> Result<Vec<usize>, LayoutError> {
    let mut quotas = vec![0; capacities.len()];
    let places: usize = capacities.iter().map(|capacity| capacity.room).sum();
    if places < platters {
        let libraries = capacities.iter().filter(|capacity| capacity.room > 0).count();
        let missing = platters - places;
        return Err(LayoutError::TooFewPlaces { platters, places, libraries, missing });
    }
    // The order by share does not change while a set is placed, so a rank replaces it.
    let mut order: Vec<usize> = (0..capacities.len()).filter(|&n| capacities[n].room > 0).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&capacities[a], &capacities[b]);
        let left = u128::from(a.used) * u128::from(b.total);
        left.cmp(&(u128::from(b.used) * u128::from(a.total))).then(a.library.cmp(&b.library))
    });
    let entries = order.iter().enumerate().map(|(rank, &n)| (capacities[n].members, rank, n));
    let mut queue: BTreeSet<(usize, usize, usize)> = entries.collect();
    for _ in 0..platters {
        let Some((members, rank, n)) = queue.pop_first() else { break };
        quotas[n] += 1;
        if quotas[n] < capacities[n].room {
            queue.insert((members + 1, rank, n));
        }
    }
    assert_eq!(quotas.iter().sum::<usize>(), platters, "there is room for every platter");
    Ok(quotas)
}

/// Returns the first slot of each library, then the second of each, and so on.
fn interleave(plans: &[Vec<FleetSlot>]) -> Vec<FleetSlot> {
    let rounds = plans.iter().map(Vec::len).max().unwrap_or(0);
    (0..rounds)
        .flat_map(|round| plans.iter().filter_map(move |plan| plan.get(round)))
        .copied()
        .collect()
}

/// Returns the cost of a platter in a zone: two to the power of [`COST_DOUBLINGS`] times its used
/// share.
fn cost(zone: &ZoneState) -> u64 {
    let used = u64::from(zone.total.saturating_sub(zone.free));
    let power = ((used * COST_DOUBLINGS) << 16) / u64::from(zone.total).max(1);
    // Linear interpolation between powers of two is accurate enough.
    (65_536 + (power & 0xFFFF)) << (power >> 16)
}

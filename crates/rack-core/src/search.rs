//! Searches for groups where no construction fits. Places are exchanged between groups until no
//! domain has to supply too many disks (simulated annealing from a fixed seed, so that a shape
//! always gives the same groups).
//!
//! It may miss an existing solution. It cannot return a wrong one, because its result is checked
//! independently.

use fulgurite_units::{RandomStream, Seed};

use crate::PlaceId;
use crate::limits::{SEARCH_STEPS_MAX, SEARCH_STEPS_PER_PLACE};
use crate::shape::{Domain, Shape, Shared};
use crate::usage::Groups;

/// Weight of an excess disk in a domain, relative to one in a unit that groups are spread over.
const DOMAIN_WEIGHT: i64 = 4;
/// Temperature at the start and at the end: a move that costs one more is accepted with probability
/// exp(-1 / temperature).
const TEMPERATURE: (f64, f64) = (1.5, 0.05);

struct Search<'a> {
    domains: &'a [&'a Domain],
    spread: Option<(&'a Shared, u32)>,
    /// Groups of each class.
    classes: Vec<Vec<usize>>,
    /// The group of each place of the part.
    group_of: Vec<usize>,
    /// Number of disks, by kind of domain, then domain, then group.
    used: Vec<Vec<Vec<u32>>>,
    /// Number of disks, by unit, then group.
    spread_used: Vec<Vec<u32>>,
}

/// Returns the classes with the fewest excess disks that were found.
pub(crate) fn search(
    shape: &Shape,
    domains: &[&Domain],
    places: &[PlaceId],
    classes: usize,
) -> Vec<Groups> {
    let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
    let steps = count.saturating_mul(SEARCH_STEPS_PER_PLACE).min(SEARCH_STEPS_MAX);
    let mut search = Search::new(shape, domains, places, classes);
    let mut random = Seed::new(0).child(b"groups of a rack").stream();
    let (mut cost, mut best_cost) = (search.total_cost(), i64::MAX);
    let mut best = search.group_of.clone();
    for step in 0..steps {
        if cost < best_cost {
            best_cost = cost;
            best.clone_from(&search.group_of);
        }
        if best_cost == 0 || places.len() < 2 {
            break;
        }
        let progress = f64::from(step) / f64::from(steps);
        let temperature = TEMPERATURE.0 + (TEMPERATURE.1 - TEMPERATURE.0) * progress;
        cost += search.try_exchange(places, temperature, &mut random);
    }
    search.group_of = best;
    search.to_groups(places)
}

impl<'a> Search<'a> {
    fn new(
        shape: &'a Shape,
        domains: &'a [&'a Domain],
        places: &[PlaceId],
        class_count: usize,
    ) -> Self {
        let groups = places.len() / shape.group_size() as usize;
        let mut classes = vec![Vec::new(); class_count];
        (0..groups).for_each(|group| classes[group * class_count / groups].push(group));
        // Round-robin, so that neighbors, which share the most, begin in different groups.
        let group_of: Vec<usize> = (0..places.len()).map(|place| place % groups).collect();
        let count = |shared: &Shared| {
            let mut used = vec![vec![0; groups]; shared.count()];
            for (place, group) in places.iter().zip(&group_of) {
                used[shared.index_of(*place) as usize][*group] += 1;
            }
            used
        };
        let used = domains.iter().map(|domain| count(&domain.shared)).collect();
        let spread_used = shape.spread().map_or_else(Vec::new, count);
        let spread = shape.spread().map(|unit| {
            let lies_in = spread_used.iter().filter(|used| used.iter().any(|used| *used > 0));
            let units = u32::try_from(lies_in.count()).unwrap_or(u32::MAX);
            (unit, shape.group_size().div_ceil(units.max(1)))
        });
        Self { domains, spread, classes, group_of, used, spread_used }
    }

    fn to_groups(&self, places: &[PlaceId]) -> Vec<Groups> {
        let of = |group: &usize| {
            let places = places.iter().zip(&self.group_of);
            places.filter(|(_, of)| *of == group).map(|(place, _)| *place).collect()
        };
        self.classes.iter().map(|groups| groups.iter().map(of).collect()).collect()
    }

    fn domain_cost(&self, kind: usize, domain: usize) -> i64 {
        let used = &self.used[kind][domain];
        let most = |groups: &Vec<usize>| groups.iter().map(|group| used[*group]).max().unwrap_or(0);
        let sum: u32 = self.classes.iter().map(most).sum();
        DOMAIN_WEIGHT * i64::from(sum.saturating_sub(self.domains[kind].capacity))
    }

    fn spread_cost(&self, unit: usize, group: usize) -> i64 {
        let even = self.spread.map_or(u32::MAX, |(_, even)| even);
        i64::from(self.spread_used[unit][group].saturating_sub(even))
    }

    fn total_cost(&self) -> i64 {
        let domains = self.used.iter().enumerate().flat_map(|(kind, domains)| {
            (0..domains.len()).map(move |domain| self.domain_cost(kind, domain))
        });
        let spread = self.spread_used.iter().enumerate().flat_map(|(unit, groups)| {
            (0..groups.len()).map(move |group| self.spread_cost(unit, group))
        });
        domains.chain(spread).sum()
    }

    /// Returns the part of the cost that an exchange of two places can change.
    fn cost_at(&self, places: [PlaceId; 2], groups: [usize; 2]) -> i64 {
        let mut cost = 0;
        for (kind, domain) in self.domains.iter().enumerate() {
            let at = places.map(|place| domain.shared.index_of(place) as usize);
            if at[0] != at[1] {
                cost += at.iter().map(|at| self.domain_cost(kind, *at)).sum::<i64>();
            }
        }
        if let Some((unit, _)) = self.spread {
            let at = places.map(|place| unit.index_of(place) as usize);
            if at[0] != at[1] {
                let each = at.iter().flat_map(|at| groups.map(|group| (*at, group)));
                cost += each.map(|(unit, group)| self.spread_cost(unit, group)).sum::<i64>();
            }
        }
        cost
    }

    /// Exchanges two places between their groups, if the move is accepted. Returns by how much the
    /// cost grew.
    fn try_exchange(
        &mut self,
        places: &[PlaceId],
        temperature: f64,
        random: &mut RandomStream,
    ) -> i64 {
        let mut draw = || usize::try_from(random.below(places.len() as u64)).unwrap_or(0);
        let at = [draw(), draw()];
        let groups = at.map(|at| self.group_of[at]);
        if groups[0] == groups[1] {
            return 0;
        }
        let pair = at.map(|at| places[at]);
        let before = self.cost_at(pair, groups);
        self.exchange(pair, groups);
        let increase = self.cost_at(pair, groups) - before;
        #[expect(clippy::cast_precision_loss, reason = "costs are small")]
        let is_accepted = increase <= 0 || random.unit() < (-(increase as f64) / temperature).exp();
        if is_accepted {
            self.group_of.swap(at[0], at[1]);
            return increase;
        }
        self.exchange(pair, [groups[1], groups[0]]);
        0
    }

    fn exchange(&mut self, places: [PlaceId; 2], groups: [usize; 2]) {
        let shared = self.domains.iter().map(|domain| &domain.shared).zip(&mut self.used);
        let spread = self.spread.map(|(unit, _)| (unit, &mut self.spread_used));
        for (shared, used) in shared.chain(spread) {
            let at = places.map(|place| shared.index_of(place) as usize);
            used[at[0]][groups[0]] -= 1;
            used[at[0]][groups[1]] += 1;
            used[at[1]][groups[1]] -= 1;
            used[at[1]][groups[0]] += 1;
        }
    }
}

//! The writes that several sites receive, when and where.

use fulgurite_units::{Duration, Instant, Seed};

use super::scenario::Scenario;
use crate::workload::Draws;

/// Updates of one object within this time count as concurrent (section 2.2).
const CONCURRENT_S: f64 = 1.0;

/// A write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival {
    /// When it arrives.
    pub at: Instant,
    /// The object.
    pub key: u64,
    /// The site of the node that receives it.
    pub node_site: u8,
}

/// Returns all writes, in the order of time. Back-to-back clients all start at time zero.
pub(super) fn arrivals(scenario: &Scenario, seed: &Seed) -> Vec<Arrival> {
    let workload = &scenario.workload;
    if workload.back_to_back > 0 {
        let client = |_| Arrival { at: Instant::ZERO, key: 0, node_site: workload.from[0] };
        return (0..workload.back_to_back.min(workload.objects)).map(client).collect();
    }
    let mut draws = Draws::new(seed, b"arrivals");
    let up: Vec<u8> =
        scenario.voters().into_iter().filter(|at| !scenario.down.contains(at)).collect();
    let mut all = Vec::new();
    for key in 0..u64::from(workload.objects) {
        let at = Instant::ZERO + Duration::from_nanos(key * workload.every.as_nanos());
        let node_site = pick(&workload.from, key);
        all.push(Arrival { at, key, node_site });
        if draws.unit() >= workload.concurrent {
            continue;
        }
        let others: Vec<u8> = up.iter().copied().filter(|site| *site != node_site).collect();
        let other = draws.below(others.len().max(1) as u64);
        let Some(node_site) = usize::try_from(other).ok().and_then(|at| others.get(at)) else {
            continue;
        };
        let at = at + Duration::from_secs_f64(draws.unit() * CONCURRENT_S);
        all.push(Arrival { at, key, node_site: *node_site });
    }
    all.sort_unstable();
    all
}

/// Picks one of some sites, round robin.
pub(super) fn pick(sites: &[u8], turn: u64) -> u8 {
    let place = usize::try_from(turn % sites.len().max(1) as u64).unwrap_or(0);
    sites.get(place).copied().unwrap_or(0)
}

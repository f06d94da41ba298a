//! How much of each domain some classes can take, for the solver while it searches groups.
//!
//! Not the proof, which counts by itself ([`crate::check()`]).

use crate::PlaceId;
use crate::shape::{Domain, Shape};

/// The groups of one class, as lists of places.
pub(crate) type Groups = Vec<Vec<PlaceId>>;

/// Returns the resource that the classes can exceed the most, and by how much.
pub(crate) fn worst(domains: &[&Domain], classes: &[Groups]) -> Option<(String, u32)> {
    let excess = domains.iter().filter_map(|domain| {
        let excess = excess(domain, classes);
        (excess > 0).then(|| (domain.shared.name.clone(), excess))
    });
    excess.max_by_key(|(_, excess)| *excess)
}

fn excess(domain: &Domain, classes: &[Groups]) -> u32 {
    let mut sums = vec![0u32; domain.shared.count()];
    for groups in classes {
        let mut most = vec![0u32; domain.shared.count()];
        for places in groups {
            let mut counts = vec![0u32; domain.shared.count()];
            for place in places {
                counts[domain.shared.index_of(*place) as usize] += 1;
            }
            most.iter_mut().zip(counts).for_each(|(most, count)| *most = count.max(*most));
        }
        sums.iter_mut().zip(most).for_each(|(sum, most)| *sum += most);
    }
    sums.into_iter().map(|sum| sum.saturating_sub(domain.capacity)).sum()
}

/// Returns the maximum number of disks of one group in one of the units that groups are spread
/// over.
pub(crate) fn max_per_unit(shape: &Shape, classes: &[Groups]) -> u32 {
    let Some(unit) = shape.spread() else { return 0 };
    let most = classes.iter().flatten().map(|places| {
        let mut counts = vec![0u32; unit.count()];
        places.iter().for_each(|place| counts[unit.index_of(*place) as usize] += 1);
        counts.into_iter().max().unwrap_or(0)
    });
    most.max().unwrap_or(0)
}

//! Redundancy platters to libraries at other sites.

/// Says of each of a set's redundancy platters which far library it goes to, if any: the last
/// `away` of them, each to the library that has the fewest of this set, of those to the one that
/// holds the fewest of all. Those that are `placed` keep their place. `held` has how many each
/// library holds.
///
/// So a far library gets at most one platter of a set more than any other, and so many fail at once
/// when its site is lost. Those that stay are the first ones, which a recovery reads first.
#[must_use]
pub fn choose_far(placed: &[Option<usize>], away: usize, held: &[u64]) -> Vec<Option<usize>> {
    let mut of_set = vec![0_u64; held.len()];
    placed.iter().flatten().filter(|at| **at < held.len()).for_each(|&at| of_set[at] += 1);
    let had = of_set.clone();
    let stay = placed.len().saturating_sub(away);
    let mut places = placed.to_vec();
    for place in places[stay..].iter_mut().filter(|place| place.is_none()) {
        let new = |at: usize| of_set[at] - had[at];
        *place = (0..held.len()).min_by_key(|&at| (of_set[at], held[at] + new(at)));
        if let Some(at) = *place {
            of_set[at] += 1;
        }
    }
    places
}

//! Assigns redundancy platters to libraries at other sites.

/// Returns for each of a set's redundancy platters the remote library it goes to, if any. The last
/// `away` of them go to remote libraries: each to the library with the fewest platters of this set,
/// and among those to the one with the fewest in total. Platters that are already `placed` stay
/// where they are. `held` has the number of platters in each library.
///
/// So a remote library gets at most one platter of a set more than any other, which bounds how many
/// are lost with its site. The platters that stay are the first ones, which a recovery reads first.
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

//! Assigns redundancy platters to libraries at other sites.

/// Returns for each of a set's redundancy platters the remote library it goes to, if any. The last
/// `away` of them go to remote libraries: each to the library with the fewest platters of this set,
/// and among those to the one with the fewest in total. Platters that are already `placed` stay
/// where they are. `counts` has the number of platters in each library.
///
/// So a remote library gets at most one platter of a set more than any other, which bounds how many
/// are lost with its site. The platters that stay are the first ones, which a recovery reads first.
#[must_use]
pub fn choose_far(placed: &[Option<usize>], away: usize, counts: &[u64]) -> Vec<Option<usize>> {
    let mut per_library = vec![0_u64; counts.len()];
    placed.iter().flatten().filter(|at| **at < counts.len()).for_each(|&at| per_library[at] += 1);
    let initial = per_library.clone();
    let stay_count = placed.len().saturating_sub(away);
    let mut places = placed.to_vec();
    for place in places[stay_count..].iter_mut().filter(|place| place.is_none()) {
        let new = |at: usize| per_library[at] - initial[at];
        *place = (0..counts.len()).min_by_key(|&at| (per_library[at], counts[at] + new(at)));
        if let Some(at) = *place {
            per_library[at] += 1;
        }
    }
    places
}

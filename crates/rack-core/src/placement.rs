//! Chooses the disks of a group for a blob's stacks.
//!
//! Each set (disks of the group that fail together, such as those of one chassis) gets the same
//! number of stacks, on the disks with the most free space: three on each of Pelican's six sets of
//! four disks, so that one chassis never holds more than may be lost (section 2.2.2). If a set has
//! too few disks left, the disks with the most free space elsewhere are used, and the blob is
//! marked. Not here: which group; that is drawn, or chosen by what is read together.

use fulgurite_units::ByteCount;

use crate::{Code, PlaceId};

/// Where the stacks of a blob go, in order of index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The disks, one per stack.
    pub places: Vec<PlaceId>,
    /// Whether enough stacks are left when all disks of any one set are lost. If not, the blob is
    /// to be placed again when the set is complete.
    pub is_set_tolerant: bool,
}

/// Chooses disks for a blob with stacks of `stack` bytes. `free` is the free space of a disk, none
/// if it must not be written.
///
/// Returns none when fewer disks have the space than a blob has stacks.
pub fn place(
    sets: &[Vec<PlaceId>],
    code: Code,
    stack: ByteCount,
    free: impl Fn(PlaceId) -> Option<ByteCount>,
) -> Option<Placement> {
    let width = code.width() as usize;
    let mut ranked: Vec<Vec<(ByteCount, PlaceId)>> = sets
        .iter()
        .map(|set| {
            let room = |place: &PlaceId| free(*place).map(|free| (free, *place));
            let mut disks: Vec<_> =
                set.iter().filter_map(room).filter(|of| of.0 >= stack).collect();
            disks.sort_unstable_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
            disks
        })
        .collect();
    let per_set = width / sets.len().max(1);
    let mut chosen = vec![0; sets.len()];
    let mut places = Vec::with_capacity(width);
    for (set, disks) in ranked.iter_mut().enumerate() {
        chosen[set] = per_set.min(disks.len());
        places.extend(disks.drain(..chosen[set]).map(|(_, place)| place));
    }
    // The remainder goes to each set at most once, and what is still missing anywhere.
    for most in [per_set + 1, usize::MAX] {
        while places.len() < width {
            let open = (0..sets.len()).filter(|set| chosen[*set] < most);
            let open = open.filter_map(|set| Some((ranked[set].first()?, set)));
            let best = open.max_by_key(|((free, place), _)| (*free, std::cmp::Reverse(*place)));
            let Some((_, set)) = best else { break };
            places.push(ranked[set].remove(0).1);
            chosen[set] += 1;
        }
    }
    let redundancy = code.redundancy as usize;
    let is_set_tolerant = chosen.iter().all(|count| *count <= redundancy);
    (places.len() == width).then_some(Placement { places, is_set_tolerant })
}

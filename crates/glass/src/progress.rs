//! How many bytes of tracks a seal will write, for its progress.

use fulgurite_platter::Geometry;

/// Returns the bytes of all tracks of a platter that holds this many user bytes.
#[must_use]
pub(crate) fn platter_bytes(geometry: &Geometry, user_bytes: u64) -> u64 {
    let tracks = geometry.map(geometry.tracks_for(user_bytes)).tracks();
    u64::from(tracks) * geometry.track_image_bytes() as u64
}

/// Estimates the bytes of tracks of sets that hold this many user bytes: platters are filled one
/// after the other, and a redundancy platter is as long as the longest of its set. File lists are
/// left out.
#[must_use]
pub(crate) fn sets_bytes(geometry: &Geometry, user_bytes: u64) -> u64 {
    let (platter, set) = (geometry.platter_user_bytes(), geometry.set_user_bytes());
    let full = platter_bytes(geometry, platter);
    let redundancy = u64::from(geometry.set_redundancy_platters);
    let sets =
        user_bytes / set * (u64::from(geometry.set_information_platters) + redundancy) * full;
    let rest = user_bytes % set;
    if rest == 0 {
        return sets;
    }
    let part = rest % platter;
    let last = if part == 0 { 0 } else { platter_bytes(geometry, part) };
    let longest = if rest >= platter { full } else { last };
    sets + rest / platter * full + last + redundancy * longest
}

#[cfg(test)]
mod tests;

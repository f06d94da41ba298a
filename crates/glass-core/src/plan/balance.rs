//! Distributes the bytes of one body over platters with different room.

/// A number of bytes on one platter: room for them, or a shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) position: usize,
    pub(crate) length: u64,
}

/// Distributes `left` bytes over platters with these rooms: evenly in whole tracks, all of the room
/// of a platter that has less, and the remainder to the last. Platters that get nothing are left
/// out.
pub(crate) fn balance(mut pieces: Vec<Piece>, mut left: u64, track_bytes: u64) -> Vec<Piece> {
    // The least room first, so that all others share what does not fit there.
    pieces.sort_unstable_by_key(|room| (room.length, room.position));
    let mut later_room: u64 = pieces.iter().map(|room| room.length).sum();
    let mut count = pieces.len() as u64;
    for piece in &mut pieces {
        later_room -= piece.length;
        let share = (left / track_bytes).div_ceil(count).max(1) * track_bytes;
        let needed = left.saturating_sub(later_room).next_multiple_of(track_bytes);
        piece.length = share.max(needed).min(piece.length).min(left);
        left -= piece.length;
        count -= 1;
    }
    pieces.retain(|piece| piece.length > 0);
    pieces
}

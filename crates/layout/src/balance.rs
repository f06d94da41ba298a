//! Sharing the bytes of one body out to platters with different room.

/// A number of bytes on one platter: room for them, or a shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) position: usize,
    pub(crate) length: u64,
}

/// Shares `left` bytes out to platters with these rooms: as evenly as whole tracks go, all of the
/// room where that is less, and whatever is over to the last. What has no room is left out.
pub(crate) fn balance(mut rooms: Vec<Piece>, mut left: u64, track_bytes: u64) -> Vec<Piece> {
    // The least room first, so that what it cannot take is shared by all others.
    rooms.sort_unstable_by_key(|room| (room.length, room.position));
    let mut behind: u64 = rooms.iter().map(|room| room.length).sum();
    let mut count = rooms.len() as u64;
    for piece in &mut rooms {
        behind -= piece.length;
        let share = (left / track_bytes).div_ceil(count).max(1) * track_bytes;
        let needed = left.saturating_sub(behind).next_multiple_of(track_bytes);
        piece.length = share.max(needed).min(piece.length).min(left);
        left -= piece.length;
        count -= 1;
    }
    rooms.retain(|piece| piece.length > 0);
    rooms
}

//! Corrects one flipped bit by trying each. This is the most frequent damage of disks and memory,
//! and the only one that can be repaired without a second copy. A checksum of 64 bits or more
//! identifies the bit; the chance that another bit also matches is the number of bits over 2^64.

/// Maximum number of bytes in which a flipped bit is searched. Each bit costs a checksum of all of
/// them: the square of this, times eight, takes ten seconds at some GB/s.
const BYTES_MAX: usize = 64 << 10;

/// Returns `bytes` with one bit changed so that `is_whole` accepts them; none if no bit does.
pub(super) fn correct_bit_flip(bytes: &[u8], is_whole: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    if bytes.len() > BYTES_MAX {
        return None;
    }
    let mut copy = bytes.to_vec();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            copy[at] ^= 1 << bit;
            if is_whole(&copy) {
                return Some(copy);
            }
            copy[at] ^= 1 << bit;
        }
    }
    None
}

//! One flipped bit, found by trying each: the damage that disks and memory do most, and the only
//! one whose mending needs no second copy. A checksum of 64 bits or more says which bit it was; the
//! chance that another one fits as well is the count of bits over 2^64.

/// Most bytes among which a flipped bit is looked for. Each bit costs a checksum of all of them:
/// the square of this, eight times, at some GB/s is ten seconds.
const BYTES_MAX: usize = 64 << 10;

/// `bytes` with one bit changed so that they are whole; none if no bit does it.
pub(super) fn flip_back(bytes: &[u8], is_whole: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
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

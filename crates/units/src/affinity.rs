//! Affinity groups: a hint from the writer about what is likely to be read together.
//!
//! A store whose disks spin down may put one group where a single disk has to spin up. The number
//! says nothing about what it was derived from, and nobody stores it. Not here: what a store does
//! with it.

/// An affinity group. Two unrelated groups may share a number, which costs a spin-up and nothing
/// else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AffinityGroup(u64);

impl AffinityGroup {
    /// Creates a group from a number that the caller chose.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the group of a key in a bucket: keys that are equal up to the last slash share one.
    #[must_use]
    pub fn of_key(bucket: &str, key: &str) -> Self {
        let folder = key.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut hash = blake3::Hasher::new();
        // Bucket names have no slash.
        for part in [bucket, "/", folder] {
            hash.update(part.as_bytes());
        }
        let mut number = [0; 8];
        hash.finalize_xof().fill(&mut number);
        Self(u64::from_le_bytes(number))
    }
}

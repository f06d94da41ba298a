//! What belongs together, as whoever writes it says.
//!
//! Things of one kin are likely read together, so a store whose disks sleep may put them where one
//! of them has to wake. It is a hint: a number that says nothing of what it was made of, and that
//! nobody keeps. Not here: what is done with it.

/// What belongs together. Two that have nothing to do with each other may have the same number,
/// which costs a wake and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kin(u64);

impl Kin {
    /// One by a number of the caller's.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The kin of a key in a bucket: all whose keys are the same up to the last slash.
    #[must_use]
    pub fn of_key(bucket: &str, key: &str) -> Self {
        let folder = key.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut hash = blake3::Hasher::new();
        // A name of a bucket has no slash.
        for part in [bucket, "/", folder] {
            hash.update(part.as_bytes());
        }
        let mut number = [0; 8];
        hash.finalize_xof().fill(&mut number);
        Self(u64::from_le_bytes(number))
    }
}

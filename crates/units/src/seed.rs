//! Seeds and child random streams: every random choice of a simulation follows from one number.
//!
//! A child is named by a label, so adding a component never shifts the draws of another.

use std::fmt;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// The root, or any child, of a tree of random streams.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed([u8; 32]);

impl Seed {
    /// Creates the root seed with this number, as printed by a failing run.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self(blake3::derive_key("fulgurite seed v1", &number.to_le_bytes()))
    }

    /// Derives the child seed with this label.
    #[must_use]
    pub fn child(&self, label: &[u8]) -> Self {
        Self(*blake3::keyed_hash(&self.0, label).as_bytes())
    }

    /// Returns the stream of this seed, from its start.
    #[must_use]
    pub fn stream(&self) -> RandomStream {
        RandomStream(ChaCha8Rng::from_seed(self.0))
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = u64::from_le_bytes(std::array::from_fn(|i| self.0[i]));
        write!(f, "Seed({head:016x}..)")
    }
}

/// A repeatable stream of random values (`ChaCha8`).
#[derive(Clone, Debug)]
pub struct RandomStream(ChaCha8Rng);

impl RandomStream {
    /// Returns 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniform integer below `bound` (Lemire's multiply-shift; its bias is below 2^-32
    /// for bounds of 32 bits).
    ///
    /// # Panics
    /// When `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "bound must be positive");
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(bound - 1)
    }

    /// Returns a uniform number in [0, 1) with 53 bits.
    pub fn unit(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
        let bits = (self.next_u64() >> 11) as f64;
        bits / (1u64 << 53) as f64
    }

    /// Fills `buffer` with uniform bytes.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        self.0.fill_bytes(buffer);
    }
}

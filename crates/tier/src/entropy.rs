//! Random bytes, which are injected: nothing in a tier draws entropy by itself.

use std::fmt;
use std::sync::Arc;

/// Draws 16 unpredictable bytes: for ids, seeds, tags and the length of backoffs. No value may
/// repeat.
#[derive(Clone)]
pub struct Entropy(Arc<dyn Fn() -> [u8; 16] + Send + Sync>);

impl Entropy {
    /// Wraps a source of random bytes.
    #[must_use]
    pub fn new(draw: impl Fn() -> [u8; 16] + Send + Sync + 'static) -> Self {
        Self(Arc::new(draw))
    }

    /// Draws 16 bytes.
    #[must_use]
    pub fn draw(&self) -> [u8; 16] {
        (self.0)()
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}

//! Random bytes and rests, which are handed in: nothing here draws entropy or reads a clock.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

/// Draws 16 bytes that nobody can guess: tags are made of them, and the length of rests.
#[derive(Clone)]
pub struct Entropy(Arc<dyn Fn() -> [u8; 16] + Send + Sync>);

impl Entropy {
    /// What draws them. No value may come twice in the life of a table.
    #[must_use]
    pub fn new(draw: impl Fn() -> [u8; 16] + Send + Sync + 'static) -> Self {
        Self(Arc::new(draw))
    }

    /// Draws.
    #[must_use]
    pub fn draw(&self) -> [u8; 16] {
        (self.0)()
    }
}

impl std::fmt::Debug for Entropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Entropy")
    }
}

/// What lets time pass between two tries.
#[async_trait]
pub trait Rests: Send + Sync {
    /// Rests for a time between nothing and `at_most`, another each time, so that those who met
    /// once do not meet again.
    async fn rest(&self, at_most: Duration);
}

/// Rests by the runtime's clock.
#[derive(Clone, Debug)]
pub struct RuntimeRests {
    entropy: Entropy,
}

impl RuntimeRests {
    /// Rests whose lengths are drawn from `entropy`.
    #[must_use]
    pub const fn new(entropy: Entropy) -> Self {
        Self { entropy }
    }
}

#[async_trait]
impl Rests for RuntimeRests {
    async fn rest(&self, at_most: Duration) {
        let [a, b, c, d, ..] = self.entropy.draw();
        let share = f64::from(u32::from_le_bytes([a, b, c, d])) / f64::from(u32::MAX);
        tokio::time::sleep(at_most.mul_f64(share)).await;
    }
}

/// Goes on at once, for tests and simulations that have no time.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRests;

#[async_trait]
impl Rests for NoRests {
    async fn rest(&self, _: Duration) {
        tokio::task::yield_now().await;
    }
}

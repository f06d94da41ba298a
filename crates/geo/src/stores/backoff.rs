//! Backoff between two tries, which is injected: nothing here reads a clock.

use std::time::Duration;

use async_trait::async_trait;
use fulgurite_tier::Entropy;

/// Waits between two tries (backoff).
#[async_trait]
pub trait Backoff: Send + Sync {
    /// Waits for a random time up to `max_wait`. The jitter keeps writers that collided once from
    /// colliding again.
    async fn wait(&self, max_wait: Duration);
}

/// Backoff by the runtime's clock.
#[derive(Clone, Debug)]
pub struct RuntimeBackoff {
    entropy: Entropy,
}

impl RuntimeBackoff {
    /// Creates a backoff whose lengths are drawn from `entropy`.
    #[must_use]
    pub const fn new(entropy: Entropy) -> Self {
        Self { entropy }
    }
}

#[async_trait]
impl Backoff for RuntimeBackoff {
    async fn wait(&self, max_wait: Duration) {
        let [a, b, c, d, ..] = self.entropy.draw();
        let share = f64::from(u32::from_le_bytes([a, b, c, d])) / f64::from(u32::MAX);
        tokio::time::sleep(max_wait.mul_f64(share)).await;
    }
}

/// Does not wait, for tests and simulations without time.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBackoff;

#[async_trait]
impl Backoff for NoBackoff {
    async fn wait(&self, _: Duration) {
        tokio::task::yield_now().await;
    }
}

//! How every command of `fulgurite` speaks: results, colors, progress and exit codes.

pub mod exit;
pub mod output;
pub mod progress;
pub mod style;

use std::pin::Pin;

/// A command that waits, or a step of one. It is boxed because an `async fn` is compiled where it
/// is awaited: so it is compiled in its own crate, once, and not again in each that calls it.
pub type Work<'a, T = ()> = Pin<Box<dyn Future<Output = anyhow::Result<T>> + 'a>>;

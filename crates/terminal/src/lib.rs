//! The terminal interface of every `fulgurite` command: results, colors, progress and exit codes.

pub mod exit;
pub mod output;
pub mod progress;
pub mod style;

use std::pin::Pin;

/// An async command, or a step of one. Boxed because an `async fn` is compiled where it is awaited:
/// boxed, it is compiled once, in its own crate, and not again in each crate that calls it.
pub type CommandFuture<'a, T = ()> = Pin<Box<dyn Future<Output = anyhow::Result<T>> + 'a>>;

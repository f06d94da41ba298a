//! How every command of `fulgurite` speaks: results, colors, progress and exit codes.

pub mod exit;
pub mod output;
pub mod progress;
pub mod style;

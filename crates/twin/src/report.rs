//! The report: one HTML file with everything in it, for people.
//!
//! ```text
//! experiment::Report --figure--> SVG --.
//! Head (what, commit, machine) --------+--> one file: no network, no script, light and dark
//! ```
//!
//! What the paper states stands beside what the twin measured, hits and misses alike; a value that
//! was fitted says so. Only points that the paper's text states are drawn: its figures are images.

mod canvas;
mod draw;
mod page;
mod scale;
mod style;

pub use draw::figure;
pub use page::{Head, html};

#[cfg(test)]
mod tests;

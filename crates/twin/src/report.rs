//! Reports: one self-contained HTML file, for people.
//!
//! ```text
//! experiment::Report --figure--> SVG --.
//! Head (what, commit, machine) --------+--> one file: no network, no script, light and dark
//! SweepResult, Course ---------> SVG --|
//! Facts (scenario, seeds, version) ----'
//! ```
//!
//! What the paper states is shown next to what the twin measured, hits and misses alike; fitted
//! values are marked. Only points stated in the paper's text are drawn: its figures are images.

mod canvas;
mod course;
mod draw;
mod page;
mod parts;
mod relation;
mod scale;
mod style;
mod sweep;

pub(crate) use course::lasting;
pub use course::{ResultRow, run_page};
pub use draw::figure;
pub use page::{Head, html};
pub use parts::Facts;
pub use relation::{in_words, relation};
pub use scale::number;
pub use sweep::{sweep_page, with_range};

#[cfg(test)]
mod tests;

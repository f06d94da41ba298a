//! Reports: one self-contained HTML file, for people.
//!
//! ```text
//! experiment::Report --figure--> SVG --.
//! Head (what, commit, machine) --------+--> one file: no network, no script, light and dark
//! SweepResult, Timeline -------> SVG --|
//! Facts (scenario, seeds, version) ----'
//! ```
//!
//! What the paper states is shown next to what the twin measured, hits and misses alike; fitted
//! values are marked. Only points stated in the paper's text are drawn: its figures are images.

mod canvas;
mod draw;
mod page;
mod parts;
mod relation;
mod run_page;
mod scale;
mod style;
mod sweep;

pub use draw::figure;
pub use page::{Head, html};
pub use parts::Facts;
pub use relation::{format_inputs, relation};
pub(crate) use run_page::format_duration;
pub use run_page::{ResultRow, run_page};
pub use scale::number;
pub use sweep::{sweep_page, with_range};

#[cfg(test)]
mod tests;

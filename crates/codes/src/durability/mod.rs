//! Durability: the probability that a track, a large group or a platter-set cannot be decoded.
//!
//! ```text
//! SectorLoss (mean, variation between tracks)
//!    |--> Track: P(more than R_t of I_t + R_t sectors are lost)
//!    |--> LargeGroup: sectors of tracks that failed, over all tracks of the group
//! P(a platter is unreadable) --> binomial_tail: P(more than R_p of I_p + R_p)
//! ```
//!
//! These are sums of binomial and beta-binomial terms, in logarithms, because the results are of
//! the order of 10^-24 and below (Silica sections 5 and 6 claim that for a track). [`simulate`]
//! confirms them by Monte Carlo simulation with importance sampling.
//!
//! What the formulas leave out: sectors of a track fail independently, or with a rate that varies
//! from track to track and is the same within a track. Nothing else is correlated: not neighboring
//! tracks, not platters from one writer. Readers, software and people make no errors, and no error
//! escapes the signatures. A probability of 10^-24 is therefore never the probability that an
//! archive loses data. It only means that this cause is negligible.

mod loss;
mod scheme;
pub mod simulate;
mod special;

pub use loss::{Probability, SectorLoss, binomial_tail};
pub use scheme::{LargeGroup, Overhead, Track, smallest_group, smallest_track};

#[cfg(test)]
mod tests;

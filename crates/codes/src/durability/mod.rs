//! Durability: how likely it is that a track, a large group or a platter-set cannot be decoded.
//!
//! ```text
//! SectorLoss (mean, variation between tracks)
//!    |--> Track: P(more than R_t of I_t + R_t sectors are lost)
//!    |--> LargeGroup: sectors of tracks that failed, over all tracks of the group
//! chance of an unreadable platter --> binomial_tail: P(more than R_p of I_p + R_p)
//! ```
//!
//! These are sums of binomial and beta-binomial terms, in logarithms, because what counts is of
//! the order of 10^-24 and below (Silica sections 5 and 6 claim that for a track). [`simulate`]
//! confirms them by drawing losses, with importance sampling.
//!
//! What the formulas leave out: sectors of a track fail independently, or with a rate that varies
//! from track to track and is then the same for the whole track; nothing else is correlated, not
//! neighboring tracks, not platters of one writer; readers, software and people do not err; and
//! nothing is lost to an error that no signature sees. A chance of 10^-24 is therefore never the
//! chance that an archive loses data. It says that this cause is not the one.

mod loss;
mod scheme;
pub mod simulate;
mod special;

pub use loss::{Chance, SectorLoss, binomial_tail};
pub use scheme::{LargeGroup, Overhead, Track, smallest_group, smallest_track};

#[cfg(test)]
mod tests;

//! Measures how good a decoder is: symbol errors, bit errors, mutual information, and their spread
//! over sectors.
//!
//! Mutual information is that of bits decoded one by one (BICM): the bits of a voxel minus the
//! loss, which is the mean over voxels of -log2 P(bit as written), summed over the bits of the
//! label. It is what a code over these bits can reach; an LDPC codeword lies in one sector, so the
//! worst sectors set the rate.

use fulgurite_platter::channel::{Medium, SectorShape};
use serde::Serialize;

use crate::SymbolProbabilities;
use crate::frame::alphabet;

/// Voxels on each side that are not scored: neighboring tiles and sectors overlap there.
const BORDER: usize = 4;

/// The score of one sector.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Number of scored voxels.
    pub voxels: usize,
    /// Share of symbols that are not the likeliest.
    pub symbol_error_rate: f64,
    /// Share of bits that are wrong.
    pub bit_error_rate: f64,
    /// Mutual information in bits a voxel.
    pub information: f64,
}

impl Score {
    /// Compares probabilities with the written symbols. Borders of four voxels are left out.
    ///
    /// # Panics
    /// When there are not as many voxels as in the shape.
    #[must_use]
    pub fn new(
        medium: Medium,
        shape: SectorShape,
        probabilities: &SymbolProbabilities,
        symbols: &[u8],
    ) -> Self {
        assert_eq!(probabilities.voxels(), shape.voxels(), "a sector's voxels");
        assert_eq!(symbols.len(), shape.voxels(), "a sector's symbols");
        let alphabet = alphabet(medium);
        let labels: Vec<u8> = (0..medium.symbols()).map(|own| alphabet.label(own)).collect();
        let bits = usize::from(medium.bits());
        let (mut voxels, mut wrong, mut wrong_bits, mut lost) = (0usize, 0usize, 0u32, 0.0);
        for row in BORDER..shape.rows() - BORDER {
            for column in BORDER..shape.columns() - BORDER {
                let at = row * shape.columns() + column;
                let (own, found) = (symbols[at], probabilities.likeliest(at));
                voxels += 1;
                wrong += usize::from(own != found);
                let own_label = labels[usize::from(own)];
                wrong_bits += (own_label ^ labels[usize::from(found)]).count_ones();
                let voxel = probabilities.voxel(at);
                for bit in 0..bits {
                    let same: f64 = voxel
                        .iter()
                        .zip(&labels)
                        .filter(|(_, label)| (**label ^ own_label) >> bit & 1 == 0)
                        .map(|(logarithm, _)| f64::from(*logarithm).exp())
                        .sum();
                    lost -= same.clamp(1e-12, 1.0).log2();
                }
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of voxels")]
        let (all, wrong, bits) = (voxels as f64, wrong as f64, bits as f64);
        Self {
            voxels,
            symbol_error_rate: wrong / all,
            bit_error_rate: f64::from(wrong_bits) / (all * bits),
            information: bits - lost / all,
        }
    }
}

/// The scores of many sectors.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scores(pub Vec<Score>);

impl Scores {
    /// Returns the mean of a figure and its standard error.
    #[must_use]
    pub fn mean(&self, figure: impl Fn(&Score) -> f64) -> (f64, f64) {
        #[expect(clippy::cast_precision_loss, reason = "a count of sectors")]
        let count = self.0.len() as f64;
        let mean = self.0.iter().map(&figure).sum::<f64>() / count;
        let squares = self.0.iter().map(|score| (figure(score) - mean).powi(2)).sum::<f64>();
        (mean, (squares / (count - 1.0).max(1.0) / count).sqrt())
    }

    /// Returns the quantile of a figure: the value below which this share of the sectors lies
    /// (linear between sectors).
    #[must_use]
    pub fn quantile(&self, share: f64, figure: impl Fn(&Score) -> f64) -> f64 {
        let mut values: Vec<f64> = self.0.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        #[expect(clippy::cast_precision_loss, reason = "a count of sectors")]
        let at = share.clamp(0.0, 1.0) * (values.len().saturating_sub(1)) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let first = at.floor() as usize;
        let next = (first + 1).min(values.len().saturating_sub(1));
        values
            .get(first)
            .map_or(f64::NAN, |value| value + (at - at.floor()) * (values[next] - value))
    }
}

//! Probabilities of the symbols of a sector's voxels.

/// Natural logarithms of the probabilities of each symbol, voxel by voxel. Of each voxel they are
/// normalized: their exponentials add to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolProbabilities {
    symbols: usize,
    logarithms: Vec<f32>,
}

impl SymbolProbabilities {
    /// Of `symbols` numbers a voxel, any that say which is likelier; normalizes them.
    ///
    /// # Panics
    /// When the numbers are not a whole count of voxels.
    #[must_use]
    pub fn normalized(symbols: usize, mut logarithms: Vec<f32>) -> Self {
        assert_eq!(logarithms.len() % symbols, 0, "a whole count of voxels");
        for voxel in logarithms.chunks_mut(symbols) {
            let most = voxel.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = voxel.iter().map(|value| (value - most).exp()).sum();
            let shift = most + sum.ln();
            for value in voxel {
                *value -= shift;
            }
        }
        Self { symbols, logarithms }
    }

    /// What both say, if they err independently: logarithms added.
    ///
    /// # Panics
    /// When they are not of as many voxels and symbols.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        assert_eq!((self.symbols, self.logarithms.len()), (other.symbols, other.logarithms.len()));
        let sums = self.logarithms.iter().zip(&other.logarithms).map(|(a, b)| a + b).collect();
        Self::normalized(self.symbols, sums)
    }

    /// Symbols of a voxel.
    #[must_use]
    pub const fn symbols(&self) -> usize {
        self.symbols
    }

    /// Voxels.
    #[must_use]
    pub fn voxels(&self) -> usize {
        self.logarithms.len() / self.symbols
    }

    /// All logarithms, those of a voxel together.
    #[must_use]
    pub fn logarithms(&self) -> &[f32] {
        &self.logarithms
    }

    /// Those of one voxel.
    #[must_use]
    pub fn voxel(&self, index: usize) -> &[f32] {
        &self.logarithms[index * self.symbols..][..self.symbols]
    }

    /// The likeliest symbol of a voxel.
    ///
    /// # Panics
    /// When there are more than 256 symbols.
    #[must_use]
    pub fn likeliest(&self, index: usize) -> u8 {
        let voxel = self.voxel(index).iter().enumerate();
        let best = voxel.max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(symbol, _)| symbol);
        u8::try_from(best).expect("at most 256 symbols")
    }
}

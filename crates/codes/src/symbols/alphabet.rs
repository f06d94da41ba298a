//! Alphabets and their Gray labels.

use crate::CodeError;

/// Maximum number of bits per symbol.
pub const SYMBOL_BITS_MAX: usize = 8;

/// One physical quantity of a voxel, quantized to a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Levels on a line, such as a retardance: the first and the last are far apart.
    Ordered {
        /// Bits: the logarithm of the number of levels.
        bits: usize,
    },
    /// Levels on a circle, such as an angle: the first and the last are neighbors.
    Circular {
        /// Bits: the logarithm of the number of levels.
        bits: usize,
    },
}

impl Axis {
    /// Bits: the logarithm of the number of levels.
    #[must_use]
    pub const fn bits(self) -> usize {
        match self {
            Self::Ordered { bits } | Self::Circular { bits } => bits,
        }
    }

    /// Returns the number of steps from one level to another.
    fn distance(self, a: usize, b: usize) -> usize {
        let along = a.abs_diff(b);
        match self {
            Self::Ordered { .. } => along,
            Self::Circular { bits } => along.min((1 << bits) - along),
        }
    }
}

/// The symbols of a voxel, with their bit labels.
///
/// Along an axis, the label of level `x` is the Gray code `x ^ (x >> 1)`: neighbors differ in one
/// bit, and so do the first and the last, so the same labels work for lines and circles. A product
/// of two axes has the symbol `x * levels of the second axis + y`, and the label of x above that of
/// y: a step along either axis changes one bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alphabet {
    first: Axis,
    second: Option<Axis>,
    labels: [u8; 1 << SYMBOL_BITS_MAX],
    symbols: [u8; 1 << SYMBOL_BITS_MAX],
}

impl Alphabet {
    /// Creates the alphabet of one axis.
    ///
    /// # Errors
    /// [`CodeError::SymbolBits`] for no bits or for more than [`SYMBOL_BITS_MAX`].
    pub fn new(axis: Axis) -> Result<Self, CodeError> {
        Self::build(axis, None)
    }

    /// Creates the alphabet of all pairs of two axes.
    ///
    /// # Errors
    /// [`CodeError::SymbolBits`] for no bits on an axis, or for more than [`SYMBOL_BITS_MAX`]
    /// together.
    pub fn product(first: Axis, second: Axis) -> Result<Self, CodeError> {
        Self::build(first, Some(second))
    }

    fn build(first: Axis, second: Option<Axis>) -> Result<Self, CodeError> {
        let high_bits = first.bits();
        let low_bits = second.map_or(0, Axis::bits);
        let bits = high_bits.saturating_add(low_bits);
        if high_bits == 0 || second.is_some() && low_bits == 0 || bits > SYMBOL_BITS_MAX {
            return Err(CodeError::SymbolBits { bits });
        }
        let mut alphabet = Self { first, second, labels: [0; 256], symbols: [0; 256] };
        for symbol in 0..=u8::MAX >> (SYMBOL_BITS_MAX - bits) {
            let gray = |level: u8| level ^ (level >> 1);
            let (high, low) = (symbol >> low_bits, symbol & ((1 << low_bits) - 1));
            let label = (gray(high) << low_bits) | gray(low);
            alphabet.labels[usize::from(symbol)] = label;
            alphabet.symbols[usize::from(label)] = symbol;
        }
        Ok(alphabet)
    }

    /// Number of bits per symbol.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.first.bits() + self.second.map_or(0, Axis::bits)
    }

    /// Number of symbols.
    #[must_use]
    pub fn size(&self) -> usize {
        1 << self.bits()
    }

    /// Returns the label of a symbol.
    ///
    /// # Panics
    /// When there is no such symbol.
    #[must_use]
    pub fn label(&self, symbol: u8) -> u8 {
        assert!(usize::from(symbol) < self.size(), "symbol {symbol} of {}", self.size());
        self.labels[usize::from(symbol)]
    }

    /// Returns the symbol of a label.
    ///
    /// # Panics
    /// When there is no such label.
    #[must_use]
    pub fn symbol(&self, label: u8) -> u8 {
        assert!(usize::from(label) < self.size(), "label {label} of {}", self.size());
        self.symbols[usize::from(label)]
    }

    /// Returns the number of steps from one symbol to another, summed over the axes.
    ///
    /// # Panics
    /// When there is no such symbol.
    #[must_use]
    pub fn distance(&self, a: u8, b: u8) -> usize {
        let [a, b] = [a, b].map(usize::from);
        assert!(a.max(b) < self.size(), "symbols {a} and {b} of {}", self.size());
        let levels = 1 << self.second.map_or(0, Axis::bits);
        let second = self.second.map_or(0, |axis| axis.distance(a % levels, b % levels));
        self.first.distance(a / levels, b / levels) + second
    }
}

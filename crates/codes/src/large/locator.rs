//! Products of differences of points, which decoding needs.
//!
//! Points are represented by their numbers, and numbers add like points: the difference of two
//! points is the element of the XOR of their numbers, and a product of differences is a sum of
//! logarithms from a table indexed by number.

use super::definition::element;
use crate::field::gf8;
use crate::field::gf16::{Element, NORM};

#[cfg(test)]
mod tests;

/// Number of nonzero elements: logarithms are modulo this.
const ORDER: u32 = 65_535;

/// Maximum number of logarithms that are summed one by one. Beyond that all sums are computed by a
/// Walsh-Hadamard transform, which takes about as long as this many additions.
const SUMS_MAX: usize = 1 << 20;

/// Tables of logarithms and powers of the field.
#[derive(Clone)]
pub(super) struct Logarithms {
    /// Logarithm by number; that of zero is 0, so that products skip a factor of zero.
    log: Vec<u16>,
    /// Element by logarithm.
    exp: Vec<Element>,
}

impl Logarithms {
    pub(super) fn new() -> Self {
        let mut log_by_element = vec![0; 1 << 16];
        let mut exp = Vec::with_capacity(1 << 16);
        let mut power: Element = [1, 0];
        for log in 0..u16::MAX {
            log_by_element[usize::from(u16::from_le_bytes(power))] = log;
            exp.push(power);
            // Multiplies by u, which is primitive.
            power = [gf8::mul(NORM, power[1]), power[0] ^ power[1]];
        }
        let log = (0..1 << 16)
            .map(|number| log_by_element[usize::from(u16::from_le_bytes(element(number)))]);
        Self { log: log.collect(), exp }
    }

    /// Returns the logarithm of the element of a number.
    pub(super) fn logarithm(&self, number: usize) -> u32 {
        u32::from(self.log[number])
    }

    /// Returns the element with the logarithm `plus - minus`.
    pub(super) fn quotient(&self, plus: u32, minus: u32) -> Element {
        self.exp[((plus % ORDER + ORDER - minus % ORDER) % ORDER) as usize]
    }

    /// Returns for each point of `at` the logarithm, below 65,535, of the product of its
    /// differences to all of `roots` except itself: the value there of the polynomial with these
    /// roots, or of its derivative if the point is a root.
    pub(super) fn products(&self, roots: &[usize], at: &[usize]) -> Vec<u32> {
        if roots.len().saturating_mul(at.len()) > SUMS_MAX {
            return self.all_products(roots, at);
        }
        // No overflow: at most 2^16 logarithms below 2^16.
        let sum = |point: usize| roots.iter().map(|root| self.logarithm(root ^ point)).sum::<u32>();
        at.iter().map(|point| sum(*point) % ORDER).collect()
    }

    /// Computes the sums for all points as the XOR-convolution of logarithms and roots. Under the
    /// Walsh-Hadamard transform it is a product. The transform is its own inverse up to the factor
    /// 2^16, which is 1 modulo 65,535.
    fn all_products(&self, roots: &[usize], at: &[usize]) -> Vec<u32> {
        let mut is_root = vec![0; 1 << 16];
        roots.iter().for_each(|root| is_root[*root] = 1);
        let mut logs: Vec<u32> = self.log.iter().map(|log| u32::from(*log)).collect();
        walsh_hadamard(&mut is_root);
        walsh_hadamard(&mut logs);
        for (sum, log) in is_root.iter_mut().zip(logs) {
            *sum = reduce(reduce(*sum * log));
        }
        walsh_hadamard(&mut is_root);
        at.iter().map(|point| is_root[*point] % ORDER).collect()
    }
}

/// Reduces modulo 65,535, to at most 65,535 if `value` is below 2^17 or was already reduced once.
const fn reduce(value: u32) -> u32 {
    (value & 0xffff) + (value >> 16)
}

/// Transforms modulo 65,535; input and output values are at most 65,535.
fn walsh_hadamard(values: &mut [u32]) {
    let mut distance = 1;
    while distance < values.len() {
        for pair in values.chunks_exact_mut(2 * distance) {
            let (low, high) = pair.split_at_mut(distance);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (reduce(*a + *b), reduce(*a + ORDER - *b));
            }
        }
        distance *= 2;
    }
}

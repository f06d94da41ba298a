//! Belief propagation in floating point with a flooding schedule (all checks, then all bits): the
//! reference for the fast decoder. Thousands of times slower, and not meant for anything else.

use super::Code;
use crate::CodeError;

/// Maximum log-likelihood ratio: keeps the products of hyperbolic tangents below 1.
const RATIO_MAX: f64 = 30.0;

/// Decodes log-likelihood ratios by the sum-product algorithm. Returns the hard decisions, packed,
/// and whether they satisfy every check.
///
/// # Errors
/// [`CodeError::WordLength`] when the number of ratios is not the code's number of bits.
pub fn sum_product(
    code: &Code,
    ratios: &[f64],
    iterations: usize,
) -> Result<(Vec<u8>, bool), CodeError> {
    if ratios.len() != code.bits() {
        return Err(CodeError::WordLength { have: ratios.len(), need: code.bits() });
    }
    let checks = checks(code);
    let mut messages: Vec<Vec<f64>> = checks.iter().map(|check| vec![0.0; check.len()]).collect();
    let mut sums = ratios.to_vec();
    for _ in 0..iterations {
        if is_satisfied(&checks, &sums) {
            break;
        }
        for (check, messages) in checks.iter().zip(&mut messages) {
            let tangents: Vec<f64> = check
                .iter()
                .zip(&*messages)
                .map(|(&bit, message)| {
                    ((sums[bit] - message).clamp(-RATIO_MAX, RATIO_MAX) / 2.0).tanh()
                })
                .collect();
            for (edge, message) in messages.iter_mut().enumerate() {
                let others = tangents.iter().enumerate().filter(|(other, _)| *other != edge);
                let product: f64 = others.map(|(_, tangent)| tangent).product();
                *message = (2.0 * product.atanh()).clamp(-RATIO_MAX, RATIO_MAX);
            }
        }
        sums.copy_from_slice(ratios);
        for (check, messages) in checks.iter().zip(&messages) {
            check.iter().zip(messages).for_each(|(&bit, message)| sums[bit] += message);
        }
    }
    let mut word = vec![0; code.bits() / 8];
    for (bit, _) in sums.iter().enumerate().filter(|(_, sum)| **sum < 0.0) {
        word[bit / 8] |= 1 << (bit % 8);
    }
    Ok((word, is_satisfied(&checks, &sums)))
}

/// Returns the bits of each check.
fn checks(code: &Code) -> Vec<Vec<usize>> {
    let z = code.matrix().circulant();
    let mut checks = Vec::new();
    for row in code.matrix().row_entries() {
        checks.extend((0..z).map(|check| {
            row.iter().map(|&(column, shift)| column * z + (check + shift) % z).collect()
        }));
    }
    checks
}

fn is_satisfied(checks: &[Vec<usize>], sums: &[f64]) -> bool {
    checks
        .iter()
        .all(|check| check.iter().filter(|&&bit| sums[bit] < 0.0).count().is_multiple_of(2))
}

//! Mathematical definition of the code: the point of each shard, and the coefficients.

use crate::field::gf8;

/// A Cantor basis of GF(2^8): each element `b` has `b^2 + b` equal to the one before it, so the
/// first `i` span the subspace that the additive transform of `2^i` points works on.
pub const BASIS: [u8; 8] = cantor_basis();

const fn cantor_basis() -> [u8; 8] {
    let mut basis = [1u8; 8];
    let mut next = 1;
    while next < 8 {
        // The smaller of the two roots of b^2 + b = the previous element.
        let mut root = 2u8;
        while gf8::mul(root, root) ^ root != basis[next - 1] {
            root += 1;
        }
        basis[next] = root;
        next += 1;
    }
    basis
}

/// Returns the element of number `v`: the sum of the basis elements of its bits.
#[must_use]
pub const fn element(v: u8) -> u8 {
    ELEMENTS[v as usize]
}

const ELEMENTS: [u8; 256] = {
    let (mut elements, mut bit) = ([0; 256], 0);
    while bit < 8 {
        let mut v = 0;
        while v < 256 {
            if v >> bit & 1 == 1 {
                elements[v] ^= BASIS[bit];
            }
            v += 1;
        }
        bit += 1;
    }
    elements
};

/// Returns the number of an element.
#[cfg(test)]
pub(super) fn number(value: u8) -> u8 {
    (0..=255).find(|&v| element(v) == value).expect("the basis spans the field")
}

/// Returns the point of information shard `index`.
pub(super) const fn information_point(index: u8) -> u8 {
    element(255 - index)
}

/// Returns the point of redundancy shard `index`.
pub(super) const fn redundancy_point(index: u8) -> u8 {
    element(index)
}

/// Returns the coefficient of information shard `information` in redundancy shard `redundancy`.
///
/// ```text
/// a(i, j) = x(j) / (y(i) + x(j))      x(j) = element(255 - j), y(i) = element(i)
/// ```
///
/// A Cauchy matrix whose columns are scaled so that row 0 is all ones (y(0) = 0). Every square
/// submatrix is invertible, the first redundancy shard is the XOR of the information, and adding
/// information or redundancy shards does not change the existing coefficients.
#[must_use]
pub const fn coefficient(redundancy: u8, information: u8) -> u8 {
    let x = information_point(information);
    gf8::mul(x, gf8::inverse(x ^ redundancy_point(redundancy)))
}

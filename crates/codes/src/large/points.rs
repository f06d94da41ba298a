//! Maps numbers to elements by two small tables.

use super::definition;
use crate::field::gf16::Element;

/// Elements of the numbers below 256, which are GF(2^8), and of 256 times these numbers.
const TABLES: [[Element; 256]; 2] = {
    let mut tables = [[[0; 2]; 256]; 2];
    let mut number = 0;
    while number < 256 {
        tables[0][number] = definition::element(number);
        tables[1][number] = definition::element(number << 8);
        number += 1;
    }
    tables
};

/// Returns the element of a number, as [`definition::element`].
#[inline]
pub(super) fn element(number: usize) -> Element {
    let (low, high) = (TABLES[0][number & 255], TABLES[1][number >> 8]);
    [low[0] ^ high[0], low[1] ^ high[1]]
}

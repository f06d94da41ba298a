//! The scalar kernel, the reference for the others.

use super::{ALPHA, ALPHA_INVERSE, Lanes, Planes, WRAP, Y, Y_INVERSE};
use crate::field::{PLANE_BYTES, gf8, gf32};
use crate::signature::SIGNATURE_BLOCK;

/// Absorbs these blocks.
pub(super) fn absorb(lanes: &mut Lanes, blocks: &[[u8; SIGNATURE_BLOCK]]) {
    const WRAP_PRODUCTS: [u8; 256] = products(WRAP);
    const TRACE_PRODUCTS: [u8; 256] = products(gf32::TRACE);
    for block in blocks {
        for lane in 0..PLANE_BYTES {
            let symbol = [0, 1, 2, 3].map(|plane| block[plane * PLANE_BYTES + lane]);
            let last = get(&lanes.last, lane);
            let [a, b, c, d] = last;
            let by_z =
                [WRAP_PRODUCTS[usize::from(d)], TRACE_PRODUCTS[usize::from(c ^ d)], a ^ c, b ^ d];
            let sum = gf32::add(symbol, get(&lanes.previous, lane));
            put(&mut lanes.last, lane, gf32::add(sum, by_z));
            put(&mut lanes.previous, lane, last);
        }
    }
}

/// Returns the sums over lanes l of alpha^l (last + y previous)_l and of alpha^-l (last + previous
/// / y)_l.
pub(super) fn reduce(lanes: &Lanes) -> [gf32::Element; 2] {
    /// `[coordinate][byte]`: products by alpha and by 1 / alpha, as words.
    static PRODUCTS: [[[u32; 256]; 4]; 2] =
        [element_products(ALPHA), element_products(ALPHA_INVERSE)];
    // Sums of the lanes of `last` and of `previous`, first both for alpha, then both for 1 / alpha.
    let mut sums = [[0u32; 2]; 2];
    for lane in (0..PLANE_BYTES).rev() {
        for (sums, products) in sums.iter_mut().zip(&PRODUCTS) {
            for (sum, planes) in sums.iter_mut().zip([&lanes.last, &lanes.previous]) {
                let mut next = u32::from_le_bytes(get(planes, lane));
                for (byte, products) in sum.to_le_bytes().iter().zip(products) {
                    next ^= products[usize::from(*byte)];
                }
                *sum = next;
            }
        }
    }
    let sums = sums.map(|sums| sums.map(u32::to_le_bytes));
    let [[forward_last, forward_previous], [backward_last, backward_previous]] = sums;
    [
        gf32::add(forward_last, gf32::mul(Y, forward_previous)),
        gf32::add(backward_last, gf32::mul(Y_INVERSE, backward_previous)),
    ]
}

fn get(planes: &Planes, lane: usize) -> gf32::Element {
    [planes[0][lane], planes[1][lane], planes[2][lane], planes[3][lane]]
}

fn put(planes: &mut Planes, lane: usize, element: gf32::Element) {
    for (plane, byte) in planes.iter_mut().zip(element) {
        plane[lane] = byte;
    }
}

/// Returns the products of every byte by `c`.
const fn products(c: u8) -> [u8; 256] {
    let mut products = [0; 256];
    let mut byte = 0u8;
    loop {
        products[byte as usize] = gf8::mul(c, byte);
        if byte == 255 {
            return products;
        }
        byte += 1;
    }
}

/// Returns the products of `element` with every byte at every coordinate.
const fn element_products(element: gf32::Element) -> [[u32; 256]; 4] {
    let mut products = [[0; 256]; 4];
    let mut coordinate = 0;
    while coordinate < 4 {
        let mut byte = 0u8;
        loop {
            let mut operand = [0; 4];
            operand[coordinate] = byte;
            products[coordinate][byte as usize] = u32::from_le_bytes(gf32::mul(element, operand));
            if byte == 255 {
                break;
            }
            byte += 1;
        }
        coordinate += 1;
    }
    products
}

//! The plain kernel, which the others are tested against.

use super::{ALPHA, Lanes, Planes, UNALPHA, UNTRACE, UNWRAP, WRAP};
use crate::field::{PLANE_BYTES, gf8, gf32};
use crate::signature::SIGNATURE_BLOCK;

/// Goes on by these blocks.
pub(super) fn absorb(lanes: &mut Lanes, blocks: &[[u8; SIGNATURE_BLOCK]]) {
    const BY_WRAP: [u8; 256] = products(WRAP);
    const BY_TRACE: [u8; 256] = products(gf32::TRACE);
    const BY_UNWRAP: [u8; 256] = products(UNWRAP);
    const BY_UNTRACE: [u8; 256] = products(UNTRACE);
    for block in blocks {
        let (planes, []) = block.as_chunks::<PLANE_BYTES>() else { unreachable!("four planes") };
        for lane in 0..PLANE_BYTES {
            let symbol = [0, 1, 2, 3].map(|plane| planes[plane][lane]);
            let [a, b, c, d] = get(&lanes.forward, lane).map(usize::from);
            let high = BY_UNWRAP[a];
            let low = BY_UNTRACE[b] ^ high;
            let product = [c.to_le_bytes()[0] ^ low, d.to_le_bytes()[0] ^ high, low, high];
            put(&mut lanes.forward, lane, gf32::add(product, symbol));
            let [a, b, c, d] = get(&lanes.backward, lane);
            let (wrap, trace) = (BY_WRAP[usize::from(d)], BY_TRACE[usize::from(c ^ d)]);
            put(&mut lanes.backward, lane, gf32::add([wrap, trace, a ^ c, b ^ d], symbol));
        }
    }
}

/// The sums over lanes l of alpha^l forward_l and of alpha^-l backward_l.
pub(super) fn reduce(lanes: &Lanes) -> [gf32::Element; 2] {
    /// `[coordinate][byte]`: products by alpha and by 1 / alpha.
    static PRODUCTS: [[[gf32::Element; 256]; 4]; 2] = [by_element(ALPHA), by_element(UNALPHA)];
    let mut sums = [[0; 4]; 2];
    for lane in (0..PLANE_BYTES).rev() {
        for ((sum, products), planes) in
            sums.iter_mut().zip(&PRODUCTS).zip([&lanes.forward, &lanes.backward])
        {
            let mut next = get(planes, lane);
            for (byte, products) in sum.iter().zip(products) {
                next = gf32::add(next, products[usize::from(*byte)]);
            }
            *sum = next;
        }
    }
    sums
}

fn get(planes: &Planes, lane: usize) -> gf32::Element {
    [planes[0][lane], planes[1][lane], planes[2][lane], planes[3][lane]]
}

fn put(planes: &mut Planes, lane: usize, element: gf32::Element) {
    for (plane, byte) in planes.iter_mut().zip(element) {
        plane[lane] = byte;
    }
}

/// The products of every byte by `c`.
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

/// The products of `element` with every byte at every coordinate.
const fn by_element(element: gf32::Element) -> [[gf32::Element; 256]; 4] {
    let mut products = [[[0; 4]; 256]; 4];
    let mut coordinate = 0;
    while coordinate < 4 {
        let mut byte = 0u8;
        loop {
            let mut operand = [0; 4];
            operand[coordinate] = byte;
            products[coordinate][byte as usize] = gf32::mul(element, operand);
            if byte == 255 {
                break;
            }
            byte += 1;
        }
        coordinate += 1;
    }
    products
}

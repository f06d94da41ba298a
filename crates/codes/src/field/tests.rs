//! The fields against their definitions.

use proptest::prelude::*;

use super::{gf8, gf16, gf32};

/// Carry-less product modulo 0x11d, bit by bit.
fn slow_mul(a: u8, b: u8) -> u8 {
    let mut product = 0u16;
    for bit in (0..8).rev() {
        product <<= 1;
        if product & 0x100 != 0 {
            product ^= gf8::POLYNOMIAL;
        }
        if b >> bit & 1 == 1 {
            product ^= u16::from(a);
        }
    }
    u8::try_from(product).expect("reduced")
}

#[test]
fn byte_products_match_the_definition_in_every_form() {
    for a in 0..=255u8 {
        let [low, high] = gf8::nibbles(a);
        let affine = gf8::affine(a).to_le_bytes();
        for b in 0..=255u8 {
            let product = slow_mul(a, b);
            assert_eq!(gf8::mul(a, b), product, "{a} * {b}");
            assert_eq!(low[usize::from(b & 15)] ^ high[usize::from(b >> 4)], product);
            let by_bits = (0..8).fold(0, |sum, bit| {
                sum | u8::from((affine[7 - bit] & b).count_ones() % 2 == 1) << bit
            });
            assert_eq!(by_bits, product, "{a} * {b}");
        }
        if a > 0 {
            assert_eq!(gf8::mul(a, gf8::inverse(a)), 1);
        }
    }
}

#[test]
fn generators_are_primitive() {
    let u = [0, 1];
    let mut power = [1, 0];
    for exponent in 1..=65_535u32 {
        power = gf16::mul(power, u);
        assert_eq!(power == [1, 0], exponent == 65_535, "u^{exponent}");
    }
    let order = (1u64 << 32) - 1;
    assert_eq!(gf32::pow(gf32::Z, order), gf32::ONE);
    for prime in [3, 5, 17, 257, 65_537] {
        assert_ne!(gf32::pow(gf32::Z, order / prime), gf32::ONE, "order / {prime}");
    }
}

#[test]
fn every_element_of_gf16_has_an_inverse() {
    for a in 1..=u16::MAX {
        let a = a.to_le_bytes();
        assert_eq!(gf16::mul(a, gf16::inverse(a)), [1, 0], "{a:?}");
    }
}

proptest! {
    #[test]
    fn towers_are_fields(a: [u8; 4], b: [u8; 4], c: [u8; 4]) {
        prop_assert_eq!(gf32::mul(a, b), gf32::mul(b, a));
        prop_assert_eq!(gf32::mul(gf32::mul(a, b), c), gf32::mul(a, gf32::mul(b, c)));
        prop_assert_eq!(
            gf32::mul(a, gf32::add(b, c)),
            gf32::add(gf32::mul(a, b), gf32::mul(a, c))
        );
        prop_assert_eq!(gf32::mul_z(a), gf32::mul(a, gf32::Z));
        if a != [0; 4] {
            prop_assert_eq!(gf32::mul(a, gf32::inverse(a)), gf32::ONE);
        }
    }

    #[test]
    fn a_lower_field_acts_on_each_coordinate(scale: u8, pair: [u8; 2], a: [u8; 4]) {
        let bytewise = a.map(|byte| gf8::mul(scale, byte));
        prop_assert_eq!(gf32::mul([scale, 0, 0, 0], a), bytewise);
        let (low, high) = (gf16::mul(pair, [a[0], a[1]]), gf16::mul(pair, [a[2], a[3]]));
        prop_assert_eq!(gf32::mul([pair[0], pair[1], 0, 0], a), [low[0], low[1], high[0], high[1]]);
    }
}

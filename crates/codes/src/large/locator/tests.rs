//! Logarithms and products of differences against products of single elements.

use super::*;
use crate::field::gf16;

#[test]
fn logarithms_multiply() {
    let logs = Logarithms::new();
    for (a, b) in [(1, 2), (77, 4096), (65_535, 65_534), (256, 255)] {
        let (x, y) = (element(a), element(b));
        assert_eq!(logs.quotient(logs.logarithm(a) + logs.logarithm(b), 0), gf16::mul(x, y));
        assert_eq!(
            logs.quotient(logs.logarithm(a), logs.logarithm(b)),
            gf16::mul(x, gf16::inverse(y))
        );
    }
}

#[test]
fn direct_and_transformed_products_agree() {
    let logs = Logarithms::new();
    let roots: Vec<usize> = (0..300).map(|i| i * i * 7 % 65_536).collect();
    let mut roots: Vec<usize> = roots;
    roots.sort_unstable();
    roots.dedup();
    let at: Vec<usize> = (0..65_536).step_by(97).chain(roots.iter().copied()).collect();
    let products = logs.products(&roots, &at);
    assert_eq!(products, logs.all_products(&roots, &at));
    for (point, product) in at.iter().zip(products).step_by(50) {
        let slow = roots.iter().filter(|root| *root != point).fold([1, 0], |product, root| {
            let difference = gf16::add(element(*root), element(*point));
            gf16::mul(product, difference)
        });
        assert_eq!(logs.quotient(product, 0), slow, "at {point}");
    }
}

//! Every operation of every vector against single bytes.

use super::{Factor, Factors, Level, SUMS_MAX, Vector, VectorKernel};
use crate::Isa;
use crate::field::{PLANE_BYTES, gf8};

/// All operations on three operands, with the memory that they read and write.
struct Operations<'a> {
    operands: [&'a [u8; PLANE_BYTES]; 3],
    constant: u8,
    /// Output, compared with [`expected`].
    results: *mut [[u8; PLANE_BYTES]; RESULTS],
}

const RESULTS: usize = 6;

fn expected([a, b, c]: [&[u8; PLANE_BYTES]; 3], constant: u8) -> [[u8; PLANE_BYTES]; RESULTS] {
    let each =
        |operation: &dyn Fn(u8, u8, u8) -> u8| std::array::from_fn(|i| operation(a[i], b[i], c[i]));
    [
        each(&|a, _, _| a),
        each(&|_, _, _| 0),
        each(&|a, b, _| a ^ b),
        each(&|a, b, c| a ^ b ^ c),
        each(&|a, _, _| gf8::mul(a, constant)),
        each(&|a, _, _| gf8::mul(a, constant)),
    ]
}

impl VectorKernel for Operations<'_> {
    /// `results` must be writable.
    #[inline(always)]
    unsafe fn run<V: Vector>(&self) {
        assert!(V::BYTES.is_power_of_two() && V::BYTES <= PLANE_BYTES, "registers divide planes");
        assert!(V::COLUMNS.iter().all(|columns| (1..=4).contains(columns)), "kernels know these");
        let factor = V::Factor::for_constant(self.constant);
        for at in (0..PLANE_BYTES).step_by(V::BYTES) {
            // SAFETY: a register at `at` is within a plane, because its size divides the plane's;
            // the caller guarantees the rest.
            unsafe {
                let [a, b, c] = self.operands.map(|plane| V::load(plane.as_ptr().add(at)));
                V::prefetch(self.operands[0].as_ptr().wrapping_add(1 << 40));
                let values = [
                    a,
                    V::zero(),
                    a.add(b),
                    a.add3(b, c),
                    a.times(V::constant(factor)),
                    a.multiply(factor),
                ];
                for (number, value) in values.into_iter().enumerate() {
                    value.store(self.results.cast::<u8>().add(number * PLANE_BYTES + at));
                }
            }
        }
    }
}

fn levels() -> impl Iterator<Item = Level> {
    Isa::supported().map(|isa| Level::new(isa).expect("it is supported"))
}

#[test]
fn vector_operations_match_bytes_at_every_level() {
    for constant in 0..=255u8 {
        // Over four planes, a byte meets each of the 256 values.
        for start in [0u8, 64, 128, 192] {
            let plane = |step: u8, start: u8| {
                let mut next = start.wrapping_sub(step);
                [(); PLANE_BYTES].map(|()| {
                    next = next.wrapping_add(step);
                    next
                })
            };
            let planes = [plane(1, start), plane(29, start ^ constant), plane(101, !start)];
            let operands = planes.each_ref();
            for level in levels() {
                let mut results = [[0xEE; PLANE_BYTES]; RESULTS];
                let work = Operations { operands, constant, results: &raw mut results };
                // SAFETY: `results` is writable.
                unsafe { level.run(&work) };
                assert_eq!(results, expected(operands, constant), "{constant} {level:?}");
            }
        }
    }
}

/// Returns the size of the vector.
struct Size(std::cell::Cell<usize>);

impl VectorKernel for Size {
    #[inline(always)]
    unsafe fn run<V: Vector>(&self) {
        self.0.set(V::BYTES);
    }
}

#[test]
fn levels_have_their_documented_vectors_and_factors() {
    for level in levels() {
        let size = Size(std::cell::Cell::new(0));
        // SAFETY: this work has no requirements.
        unsafe { level.run(&size) };
        assert_eq!(size.0.get(), level.vector_bytes(), "{level:?}");
        let (affine, nibbles) = (gf8::affine(29), gf8::nibbles(29));
        match Factors::new(level, std::iter::once(29)) {
            Factors::Affine(list) => assert_eq!(list, [affine], "{level:?}"),
            Factors::Nibbles(list) => assert_eq!(list, [nibbles], "{level:?}"),
        }
    }
    let absent = Isa::ALL.into_iter().filter(|isa| !isa.is_supported());
    assert!(absent.map(Level::new).all(|level| level.is_none()), "no level beyond the processor's");
    assert_eq!(SUMS_MAX, 8, "the kernels of small codes have a case for each");
}

//! Sums of products of windows and taps: bytes by signed bytes, exact with every instruction set.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use fulgurite_codes::Isa;

use super::WIDE_WINDOW;
use super::bank::Window;
use crate::flat::STATES;

/// Equidistant windows, starting at the first pixel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows<'a> {
    pub(super) pixels: &'a [[u8; STATES]],
    /// Row stride in pixels.
    pub(super) row: usize,
    /// Distance of windows in pixels.
    pub(super) step: usize,
}

impl Windows<'_> {
    /// Returns whether `count` windows lie within the pixels.
    fn is_in_bounds(&self, count: usize) -> bool {
        count.saturating_sub(1) * self.step + (WIDE_WINDOW - 1) * self.row + WIDE_WINDOW
            <= self.pixels.len()
    }
}

/// A kernel for one instruction set.
#[derive(Debug)]
pub(super) struct Kernel {
    #[cfg_attr(not(test), expect(dead_code, reason = "printed by failing tests"))]
    name: &'static str,
    run: fn(Windows<'_>, &Window, &mut [[i32; 2]]),
}

static SCALAR: Kernel = Kernel { name: "scalar", run: run_scalar };

impl Kernel {
    /// Returns the best kernel for this processor.
    pub(super) fn current() -> &'static Self {
        Self::for_isa(Isa::current())
    }

    /// Returns the best kernel up to an instruction set that this processor has.
    fn for_isa(isa: Isa) -> &'static Self {
        #[cfg(target_arch = "x86_64")]
        {
            if isa >= Isa::Avx512Gfni && is_x86_feature_detected!("avx512vnni") {
                return &avx512::KERNEL;
            }
            if isa >= Isa::Avx2 {
                return &avx2::KERNEL;
            }
        }
        let _ = isa;
        &SCALAR
    }

    /// Computes the sums of as many windows as `sums` has, for both components.
    ///
    /// # Panics
    /// When windows extend beyond the pixels.
    pub(super) fn run(&self, windows: Windows<'_>, taps: &Window, sums: &mut [[i32; 2]]) {
        assert!(windows.is_in_bounds(sums.len()), "windows within the images");
        (self.run)(windows, taps, sums);
    }
}

fn run_scalar(windows: Windows<'_>, taps: &Window, sums: &mut [[i32; 2]]) {
    for (number, sums) in sums.iter_mut().enumerate() {
        *sums = [0; 2];
        for (row, lines) in taps.iter().enumerate() {
            let pixels =
                &windows.pixels[number * windows.step + row * windows.row..][..WIDE_WINDOW];
            for (sum, line) in sums.iter_mut().zip(lines) {
                let pairs = pixels.as_flattened().iter().zip(&line.0);
                *sum += pairs.map(|(pixel, tap)| i32::from(*pixel) * i32::from(*tap)).sum::<i32>();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! Every instruction set against sums in the widest integers.

    use fulgurite_codes::Isa;
    use fulgurite_units::Seed;

    use super::super::WIDE_WINDOW;
    use super::super::bank::{LINE, Line};
    use super::{Kernel, Windows};

    #[test]
    fn isa_levels_give_the_same_sums() {
        let mut stream = Seed::new(1).stream();
        let mut drawn = |count: usize| {
            let mut bytes = vec![0; count];
            stream.fill(&mut bytes);
            bytes
        };
        for (count, step, extreme) in [(1, 3, true), (2, 4, true), (7, 3, false), (8, 3, false)]
            .into_iter()
            .chain((9..40).map(|count| (count, 3 + count % 2, count % 5 == 0)))
        {
            let row = WIDE_WINDOW + count * step + 5;
            let mut bytes = drawn((row * (WIDE_WINDOW - 1) + (count - 1) * step + WIDE_WINDOW) * 4);
            let mut taps = [[Line([0; LINE]); 2]; WIDE_WINDOW];
            for tap in taps.as_flattened_mut().iter_mut().flat_map(|line| &mut line.0) {
                *tap = drawn(1)[0].cast_signed();
            }
            if extreme {
                bytes.fill(255);
                taps[0][0].0.fill(-128);
                taps.as_flattened_mut().iter_mut().skip(1).for_each(|line| line.0.fill(127));
            }
            let pixels = bytes.as_chunks().0;
            let windows = Windows { pixels, row, step };
            let expected: Vec<[i64; 2]> = (0..count)
                .map(|number| {
                    [0, 1].map(|part| {
                        let products = (0..WIDE_WINDOW * LINE).map(|at| {
                            let (y, x) = (at / LINE, at % LINE);
                            let pixel = bytes[(number * step + y * row) * 4 + x];
                            i64::from(pixel) * i64::from(taps[y][part].0[x])
                        });
                        products.sum()
                    })
                })
                .collect();
            for kernel in Isa::supported().map(Kernel::for_isa) {
                let mut sums = vec![[7; 2]; count];
                kernel.run(windows, &taps, &mut sums);
                let sums: Vec<[i64; 2]> = sums.iter().map(|sum| sum.map(i64::from)).collect();
                assert_eq!(sums, expected, "{} {count} {step}", kernel.name);
            }
        }
    }
}

//! Taps for every fraction of a pixel, quantized to bytes.
//!
//! For each component and fraction, the step of the taps is their maximum over 127. The rounding
//! error is some thousandth of an estimate's own scatter (docs/design/0007).

use fulgurite_platter::numeric::dispatch_simd;

use super::{FRACTIONS, Taps, WIDE_WINDOW, WINDOW, fraction_weights};
use crate::flat::{MEAN, STATES, STEPS};

/// Bytes in a row of a wide window.
pub(super) const LINE: usize = WIDE_WINDOW * STATES;

/// Taps in a row of a wide window, pixel by pixel.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Line(pub(super) [i8; LINE]);

/// Taps for one fraction: row by row, first component, second component.
pub(super) type Window = [[Line; 2]; WIDE_WINDOW];

/// All taps.
#[derive(Clone, Debug)]
pub(super) struct Bank {
    windows: Vec<Window>,
    /// By fraction and component: the scale of a sum, and the offset.
    scales: Vec<[[f32; 2]; 2]>,
}

impl Bank {
    pub(super) fn new(taps: &Taps) -> Self {
        let mut windows = Vec::with_capacity(FRACTIONS * FRACTIONS);
        let mut scales = Vec::with_capacity(FRACTIONS * FRACTIONS);
        for fraction in 0..FRACTIONS * FRACTIONS {
            let mut window = [[Line([0; LINE]); 2]; WIDE_WINDOW];
            let mut scale = [[0.0; 2]; 2];
            for part in 0..2 {
                let exact = shift_taps(taps, part, [fraction / FRACTIONS, fraction % FRACTIONS]);
                let max = exact.iter().flatten().fold(0.0f32, |max, tap| max.max(tap.abs()));
                let step = if max > 0.0 { max / f32::from(i8::MAX) } else { 1.0 };
                let mut sum = 0;
                for (y, x, tap) in quantize_taps(exact, step) {
                    window[y][part].0[x] = tap;
                    sum += i32::from(tap);
                }
                let constant = taps.weights[part].last().copied().unwrap_or(0.0);
                // Bytes are offset by `MEAN`.
                #[expect(clippy::cast_precision_loss, reason = "below 2^24")]
                let offset = constant - step / STEPS * f32::from(MEAN) * sum as f32;
                scale[part] = [step / STEPS, offset];
            }
            windows.push(window);
            scales.push(scale);
        }
        Self { windows, scales }
    }

    /// The taps for a fraction.
    pub(super) fn taps(&self, fraction: usize) -> &Window {
        &self.windows[fraction]
    }

    /// Scales sums of products to estimates.
    pub(super) fn estimates(&self, fraction: usize, sums: &[[i32; 2]], out: &mut [[f32; 2]]) {
        let [first, second] = self.scales[fraction];
        dispatch_simd(
            #[inline(always)]
            || {
                for (out, [a, b]) in out.iter_mut().zip(sums) {
                    #[expect(clippy::cast_precision_loss, reason = "some 24 bits")]
                    let [a, b] = [*a as f32, *b as f32];
                    *out = [a * first[0] + first[1], b * second[0] + second[1]];
                }
            },
        );
    }
}

/// Quantizes taps; yields row, byte in the row, and tap. Rounding errors are diffused to the taps
/// to the right and below of the same image (Floyd and Steinberg): light is blurred, so errors that
/// alternate from pixel to pixel nearly cancel.
fn quantize_taps(
    mut taps: [[f32; LINE]; WIDE_WINDOW],
    step: f32,
) -> impl Iterator<Item = (usize, usize, i8)> {
    /// Rows down, pixels to the right, and share of the error.
    const SHARES: [(usize, isize, f32); 4] =
        [(0, 1, 7.0 / 16.0), (1, -1, 3.0 / 16.0), (1, 0, 5.0 / 16.0), (1, 1, 1.0 / 16.0)];
    (0..WIDE_WINDOW).flat_map(|y| (0..LINE).map(move |x| (y, x))).map(move |(y, x)| {
        let max = f32::from(i8::MAX);
        let steps = (taps[y][x] / step).round().clamp(-max, max);
        let rest = taps[y][x] - steps * step;
        for (down, right, share) in SHARES {
            let to = x.checked_add_signed(right * STATES.cast_signed());
            if let Some(to) = to.filter(|to| *to < LINE)
                && y + down < WIDE_WINDOW
            {
                taps[y + down][to] += share * rest;
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 127")]
        let tap = steps as i8;
        (y, x, tap)
    })
}

/// Shifts the taps of a component down and to the right by fractions of a pixel.
fn shift_taps(taps: &Taps, part: usize, [down, right]: [usize; 2]) -> [[f32; LINE]; WIDE_WINDOW] {
    let (vertical, horizontal) = (fraction_weights(down), fraction_weights(right));
    let mut out = [[0.0; LINE]; WIDE_WINDOW];
    let count = taps.images * WINDOW * WINDOW;
    for (i, weight) in taps.weights[part].iter().enumerate().take(count) {
        let (image, y, x) = (i / (WINDOW * WINDOW), i / WINDOW % WINDOW, i % WINDOW);
        for (dy, v) in vertical.iter().enumerate() {
            for (dx, h) in horizontal.iter().enumerate() {
                out[y + dy][(x + dx) * STATES + image] += weight * v * h;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    //! Estimates with quantized taps against estimates with exact ones.

    use fulgurite_units::Seed;

    use super::{Bank, FRACTIONS, LINE, Taps, WIDE_WINDOW, shift_taps};
    use crate::flat::byte_to_flat;
    use crate::linear::kernel::{Kernel, Windows};
    use crate::standard_linear;

    /// On realistically blurred light the quantization error is a small part of the scatter of
    /// estimates, which is 0.15.
    #[test]
    fn estimates_match_exact_taps() {
        let linear = standard_linear("nominal").unwrap();
        let taps: &Taps = linear.taps();
        let bank = Bank::new(taps);
        let mut stream = Seed::new(3).stream();
        let mut squares = 0.0;
        for fraction in 0..FRACTIONS * FRACTIONS {
            let mut bytes = vec![[0u8; 4]; WIDE_WINDOW * WIDE_WINDOW];
            for state in 0..4 {
                let mut rough = vec![0.0; 20 * 20];
                rough.fill_with(|| stream.unit());
                for (at, pixel) in bytes.iter_mut().enumerate() {
                    let (row, column) = (at / WIDE_WINDOW, at % WIDE_WINDOW);
                    let near = (0..25).map(|k| rough[(row + k / 5) * 20 + column + k % 5]);
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "0 to 255"
                    )]
                    let byte = (128.0 + 40.0 * (near.sum::<f64>() - 12.5)).clamp(0.0, 255.0) as u8;
                    pixel[state] = byte;
                }
            }
            let windows = Windows { pixels: &bytes, row: WIDE_WINDOW, step: 3 };
            let (mut sums, mut found) = ([[0; 2]], [[0.0; 2]]);
            Kernel::current().run(windows, bank.taps(fraction), &mut sums);
            bank.estimates(fraction, &sums, &mut found);
            for (part, found) in found[0].iter().enumerate() {
                let exact = shift_taps(taps, part, [fraction / FRACTIONS, fraction % FRACTIONS]);
                let products = (0..WIDE_WINDOW * LINE).map(|at| {
                    let (row, byte) = (at / LINE, at % LINE);
                    exact[row][byte] * byte_to_flat(bytes.as_flattened()[at])
                });
                let constant = taps.weights[part].last().unwrap();
                let off = f64::from(products.sum::<f32>() + constant - found);
                squares += off * off;
            }
        }
        let off = (squares / (2 * FRACTIONS * FRACTIONS) as f64).sqrt();
        assert!(off < 0.007, "{off}");
    }
}

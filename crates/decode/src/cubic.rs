//! Bicubic interpolation.

/// Returns the weights of the pixels -1, 0, 1, 2 for the value at position `t`, from 0 to below 1
/// (Keys, a = -1/2).
#[inline(always)]
pub(crate) fn cubic(t: f32) -> [f32; 4] {
    let (t2, t3) = (t * t, t * t * t);
    [
        0.5 * (-t3 + 2.0 * t2 - t),
        0.5 * (3.0 * t3 - 5.0 * t2 + 2.0),
        0.5 * (-3.0 * t3 + 4.0 * t2 + t),
        0.5 * (t3 - t2),
    ]
}

//! Maps values to positions on an axis, and chooses the marks of an axis.

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    /// Returns a scale that shows all of these values; from zero on, unless it is logarithmic or
    /// `tight`.
    pub(crate) fn covering(values: impl Iterator<Item = f64>, log: bool, tight: bool) -> Self {
        let usable = values.filter(|value| value.is_finite() && (!log || *value > 0.0));
        let (low, high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if low > high {
            return Self { low: if log { 0.1 } else { 0.0 }, high: 1.0, log };
        }
        if log {
            return Self { low: low / 1.3, high: high * 1.3, log };
        }
        let pad = ((high - low) * 0.04).max(high.abs() * 1e-6).max(1e-9);
        if tight {
            return Self { low: low - pad, high: high + pad, log };
        }
        Self { low: low.min(0.0), high: (high * 1.08).max(1e-9), log }
    }

    /// Returns a scale from one value to another, and nothing beyond.
    pub(crate) fn exact(low: f64, high: f64) -> Self {
        assert!(low < high, "the low end is below the high end");
        Self { low, high, log: false }
    }

    /// Returns the position of a value: 0 at the low end, 1 at the high end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    /// Returns the values to mark.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        if self.log { self.log_ticks() } else { self.linear_ticks() }
    }

    /// Returns multiples of a step of 1, 2 or 5 times a power of ten; up to eight.
    fn linear_ticks(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = steps.into_iter().find(|&step| step >= rough).unwrap_or(rough);
        let first = (self.low / step).ceil();
        let at = (0..20u32).map(|number| (first + f64::from(number)) * step);
        at.take_while(|&tick| tick <= self.high).collect()
    }

    /// Returns 1, 2 and 5 times powers of ten, or powers of ten alone over a long range.
    fn log_ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let factors: &[f64] = if decades > 3.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let first = self.low.log10().floor();
        let powers = (0..20u32).map(|number| 10f64.powf(first + f64::from(number)));
        let all = powers.flat_map(|power| factors.iter().map(move |factor| factor * power));
        all.filter(|tick| (self.low..=self.high).contains(tick)).collect()
    }
}

/// Formats a number with three significant digits, without trailing zeros.
#[must_use]
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let size = value.abs();
    if size >= 1e6 || (size > 0.0 && size < 1e-4) {
        return format!("{value:.1e}");
    }
    let decimals = match size {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.1 => 3,
        size if size > 0.0 => 4,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

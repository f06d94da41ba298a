//! Time series in columns of equal width. Sums are integers, so the columns of a run do not depend
//! on the order of addition.

use fulgurite_units::{Duration, Instant};
use serde::Serialize;

/// A time series of a quantity: mean, minimum and maximum of each column.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Curve {
    /// Mean over the column.
    pub mean: Vec<f64>,
    /// Minimum in the column.
    pub min: Vec<f64>,
    /// Maximum in the column.
    pub max: Vec<f64>,
}

/// Maximum number of columns: about what a picture can show.
const COLUMNS_MAX: u64 = 240;
/// Minimum width of a column.
const COLUMN_MIN: Duration = Duration::from_secs(60);

/// The column width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    column: u64,
    end: Option<u64>,
}

impl Default for Grid {
    fn default() -> Self {
        Self { column: COLUMN_MIN.as_nanos(), end: None }
    }
}

impl Grid {
    pub(crate) const fn column(&self) -> Duration {
        Duration::from_nanos(self.column)
    }

    /// Returns whether the columns reach to `until`.
    pub(crate) const fn reaches(&self, until: Instant) -> bool {
        until.as_nanos() <= self.column * COLUMNS_MAX
    }

    pub(crate) const fn coarsen(&mut self) {
        self.column *= 2;
    }

    /// Returns the same grid, cut off at `end`.
    pub(crate) const fn until(self, end: Instant) -> Self {
        Self { end: Some(end.as_nanos()), ..self }
    }

    /// Returns each column that overlaps an interval, with the begin and end of the overlap.
    fn parts(&self, from: Instant, to: Instant) -> impl Iterator<Item = (usize, u64, u64)> + use<> {
        let (from, to, column) = (from.as_nanos(), to.as_nanos(), self.column);
        let columns = from / column..to.div_ceil(column);
        columns.map(move |number| {
            let (begin, end) = (number * column, (number + 1) * column);
            (usize::try_from(number).unwrap_or(usize::MAX), begin.max(from), end.min(to))
        })
    }

    /// Returns the length of each column, in nanoseconds.
    fn lengths(&self) -> impl Iterator<Item = (usize, f64)> + use<> {
        let end = self.end.unwrap_or(self.column * COLUMNS_MAX);
        self.parts(Instant::ZERO, Instant::from_nanos(end))
            .map(|(number, from, to)| (number, to_f64(u128::from(to - from))))
    }
}

/// A value that is constant between events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    now: u64,
    columns: Vec<ColumnStats>,
}

#[derive(Clone, Copy, Debug)]
struct ColumnStats {
    /// The value times the nanoseconds it was stats.
    area: u128,
    min: u64,
    max: u64,
}

impl ColumnStats {
    const NONE: Self = Self { area: 0, min: u64::MAX, max: 0 };

    fn merge(self, other: Self) -> Self {
        let (min, max) = (self.min.min(other.min), self.max.max(other.max));
        Self { area: self.area + other.area, min, max }
    }
}

impl Level {
    pub(crate) fn change(&mut self, delta: i64) {
        let changed = self.now.checked_add_signed(delta);
        assert!(changed.is_some(), "nothing ends before it begins");
        self.now = changed.unwrap_or(0);
    }

    pub(crate) fn hold(&mut self, grid: &Grid, from: Instant, to: Instant) {
        let now = self.now;
        for (number, begin, end) in grid.parts(from, to) {
            let area = u128::from(now) * u128::from(end - begin);
            let column = at(&mut self.columns, number, ColumnStats::NONE);
            *column = column.merge(ColumnStats { area, min: now, max: now });
        }
    }

    pub(crate) fn coarsen(&mut self) {
        merge_pairs(&mut self.columns, ColumnStats::merge, ColumnStats::NONE);
    }

    pub(crate) fn curve(&self, grid: &Grid) -> Curve {
        let mut curve = Curve::default();
        for (number, length) in grid.lengths() {
            let stats = self.columns.get(number).copied().unwrap_or(ColumnStats::NONE);
            curve.mean.push(to_f64(stats.area) / length);
            curve.min.push(to_f64(u128::from(stats.min.min(stats.max))));
            curve.max.push(to_f64(u128::from(stats.max)));
        }
        curve
    }
}

/// The maximum age of the oldest item, per column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ages {
    columns: Vec<u64>,
}

impl Ages {
    /// Records the age of the oldest item, present since `oldest`, from `from` to `to`.
    pub(crate) fn pass(
        &mut self,
        grid: &Grid,
        oldest: Option<Instant>,
        from: Instant,
        to: Instant,
    ) {
        let Some(oldest) = oldest else { return };
        for (number, _, end) in grid.parts(from, to) {
            let column = at(&mut self.columns, number, 0);
            *column = (*column).max(end.saturating_sub(oldest.as_nanos()));
        }
    }

    pub(crate) fn coarsen(&mut self) {
        merge_pairs(&mut self.columns, u64::max, 0);
    }

    pub(crate) fn seconds(&self, grid: &Grid) -> Vec<f64> {
        let age = |number: usize| self.columns.get(number).copied().unwrap_or(0);
        grid.lengths().map(|(number, _)| Duration::from_nanos(age(number)).as_secs_f64()).collect()
    }
}

/// Time spent on something, per column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    columns: Vec<u64>,
}

impl Times {
    pub(crate) fn add(&mut self, grid: &Grid, from: Instant, to: Instant) {
        for (number, begin, end) in grid.parts(from, to) {
            *at(&mut self.columns, number, 0) += end - begin;
        }
    }

    pub(crate) fn coarsen(&mut self) {
        merge_pairs(&mut self.columns, std::ops::Add::add, 0);
    }

    /// Returns the time spent as a share of each column.
    pub(crate) fn shares(&self, grid: &Grid) -> Vec<f64> {
        let spent = |number: usize| self.columns.get(number).copied().unwrap_or(0);
        grid.lengths().map(|(number, length)| to_f64(u128::from(spent(number))) / length).collect()
    }
}

/// Returns a column, growing the vector if needed.
fn at<T: Copy>(columns: &mut Vec<T>, number: usize, none: T) -> &mut T {
    if columns.len() <= number {
        columns.resize(number + 1, none);
    }
    &mut columns[number]
}

/// Merges each pair of columns into one.
fn merge_pairs<T: Copy>(columns: &mut Vec<T>, merge: impl Fn(T, T) -> T, none: T) {
    let pair = |pair: &[T]| merge(pair[0], pair.get(1).copied().unwrap_or(none));
    *columns = columns.chunks(2).map(pair).collect();
}

#[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
const fn to_f64(value: u128) -> f64 {
    value as f64
}

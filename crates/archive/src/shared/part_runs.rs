//! Run-length encoded part lengths of an object in a shared bucket. Most uploads have one run and a
//! last part. A note has little space, so lengths that change all the time are not stored.

use serde::{Deserialize, Serialize};

use crate::limits::{PART_NUMBER_MAX, SHARED_PART_RUNS_MAX};

/// Runs of parts of equal length: count and length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartRuns(Vec<(u32, u64)>);

impl PartRuns {
    /// Encodes these lengths; `None` when there are too many runs.
    pub(super) fn from_lengths(lengths: impl Iterator<Item = u64>) -> Option<Self> {
        let mut runs: Vec<(u32, u64)> = Vec::new();
        for bytes in lengths {
            if let Some((count, length)) = runs.last_mut()
                && *length == bytes
            {
                *count += 1;
                continue;
            }
            if runs.len() == SHARED_PART_RUNS_MAX {
                return None;
            }
            runs.push((1, bytes));
        }
        Some(Self(runs))
    }

    /// Returns the length of each part. Bounded, because the runs come from a store.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u64> {
        let all = self.0.iter().flat_map(|&(count, bytes)| (0..count).map(move |_| bytes));
        all.take(PART_NUMBER_MAX as usize)
    }

    /// Whether they have this number of parts and bytes.
    pub(super) fn add_up_to(&self, parts: u32, bytes: u64) -> bool {
        let count = self.0.iter().try_fold(0, |sum: u32, &(count, _)| sum.checked_add(count));
        let sum = self.0.iter().try_fold(0, |sum: u64, &(count, length)| {
            sum.checked_add(length.checked_mul(u64::from(count))?)
        });
        (count, sum) == (Some(parts), Some(bytes)) && parts <= PART_NUMBER_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_part_lengths_form_one_run() {
        let lengths = std::iter::repeat_n(8 << 20, 9_999).chain([77]);
        let runs = PartRuns::from_lengths(lengths.clone()).unwrap();
        assert!(postcard::to_stdvec(&runs).unwrap().len() < 16);
        assert!(runs.lengths().eq(lengths));
        assert!(runs.add_up_to(10_000, (8 << 20) * 9_999 + 77));
        assert!(!runs.add_up_to(10_000, 8 << 20) && !runs.add_up_to(9_999, (8 << 20) * 9_999 + 77));
    }

    #[test]
    fn irregular_part_lengths_are_not_stored() {
        let most = SHARED_PART_RUNS_MAX as u64;
        assert!(PartRuns::from_lengths(0..most).is_some());
        assert_eq!(PartRuns::from_lengths(0..=most), None);
        let forged = PartRuns(vec![(u32::MAX, u64::MAX), (1, 1)]);
        assert!(!forged.add_up_to(0, 0));
    }
}

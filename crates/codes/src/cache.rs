//! Size of the L2 cache: detected once, or forced.
//!
//! ```text
//! FULGURITE_SECOND_CACHE_KIB=1024     forces a size, for tests and comparisons
//! ```
//!
//! The size only determines block sizes, never output bytes: results are the same for any value.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use crate::CodeError;

/// Name of the environment variable that forces the size, in KiB.
pub const L2_CACHE_VARIABLE: &str = "FULGURITE_SECOND_CACHE_KIB";

/// Size assumed if the processor reports none: that of small processors.
const DEFAULT_BYTES: usize = 512 << 10;
/// Plausible sizes.
const PLAUSIBLE_SIZES: RangeInclusive<usize> = 128 << 10..=64 << 20;

/// Returns the L2 cache size of a core in bytes: the forced one, or what the processor reports.
#[must_use]
pub fn l2_cache_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        l2_cache_bytes_from_env().ok().flatten().or_else(detect).unwrap_or(DEFAULT_BYTES)
    })
}

/// Returns the size that the environment forces, if any.
///
/// # Errors
/// [`CodeError::L2Cache`] when no L2 cache has such a size. Programs call this at startup,
/// because [`l2_cache_bytes`] silently ignores an invalid size.
pub fn l2_cache_bytes_from_env() -> Result<Option<usize>, CodeError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "beside the instruction set the one choice that depends on the machine"
    )]
    let Ok(kib) = std::env::var(L2_CACHE_VARIABLE) else { return Ok(None) };
    let bytes = kib.parse().ok().and_then(|count| plausible_size(count, 1 << 10));
    bytes.map(Some).ok_or(CodeError::L2Cache { kib })
}

/// Returns the product if it is a plausible L2 cache size.
fn plausible_size(count: usize, each: usize) -> Option<usize> {
    count.checked_mul(each).filter(|bytes| PLAUSIBLE_SIZES.contains(bytes))
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Option<usize> {
    None
}

/// Reads the cache size from CPUID: leaf 4 (Intel) or 0x8000001d (AMD).
#[cfg(target_arch = "x86_64")]
fn detect() -> Option<usize> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const CACHES_MAX: u32 = 8;
    // Vendors differ in the leaf that they fill; the other is zero or absent.
    let leaves = [(0, 4), (0x8000_0000, 0x8000_001d)];
    let supported_leaves = leaves.into_iter().filter(|(first, leaf)| __cpuid(*first).eax >= *leaf);
    let caches =
        supported_leaves.flat_map(|(_, leaf)| (0..CACHES_MAX).map(move |i| __cpuid_count(leaf, i)));
    let size = caches.filter_map(|cache| {
        let (kind, level) = (cache.eax & 31, cache.eax >> 5 & 7);
        // Data or unified caches; ways, partitions, line size and sets are each stored minus one.
        let is_second = matches!(kind, 1 | 3) && level == 2;
        let [ways, parts, line] =
            [cache.ebx >> 22, cache.ebx >> 12 & 0x3ff, cache.ebx & 0xfff].map(|less| less + 1);
        let sets = usize::try_from(cache.ecx).ok()?.checked_add(1)?;
        // No overflow: 2^10 ways, 2^10 partitions and 2^12 bytes.
        is_second.then(|| {
            plausible_size(sets, usize::try_from(ways * parts).ok()? * usize::try_from(line).ok()?)
        })?
    });
    size.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implausible_cache_sizes_are_refused() {
        assert_eq!(plausible_size(1024, 1 << 10), Some(1 << 20));
        for (count, each) in [(0, 1 << 10), (64, 1 << 10), (1 << 20, 1 << 10), (usize::MAX, 2)] {
            assert_eq!(plausible_size(count, each), None, "{count} of {each}");
        }
        let bytes = l2_cache_bytes();
        assert!(PLAUSIBLE_SIZES.contains(&bytes), "{bytes} bytes");
        assert_eq!(
            bytes,
            l2_cache_bytes_from_env().unwrap().or_else(detect).unwrap_or(DEFAULT_BYTES)
        );
    }

    /// The Linux kernel reports the same number by another path.
    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn cpuid_cache_size_matches_the_kernel() {
        let folder = std::path::Path::new("/sys/devices/system/cpu/cpu0/cache");
        let read = |index: u32, attribute: &str| {
            std::fs::read_to_string(folder.join(format!("index{index}/{attribute}"))).ok()
        };
        let second = (0..8).find(|i| read(*i, "level").is_some_and(|level| level.trim() == "2"));
        let Some(size) = second.and_then(|index| read(index, "size")) else { return };
        let kib: usize = size.trim().trim_end_matches('K').parse().unwrap();
        assert_eq!(detect(), Some(kib << 10));
    }
}
